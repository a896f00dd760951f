/* SPDX-License-Identifier: MIT
 *
 * Timing kernel variants on a device: to choose among them for a plan (tuning), and to look at them
 * (benchmarks). A variant must pass a numeric self-test on the device before it is timed.
 */
#ifndef QUERN_TUNE_H
#define QUERN_TUNE_H

#include <quern/device.h>
#include <quern/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- tuning --- */

/* One step of tuning comes next; the text lives until the callback returns. */
typedef struct qn_tune_progress {
    int done, total;  /* tasks, launch groups with their shapes: first those that the plan runs are
                         timed, then those are searched that have a choice of variants */
    const char *task; /* the one that comes next; "" at the end */
    int timed;        /* tasks so far */
    double compile_seconds; /* so far: building kernels, and self-tests, which are mostly that */
    double timing_seconds;  /* so far: all the rest */
} qn_tune_progress;

typedef void (*qn_tune_fn)(void *user, const qn_tune_progress *progress);

typedef struct qn_tune_params {
    const char *known; /* what earlier tuning on this device gave; NULL or "": nothing */
    double seconds;    /* of searching among variants about so long at most, and twice that for
                          building them; what is left takes its default variant; 0: no limit;
                          below 0: no search */
    double measuring;  /* of timing what the plan runs, which comes first, about so long at most;
                          building it does not count: a training builds it anyway; 0: no limit */
    bool all;          /* also the variants that are made for other kinds of devices, and tasks that
                          have only one variant on this kind */
    qn_tune_fn fn;     /* NULL: nobody looks on */
    bool (*stop)(void *user); /* asked between any two builds or runs: true ends tuning, with what
                                 is known then, as if the time were over; NULL: nobody asks */
    void *user;               /* of both */
} qn_tune_params;

/* What a call of qn_tune added to what was known. */
typedef struct qn_tune_result {
    int timed;    /* tasks */
    bool changed; /* tasks were timed, or transfers for a plan that may park, or a variant turned
                     out to be wrong or impossible to launch; false: a plan of the same parameters
                     is the same */
} qn_tune_result;

/* Times what the plan runs and `known` does not have yet, then searches among the variants of every
 * task whose others were not tried yet, each time those first that take most of the time. Gives all
 * that is known then through `tuning`, a text (JSON) for qn_plan_params and qn_tuning_save; freed
 * by the caller with qn_free. `*result` may be NULL.
 * The outcome may lead to another plan, whose micro-batch nobody timed yet: plan and tune in turns
 * until qn_plan_info.measured_share is near 1. What `variants` of the plan's parameters wishes for
 * is not timed alone. A variant that computes wrong numbers is reported once, as a warning in the
 * device's log, and not used. Device memory is made and released, within the plan's budget: a task
 * that would need more while it is timed takes its default variant. Thread-safety: Unsafe; uses the
 * device. */
QN_API qn_status qn_tune(qn_device *device, const qn_plan *plan, const qn_tune_params *params,
                         char **tuning, qn_tune_result *result);

/* Builds the kernels of a plan, launches none, and adds to what earlier tuning gave (`known`, may
 * be NULL) the variants that this device cannot launch: their kernels do not build, or need more
 * local memory or a smaller work-group than there is, as the driver says of what it built. For
 * qn_trainer_open these are QN_ERR_BUILD; a plan made with `*tuning`, freed by the caller, takes
 * others. `*refused` is their number; with 0 the plan can be run. Each is a warning in the device's
 * log. QN_ERR_BUILD: the plan's params or `known` leave no other. Thread-safety: Unsafe; uses the
 * device. */
QN_API qn_status qn_tune_probe(qn_device *device, const qn_plan *plan, const char *known,
                               char **tuning, int *refused);

/* The tuning of this device, its driver and these kernels that is stored in the device's cache
 * folder; "" if there is none, or none that can be used. Freed by the caller with
 * qn_free. */
QN_API qn_status qn_tuning_load(qn_device *device, char **tuning);
/* Replaces it in one step. QN_ERR_IO: it could not be written, or there is no cache; the old one is
 * still there. */
QN_API qn_status qn_tuning_save(qn_device *device, const char *tuning);

/* --- benchmarks --- */

typedef enum qn_bench_outcome {
    QN_BENCH_TIMED,
    QN_BENCH_FAILED,         /* its self-test, or its results differ from another variant's */
    QN_BENCH_NOT_APPLICABLE, /* it cannot run here */
} qn_bench_outcome;

/* One variant at one setting, on one task of a plan. Texts live until the callback returns. */
typedef struct qn_bench_record {
    const char *node, *op, *group;
    const char *task; /* operator, group, types and shapes */
    const char *variant, *setting;
    qn_bench_outcome outcome;
    const char *reason; /* "" if it was timed */
    bool chosen;        /* by the plan */
    double seconds;     /* of one run: a median */
    double fastest;     /* of one run */
    double flops;       /* additions and multiplications */
    double bytes;       /* that must move: each operand once */
    int launches;
    int64_t scratch; /* bytes */
} qn_bench_record;

typedef void (*qn_bench_fn)(void *user, const qn_bench_record *record);

typedef struct qn_bench_params {
    bool all;       /* every variant that fits; else those that the plan chose */
    double seconds; /* of timing for each at least; 0: 0.2 */
    qn_bench_fn fn;
    void *user;
} qn_bench_params;

/* Times every task of a plan that was made for this device, through the same launches as training.
 * Thread-safety: Unsafe; uses the device. */
QN_API qn_status qn_bench(qn_device *device, const qn_plan *plan, const qn_bench_params *params);

/* What the device reaches at best: fused multiply-adds from registers, and a copy of memory. */
typedef struct qn_ceilings {
    double flops;            /* per second; a multiply-add counts two */
    double bytes_per_second; /* read and written together, of arrays far larger than its caches */
    double launch_seconds;   /* an empty kernel, one of many in a row */
} qn_ceilings;
QN_API qn_status qn_measure_ceilings(qn_device *device, qn_ceilings *ceilings);

#ifdef __cplusplus
}
#endif
#endif
