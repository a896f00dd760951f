/* SPDX-License-Identifier: MIT
 *
 * What the device reaches at best.
 */
#include <quern/tune.h>

#include "base/clock.h"
#include "base/log.h"
#include "cl/device.h"
#include "cl/recording.h"
#include "op/op.h"

enum { X, Y, BUFFERS };
/* ROUNDS, CHAINS: of the kernel multiply_add in ceiling.cl. GROUPS_PER_UNIT: work-groups for each
 * compute unit. EACH: vectors that a work-group copies. RUNS: repetitions, the fastest counts.
 * LAUNCHES: empty launches in a row. */
enum { ROUNDS = 20000, CHAINS = 12, GROUPS_PER_UNIT = 8, EACH = 4096, RUNS = 9, LAUNCHES = 200 };
static const int64_t most_copied = INT64_C(256) << 20;

struct ceiling {
    qn_device *device;
    const struct qn_facts *facts;
    struct qn_slab *slab;
    int64_t bytes; /* of each buffer */
    int group;     /* work-items of a work-group */
};

/* Seconds of one launch: `times` launches in a row are timed, RUNS times, and the fastest is
 * divided by `times`. */
static qn_status time_launch(const struct ceiling *c, struct qn_launch *launch, int times,
                             double *seconds)
{
    struct qn_recording *recording = NULL;
    qn_launch_option(launch, "QN_V", c->facts->vector_width);
    qn_launch_option(launch, "QN_GROUP", c->group);
    launch->program = "ceiling";
    launch->local[0] = c->group;
    launch->global[0] *= c->group;
    QN_TRY(qn_recording_open(&recording, c->slab));
    qn_status status = qn_emit_launch(qn_recording_emit(recording, "ceiling"), launch);
    for (int r = 0; r < RUNS && status == QN_OK; r++) {
        const double start = qn_clock();
        for (int i = 0; i < times && status == QN_OK; i++)
            status = qn_recording_run(recording, 0, -1);
        if (status == QN_OK)
            status = qn_device_finish(c->device);
        const double each = (qn_clock() - start) / times;
        *seconds = r == 0 || each < *seconds ? each : *seconds;
    }
    qn_recording_close(&recording);
    return status;
}

static qn_status measure_flops(const struct ceiling *c, double *flops)
{
    const struct qn_operand x = {.dtype = QN_F32, .buffer = X};
    const int64_t groups = (int64_t)GROUPS_PER_UNIT * c->facts->compute_units;
    double seconds;
    QN_TRY(time_launch(
        c,
        &(struct qn_launch){.kernel = "multiply_add",
                            .args = {QN_BUF(&x), QN_FLOAT(0.5f), QN_FLOAT(0.25f), QN_INT(ROUNDS)},
                            .global = {groups}},
        1, &seconds));
    *flops = 2.0 * ROUNDS * CHAINS * (double)(groups * c->group * c->facts->vector_width) / seconds;
    return QN_OK;
}

static qn_status measure_copy(const struct ceiling *c, double *bytes_per_second)
{
    const struct qn_operand x = {.dtype = QN_F32, .buffer = X}, y = {.dtype = QN_F32, .buffer = Y};
    const int64_t piece = (int64_t)EACH * c->facts->vector_width * (int64_t)sizeof(float);
    const int64_t groups = c->bytes / piece;
    double seconds;
    QN_TRY(time_launch(c,
                       &(struct qn_launch){.kernel = "copy",
                                           .args = {QN_BUF(&x), QN_BUF(&y), QN_INT(EACH)},
                                           .global = {groups}},
                       1, &seconds));
    *bytes_per_second = 2.0 * (double)(groups * piece) / seconds;
    return QN_OK;
}

static qn_status measure_launch(const struct ceiling *c, double *seconds)
{
    const struct qn_operand x = {.dtype = QN_F32, .buffer = X};
    return time_launch(
        c, &(struct qn_launch){.kernel = "nothing", .args = {QN_BUF(&x), QN_INT(0)}, .global = {1}},
        LAUNCHES, seconds);
}

qn_status qn_measure_ceilings(qn_device *device, qn_ceilings *ceilings)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), ceilings);
    const struct qn_facts *facts = qn_device_facts(device);
    struct ceiling c = {
        .device = device, .facts = facts, .bytes = most_copied, .group = facts->cpu ? 1 : 64};
    while (c.bytes > facts->max_alloc_bytes || 4 * c.bytes > facts->global_bytes)
        c.bytes /= 2;
    *ceilings = (qn_ceilings){0};
    QN_TRY(qn_slab_open(&c.slab, device, (const int64_t[]){c.bytes, c.bytes}, BUFFERS));
    qn_status status = measure_flops(&c, &ceilings->flops);
    if (status == QN_OK)
        status = measure_copy(&c, &ceilings->bytes_per_second);
    if (status == QN_OK)
        status = measure_launch(&c, &ceilings->launch_seconds);
    qn_slab_close(&c.slab);
    return status;
}
