/* SPDX-License-Identifier: MIT */
#include "tune/rig.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/median.h"
#include "base/random.h"
#include "base/shape.h"
#include "check/number.h"
#include "cl/device.h"
#include "cl/recording.h"
#include "op/blas.h"
#include "op/control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Buffers of the slab: 0 .. QN_RIG_OPERANDS - 1 hold one operand each, these follow. */
enum { CONTROL = QN_RIG_OPERANDS, SCRATCH, BLAS, BUFFERS };
/* PATTERN: random numbers that are repeated to fill an operand. MOST_COMPARED: elements of an
 * operand that are compared. MOST_RUNS: timed repetitions of a variant. */
enum { PATTERN = 1 << 16, MOST_COMPARED = 1 << 20, MOST_RUNS = 64 };
/* Two variants may differ by this times the largest result, as they add up in different orders. */
static const double tolerance_of[] = {[QN_F32] = 1e-4, [QN_F16] = 1e-2, [QN_BF16] = 5e-2};
/* Seconds: short launches are timed so many in a row that together they take this long, since each
 * repetition ends with a wait for the device. */
static const double least_batch = 2e-3;

static qn_status out_of_memory(const struct qn_rig *rig)
{
    return qn_fail(qn_device_log(rig->device), QN_ERR_MEMORY, "tuning: out of host memory");
}

/* --- operands --- */

static const struct qn_variant *variant_of(const struct qn_rig *rig, int variant)
{
    return &rig->task->group->variant[variant];
}

static void name_operands(struct qn_rig *rig)
{
    const struct qn_task *task = rig->task;
    for (int i = 0; i < task->n_reads; i++) {
        rig->operand[rig->n_operands] = task->reads[i].ref;
        rig->values[rig->n_operands++] = task->reads[i].value;
    }
    rig->n_reads = rig->n_operands;
    for (int i = 0; i < task->n_writes; i++) {
        rig->operand[rig->n_operands] = task->writes[i].ref;
        rig->values[rig->n_operands++] = task->writes[i].value;
    }
}

static struct qn_operand *operand_of(struct qn_rig *rig, int index)
{
    return qn_call_operand(&rig->call, rig->operand[index]);
}

/* Largest scratch (to rig->scratch_bytes) and CLBlast buffer (to *blas) of the usable variants. */
static void find_needs(struct qn_rig *rig, unsigned usable, int64_t *blas)
{
    const char *why;
    for (int v = 0; v < QN_MAX_VARIANTS && variant_of(rig, v)->name; v++)
        for (int s = 0; (usable >> v & 1u) && s < qn_setting_count(variant_of(rig, v)); s++) {
            struct qn_cost cost = {0};
            if (!qn_rig_fits(rig, v, s, &why))
                continue;
            variant_of(rig, v)->cost(&rig->call, &cost);
            rig->scratch_bytes =
                cost.scratch > rig->scratch_bytes ? cost.scratch : rig->scratch_bytes;
            const int64_t bytes = cost.blas[0] ? qn_blas_bytes(rig->call.facts, cost.blas[0],
                                                               cost.blas[1], cost.blas[2])
                                               : 0;
            *blas = bytes > *blas ? bytes : *blas;
        }
}

static qn_status make_slab(struct qn_rig *rig, const struct qn_rig_task *what)
{
    int64_t bytes[BUFFERS] = {0};
    for (int i = 0; i < rig->n_operands; i++) {
        struct qn_operand *operand = operand_of(rig, i);
        bytes[i] = qn_round_up(qn_operand_bytes(operand), (int64_t)sizeof(float));
        operand->buffer = i;
        operand->offset = 0;
    }
    find_needs(rig, what->usable, &bytes[BLAS]);
    bytes[SCRATCH] = rig->scratch_bytes;
    bytes[CONTROL] = sizeof(struct qn_control);
    rig->call.control.buffer = CONTROL;
    rig->call.control.offset = 0;
    int64_t sum = 0;
    for (int i = 0; i < BUFFERS; i++)
        sum += bytes[i];
    if (sum > what->budget)
        return QN_ERR_BUDGET;
    return qn_slab_open(&rig->slab, rig->device, bytes, BUFFERS);
}

/* --- contents of the operands --- */

static void draw(struct qn_ref ref, qn_dtype dtype, int index, double *values)
{
    const bool positive = ref.kind == QN_REF_SAVED || ref.kind == QN_REF_STATE;
    for (int64_t i = 0; i < PATTERN; i++) {
        const double u = qn_random_uniform(1, (uint64_t)index, (uint64_t)i);
        if (!qn_number_is_float(dtype))
            values[i] = u < 0.5;
        else
            values[i] = positive ? 0.5 + u : 2 * u - 1;
    }
}

static qn_status write_pattern(struct qn_rig *rig, int index, const void *pattern, int64_t bytes)
{
    const int64_t all = qn_operand_bytes(operand_of(rig, index));
    for (int64_t at = 0; at < all; at += bytes)
        QN_TRY(qn_slab_write(rig->slab, index, at, pattern, all - at < bytes ? all - at : bytes,
                             NULL));
    return QN_OK;
}

static qn_status fill_operand(struct qn_rig *rig, int index)
{
    const qn_dtype dtype = operand_of(rig, index)->dtype;
    double *values = malloc(PATTERN * sizeof *values);
    void *pattern = malloc(PATTERN * sizeof(float));
    qn_status status;
    if (values && pattern) {
        draw(rig->operand[index], dtype, index, values);
        qn_number_encode(dtype, values, PATTERN, pattern);
        status = write_pattern(rig, index, pattern, PATTERN * qn_dtype_size(dtype));
    } else {
        status = out_of_memory(rig);
    }
    free(values);
    free(pattern);
    return status;
}

/* The block whose chunk table, or a part of it, is the operand; NULL: the operand is no table. */
static const struct qn_block *block_of(const struct qn_rig *rig, int index)
{
    const struct qn_persist *persist = rig->problem->persist;
    const int root = qn_value_root(rig->problem, rig->values[index]);
    for (int b = 0; b < persist->n_blocks; b++)
        if (persist->blocks[b].table == root)
            return &persist->blocks[b];
    return NULL;
}

static qn_status fill_table(struct qn_rig *rig, int index, const struct qn_block *block)
{
    const struct qn_value *value = &rig->problem->values[rig->values[index]];
    struct qn_chunk *table = malloc((size_t)block->chunks * sizeof *table);
    if (!table)
        return out_of_memory(rig);
    qn_block_table(rig->problem->persist, block, table);
    qn_status status =
        qn_slab_write(rig->slab, index, 0, (char *)table + value->block_offset, value->bytes, NULL);
    free(table);
    return status;
}

static qn_status fill_control(struct qn_rig *rig)
{
    const struct qn_control control = {.seed_lo = 1,
                                       .update = 1,
                                       .samples = (float)rig->problem->batch,
                                       .lr = 1e-3f,
                                       .loss_seed = {1, 1, 1, 1, 1, 1, 1, 1},
                                       .loss_scale = 1,
                                       .grad_scale = 1,
                                       .bias1 = 0.1f,
                                       .bias2 = 0.001f,
                                       .counted = 1};
    return qn_slab_write(rig->slab, CONTROL, 0, &control, sizeof control, NULL);
}

static qn_status fill(struct qn_rig *rig)
{
    QN_TRY(fill_control(rig));
    for (int i = 0; i < rig->n_operands; i++) {
        const struct qn_block *block = block_of(rig, i);
        QN_TRY(block ? fill_table(rig, i, block) : fill_operand(rig, i));
    }
    return QN_OK;
}

qn_status qn_rig_open(struct qn_rig *rig, qn_device *device, const struct qn_rig_task *what)
{
    *rig = (struct qn_rig){
        .device = device, .problem = what->problem, .task = what->task, .watch = what->watch};
    qn_task_call(what->problem, what->task, true, &rig->call);
    rig->call.facts = qn_device_facts(device);
    name_operands(rig);
    return make_slab(rig, what);
}

void qn_rig_forget(struct qn_rig *rig)
{
    free(rig->expected);
    rig->expected = NULL;
}

void qn_rig_close(struct qn_rig *rig)
{
    qn_rig_forget(rig);
    if (rig->slab)
        qn_slab_close(&rig->slab);
    *rig = (struct qn_rig){0};
}

bool qn_rig_fits(struct qn_rig *rig, int variant, int setting, const char **why)
{
    *why = "";
    return qn_call_fits(&rig->call, variant_of(rig, variant), setting, why);
}

/* --- comparing --- */

static int64_t compared_of(struct qn_rig *rig, int index)
{
    const int64_t count = qn_operand_count(operand_of(rig, index));
    return count < MOST_COMPARED ? count : MOST_COMPARED;
}

static int64_t compared(struct qn_rig *rig)
{
    int64_t count = 0;
    for (int i = rig->n_reads; i < rig->n_operands; i++)
        count += compared_of(rig, i);
    return count;
}

/* Reads the first compared_of(index) elements of operand `index`. */
static qn_status read_results(struct qn_rig *rig, int index, float *results)
{
    const struct qn_operand *operand = operand_of(rig, index);
    const int64_t count = compared_of(rig, index), bytes = count * qn_dtype_size(operand->dtype);
    void *stored = malloc((size_t)bytes);
    double *values = malloc((size_t)count * sizeof *values);
    qn_status status = stored && values ? qn_slab_read(rig->slab, index, 0, stored, bytes, NULL)
                                        : out_of_memory(rig);
    if (status == QN_OK) {
        qn_number_decode(operand->dtype, stored, count, values);
        for (int64_t i = 0; i < count; i++)
            results[i] = (float)values[i];
    }
    free(stored);
    free(values);
    return status;
}

/* Of operands that are made up a result may overflow in both variants, and in either to an infinity
 * or a NaN. */
static void compare_operand(struct qn_rig *rig, int index, const float *got, const float *want,
                            struct qn_verdict *verdict)
{
    const qn_dtype dtype = operand_of(rig, index)->dtype;
    const int64_t count = compared_of(rig, index);
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        const double far = fabs((double)got[i] - (double)want[i]);
        const bool neither = !isfinite(got[i]) && !isfinite(want[i]);
        largest = isfinite(want[i]) ? fmax(largest, fabs((double)want[i])) : largest;
        worst = !neither && !(far <= worst) ? far : worst;
    }
    const double tolerance = qn_number_is_float(dtype) ? tolerance_of[dtype] * largest : 0;
    if (!(worst <= tolerance))
        qn_verdict_fail(verdict, "differs by %.3g from another variant, of %.3g at most", worst,
                        tolerance);
}

/* Keeps the results of the variant that runs first; compares those of others with them. */
static qn_status compare(struct qn_rig *rig, struct qn_verdict *verdict)
{
    float *results = malloc((size_t)(compared(rig) + 1) * sizeof *results);
    if (!results)
        return out_of_memory(rig);
    int64_t at = 0;
    for (int i = rig->n_reads; i < rig->n_operands; i++) {
        qn_status status = read_results(rig, i, results + at);
        if (status == QN_OK && rig->expected)
            compare_operand(rig, i, results + at, rig->expected + at, verdict);
        if (status != QN_OK) {
            free(results);
            return status;
        }
        at += compared_of(rig, i);
    }
    if (rig->expected)
        free(results);
    else
        rig->expected = results;
    return QN_OK;
}

/* --- timing --- */

static qn_status run_times(struct qn_rig *rig, struct qn_recording *recording, int times,
                           double *seconds)
{
    const double start = qn_clock();
    for (int i = 0; i < times; i++)
        QN_TRY(qn_recording_run(recording, 0, -1));
    QN_TRY(qn_device_finish(rig->device));
    *seconds = (qn_clock() - start) / times;
    return QN_OK;
}

static void take_times(struct qn_rig_run *run, double *seconds, int count)
{
    for (int i = 0; i < count; i++)
        run->seconds = run->seconds > 0 ? fmin(run->seconds, seconds[i]) : seconds[i];
    run->median = qn_median(seconds, count);
}

/* A driver may put off building until the first repetition, of `first` seconds: what it took longer
 * than the second counts as building. */
static qn_status time_recording(struct qn_rig *rig, struct qn_recording *recording, double first,
                                struct qn_rig_run *run)
{
    double seconds[MOST_RUNS], sum = 0;
    QN_TRY(run_times(rig, recording, 1, &seconds[0]));
    const double each = fmax(seconds[0], 1e-7);
    const int times = each < least_batch ? (int)(least_batch / each) + 1 : 1;
    int count = times == 1; /* a long launch: seconds[0] counts as a timed repetition */
    rig->watch->compiled += fmax(first - each, 0);
    sum += count * each;
    while (count < MOST_RUNS && (sum < run->least || count < 3) && !qn_watch_stops(rig->watch)) {
        if (run->given_up > 0 && count && seconds[count - 1] > run->given_up)
            break;
        QN_TRY(run_times(rig, recording, times, &seconds[count]));
        sum += seconds[count] * times;
        count++;
    }
    if (count)
        take_times(run, seconds, count);
    return QN_OK;
}

static qn_status record(struct qn_rig *rig, struct qn_recording *recording,
                        const struct qn_rig_run *run)
{
    const double start = qn_clock();
    qn_recording_set_blas_buffer(recording, BLAS);
    QN_TRY(variant_of(rig, run->variant)
               ->emit(qn_recording_emit(recording, rig->task->name), &rig->call));
    rig->watch->compiled += qn_clock() - start;
    return QN_OK;
}

static qn_status record_and_time(struct qn_rig *rig, struct qn_recording *recording,
                                 struct qn_rig_run *run, struct qn_verdict *verdict)
{
    double first = 0;
    QN_TRY(record(rig, recording, run));
    if (qn_watch_stops(rig->watch))
        return QN_OK;
    if (!run->again) {
        QN_TRY(fill(rig));
        QN_TRY(run_times(rig, recording, 1, &first));
        QN_TRY(compare(rig, verdict));
    }
    return verdict->failed ? QN_OK : time_recording(rig, recording, first, run);
}

qn_status qn_rig_time(struct qn_rig *rig, struct qn_rig_run *run, struct qn_verdict *verdict)
{
    struct qn_recording *recording = NULL;
    const double start = qn_clock(), compiled = rig->watch->compiled;
    const struct qn_variant *variant = variant_of(rig, run->variant);
    qn_call_choose(&rig->call, variant, run->setting);
    run->cost = (struct qn_cost){0};
    variant->cost(&rig->call, &run->cost);
    rig->call.scratch = (struct qn_operand){0};
    if (run->cost.scratch > 0)
        rig->call.scratch = (struct qn_operand){
            .dtype = QN_F32, .shape = {1, {qn_div_up(run->cost.scratch, 4)}}, .buffer = SCRATCH};
    QN_TRY(qn_recording_open(&recording, rig->slab));
    qn_status status = record_and_time(rig, recording, run, verdict);
    qn_recording_close(&recording);
    rig->watch->timed += qn_clock() - start - (rig->watch->compiled - compiled);
    return status;
}
