/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "value.h"

#include <quern/plan.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "id,lower,upper,size";
enum { COLUMNS = 3 }; /* of numbers */

/* A lifetime table. Names point into the text, whose commas and line ends are overwritten. */
struct lifetimes {
    const char *path;
    char *text;
    const char **names;
    qn_lifetime *buffers;
    int count;
    int64_t sum; /* of the sizes */
};

static int wrong(const struct lifetimes *t, int line, const char *field, const char *reason,
                 struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s: line %d: %s: %s", t->path, line, field, reason);
}

/* Cuts the text at `end`; gives what follows, NULL if it has no such character. */
static char *cut(char *text, char end)
{
    char *at = strchr(text, end);
    if (at)
        *at++ = 0;
    return at;
}

static int read_row(struct lifetimes *t, int line, char *row, struct failure *failure)
{
    static const char *const fields[COLUMNS] = {"lower", "upper", "size"};
    int64_t number[COLUMNS];
    char *rest = cut(row, ',');
    for (int i = 0; i < COLUMNS; i++) {
        char *text = rest;
        if (!text)
            return wrong(t, line, fields[i], "is missing", failure);
        rest = cut(text, ',');
        const char *reason = value_count(text, 0, INT64_MAX, &number[i]);
        if (reason)
            return wrong(t, line, fields[i], reason, failure);
    }
    if (rest)
        return wrong(t, line, rest, "one column too many", failure);
    if (number[0] >= number[1])
        return wrong(t, line, "upper", "is not above lower", failure);
    if (number[2] > INT64_MAX - t->sum)
        return wrong(t, line, "size", "the sizes so far have no sum", failure);
    t->sum += number[2];
    t->names[t->count] = row;
    t->buffers[t->count++] = (qn_lifetime){number[0], number[1], number[2], 0};
    return CODE_DONE;
}

static int read_rows(struct lifetimes *t, char *rows, struct failure *failure)
{
    for (int line = 2; rows && *rows; line++) {
        char *next = cut(rows, '\n');
        TRY(read_row(t, line, rows, failure));
        rows = next;
    }
    return CODE_DONE;
}

/* Takes out what some editors put in: the mark before UTF-8, and the first half of their line ends.
 */
static void drop_marks(char *text)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *from = text + (strncmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0);
    for (; *from; from++)
        if (*from != '\r' || (from[1] && from[1] != '\n'))
            *text++ = *from;
    *text = 0;
}

static int count_lines(const char *text)
{
    int lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static int read_table(struct lifetimes *t, const char *path, struct failure *failure)
{
    t->path = path;
    TRY(file_read(&t->text, path, failure));
    drop_marks(t->text);
    const size_t lines = (size_t)count_lines(t->text);
    t->names = calloc(lines, sizeof *t->names);
    t->buffers = calloc(lines, sizeof *t->buffers);
    if (!t->names || !t->buffers)
        return failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    char *rows = cut(t->text, '\n');
    if (strcmp(t->text, header) != 0)
        return failure_set(failure, CODE_FAILED, "%s: line 1: is not '%s'", path, header);
    return read_rows(t, rows, failure);
}

static int write_table(const struct lifetimes *t, const char *path, struct failure *failure)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return failure_set(failure, CODE_FAILED, "out of memory");
    fprintf(out, "%s,offset\n", header);
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
    TRY(read_table(t, a->operand, failure));
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
    free(table.text);
    free(table.names);
    free(table.buffers);
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
