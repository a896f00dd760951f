/* SPDX-License-Identifier: MIT */
#include "lifetimes.h"
#include "file.h"
#include "value.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3 }; /* of numbers */

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

int lifetimes_read(struct lifetimes *t, const char *path, struct failure *failure)
{
    *t = (struct lifetimes){.path = path};
    TRY(file_read(&t->text, path, failure));
    drop_marks(t->text);
    const size_t lines = (size_t)count_lines(t->text);
    t->names = calloc(lines, sizeof *t->names);
    t->buffers = calloc(lines, sizeof *t->buffers);
    if (!t->names || !t->buffers)
        return failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    char *rows = cut(t->text, '\n');
    if (strcmp(t->text, LIFETIMES_HEADER) != 0)
        return failure_set(failure, CODE_FAILED, "%s: line 1: is not '%s'", path, LIFETIMES_HEADER);
    return read_rows(t, rows, failure);
}

void lifetimes_free(struct lifetimes *t)
{
    free(t->text);
    free(t->names);
    free(t->buffers);
    *t = (struct lifetimes){0};
}
