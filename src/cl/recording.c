/* SPDX-License-Identifier: MIT
 *
 * The list of launches and its replay.
 */
#include "cl/launch.h"

#include <stdlib.h>

enum { FLUSH_EVERY = 256 };

qn_status qn_recording_open(struct qn_recording **recording, struct qn_slab *slab)
{
    *recording = calloc(1, sizeof **recording);
    if (!*recording)
        return qn_fail(&slab->device->log, QN_ERR_MEMORY, "qn_recording_open: out of memory");
    (*recording)->emit = (struct qn_emit){.recording = *recording, .tag = ""};
    (*recording)->slab = slab;
    (*recording)->blas_buffer = -1;
    return QN_OK;
}

void qn_recording_close(struct qn_recording **recording)
{
    struct qn_recording *old = recording ? *recording : NULL;
    if (!old)
        return;
    for (int i = 0; i < old->count; i++)
        if (old->sites[i].kernel)
            clReleaseKernel(old->sites[i].kernel);
    free(old->sites);
    qn_arena_free(&old->arena);
    free(old);
    *recording = NULL;
}

struct qn_emit *qn_recording_emit(struct qn_recording *recording, const char *tag)
{
    const char *copy = tag ? qn_arena_strdup(&recording->arena, tag) : NULL;
    recording->emit.tag = copy ? copy : "";
    return &recording->emit;
}

void qn_recording_set_blas_buffer(struct qn_recording *recording, int blas_buffer)
{
    recording->blas_buffer = blas_buffer;
}

int qn_recording_count(const struct qn_recording *recording)
{
    return recording->count;
}

bool qn_recording_product(const struct qn_recording *recording, int index, int64_t sizes[3])
{
    const struct qn_site_gemm *gemm = recording->sites[index].gemm;
    if (!gemm)
        return false;
    sizes[0] = (int64_t)gemm->m;
    sizes[1] = (int64_t)gemm->n;
    sizes[2] = (int64_t)gemm->k;
    return true;
}

qn_status qn_recording_add(struct qn_recording *recording, const struct qn_site *site)
{
    if (recording->count == recording->capacity) {
        int capacity = recording->capacity ? 2 * recording->capacity : 64;
        struct qn_site *sites = realloc(recording->sites, (size_t)capacity * sizeof *sites);
        if (!sites)
            return qn_fail(&recording->slab->device->log, QN_ERR_MEMORY, "%s: out of memory",
                           site->tag);
        recording->sites = sites;
        recording->capacity = capacity;
    }
    recording->sites[recording->count++] = *site;
    return QN_OK;
}

static qn_status enqueue(struct qn_recording *recording, const struct qn_site *site,
                         cl_event *event)
{
    struct qn_device *device = recording->slab->device;
    if (site->gemm)
        return qn_blas_enqueue(recording, site, event);
    cl_int error = clEnqueueNDRangeKernel(device->queue, site->kernel, 3, NULL, site->global,
                                          site->local, 0, NULL, event);
    if (error == CL_SUCCESS)
        return QN_OK;
    return qn_fail(&device->log, QN_ERR_DEVICE, "%s: kernel %s: clEnqueueNDRangeKernel: %s",
                   site->tag, site->name, qn_cl_error_name(error));
}

qn_status qn_recording_run(struct qn_recording *recording, int first, int last)
{
    struct qn_device *device = recording->slab->device;
    if (last < 0)
        last = recording->count;
    QN_REQUIRE(&device->log, first >= 0 && first <= last && last <= recording->count);
    for (int i = first; i < last; i++) {
        bool rest = i + 1 == last || (i - first) % FLUSH_EVERY == FLUSH_EVERY - 1;
        cl_event event = NULL;
        QN_TRY(enqueue(recording, &recording->sites[i], rest ? &event : NULL));
        if (rest) {
            qn_device_mark(device, event);
            QN_TRY(qn_device_flush(device));
        }
    }
    return QN_OK;
}
