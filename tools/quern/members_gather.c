/* SPDX-License-Identifier: MIT */
#include "members_told.h"
#include "ranks.h"

#include <stdlib.h>

/* Of the members of this process, as a text; NULL: out of memory. */
static char *describe_own(struct session *s, members_describe describe, void *user)
{
    struct session *one;
    cJSON *list = cJSON_CreateArray();
    bool whole = true;
    for (int m = 0; (one = members_session(s, m)); m++)
        whole &= cJSON_AddItemToArray(list, describe(one, user));
    char *text = whole ? cJSON_PrintUnformatted(list) : NULL;
    cJSON_Delete(list);
    return text;
}

/* Moves those of one rank into the list. */
static bool take(const char *text, cJSON *list)
{
    cJSON *own = cJSON_Parse(text);
    while (own && own->child)
        cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(own, 0));
    cJSON_Delete(own);
    return own;
}

/* One list of those of all ranks. */
static int join(char **texts, cJSON **list, struct failure *failure)
{
    bool whole = (*list = cJSON_CreateArray());
    for (int r = 0; whole && r < ranks_count(); r++)
        whole = take(texts[r], *list);
    if (whole)
        return CODE_DONE;
    cJSON_Delete(*list);
    *list = NULL;
    return failure_set(failure, CODE_FAILED, "out of memory");
}

/* What a rank could not say is an empty text. */
int members_gather(struct session *s, members_describe describe, void *user, cJSON **list)
{
    char **texts = NULL;
    char *own = describe_own(s, describe, user);
    int code = ranks_collect(own ? own : "", &texts, s->failure);
    free(own);
    *list = NULL;
    if (!code && texts)
        code = join(texts, list, s->failure);
    ranks_free(texts);
    return code;
}
