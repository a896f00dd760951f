/* SPDX-License-Identifier: MIT
 *
 * An open file of tensors: one by itself, or the parts that an index names.
 */
#ifndef QN_IO_TENSORS_FILE_H
#define QN_IO_TENSORS_FILE_H

#include "io/tensors.h"

/* Of an index: its parts in the order in which it first names them, and in `header` the entries of
 * one after another. */
struct qn_tensors {
    int fd; /* of a file by itself; below 0: none */
    struct qn_log log;
    char *path;
    struct qn_tensors_header header;
    struct qn_tensors **parts;
    int n_parts; /* 0: a file by itself */
};

enum { QN_TENSORS_PARTS = 512 };

/* What an index says: where each tensor lies. Texts live in the arena, which the caller frees, also
 * after a failure. */
struct qn_tensors_index {
    struct qn_arena arena;
    int64_t count;
    const char **names, **files;
};
qn_status qn_tensors_index_parse(struct qn_tensors_index *index, const char *path, const char *json,
                                 const struct qn_log *log);

/* Whether a path is that of an index, and opening all of its parts. */
bool qn_tensors_is_index(const char *path);
qn_status qn_tensors_open_parts(struct qn_tensors *tensors);

#endif
