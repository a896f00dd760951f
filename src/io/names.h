/* SPDX-License-Identifier: MIT
 *
 * What lies in a folder.
 */
#ifndef QN_IO_NAMES_H
#define QN_IO_NAMES_H

#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Lifetime: until qn_names_free; a zeroed struct is none. */
struct qn_names {
    char **name;
    int64_t count, capacity;
};

/* The names in a folder, sorted by their bytes; hidden ones, that begin with a dot, are left out.
 */
qn_status qn_names_read(struct qn_names *names, const char *folder, const struct qn_log *log);
void qn_names_free(struct qn_names *names);

/* Whether a path leads to a folder, through links too. */
bool qn_is_folder(const char *path);

#endif
