/* SPDX-License-Identifier: MIT
 *
 * In place of blas.c where CLBlast is missing: qn_facts.blas is false, so that no product is ever
 * given to it.
 */
#include "cl/launch.h"

void qn_blas_measure(struct qn_device *device)
{
    device->facts.blas = false;
}

void qn_blas_release(struct qn_device *device)
{
    (void)device;
}

static qn_status refuse(const struct qn_recording *recording, const char *tag)
{
    return qn_fail(&recording->slab->device->log, QN_ERR_ARGUMENT,
                   "%s: a product for CLBlast, which this libquern was built without", tag);
}

qn_status qn_emit_gemm(struct qn_emit *emit, const struct qn_gemm *gemm)
{
    (void)gemm;
    return refuse(emit->recording, emit->tag);
}

qn_status qn_blas_enqueue(struct qn_recording *recording, const struct qn_site *site,
                          cl_event *event)
{
    (void)event;
    return refuse(recording, site->tag);
}
