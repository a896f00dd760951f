/* SPDX-License-Identifier: MIT
 *
 * Programs of several runs on made-up data, with their bytes counted. All abort the test on
 * failure.
 */
#ifndef QN_TESTS_RUN_RUNS_H
#define QN_TESTS_RUN_RUNS_H

#include "counted.h"
#include "support.h"

/* Elements of a row of "x", and of what most networks make of it. */
enum { WIDE = 24, CODE = 8 };

/* The data of a sample has a number for every `i`. */
float x_at(int64_t sample, int64_t i);

/* `count` rows of `width` elements, from the sample `first` on. */
void fill_rows(int64_t first, int64_t count, int64_t width, float *rows);

/* qn_fetch_fn: "x", a number as "target", and as "index" the place of a sample in its cycle. */
qn_status fetch_inputs(void *user, const char *input, int64_t first, int64_t count, void *rows);

/* x W^T, where the parameter W has the name `name`. */
qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out);

struct test_run open_runs(const qn_run_list *list, const qn_plan_params *params,
                          const qn_trainer_params *trainer);

/* All buffers since open_runs had the bytes of the plan, within the budget. */
void close_counted(struct test_run *run);

void train_updates(qn_trainer *trainer, const qn_cycle *cycle, int updates);

/* The gradient of one cycle, freed with free(). */
float *cycle_gradient(const qn_run_list *list, const qn_plan_params *params,
                      const qn_trainer_params *trainer, const qn_cycle *cycle, int64_t *count);

#endif
