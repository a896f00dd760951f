/* SPDX-License-Identifier: MIT
 *
 * The layouts of matrix units: what the host knows of cl_kernels/lib/tile.clh.
 */
#ifndef QN_OP_TILE_H
#define QN_OP_TILE_H

#include <quern/device.h>

/* Words of 32 bits along k that a tile is multiplied over, and how many layouts there are. */
enum { QN_TILE_DEPTH = 16, QN_TILE_LAYOUTS = QN_MATRIX_DPAS16 };

struct qn_tile_layout {
    const char *name; /* as the kernels call it */
    int lanes, m, n;  /* work-items of a team; rows and columns of a tile */
    int pitch;        /* most words of local memory that a row of a strip takes */
    int types;        /* bits of enum qn_matrix_type that devices may have */
};

/* Bytes of local memory that a kernel may declare where the facts have QN_MATRIX_STRIPS, and those
 * that a driver may count beside them, since it keeps them for itself. */
enum { QN_STRIPS_BYTES = 48 << 10, QN_STRIPS_COUNTED = 1 << 10 };

/* `layout` is of enum qn_matrix_layout. */
const struct qn_tile_layout *qn_tile_layout(int layout);

#endif
