/* SPDX-License-Identifier: MIT
 *
 * The harness: whether the operators compute the right numbers on a device. Each operator is
 * compared with a reference in double precision, forward and backward, in every storage type and
 * with every kernel variant that the device can run.
 */
#ifndef QUERN_CHECK_H
#define QUERN_CHECK_H

#include <quern/device.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_check_outcome {
    QN_CHECK_PASSED,
    QN_CHECK_FAILED,
    QN_CHECK_NOT_APPLICABLE, /* the variant cannot run here, or not in this case */
} qn_check_outcome;

/* One operator in one case, storage type and variant. The texts live until the callback returns. */
typedef struct qn_check_record {
    const char *op;
    const char *item;    /* name of the case */
    const char *storage; /* "f32", "f16", "bf16"; "f16+" and "bf16+": parameters too */
    const char *variant; /* "any", "cpu", "gpu"; "shape" for checks of the shape rule */
    qn_check_outcome outcome;
    const char *reason; /* "" if passed: the first thing that is wrong, in one line */
    int number, total;  /* of the records for which kernels run, this one is the number-th, or the
                           next to come, of so many; fewer run if a failure stops them */
} qn_check_record;

typedef void (*qn_check_fn)(void *user, const qn_check_record *record);
typedef bool (*qn_check_take_fn)(void *user, const char *op);

typedef struct qn_check_params {
    const char *filter; /* operators separated by commas, "add,relu"; "relu/rows" is one case of
                           one, in whose name a comma has a space behind it; NULL: all */
    bool small;         /* only tiny cases, and nothing twice that a repetition could not tell
                           from the first time: for very slow devices */
    bool every_type;    /* each case in every storage type; otherwise in f32 and by turns in f16
                           and bf16. Without `small`, the tiny cases whose types have code of
                           their own always are */
    bool quick;         /* beside `small`, without `every_type`: variants that do not fit the
                           device as it is in f32 alone and once each, and f16 and bf16 by turns
                           from one operator to the next */
    bool stop;          /* at the first failure */
    bool all_variants;  /* a variant of a checked operator that never ran is a failure */
    int64_t far;        /* above 0: one tiny case of each operator in f32, whose operands lie so
                           many bytes into their buffers, a multiple of 512. Above 2^33 it shows
                           whether kernels count far enough; what lies before is not touched.
                           Matrix units that the device lacks are emulated only where a filter
                           names the operator */
    uint64_t seed;      /* of all random values; the same seed repeats exactly; 0: 1 */
    qn_check_fn fn;     /* called for each record, in order; NULL: only the summary */
    void *user;
    qn_check_fn begin; /* called before the kernels of a record are built and run, with neither
                          outcome nor reason; NULL: nothing */
    qn_check_take_fn
        take; /* asked for each operator that the filter names, in order, whether this
                 run checks it: so several runs, which are given the same otherwise,
                 share a check. Their records count together up to `total`. NULL: all */
    const char *variants; /* separated by commas, "cpu,winograd"; NULL: all. Launch groups that
                             have none of them run the first that fits */
} qn_check_params;

typedef struct qn_check_summary {
    int passed, failed, not_applicable;
    uint64_t seed; /* that was used */
} qn_check_summary;

/* Runs the harness. QN_OK when it ran to its end, whatever it found; QN_ERR_ARGUMENT when a word of
 * the filter or of the variants names nothing. `params` and `summary` may be NULL. Details of
 * failed builds go to the device's log. Thread-safety: Unsafe; uses the device. */
QN_API qn_status qn_check_run(qn_device *device, const qn_check_params *params,
                              qn_check_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
