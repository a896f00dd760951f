/* SPDX-License-Identifier: MIT */
#include "npy.h"

#include <stdio.h>
#include <string.h>

/* Before the text are a mark, a version and the text's length; the data begins at a multiple. */
enum { MARK = 8, BEFORE = 10, MULTIPLE = 64, ROOM = 256 };

static int write_text(char *to, size_t room, qn_dtype dtype, const qn_shape *shape)
{
    int length = snprintf(to, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          dtype == QN_U8    ? "|u1"
                          : dtype == QN_I32 ? "<i4"
                                            : "<f4");
    for (int d = 0; d < shape->rank; d++)
        length += snprintf(to + length, room - (size_t)length, "%lld,", (long long)shape->dim[d]);
    return length + snprintf(to + length, room - (size_t)length, "), }");
}

int npy_begin(struct file_part *part, const char *path, qn_dtype dtype, const qn_shape *shape,
              struct failure *failure)
{
    char header[ROOM];
    const int text = write_text(header + BEFORE, sizeof header - BEFORE, dtype, shape);
    const int whole = (BEFORE + text + 1 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    memset(header + BEFORE + text, ' ', (size_t)(whole - BEFORE - text));
    memcpy(header, "\x93NUMPY\x01\x00", MARK);
    header[MARK] = (char)((whole - BEFORE) & 0xff);
    header[MARK + 1] = (char)((whole - BEFORE) >> 8);
    header[whole - 1] = '\n';
    TRY(file_begin(part, path, failure));
    const int code = file_add(part, header, (size_t)whole, failure);
    if (code)
        file_drop(part);
    return code;
}
