/* SPDX-License-Identifier: MIT
 *
 * What a matrix product through CLBlast needs, from the facts alone.
 */
#ifndef QN_OP_BLAS_H
#define QN_OP_BLAS_H

#include <quern/device.h>

/* A kernel that needs no temporary buffer is still given one: making CLBlast ready takes an
 * element.
 */
enum { QN_BLAS_LEAST = 512 };

/* Bytes of CLBlast's temporary buffer for an m x n x k product of f32, in any transposition and at
 * any offsets. At offsets above 0 CLBlast copies all three matrices, each filled up to whole tiles;
 * of a product with fewer than blas_side^3 multiplications it copies none. */
int64_t qn_blas_bytes(const struct qn_facts *facts, int64_t m, int64_t n, int64_t k);

#endif
