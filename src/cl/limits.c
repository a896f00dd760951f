/* SPDX-License-Identifier: MIT
 *
 * What a device bears, which some drivers do not say, or say wrong: how much local memory kernels
 * may declare, how long they may loop, and whether fma() is an instruction.
 */
#include "cl/limits.h"

#include "base/clock.h"
#include "op/op.h"
#include "op/tile.h"

#include <inttypes.h>
#include <math.h>

enum { WORD_BYTES = 4, GROUP = 64 };
/* Words of the kernel that a driver is asked about; steps of a loop, some more than a driver was
 * seen to make. */
enum { ASKED_WORDS = 2048, STEPS = 70000 };
enum { STRIP_WORDS = QN_STRIPS_BYTES / WORD_BYTES };

qn_status qn_trial_launch(struct qn_slab *slab, const char *tag, const struct qn_launch *launch)
{
    struct qn_recording *recording = NULL;
    QN_TRY(qn_recording_open(&recording, slab));
    qn_status status = qn_emit_launch(qn_recording_emit(recording, tag), launch);
    if (status == QN_OK)
        status = qn_recording_run(recording, 0, -1);
    qn_recording_close(&recording);
    return status;
}

static void set_options(struct qn_launch *launch, int words)
{
    launch->program = "limits";
    qn_launch_option(launch, "WORDS", words);
    qn_launch_option(launch, "GROUP", GROUP);
}

/* Runs a kernel and reads the `count` words of its buffer. */
static qn_status run(struct qn_device *device, struct qn_launch *launch, uint32_t *words, int count)
{
    const struct qn_operand c = {QN_I32, {1, {count}}, 0, 0};
    const int64_t bytes = count * WORD_BYTES;
    struct qn_slab *slab = NULL;
    launch->args[0] = (struct qn_arg)QN_BUF(&c);
    QN_TRY(qn_slab_open(&slab, device, &bytes, 1));
    qn_status status = qn_trial_launch(slab, "limits", launch);
    if (status == QN_OK)
        status = qn_slab_read(slab, 0, 0, words, bytes, NULL);
    qn_slab_close(&slab);
    return status;
}

/* --- local memory --- */

/* How often the driver counts what a kernel declares; 0: it does not say. */
static int64_t times_counted(struct qn_device *device)
{
    struct qn_launch launch = {0};
    cl_kernel kernel = NULL;
    cl_ulong said = 0;
    set_options(&launch, ASKED_WORDS);
    if (qn_kernel_create(device, launch.program, launch.options, "local_words", &kernel) != QN_OK)
        return 0;
    clGetKernelWorkGroupInfo(kernel, device->found.id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof said, &said,
                             NULL);
    clReleaseKernel(kernel);
    return (int64_t)(said / (ASKED_WORDS * WORD_BYTES));
}

/* Word i of local memory holds i, and a work-item adds up those that lie opposite to its own. */
static bool sums_are_right(const uint32_t sums[GROUP])
{
    bool right = true;
    for (uint32_t id = 0; id < GROUP; id++) {
        uint32_t sum = 0;
        for (uint32_t i = id; i < STRIP_WORDS; i += GROUP)
            sum += STRIP_WORDS - 1 - i;
        right = right && sums[id] == sum;
    }
    return right;
}

bool qn_device_try_strips(struct qn_device *device)
{
    const int units = device->facts.matrix_units;
    struct qn_launch launch = {.kernel = "local_words", .global = {GROUP}, .local = {GROUP}};
    uint32_t sums[GROUP];
    set_options(&launch, STRIP_WORDS);
    device->facts.matrix_units |= QN_MATRIX_STRIPS; /* or the launch would be refused */
    const bool right = run(device, &launch, sums, GROUP) == QN_OK && sums_are_right(sums);
    device->facts.matrix_units = units;
    return right;
}

/* --- loops --- */

/* False: a loop ended early. */
static bool bears_long_loops(struct qn_device *device)
{
    const uint32_t seed = 1;
    struct qn_launch launch = {.kernel = "long_loop",
                               .args = {QN_BUF(NULL), QN_INT(seed), QN_INT(STEPS)},
                               .global = {1},
                               .local = {1}};
    uint32_t x = seed, made;
    set_options(&launch, ASKED_WORDS);
    for (int i = 0; i < STEPS; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    return run(device, &launch, &made, 1) != QN_OK || made == x;
}

/* --- fused multiply-adds --- */

/* Iterations, fewer than any driver was seen to end; runs, of which the fastest counts. */
enum { HALVINGS = 20000, LANES = 8, RUNS = 8 };
/* How much longer fma() takes than a product and a sum, if it is a function; as an instruction it
 * takes no longer. 8 times and more were seen, with all that a launch takes. */
static const double in_software = 4;

/* Seconds of the fastest run. */
static double time_halving(struct qn_device *device, const char *kernel)
{
    struct qn_launch launch = {.kernel = kernel,
                               .args = {QN_BUF(NULL), QN_FLOAT(1), QN_INT(HALVINGS)},
                               .global = {1},
                               .local = {1}};
    double fastest = INFINITY;
    uint32_t bits[LANES];
    set_options(&launch, ASKED_WORDS);
    for (int i = 0; i <= RUNS; i++) {
        const double begin = qn_clock();
        if (run(device, &launch, bits, LANES) == QN_OK && i > 0) /* the first builds the program */
            fastest = fmin(fastest, qn_clock() - begin);
    }
    return fastest;
}

/* Some drivers never say that a device has the instruction, so those that do not say are timed. */
static bool fuses(struct qn_device *device)
{
    cl_device_fp_config config = 0;
    clGetDeviceInfo(device->found.id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return config & CL_FP_FMA ||
           time_halving(device, "halve_fused") <= in_software * time_halving(device, "halve_apart");
}

void qn_device_try_limits(struct qn_device *device)
{
    const struct qn_log log = device->log;
    struct qn_facts *facts = &device->facts;
    device->log = (struct qn_log){0}; /* what cannot be tried is no error */
    const int64_t times = times_counted(device);
    const bool long_loops = bears_long_loops(device);
    device->multiplies_apart = !fuses(device);
    device->log = log;
    if (times > 1) {
        facts->local_bytes /= times;
        qn_log_write(&log, QN_LOG_DEBUG,
                     "the driver counts the local memory of a kernel %" PRId64
                     " times: kernels may declare %" PRId64 " bytes",
                     times, facts->local_bytes);
    }
    if (!long_loops) {
        facts->cpu = false;
        qn_log_write(&log, QN_LOG_WARNING,
                     "%s: the driver ends long loops before their end: kernels for GPUs are taken, "
                     "whose loops are shorter; results of large tensors may be wrong",
                     facts->name);
    }
    if (device->multiplies_apart)
        qn_log_write(&log, QN_LOG_DEBUG,
                     "fma() is a function in software: products and sums are rounded apart");
}
