/* SPDX-License-Identifier: MIT
 *
 * Matrix products, shared by the operators that are made of them. No operator.
 */
#ifndef QN_OPS_MATMUL_H
#define QN_OPS_MATMUL_H

#include "op/op.h"

#include <quern/ops.h>

/* What becomes of the sums of a product; all zero: nothing. A residual only with beta 0. */
struct qn_epilogue {
    qn_activation activation;
    float slope;
    const struct qn_operand *residual; /* NULL: none */
};

/* c (m, n) = beta * c + activation(a (m, k) * b (k, n) + bias (n)) + residual (m, n), row-major and
 * dense. */
struct qn_matmul {
    int64_t m, n, k;
    int64_t batch;         /* so many such products, their operands one after the other; 0: one */
    bool trans_a, trans_b; /* a is stored (k, m); b is stored (n, k) */
    const struct qn_operand *a, *b, *c;
    const struct qn_operand *bias; /* NULL: none; only with beta 0, and no batch */
    struct qn_epilogue epilogue;
    float beta;
};

/* Tiles as large as a block, or half as high and wide; they change no bit but through the number of
 * parts that a long sum is split into. */
extern const char *const qn_matmul_settings[];

/* c (n) = beta * c + the sum of the rows of a (m, n). */
struct qn_column_sums {
    int64_t m, n;
    const struct qn_operand *a, *c;
    float beta;
};

/* A way to compute a product. All three functions take facts and setting from the call. */
struct qn_matmul_way {
    /* Whether the product can be computed that way on the device; if not, *why says why. */
    bool (*fits)(const struct qn_call *call, const struct qn_matmul *matmul, const char **why);
    /* Fills everything in. */
    void (*cost)(const struct qn_call *call, const struct qn_matmul *matmul, struct qn_cost *cost);
    /* Uses call->scratch. */
    qn_status (*emit)(struct qn_emit *emit, const struct qn_call *call,
                      const struct qn_matmul *matmul);
};
extern const struct qn_matmul_way
    qn_matmul_thin,  /* CPUs, where one operand is no wider or higher than a vector */
    qn_matmul_cpu,   /* long vectors; the settings above */
    qn_matmul_tiles, /* tile registers or dot products of a CPU's core; the settings above */
    qn_matmul_gpu,   /* work-groups of 256; the settings above */
    qn_matmul_units, /* the device's matrix units; qn_matmul_units_settings */
    qn_matmul_blas;  /* CLBlast; f32 only */
extern const char *const qn_matmul_units_settings[];

/* For other kernels in the shape of GPUs, whose work-groups make tiles of the result and take the
 * arguments of matmul_gpu: cost and launches. `launch` has the kernel, the work-group and the
 * options that are the kernel's own. */
struct qn_tile {
    int64_t m, n;
};
void qn_matmul_tiled_cost(const struct qn_facts *facts, const struct qn_matmul *matmul,
                          struct qn_tile tile, struct qn_cost *cost);
qn_status qn_matmul_tiled_emit(struct qn_emit *emit, const struct qn_call *call,
                               const struct qn_matmul *matmul, struct qn_tile tile,
                               struct qn_launch *launch);

/* The variants of a group that is one product: QN_MATMUL_VARIANTS defines their functions from
 * `product`, which gives a struct qn_matmul for a call; QN_MATMUL_LIST lists them. Those that are
 * ours alone, for products that CLBlast never computes, have OWN in their names. */
#define QN_MATMUL_OWN_VARIANTS(product)                                                            \
    QN_MATMUL_VARIANT(product, thin)                                                               \
    QN_MATMUL_VARIANT(product, cpu)                                                                \
    QN_MATMUL_VARIANT(product, tiles)                                                              \
    QN_MATMUL_VARIANT(product, gpu)                                                                \
    QN_MATMUL_VARIANT(product, units)
#define QN_MATMUL_VARIANTS(product)                                                                \
    QN_MATMUL_OWN_VARIANTS(product)                                                                \
    QN_MATMUL_VARIANT(product, blas)
/* clang-format off */
#define QN_MATMUL_OWN_LIST(product)                                                                \
    {QN_MATMUL_OWN(product)}
#define QN_MATMUL_LIST(product)                                                                    \
    {QN_MATMUL_OWN(product),                                                                       \
     {"clblast", product##_blas_fits, product##_blas_cost, product##_blas_emit}}
#define QN_MATMUL_OWN(product)                                                                     \
    {"thin", product##_thin_fits, product##_thin_cost, product##_thin_emit, .cpu = true},          \
    {"cpu", product##_cpu_fits, product##_cpu_cost, product##_cpu_emit, qn_matmul_settings,        \
     .cpu = true},                                                                                 \
    {"tiles", product##_tiles_fits, product##_tiles_cost, product##_tiles_emit,                    \
     qn_matmul_settings, .cpu = true},                                                             \
    {"gpu", product##_gpu_fits, product##_gpu_cost, product##_gpu_emit, qn_matmul_settings},       \
    {"units", product##_units_fits, product##_units_cost, product##_units_emit,                    \
     qn_matmul_units_settings}
/* clang-format on */
#define QN_MATMUL_VARIANT(product, way)                                                            \
    static bool product##_##way##_fits(const struct qn_call *call, const char **why)               \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_##way.fits(call, &matmul, why);                                           \
    }                                                                                              \
    static void product##_##way##_cost(const struct qn_call *call, struct qn_cost *cost)           \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        qn_matmul_##way.cost(call, &matmul, cost);                                                 \
    }                                                                                              \
    static qn_status product##_##way##_emit(struct qn_emit *emit, const struct qn_call *call)      \
    {                                                                                              \
        const struct qn_matmul matmul = product(call);                                             \
        return qn_matmul_##way.emit(emit, call, &matmul);                                          \
    }

/* Cost and launches of column sums. */
void qn_column_sums_cost(const struct qn_call *call, const struct qn_column_sums *sum,
                         struct qn_cost *cost);
qn_status qn_column_sums_emit(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_column_sums *sum);

/* The second pass of a sum that was split: c = beta * c + the sum of `parts` copies of it, each of
 * `count` elements, in the call's scratch. Nothing where there is one part. */
struct qn_parts {
    int64_t parts, count;
    const struct qn_operand *c;
    float beta;
    struct qn_epilogue epilogue;
};
qn_status qn_add_parts(struct qn_emit *emit, const struct qn_call *call,
                       const struct qn_parts *parts);

#endif
