/* SPDX-License-Identifier: MIT
 *
 * Lines of a file, one after another, in memory of the longest of them.
 */
#ifndef QN_IO_LINES_H
#define QN_IO_LINES_H

#include <quern/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file under way, and the line that was read last. A zeroed struct is none.
 * Thread-safety: Unsafe. Lifetime: until qn_lines_close; `path` and `log` are borrowed. */
struct qn_lines {
    const char *path;
    const struct qn_log *log;
    const char *line; /* with a NUL behind it in the place of the newline */
    size_t bytes;     /* of the line, without that */
    int64_t number;   /* of the line, from 1 */
    int64_t offset;   /* of the line in the file */
    int fd;
    int64_t size, next; /* of the file; of it the next byte to read */
    char *memory;       /* (room) bytes, of which those from `begin` to `end` are not given yet */
    size_t room, begin, end;
};

qn_status qn_lines_open(struct qn_lines *lines, const char *path, const struct qn_log *log);
/* The next line; `*there` false: there is none any more. QN_ERR_FORMAT: a line is longer than
 * 64 MiB. */
qn_status qn_lines_next(struct qn_lines *lines, bool *there);
void qn_lines_close(struct qn_lines *lines);

#endif
