/* SPDX-License-Identifier: MIT
 *
 * Small networks on made-up data, for tests of the trainer on whatever device there is.
 */
#ifndef QN_TESTS_RUN_SUPPORT_H
#define QN_TESTS_RUN_SUPPORT_H

#include <quern/quern.h>

/* Made-up data: `samples` rows of every input. Labels of 255 are to be ignored. */
struct test_data {
    int64_t samples;
    int64_t width; /* elements of x in a row */
    float *x;
    int32_t *labels;
    float *target;
    int fetched; /* calls of test_fetch so far */
    int fail_at; /* the call that fails, counted from 1; 0: none */
};

enum { TEST_CLASSES = 5, TEST_IGNORED = 255 };

void test_data_make(struct test_data *data, int64_t samples, int64_t width);
void test_data_free(struct test_data *data);

/* qn_fetch_fn over a test_data: inputs "x", "labels" and "target". */
qn_status test_fetch(void *user, const char *input, int64_t first, int64_t count, void *rows);

/* Prints what is logged. */
extern const qn_log test_log;

qn_device *test_device(void);
qn_graph *test_graph(qn_dtype storage);

/* Two hidden layers; with class weights and ignored labels if `weighted`. x has `width` elements.
 */
qn_graph *test_mlp(int64_t width, bool weighted);
/* Convolutions, batch norm (groups of 4), dropout, pooling; x is (1, 8, 8). */
qn_graph *test_cnn(qn_dtype storage);

/* Of a plan that can be made with these; aborts the test on failure. */
int64_t test_smallest_budget(const qn_device *device, const qn_graph *graph,
                             const qn_plan_params *params);

/* A plan and its trainer; abort the test on failure. */
struct test_run {
    qn_plan *plan;
    qn_trainer *trainer;
};
struct test_run test_open(qn_device *device, const qn_graph *graph, const qn_plan_params *plan,
                          const qn_trainer_params *trainer);
/* The same from a checkpoint: by its plan, in its state. */
struct test_run test_restore(qn_device *device, const qn_graph *graph,
                             const qn_checkpoint *checkpoint);
void test_close(struct test_run *run);

/* `updates` updates of `samples` samples; gives the last metrics. */
qn_metrics test_train(qn_trainer *trainer, struct test_data *data, int64_t samples, int updates);

/* All parameters and state, one after another, in `values`, which the caller frees; gives how many.
 */
int64_t test_weights(qn_trainer *trainer, float **values);
/* The same of the gradients in the accumulators. */
int64_t test_read_gradients(qn_trainer *trainer, float **values);
/* The same after one accumulation. */
int64_t test_gradients(qn_trainer *trainer, struct test_data *data, int64_t samples,
                       float **values);

/* The arguments of a test from `names` on, which end with NULL, have the name, or there are none.
 */
bool test_chosen(char **names, const char *name);

/* |a - b| / |b| in the Euclidean norm. */
double test_distance(const float *a, const float *b, int64_t count);

/* How far the same training may be from itself where its sums are made in another order. f32: the
 * last bits of the sums. f16: such a bit of a weight rounds an activation to the other of its two
 * neighbours, which are 2^-11 of it away at most. */
#define TEST_NEAR 1e-5
#define TEST_NEAR_F16 0x1p-11

#endif
