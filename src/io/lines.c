/* SPDX-License-Identifier: MIT */
#include "io/lines.h"
#include "base/log.h"
#include "base/room.h"
#include "io/file.h"
#include "io/path.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 16, LONGEST = 1 << 26 };

qn_status qn_lines_open(struct qn_lines *lines, const char *path, const struct qn_log *log)
{
    *lines = (struct qn_lines){.path = path, .log = log};
    return qn_file_open(path, &lines->fd, &lines->size, log);
}

void qn_lines_close(struct qn_lines *lines)
{
    if (lines->path && lines->fd >= 0)
        close(lines->fd);
    free(lines->memory);
    *lines = (struct qn_lines){0};
}

/* Reads on, behind what is not given yet, which moves to the front. */
static qn_status read_part(struct qn_lines *lines)
{
    const size_t left = lines->end - lines->begin;
    const int64_t unread = lines->size - lines->next;
    const size_t size = unread < PART_BYTES ? (size_t)unread : PART_BYTES;
    if (left > LONGEST)
        return qn_fail(lines->log, QN_ERR_FORMAT, "%s: line %" PRId64 ": is longer than %d bytes",
                       lines->path, lines->number + 1, LONGEST);
    if (lines->begin)
        memmove(lines->memory, lines->memory + lines->begin, left);
    lines->begin = 0;
    lines->end = left;
    if (!QN_ROOM(lines->memory, lines->room, left + size + 1))
        return qn_fail_memory(lines->log, lines->path);
    QN_TRY(qn_read_at(lines->fd, lines->path, lines->next, lines->memory + left, size, lines->log));
    lines->end += size;
    lines->next += (int64_t)size;
    return QN_OK;
}

/* Bytes up to the next newline, which is read; without one, those up to the end of the file. */
static qn_status measure(struct qn_lines *lines, size_t *bytes)
{
    for (size_t seen = 0;;) {
        const size_t left = lines->end - lines->begin;
        const char *from = left > seen ? lines->memory + lines->begin : NULL;
        const char *newline = from ? memchr(from + seen, '\n', left - seen) : NULL;
        *bytes = newline ? (size_t)(newline - from) : left;
        if (newline || lines->next == lines->size)
            return QN_OK;
        seen = left;
        QN_TRY(read_part(lines));
    }
}

qn_status qn_lines_next(struct qn_lines *lines, bool *there)
{
    size_t bytes;
    QN_TRY(measure(lines, &bytes));
    *there = lines->begin < lines->end;
    if (!*there)
        return QN_OK;
    lines->offset = lines->next - (int64_t)(lines->end - lines->begin);
    lines->line = lines->memory + lines->begin;
    lines->bytes = bytes;
    lines->number++;
    lines->memory[lines->begin + bytes] = 0;
    lines->begin += bytes + (lines->begin + bytes < lines->end);
    return QN_OK;
}
