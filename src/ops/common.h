/* SPDX-License-Identifier: MIT
 *
 * What many operators share: the two shapes of a kernel, costs and checks of shapes. No operator.
 */
#ifndef QN_OPS_COMMON_H
#define QN_OPS_COMMON_H

#include "op/op.h"

#include <stdbool.h>

/* Work-items of a group in GPU-shaped row kernels. */
enum { QN_ROW_GROUP = 128 };

/* For qn_variant.fits: devices where one work-item per work-group is right; devices that can run
 * work-groups of QN_ROW_GROUP. */
bool qn_fits_cpu(const struct qn_call *call, const char **why);
bool qn_fits_row_group(const struct qn_call *call, const char **why);

/* The variants "cpu" and "gpu" of a group with one function for both shapes, which asks call->cpu;
 * `gpu_fits` is for the second: qn_fits_row_group, or NULL. */
/* clang-format off */
#define QN_BOTH_SHAPES(gpu_fits, cost, emit)                                                       \
    {{"cpu", qn_fits_cpu, cost, emit, .cpu = true},                                                \
     {"gpu", gpu_fits, cost, emit}}
/* clang-format on */

/* Width of the vectors that a kernel should use there, and that one of the call should: on GPUs so
 * many that those of its narrowest floats are 16 bytes. */
int64_t qn_vector_width(const struct qn_facts *facts);
int64_t qn_vector_of(const struct qn_call *call);
/* Appends the option QN_ALIGNED (cl_kernels/lib/type.clh) where vectors of `width` that begin at
 * multiples of it in rows of n elements, one behind the other, have their own alignment in every
 * operand of the launch, whose arguments are set. n = 0: there is one row. Never in the shape for
 * CPUs, whose loads are as fast without. */
void qn_launch_aligned(struct qn_launch *launch, const struct qn_call *call, int64_t width,
                       int64_t n);
/* Appends the option QN_V, of qn_vector_of, and that one. */
void qn_launch_vectors(struct qn_launch *launch, const struct qn_call *call, int64_t n);

/* How rows of n elements are walked: work-items of a group, width of vectors, work-items that share
 * a row (cl_kernels/lib/reduce.clh). */
struct qn_walk {
    int64_t group, vector, lanes;
};
struct qn_walk qn_walk_rows(const struct qn_call *call, int64_t n);
/* Appends the options QN_WG and QN_V. */
void qn_walk_options(struct qn_launch *launch, const struct qn_walk *walk);

/* Rows of n elements that one team should take: enough work for one work-group. */
int64_t qn_rows_per_team(const struct qn_walk *walk, int64_t n, int64_t rows);

/* Work-items in dimension 1 of a kernel that takes so many rows in turn: there some devices end at
 * 65535. */
int64_t qn_row_range(int64_t rows);

/* Bytes of all operands that a group of the call's operator reads and writes, each once. */
double qn_group_bytes(const struct qn_call *call, int group);

/* Of one launch that does all of a group, with `flops` operations an element of the operand. */
void qn_launch_cost(const struct qn_call *call, int group, double flops,
                    const struct qn_operand *operand, struct qn_cost *cost);

/* Rows of x that belong to one sample, where dimension 0 is so many times the batch. */
int64_t qn_rows_per_sample(const struct qn_operand *x, int64_t batch);

bool qn_is_float(const struct qn_operand *operand);
/* Whether the operand is of one dimension and `count` elements of a float type. */
bool qn_is_row_of(const struct qn_operand *operand, int64_t count);

#endif
