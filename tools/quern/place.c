/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "lifetimes.h"
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int write_table(const struct lifetimes *t, const char *path, struct failure *failure)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return failure_set(failure, CODE_FAILED, "out of memory");
    fprintf(out, "%s,offset\n", LIFETIMES_HEADER);
    for (int i = 0; i < t->count; i++) {
        const qn_lifetime *b = &t->buffers[i];
        fprintf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", t->names[i], b->lower,
                b->upper, b->size, b->offset);
    }
    int code = fclose(out) ? failure_set(failure, CODE_FAILED, "out of memory") : CODE_DONE;
    if (!code && path)
        code = file_replace(path, text, failure);
    else if (!code)
        fputs(text, stdout);
    free(text);
    return code;
}

static int place(struct lifetimes *t, const struct arguments *a, struct failure *failure)
{
    qn_place_params params = {.log = failure_log(failure)};
    const char *text = a->value[OPTION_CAPACITY];
    const char *reason = text ? value_size(text, &params.capacity) : NULL;
    int64_t bound, height = 0;
    if (reason)
        return failure_set(failure, CODE_USAGE, "--capacity: '%s' %s", text, reason);
    TRY(lifetimes_read(t, a->operand, failure));
    TRY_LIBRARY(failure, t->path, qn_place(t->buffers, t->count, &params, &bound));
    for (int i = 0; i < t->count; i++) {
        const int64_t top = t->buffers[i].offset + t->buffers[i].size;
        height = top > height ? top : height;
    }
    TRY(write_table(t, a->value[OPTION_TABLE], failure));
    if (a->value[OPTION_TABLE])
        printf("%d buffers within %" PRId64 " bytes; %" PRId64 " live at the same time\n", t->count,
               height, bound);
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct lifetimes table = {0};
    const int code = place(&table, a, failure);
    lifetimes_free(&table);
    return code;
}

const struct command command_place = {
    "place",
    "FILE.csv",
    "finds offsets for buffers whose lifetimes are known",
    "Reads a table with the columns id,lower,upper,size: so many bytes are needed from time lower\n"
    "on and no longer at time upper. Prints it with a column of offsets: no two buffers that live\n"
    "at the same time overlap. The search is exact; it ends with status 3 when there are no such\n"
    "offsets, or when it found none in some minutes.",
    false,
    run,
    {OPTION_CAPACITY, OPTION_TABLE, OPTION_COUNT},
};
