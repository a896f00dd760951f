/* SPDX-License-Identifier: MIT
 *
 * The header of a safetensors file, read from untrusted bytes, and the types and texts it is made
 * of.
 */
#ifndef QN_IO_TENSORS_H
#define QN_IO_TENSORS_H

#include "base/arena.h"
#include <quern/io.h>
#include <stdbool.h>

/* Bytes before the JSON, and the most that the JSON may have. */
enum { QN_TENSORS_PREFIX = 8, QN_TENSORS_HEADER_MAX = 16 << 20 };
#define QN_TENSORS_METADATA "__metadata__"

/* X(name in the file, bytes of an element, dtype) */
#define QN_TENSORS_TYPE_MAP(X)                                                                     \
    X("F32", 4, QN_F32)                                                                            \
    X("F16", 2, QN_F16)                                                                            \
    X("BF16", 2, QN_BF16)                                                                          \
    X("U8", 1, QN_U8)                                                                              \
    X("I32", 4, QN_I32)                                                                            \
    X("F64", 8, QN_DTYPE_NONE)                                                                     \
    X("I64", 8, QN_DTYPE_NONE)                                                                     \
    X("U64", 8, QN_DTYPE_NONE)                                                                     \
    X("U32", 4, QN_DTYPE_NONE)                                                                     \
    X("I16", 2, QN_DTYPE_NONE)                                                                     \
    X("U16", 2, QN_DTYPE_NONE)                                                                     \
    X("I8", 1, QN_DTYPE_NONE)                                                                      \
    X("BOOL", 1, QN_DTYPE_NONE)                                                                    \
    X("F8_E4M3", 1, QN_DTYPE_NONE)                                                                 \
    X("F8_E5M2", 1, QN_DTYPE_NONE)

struct qn_tensors_type {
    const char *name;
    int64_t size;
    qn_dtype dtype;
};

/* NULL when the format has no such type. */
const struct qn_tensors_type *qn_tensors_type_named(const char *name);
const struct qn_tensors_type *qn_tensors_type_of(qn_dtype dtype);

/* What a header says. Lifetime: of the arena. */
struct qn_tensors_header {
    struct qn_arena arena;
    int64_t count;
    struct qn_tensors_entry *entries; /* by offset, which counts from the data's start */
    const struct qn_tensors_entry **by_name;
    int64_t pair_count;
    struct qn_tensors_pair *pairs;
};

/* Reads the JSON of a header, `length` bytes with a NUL behind them, for a file that has
 * `data_bytes` bytes behind it. `path` is for messages. The caller frees the arena, also after a
 * failure. */
qn_status qn_tensors_parse(struct qn_tensors_header *header, const char *path, const char *json,
                           size_t length, int64_t data_bytes, const struct qn_log *log);

/* Fills by_name. */
void qn_tensors_sort_names(struct qn_tensors_header *header);

const struct qn_tensors_entry *qn_tensors_look_up(const struct qn_tensors_header *header,
                                                  const char *name);

/* Whether a text is well-formed UTF-8. */
bool qn_utf8_valid(const char *text);

/* A name out of a file as part of one line: escaped and cut to a bearable length. */
struct qn_shown {
    char text[96];
};
struct qn_shown qn_show_name(const char *name);

#endif
