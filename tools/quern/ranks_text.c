/* SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

static int no_memory(struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "out of memory");
}

/* Receives a text of that length. */
static int receive(int from, int64_t length, char **text, struct failure *failure)
{
    *text = calloc((size_t)length + 1, 1);
    return *text ? ranks_receive(from, *text, length, failure) : no_memory(failure);
}

static int gather_lengths(const char *own, int64_t lengths[QN_MAX_GROUP], struct failure *failure)
{
    const int64_t length = own ? (int64_t)strlen(own) : 0;
    return ranks_gather(&length, sizeof length, lengths, failure);
}

int ranks_text(char **text, struct failure *failure)
{
    int64_t lengths[QN_MAX_GROUP];
    TRY(gather_lengths(ranks_first() ? *text : NULL, lengths, failure));
    if (!ranks_first())
        return receive(0, lengths[0], text, failure);
    for (int r = 1; r < ranks_count(); r++)
        TRY(ranks_send(r, *text, lengths[0], failure));
    return CODE_DONE;
}

int ranks_collect(const char *own, char ***texts, struct failure *failure)
{
    int64_t lengths[QN_MAX_GROUP];
    *texts = NULL;
    TRY(gather_lengths(own, lengths, failure));
    if (!ranks_first())
        return ranks_send(0, own, lengths[ranks_own()], failure);
    char **all = calloc((size_t)ranks_count() + 1, sizeof *all);
    int code = all ? CODE_DONE : no_memory(failure);
    if (all && !(all[0] = strdup(own)))
        code = no_memory(failure);
    for (int r = 1; !code && r < ranks_count(); r++)
        code = receive(r, lengths[r], &all[r], failure);
    *texts = all;
    return code;
}

void ranks_free(char **texts)
{
    for (int i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}
