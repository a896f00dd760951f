/* SPDX-License-Identifier: MIT
 *
 * The inside of a recording, for the files of cl/.
 */
#ifndef QN_CL_LAUNCH_H
#define QN_CL_LAUNCH_H

#include "cl/memory.h"
#include "cl/recording.h"

struct qn_emit {
    struct qn_recording *recording;
    const char *tag;
};

/* One launch: a kernel with its arguments bound, or a matrix product. */
struct qn_site {
    const char *tag, *name;
    cl_kernel kernel;
    size_t global[3], local[3];
    const struct qn_site_gemm *gemm;
};

struct qn_site_gemm {
    size_t m, n, k;
    bool trans_a, trans_b;
    cl_mem a, b, c;
    size_t a_at, b_at, c_at; /* in elements */
    float beta;
};

struct qn_recording {
    struct qn_emit emit;
    struct qn_slab *slab;
    struct qn_arena arena;
    struct qn_site *sites;
    int count, capacity;
    int blas_buffer;
};

qn_status qn_recording_add(struct qn_recording *recording, const struct qn_site *site);

/* Whether `count` elements of the operand lie in its buffer; QN_ERR_INTERNAL names `what` if not.
 */
qn_status qn_check_operand(const struct qn_recording *recording, const struct qn_operand *operand,
                           int64_t count, const char *what);

/* Enqueues a matrix product. CLBlast was made ready by qn_emit_gemm, unless another device closed
 * since. */
qn_status qn_blas_enqueue(struct qn_recording *recording, const struct qn_site *site,
                          cl_event *event);

#endif
