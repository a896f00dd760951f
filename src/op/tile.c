/* SPDX-License-Identifier: MIT */
#include "op/tile.h"

enum { HALVES = QN_MATRIX_F16 | QN_MATRIX_BF16 };

static const struct qn_tile_layout layouts[] = {
    [QN_MATRIX_MMA] = {"mma", 32, 16, 8, QN_TILE_DEPTH + 2,
                       HALVES | QN_MATRIX_TF32 | QN_MATRIX_COPIES | QN_MATRIX_STRIPS},
    [QN_MATRIX_MFMA] = {"mfma", 64, 16, 16, QN_TILE_DEPTH + 4, HALVES | QN_MATRIX_F32},
    [QN_MATRIX_WMMA] = {"wmma", 32, 16, 16, QN_TILE_DEPTH + 4, HALVES},
    [QN_MATRIX_DPAS8] = {"dpas8", 8, 8, 8, QN_TILE_DEPTH + 4, HALVES},
    [QN_MATRIX_DPAS16] = {"dpas16", 16, 8, 16, QN_TILE_DEPTH + 4, HALVES | QN_MATRIX_TF32},
};

const struct qn_tile_layout *qn_tile_layout(int layout)
{
    return &layouts[layout];
}
