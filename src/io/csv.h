/* SPDX-License-Identifier: MIT
 *
 * Rows of a file of comma-separated values (RFC 4180), one after another, in memory of the longest
 * of them. What is wrong is told as `FILE: line 3: cell 2: reason`.
 */
#ifndef QN_IO_CSV_H
#define QN_IO_CSV_H

#include "io/lines.h"

/* A file under way, and the row that was read last. A zeroed struct is none.
 * Thread-safety: Unsafe. Lifetime: until qn_csv_close; `path` and `log` are borrowed. */
struct qn_csv {
    struct qn_lines lines;
    int64_t number; /* of the line with which the row begins, from 1 */
    size_t count;   /* cells of the row */
    char *memory;   /* (room) bytes of them, of which `bytes` are in use: each with a NUL behind */
    size_t room, bytes;
    size_t *begin; /* (begin_room) where each cell begins */
    size_t begin_room;
};

qn_status qn_csv_open(struct qn_csv *csv, const char *path, const struct qn_log *log);
/* The next row; `*there` false: there is none any more. Lines end with LF or CRLF; quoted cells may
 * hold them, commas and doubled quotes. Empty lines are passed over, and so are the bytes with
 * which some programs mark UTF-8 at the beginning of a file. QN_ERR_FORMAT: a quote that nothing
 * ends, or where none may be, a character 0, or a row of more than 64 MiB. */
qn_status qn_csv_next(struct qn_csv *csv, bool *there);
void qn_csv_close(struct qn_csv *csv);

/* Cell `index` of the row, until the next call; its writer may change the bytes. */
static inline char *qn_csv_cell(const struct qn_csv *csv, size_t index)
{
    return csv->memory + csv->begin[index];
}

#endif
