/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operators cell_store and cell_load.
 */
#ifndef QN_OP_CELL_H
#define QN_OP_CELL_H

#include <stdint.h>

struct qn_cell_attr {
    int64_t rows; /* of the cell, for cell_store; to load, for cell_load */
    int slot;     /* of control.position: the row of the cell at which they begin */
};

#endif
