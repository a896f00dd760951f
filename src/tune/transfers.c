/* SPDX-License-Identifier: MIT */
#include "tune/transfers.h"

#include "base/clock.h"
#include "base/log.h"
#include "cl/device.h"
#include "cl/slab.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the timed copies: a large one (`least` to `most`) for the bytes per second, and one of
 * `small` bytes for the seconds that starting a copy takes. */
static const int64_t most = INT64_C(64) << 20, least = INT64_C(1) << 20, small = 4096;
enum { RUNS = 7 };

struct copying {
    qn_device *device;
    struct qn_slab *slab;
    unsigned char *host;
    int64_t bytes; /* of the buffer and of the host's memory */
};

/* Seconds of the fastest of RUNS copies, one after another on an idle queue. */
static qn_status time_copy(const struct copying *c, int64_t bytes, bool to_device, double *seconds)
{
    for (int r = 0; r < RUNS; r++) {
        const double start = qn_clock();
        QN_TRY(to_device ? qn_slab_write(c->slab, 0, 0, c->host, bytes, NULL)
                         : qn_slab_read(c->slab, 0, 0, c->host, bytes, NULL));
        const double each = qn_clock() - start;
        *seconds = r == 0 || each < *seconds ? each : *seconds;
    }
    return QN_OK;
}

static qn_status measure(const struct copying *c, struct qn_transfers *transfers)
{
    double back, forth, begin;
    QN_TRY(time_copy(c, c->bytes, false, &back));
    QN_TRY(time_copy(c, c->bytes, true, &forth));
    QN_TRY(time_copy(c, small, true, &begin));
    *transfers = (struct qn_transfers){
        .to_host = (double)c->bytes / back, .to_device = (double)c->bytes / forth, .begin = begin};
    return QN_OK;
}

qn_status qn_measure_transfers(qn_device *device, int64_t budget, struct qn_transfers *transfers)
{
    struct copying c = {.device = device, .bytes = most};
    while (c.bytes > budget || c.bytes > qn_device_facts(device)->max_alloc_bytes)
        c.bytes /= 2;
    if (c.bytes < least)
        return QN_ERR_BUDGET;
    QN_TRY(qn_slab_open(&c.slab, device, &c.bytes, 1));
    c.host = malloc((size_t)c.bytes);
    qn_status status;
    if (c.host) {
        memset(c.host, 0, (size_t)c.bytes);
        status = measure(&c, transfers);
    } else {
        status = qn_fail(qn_device_log(device), QN_ERR_MEMORY, "tuning: out of host memory");
    }
    free(c.host);
    qn_slab_close(&c.slab);
    return status;
}
