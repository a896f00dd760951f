/* SPDX-License-Identifier: MIT
 *
 * Trainings of a few updates on made-up data that have to be the same to the bit, with their bytes
 * counted. All abort the test on failure.
 */
#ifndef QN_TESTS_RUN_SAME_H
#define QN_TESTS_RUN_SAME_H

#include "counted.h"
#include "support.h"

/* With micro-batches of 8 or 16: several, and a remainder of a batch norm's group. */
enum { SAMPLES = 44, FEWER = 20, WIDTH = 64, UPDATES = 4 };

struct trained {
    float *weights; /* freed with free() */
    int64_t count;
    qn_metrics metrics[UPDATES];
    qn_plan_info info; /* of the plan at its end */
};

/* Batches of SAMPLES and, where `mixed`, of FEWER in turn. */
struct trained train(const qn_graph *graph, const qn_plan_params *params,
                     const qn_trainer_params *trainer, bool mixed);

void assert_same(const struct trained *a, const struct trained *b);

/* The weights at the end of a training become `have`'s, which has to be the same; frees those of
 * both. */
void check_end(qn_trainer *trainer, struct trained *have, struct trained *want);

/* The same training where, in each update, one call for data fails first, the next one `stride`
 * calls later each time. */
void check_fetch_fails(const qn_graph *graph, const qn_plan_params *params,
                       const qn_trainer_params *trainer, int stride);

/* Saves the trainer and opens another from what was saved, by the same plan. */
struct test_run resume(const struct test_run *first, const qn_graph *graph);

/* The same training from a checkpoint in its middle on, by the same plan; gives its facts. */
qn_plan_info check_resumes(const qn_graph *graph, const qn_plan_params *params,
                           const qn_trainer_params *trainer);

/* What an array of so many bytes takes on the device. */
int64_t stored_bytes(int64_t bytes);

/* Of the plans with early updates the one of the fewest bytes. */
qn_plan_params smallest_early(const qn_graph *graph, const qn_plan_params *of);

/* The same training with early updates, in the fewest bytes. */
void check_early(const qn_graph *graph, const qn_plan_params *params,
                 const qn_trainer_params *trainer);

/* The same training where the budget changes before each update: to that of early updates and back.
 */
void check_budgets(const qn_graph *graph, const qn_plan_params *of,
                   const qn_trainer_params *trainer);

#endif
