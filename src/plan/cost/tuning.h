/* SPDX-License-Identifier: MIT
 *
 * The tuning table of one device: for each task that was timed the variant to take, and which
 * variants passed their self-test. As JSON text it is stored, given to plans and kept in
 * checkpoints.
 */
#ifndef QN_COST_TUNING_H
#define QN_COST_TUNING_H

#include "base/arena.h"
#include "base/log.h"
#include "plan/problem.h"

/* One task at one batch size. */
struct qn_tuned {
    const char *task; /* its key (qn_task_key) */
    int64_t batch;
    const char *variant;
    const char *setting; /* "": the variant has none */
    double seconds;      /* of one repetition; 0: not timed, the default was taken */
    bool thorough;       /* every variant was a candidate, not only those made for the device */
    double flops, bytes; /* of one repetition, by the variant's cost() */
    int launches;
    bool alone;    /* no other variant was tried: there may be a faster one */
    double spread; /* of its timing: median / fastest repetition; 0: not known */
};

/* One variant of an operator on operands of one storage type. */
struct qn_self_test {
    const char *op, *variant;
    const char *setting; /* "": the variant has none */
    const char *storage;
    const char *reason; /* why it failed; "": it passed */
};

/* Copies between host and device. Zeroed: not measured. */
struct qn_transfers {
    double to_host, to_device; /* bytes per second */
    double begin;              /* seconds that each copy takes besides bytes / rate */
};

/* The micro-batch with which a training was tuned first. Timings are noisy: plans of that training
 * take another micro-batch only for a gain above the noise. */
struct qn_kept {
    uint64_t training; /* qn_plan_training */
    int64_t micro_batch;
};

/* Zeroed is empty. Texts lie in the arena. */
struct qn_tuning {
    struct qn_arena arena;
    const char *device, *driver; /* for people; NULL: not known */
    const char *kernels;         /* hash of the kernels' sources; NULL: not known */
    struct qn_tuned *choices;
    int n_choices, choice_capacity;
    struct qn_self_test *tests;
    int n_tests, test_capacity;
    struct qn_kept *kept;
    int n_kept, kept_capacity;
    struct qn_transfers transfers;
};

/* Reads a text into an empty table. QN_ERR_FORMAT: the log says what is wrong with it. */
qn_status qn_tuning_parse(struct qn_tuning *tuning, const char *text, const struct qn_log *log);
/* The table as text, freed by the caller; NULL when out of memory. */
char *qn_tuning_text(const struct qn_tuning *tuning);
void qn_tuning_free(struct qn_tuning *tuning);

/* Adds a copy, in the place of an entry of the same task and batch. False when out of memory. */
bool qn_tuning_add_choice(struct qn_tuning *tuning, const struct qn_tuned *choice);
/* Adds a copy. False when out of memory. */
bool qn_tuning_add_test(struct qn_tuning *tuning, const struct qn_self_test *test);

/* Adds a copy unless the training has an entry already. False when out of memory. */
bool qn_tuning_keep(struct qn_tuning *tuning, const struct qn_kept *kept);
/* The kept micro-batch of a training; 0: it was not tuned. */
int64_t qn_tuning_kept(const struct qn_tuning *tuning, uint64_t training);

/* The entry of the task whose batch is nearest by ratio, of two the smaller; NULL: none. */
const struct qn_tuned *qn_tuning_find(const struct qn_tuning *tuning, const char *task,
                                      int64_t batch);
/* The same among the timed entries of like's variant and setting, for its task and batch. */
const struct qn_tuned *qn_tuning_find_timed(const struct qn_tuning *tuning,
                                            const struct qn_tuned *like);
/* The newest test of like's operator, variant, setting and storage type: a variant that passed may
 * be found wrong later. NULL: it was not tested. */
const struct qn_self_test *qn_tuning_test(const struct qn_tuning *tuning,
                                          const struct qn_self_test *like);

/* The key of a task, the same for any node and batch: operator, group, types and shapes of the
 * operands (a dimension that grows with the batch is written as "*", or "*7" for seven rows a
 * sample) and a hash of the attributes. Gives `text`. */
enum { QN_TASK_KEY = 512 };
const char *qn_task_key(const struct qn_problem *problem, const struct qn_task *task,
                        char text[QN_TASK_KEY]);

/* The storage type of a task: that of its first operand in f16 or bf16; else f32. */
qn_dtype qn_task_storage(const struct qn_task *task);

#endif
