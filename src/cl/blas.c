/* SPDX-License-Identifier: MIT
 *
 * Matrix products through CLBlast, always with a temporary buffer of ours.
 */
#include "cl/launch.h"

#include "base/random.h"
#include "base/shape.h"
#include "op/blas.h"
#include "op/op.h"

#include <clblast_c.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>

/* Two threads that use a routine for the first time at once make CLBlast 1.5.3 throw: its caches
 * are filled, used and emptied under this lock. */
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
/* Counts how often the caches were emptied; under the lock. A device notes at which count CLBlast
 * built its kernels. */
static unsigned generation = 1;

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

/* --- the temporary buffer --- */

/* The largest over the transpositions. Matrices at offsets that are not zero and not aligned, for
 * which CLBlast copies most. */
int64_t qn_blas_ask(struct qn_device *device, int64_t m, int64_t n, int64_t k)
{
    size_t most = 0;
    pthread_mutex_lock(&cache_lock);
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
    pthread_mutex_unlock(&cache_lock);
    return code == CLBlastSuccess ? (int64_t)most : -1;
}

/* The largest size of dimension `which` that takes no more bytes than the size 1, below `end`. */
static int64_t last_of_first(struct qn_device *device, int which, int64_t others, int64_t end)
{
    int64_t size[3] = {others, others, others}, low = 1, high = end;
    size[which] = 1;
    const int64_t first = qn_blas_ask(device, size[0], size[1], size[2]);
    while (high - low > 1) {
        size[which] = low + (high - low) / 2;
        if (qn_blas_ask(device, size[0], size[1], size[2]) == first)
            low = size[which];
        else
            high = size[which];
    }
    return low;
}

/* Products of all kinds of sizes, around the one from which on CLBlast copies. */
static bool follows_the_rule(struct qn_device *device)
{
    const struct qn_facts *facts = &device->facts;
    for (uint64_t i = 0; i < 16; i++) {
        int64_t size[3];
        for (uint64_t d = 0; d < 3; d++)
            size[d] = 1 + (int64_t)(qn_random_bits(i, d, 0) % (uint64_t)(3 * facts->blas_side));
        const int64_t ruled = qn_blas_bytes(facts, size[0], size[1], size[2]);
        const int64_t asked = qn_blas_ask(device, size[0], size[1], size[2]);
        if (asked < 0 || asked > ruled || (asked < ruled && ruled > QN_BLAS_LEAST))
            return false;
    }
    return true;
}

/* Of n = k = 1 and of matrices that are surely copied. */
enum { LONGEST = 1 << 20, LARGEST_TILE = 1 << 16 };

void qn_blas_measure(struct qn_device *device)
{
    struct qn_facts *facts = &device->facts;
    const int64_t most = (int64_t)LONGEST * LONGEST;
    facts->blas_side = 1;
    if (!qn_blas_ask(device, 1, 1, 1))
        facts->blas_side = (int)lround(cbrt((double)last_of_first(device, 0, 1, most) + 1));
    facts->blas_rows = (int)last_of_first(device, 0, LONGEST, LARGEST_TILE + 1);
    facts->blas_columns = (int)last_of_first(device, 1, LONGEST, LARGEST_TILE + 1);
    facts->blas_terms = (int)last_of_first(device, 2, LONGEST, LARGEST_TILE + 1);
    facts->blas = follows_the_rule(device);
    if (!facts->blas)
        qn_log_write(&device->log, QN_LOG_INFO,
                     "CLBlast is not used: its temporary buffer follows no known rule");
}

/* --- multiplying --- */

/* CLBlast builds its kernels when a routine is first used: done now, by a product of one element in
 * the temporary buffer, so that no step waits for it. Under the lock. */
static CLBlastStatusCode make_ready(struct qn_device *device, cl_mem temporary)
{
    if (device->blas_generation == generation)
        return CLBlastSuccess;
    const struct qn_site_gemm one = {1,         1,         1, false, false, temporary,
                                     temporary, temporary, 0, 1,     2,     0.0f};
    CLBlastStatusCode code = product(device, &one, temporary, NULL);
    if (code == CLBlastSuccess)
        device->blas_generation = generation;
    return code;
}

/* CLBlast can only forget all contexts: the other devices get ready again when they next multiply,
 * which is the one time that a step waits for a compiler and that CLBlast allocates in it. */
void qn_blas_release(struct qn_device *device)
{
    if (device->blas_generation == 0)
        return;
    pthread_mutex_lock(&cache_lock);
    CLBlastClearCache();
    generation++;
    pthread_mutex_unlock(&cache_lock);
    device->blas_generation = 0;
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
    const int64_t size = qn_blas_bytes(&device->facts, gemm->m, gemm->n, gemm->k);
    if (!device->facts.blas || size < 0 ||
        !qn_slab_has(recording->slab, recording->blas_buffer, 0, size))
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
    pthread_mutex_lock(&cache_lock);
    CLBlastStatusCode code = make_ready(slab->device, slab->buffer[recording->blas_buffer]);
    pthread_mutex_unlock(&cache_lock);
    QN_TRY(blas_status(slab->device, emit->tag, code));
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
    pthread_mutex_lock(&cache_lock);
    CLBlastStatusCode code = make_ready(device, temporary);
    if (code == CLBlastSuccess)
        code = product(device, site->gemm, temporary, event);
    pthread_mutex_unlock(&cache_lock);
    return blas_status(device, site->tag, code);
}
