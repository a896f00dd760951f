/* SPDX-License-Identifier: MIT
 *
 * A model's tensors beside those of a file that another program wrote. Every `layout` may be NULL:
 * the file has all tensors as the model has them.
 */
#ifndef QN_IO_LAYOUT_H
#define QN_IO_LAYOUT_H

#include "base/arena.h"
#include <quern/io.h>
#include <stdbool.h>

/* The rule for a name; NULL: the tensor stands as it is. */
const qn_layout_rule *qn_layout_rule_of(const qn_layout *layout, const char *name);
/* Whether it is the rule for a name. */
bool qn_layout_says(const qn_layout *layout, const char *name, qn_layout_kind kind);

/* Whether the file leaves the layout's prefix out. */
bool qn_layout_is_bare(const qn_layout *layout, const qn_tensors *file);
/* Whether a name in a file means the model's `name`. */
bool qn_layout_means(const qn_layout *layout, bool bare, const char *in_file, const char *name);
/* The name in a file of what the model calls `name`; NULL when out of memory. */
const char *qn_layout_name(const qn_layout *layout, const char *name, struct qn_arena *arena);
/* The file's tensor for the model's `name`; NULL: it has none. */
const qn_tensors_entry *qn_layout_find(const qn_layout *layout, bool bare, const qn_tensors *file,
                                       const char *name);

/* The shape in a file of what the model has in `shape`, and the other way round. */
qn_shape qn_layout_shape(const qn_layout *layout, const char *name, qn_shape shape);

/* Transposes a matrix of rows x columns elements of `size` bytes. */
void qn_layout_transpose(const void *from, void *to, int64_t rows, int64_t columns, int64_t size);

/* qn_tensors_save of items that params->layout may transpose. */
qn_status qn_layout_save(const char *path, const qn_tensors_params *params,
                         qn_tensors_source_fn source, void *user, uint32_t *crc, int64_t *bytes);

#endif
