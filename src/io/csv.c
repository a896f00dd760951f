/* SPDX-License-Identifier: MIT */
#include "io/csv.h"
#include "base/log.h"
#include "base/room.h"
#include "io/path.h"

#include <inttypes.h>
#include <string.h>

enum { LONGEST = 1 << 26 };

/* Where in a cell the next character is. */
enum state { CELL_BEGIN, CELL_PLAIN, CELL_QUOTED, CELL_CLOSED };

static qn_status refuse(const struct qn_csv *csv, const char *reason)
{
    return qn_fail(csv->lines.log, QN_ERR_FORMAT, "%s: line %" PRId64 ": cell %zu: %s",
                   csv->lines.path, csv->number, csv->count, reason);
}

qn_status qn_csv_open(struct qn_csv *csv, const char *path, const struct qn_log *log)
{
    *csv = (struct qn_csv){0};
    return qn_lines_open(&csv->lines, path, log);
}

void qn_csv_close(struct qn_csv *csv)
{
    qn_lines_close(&csv->lines);
    free(csv->memory);
    free(csv->begin);
    *csv = (struct qn_csv){0};
}

static qn_status begin_cell(struct qn_csv *csv)
{
    if (!QN_ROOM(csv->begin, csv->begin_room, csv->count + 1))
        return qn_fail_memory(csv->lines.log, csv->lines.path);
    csv->begin[csv->count++] = csv->bytes;
    return QN_OK;
}

/* Takes one character of the row, for whose bytes there is room. */
static qn_status take(struct qn_csv *csv, enum state *state, char c)
{
    const bool quoted = *state == CELL_QUOTED;
    if (!c)
        return refuse(csv, "has a character 0");
    if (c == ',' && !quoted) {
        csv->memory[csv->bytes++] = 0;
        *state = CELL_BEGIN;
        return begin_cell(csv);
    }
    if (c == '"' && *state == CELL_PLAIN)
        return refuse(csv, "a quote in a cell that does not begin with one");
    if (c != '"' && *state == CELL_CLOSED)
        return refuse(csv, "characters behind the closing quote");
    if (c != '"' || *state == CELL_CLOSED)
        csv->memory[csv->bytes++] = c;
    if (c == '"')
        *state = quoted ? CELL_CLOSED : CELL_QUOTED;
    else if (!quoted)
        *state = CELL_PLAIN;
    return QN_OK;
}

/* Takes a line, or the next one of a cell that has several. */
static qn_status take_line(struct qn_csv *csv, enum state *state, const char *line, size_t bytes)
{
    if (csv->bytes + bytes > LONGEST)
        return qn_fail(csv->lines.log, QN_ERR_FORMAT,
                       "%s: line %" PRId64 ": the row is longer than %d bytes", csv->lines.path,
                       csv->number, LONGEST);
    if (!QN_ROOM(csv->memory, csv->room, csv->bytes + bytes + 2))
        return qn_fail_memory(csv->lines.log, csv->lines.path);
    for (size_t i = 0; i < bytes; i++) {
        const bool ends = line[i] == '\r' && i + 1 == bytes && *state != CELL_QUOTED;
        if (!ends)
            QN_TRY(take(csv, state, line[i]));
    }
    csv->memory[csv->bytes++] = *state == CELL_QUOTED ? '\n' : 0;
    return QN_OK;
}

static qn_status take_row(struct qn_csv *csv, const char *line, size_t bytes)
{
    enum state state = CELL_BEGIN;
    bool there;
    csv->number = csv->lines.number;
    csv->count = csv->bytes = 0;
    QN_TRY(begin_cell(csv));
    QN_TRY(take_line(csv, &state, line, bytes));
    while (state == CELL_QUOTED) {
        QN_TRY(qn_lines_next(&csv->lines, &there));
        if (!there)
            return refuse(csv, "a quote that nothing ends");
        QN_TRY(take_line(csv, &state, csv->lines.line, csv->lines.bytes));
    }
    return QN_OK;
}

qn_status qn_csv_next(struct qn_csv *csv, bool *there)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t length = sizeof mark - 1;
    for (;;) {
        QN_TRY(qn_lines_next(&csv->lines, there));
        if (!*there)
            return QN_OK;
        const char *line = csv->lines.line;
        size_t bytes = csv->lines.bytes;
        if (csv->lines.number == 1 && bytes >= length && memcmp(line, mark, length) == 0) {
            line += length;
            bytes -= length;
        }
        if (bytes && !(bytes == 1 && *line == '\r'))
            return take_row(csv, line, bytes);
    }
}
