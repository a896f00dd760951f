/* SPDX-License-Identifier: MIT */
#include "pictures.h"
#include "file.h"
#include "history.h"
#include "members_told.h"
#include "ranks.h"

#include <quern/group.h>
#include <stdio.h>
#include <stdlib.h>

/* A members_describe. */
static cJSON *draw(const struct session *s, void *user)
{
    char *text = qn_plan_svg(session_running(s));
    cJSON *picture = text ? cJSON_CreateString(text) : NULL;
    free(text);
    (void)user;
    return picture;
}

static int keep(const char *out, int number, const char *text, struct failure *failure)
{
    char path[4096], name[32] = HISTORY_PICTURE;
    if (number)
        snprintf(name, sizeof name, "plan-%d.svg", number);
    if (snprintf(path, sizeof path, "%s/%s", out, name) >= (int)sizeof path)
        return failure_set(failure, CODE_FAILED, "%s: the path is too long", out);
    return file_replace(path, text, failure);
}

int pictures_keep(struct session *s, const char *out)
{
    bool wanted[QN_MAX_GROUP];
    cJSON *list;
    int code = CODE_DONE, number = 0;
    TRY(ranks_gather(&(bool){out != NULL}, sizeof(bool), wanted, s->failure));
    if (!wanted[0])
        return CODE_DONE;
    TRY(members_gather(s, draw, NULL, &list));
    for (cJSON *one = list ? list->child : NULL; one && !code; one = one->next)
        code = keep(out, number++, cJSON_GetStringValue(one), s->failure);
    cJSON_Delete(list);
    return code;
}
