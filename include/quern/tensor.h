/* SPDX-License-Identifier: MIT
 *
 * Types of elements, shapes, and the small value that names a tensor of a graph.
 */
#ifndef QUERN_TENSOR_H
#define QUERN_TENSOR_H

#include <quern/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QN_MAX_DIMS 6

/* X(name, bytes of an element, text) */
#define QN_DTYPE_MAP(X)                                                                            \
    X(F32, 4, "f32")                                                                               \
    X(F16, 2, "f16")                                                                               \
    X(BF16, 2, "bf16")                                                                             \
    X(U8, 1, "u8")                                                                                 \
    X(I32, 4, "i32")

typedef enum qn_dtype {
    QN_DTYPE_NONE,
#define QN_DTYPE_ENUM(name, bytes, text) QN_##name,
    QN_DTYPE_MAP(QN_DTYPE_ENUM)
#undef QN_DTYPE_ENUM
} qn_dtype;

/* Bytes of one element (0 for QN_DTYPE_NONE) and the name ("bf16"). Thread-safety: Safe. */
QN_API int64_t qn_dtype_size(qn_dtype dtype);
QN_API const char *qn_dtype_name(qn_dtype dtype);
/* The numbers of `count` packed elements. Thread-safety: Safe. */
QN_API void qn_number_decode(qn_dtype dtype, const void *bytes, int64_t count, double *values);

/* The batch as a dimension. A dimension is an integer or an integer times QN_BATCH:
 * `{QN_BATCH, 3, 224, 224}`, or `{64 * QN_BATCH, 768}` for the tokens of a batch. */
#define QN_BATCH ((int64_t)-1)

/* A shape: sizes of `rank` dimensions, slowest first; rank 0 is a scalar. A negative size -n stands
 * for n times the batch; shapes given to kernels and references have none. */
typedef struct qn_shape {
    int rank;
    int64_t dim[QN_MAX_DIMS];
} qn_shape;

/* Names one output of one node of a graph; 0 is "none" and is accepted wherever an operand is
 * optional. A tensor given by a graph function that failed is none, and the graph remembers why. */
typedef struct qn_tensor {
    uint32_t id;
} qn_tensor;

#ifdef __cplusplus
}
#endif
#endif
