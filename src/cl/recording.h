/* SPDX-License-Identifier: MIT
 *
 * Recorded launches: kernels with all their arguments bound, one cl_kernel a launch site, replayed
 * in order without any further set-up. The one launch path of training, harness and benchmarks.
 */
#ifndef QN_CL_RECORDING_H
#define QN_CL_RECORDING_H

#include "cl/slab.h"
#include "op/emit.h"

/* Thread-safety: Unsafe. Lifetime: until qn_recording_close; must not outlive its slab. */
struct qn_recording;

qn_status qn_recording_open(struct qn_recording **recording, struct qn_slab *slab);
void qn_recording_close(struct qn_recording **recording);

/* The emitter that adds launches to the recording; `tag` (a word for people and for profiles,
 * such as the node's name) is given to the launches that follow, and is copied. CLBlast's
 * temporary buffer is buffer `blas_buffer` of the slab (-1: none; qn_emit_gemm then fails with
 * QN_ERR_ARGUMENT). */
struct qn_emit *qn_recording_emit(struct qn_recording *recording, const char *tag);
void qn_recording_set_blas_buffer(struct qn_recording *recording, int blas_buffer);

/* Number of launches so far. */
int qn_recording_count(const struct qn_recording *recording);

/* m, n and k of the CLBlast product that launch `index` is; false: it is a kernel. */
bool qn_recording_product(const struct qn_recording *recording, int index, int64_t sizes[3]);

/* Enqueues launches first .. last - 1 (last -1: to the end) in order; does not wait. Allocates
 * nothing. */
qn_status qn_recording_run(struct qn_recording *recording, int first, int last);

#endif
