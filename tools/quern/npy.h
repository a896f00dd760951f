/* SPDX-License-Identifier: MIT
 *
 * Files of one array in NumPy's format, version 1.0.
 */
#ifndef QUERN_TOOL_NPY_H
#define QUERN_TOOL_NPY_H

#include "file.h"

#include <quern/tensor.h>

/* Begins a file with its header; the rows follow by file_add, and file_end. QN_F32, QN_U8
 * or QN_I32. */
int npy_begin(struct file_part *part, const char *path, qn_dtype dtype, const qn_shape *shape,
              struct failure *failure);

#endif
