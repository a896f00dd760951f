/* SPDX-License-Identifier: MIT
 *
 * Matrix products through CLBlast, always with a temporary buffer of ours.
 */
#include "cl/launch.h"

#include "base/shape.h"
#include "op/op.h"

#include <clblast_c.h>
#include <inttypes.h>
#include <pthread.h>

/* So much temporary memory is asked for at least: making CLBlast ready needs one element. */
enum { LEAST_BYTES = 512 };

/* Two threads that use a routine for the first time at once make CLBlast 1.5.3 throw: its caches
 * are filled under this lock. */
static pthread_mutex_t first_use = PTHREAD_MUTEX_INITIALIZER;
static int ready_devices; /* under the lock */

static CLBlastTranspose transpose(bool yes)
{
    return yes ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static qn_status blas_status(const struct qn_device *device, const char *tag,
                             CLBlastStatusCode code)
{
    if (code == CLBlastSuccess)
        return QN_OK;
    return qn_fail(&device->log, QN_ERR_DEVICE, "%s: CLBlast: %s (%d)", tag,
                   qn_cl_error_name((cl_int)code), (int)code);
}

static CLBlastStatusCode product(struct qn_device *device, const struct qn_site_gemm *gemm,
                                 cl_mem temporary, cl_event *event)
{
    return CLBlastSgemmWithTempBuffer(
        CLBlastLayoutRowMajor, transpose(gemm->trans_a), transpose(gemm->trans_b), gemm->m, gemm->n,
        gemm->k, 1.0f, gemm->a, gemm->a_at, gemm->trans_a ? gemm->m : gemm->k, gemm->b, gemm->b_at,
        gemm->trans_b ? gemm->k : gemm->n, gemm->beta, gemm->c, gemm->c_at, gemm->n, &device->queue,
        event, temporary);
}

/* The largest over the transpositions. Matrices of `gemm` at offsets that are not zero and not
 * aligned, for which CLBlast copies most. */
int64_t qn_blas_temp_bytes(qn_device *device, int64_t m, int64_t n, int64_t k)
{
    if (!device->facts.blas || m <= 0 || n <= 0 || k <= 0)
        return -1;
    size_t most = LEAST_BYTES;
    pthread_mutex_lock(&first_use);
    CLBlastStatusCode code = CLBlastSuccess;
    for (int i = 0; i < 4 && code == CLBlastSuccess; i++) {
        bool trans_a = i & 1, trans_b = i & 2;
        size_t size = 0;
        code = CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, transpose(trans_a),
                                          transpose(trans_b), (size_t)m, (size_t)n, (size_t)k, 1,
                                          (size_t)(trans_a ? m : k), 3, (size_t)(trans_b ? k : n),
                                          5, (size_t)n, &device->queue, &size);
        most = size > most ? size : most;
    }
    pthread_mutex_unlock(&first_use);
    return code == CLBlastSuccess ? (int64_t)most : -1;
}

/* CLBlast builds its kernels when a routine is first used: done now, by a product of one element in
 * the temporary buffer, so that no step waits for it. */
static qn_status make_ready(struct qn_device *device, const char *tag, cl_mem temporary)
{
    if (device->blas_ready)
        return QN_OK;
    const struct qn_site_gemm one = {1,         1,         1, false, false, temporary,
                                     temporary, temporary, 0, 1,     2,     0.0f};
    pthread_mutex_lock(&first_use);
    CLBlastStatusCode code = product(device, &one, temporary, NULL);
    ready_devices += code == CLBlastSuccess;
    pthread_mutex_unlock(&first_use);
    QN_TRY(blas_status(device, tag, code));
    device->blas_ready = true;
    return QN_OK;
}

void qn_blas_release(struct qn_device *device)
{
    if (!device->blas_ready)
        return;
    pthread_mutex_lock(&first_use);
    if (--ready_devices == 0)
        CLBlastClearCache();
    pthread_mutex_unlock(&first_use);
    device->blas_ready = false;
}

static qn_status check_gemm(const struct qn_recording *recording, const struct qn_gemm *gemm,
                            const char *tag)
{
    const struct qn_device *device = recording->slab->device;
    const struct qn_operand *operands[] = {gemm->a, gemm->b, gemm->c};
    const int64_t counts[] = {qn_mul(gemm->m, gemm->k), qn_mul(gemm->k, gemm->n),
                              qn_mul(gemm->m, gemm->n)};
    if (gemm->m <= 0 || gemm->n <= 0 || gemm->k <= 0)
        return qn_fail(&device->log, QN_ERR_ARGUMENT,
                       "%s: a product of %" PRId64 " x %" PRId64 " x %" PRId64, tag, gemm->m,
                       gemm->n, gemm->k);
    for (int i = 0; i < 3; i++) {
        if (operands[i]->dtype != QN_F32)
            return qn_fail(&device->log, QN_ERR_ARGUMENT, "%s: CLBlast multiplies f32 only", tag);
        QN_TRY(qn_check_operand(recording, operands[i], counts[i], tag));
    }
    int64_t size = qn_blas_temp_bytes(recording->slab->device, gemm->m, gemm->n, gemm->k);
    if (size < 0 || !qn_slab_has(recording->slab, recording->blas_buffer, 0, size))
        return qn_fail(&device->log, QN_ERR_ARGUMENT,
                       "%s: CLBlast's temporary buffer is missing or below %" PRId64 " bytes", tag,
                       size);
    return QN_OK;
}

qn_status qn_emit_gemm(struct qn_emit *emit, const struct qn_gemm *gemm)
{
    struct qn_recording *recording = emit->recording;
    const struct qn_slab *slab = recording->slab;
    QN_TRY(check_gemm(recording, gemm, emit->tag));
    QN_TRY(make_ready(slab->device, emit->tag, slab->buffer[recording->blas_buffer]));
    const struct qn_site_gemm copy = {
        (size_t)gemm->m,
        (size_t)gemm->n,
        (size_t)gemm->k,
        gemm->trans_a,
        gemm->trans_b,
        slab->buffer[gemm->a->buffer],
        slab->buffer[gemm->b->buffer],
        slab->buffer[gemm->c->buffer],
        (size_t)gemm->a->offset,
        (size_t)gemm->b->offset,
        (size_t)gemm->c->offset,
        gemm->beta,
    };
    const struct qn_site site = {.tag = emit->tag,
                                 .name = "CLBlast",
                                 .gemm = qn_arena_copy(&recording->arena, &copy, sizeof copy)};
    if (!site.gemm)
        return qn_fail(&slab->device->log, QN_ERR_MEMORY, "%s: out of memory", emit->tag);
    return qn_recording_add(recording, &site);
}

qn_status qn_blas_enqueue(struct qn_recording *recording, const struct qn_site *site,
                          cl_event *event)
{
    struct qn_device *device = recording->slab->device;
    cl_mem temporary = recording->slab->buffer[recording->blas_buffer];
    return blas_status(device, site->tag, product(device, site->gemm, temporary, event));
}
