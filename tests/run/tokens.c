/* SPDX-License-Identifier: MIT
 *
 * A small GPT on a file of text whose lines are learned apart: labels across lines count nothing,
 * in training as in evaluation, however the cycle is divided.
 */
#include "../io/scratch.h"
#include "support.h"

#include <math.h>

/* Lines of uneven length, so that samples have unlike numbers of labels that count. */
static const char text[] =
    "a\nb\nc\nd\ne\nf\ng\nabcdefghijklmnopqrstuvwxyz\nquern grinds\n\n\n\n\n\n\n"
    "the rest of the text is one line that is longer than a sample is\nx\ny\n";

enum { LENGTH = 12, BATCH = 7, UPDATES = 3 };

static qn_device *device;

static int open_device(void **state)
{
    (void)state;
    device = test_device();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    qn_device_close(&device);
    return 0;
}

static qn_dataset *open_text(struct scratch *scratch, bool separate)
{
    qn_dataset *dataset = NULL;
    scratch_put(scratch, "text", text, sizeof text - 1);
    const qn_token_params params = {.log = test_log,
                                    .path = scratch->path,
                                    .type = QN_TOKEN_U8,
                                    .length = LENGTH,
                                    .separate = separate,
                                    .separator = '\n'};
    assert_int_equal(qn_dataset_open_tokens(&dataset, &params), QN_OK);
    assert_int_equal(qn_dataset_describe(dataset)->count, sizeof text / LENGTH);
    return dataset;
}

static struct test_run open_run(const char *fused, int64_t micro_batch)
{
    const qn_model_data data = {.channels = 1, .height = 1, .width = LENGTH, .tokens = 256};
    const qn_model_option options[] = {
        {"layers", "1"}, {"heads", "2"}, {"width", "16"}, {"fused", fused}};
    const qn_plan_params params = {
        .budget = 64 << 20, .batch = {BATCH}, .micro_batch = micro_batch};
    qn_graph *graph = test_graph(QN_F32);
    assert_int_equal(qn_model_build(graph, "gpt", &data, options, 4), QN_OK);
    struct test_run run = test_open(device, graph, &params, &(qn_trainer_params){.seed = 5});
    qn_graph_destroy(&graph);
    return run;
}

struct tally {
    qn_loader *loader;
    qn_metric *loss;
};

static qn_loader *open_loader(const qn_dataset *dataset)
{
    qn_loader *loader = NULL;
    const qn_loader_params params = {.log = test_log, .max_samples = BATCH, .sequential = true};
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_loader_fetch(((struct tally *)user)->loader, input, first, count, rows);
}

static qn_status count_rows(void *user, const char *name, int64_t first, int64_t count,
                            const void *rows)
{
    const struct tally *tally = user;
    const qn_batch *batch = qn_loader_batch(tally->loader);
    return qn_metric_update(tally->loss, name, first - batch->position, count, rows, batch);
}

/* The mean loss of the first cycle's counted labels; gives their number. */
static int64_t evaluate(const qn_dataset *dataset, qn_trainer *trainer, double *loss)
{
    struct tally tally = {.loader = open_loader(dataset)};
    const qn_metric_params params = {.log = test_log,
                                     .kind = QN_METRIC_MEAN,
                                     .output = "loss",
                                     .shape = {2, {QN_BATCH, LENGTH}},
                                     .labels = "labels",
                                     .ignore = true,
                                     .ignore_label = QN_IGNORED_LABEL};
    assert_int_equal(qn_metric_create(&tally.loss, &params), QN_OK);
    assert_int_equal(qn_trainer_evaluate(trainer, BATCH, fetch, count_rows, &tally), QN_OK);
    const int64_t count = qn_metric_count(tally.loss);
    *loss = qn_metric_result(tally.loss);
    qn_metric_destroy(&tally.loss);
    qn_loader_close(&tally.loader);
    return count;
}

/* The same cycle UPDATES times; gives the loss of the first. */
static double train(const qn_dataset *dataset, qn_trainer *trainer)
{
    qn_metrics metrics;
    qn_batch batch;
    double first = 0;
    qn_loader *loader = open_loader(dataset);
    assert_int_equal(qn_loader_next(loader, BATCH, &batch), QN_OK);
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.5, .fetch = qn_batch_fetch, .user = &batch};
    for (int i = 0; i < UPDATES; i++) {
        assert_int_equal(qn_trainer_step(trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(trainer, &metrics), QN_OK);
        first = i == 0 ? metrics.loss : first;
    }
    qn_loader_close(&loader);
    return first;
}

static int64_t newlines(void)
{
    int64_t count = 0;
    for (int i = 0; i < BATCH * LENGTH; i++)
        count += text[i] == '\n';
    return count;
}

static void what_counts_is_the_same_in_any_split(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *fused;
        int64_t micro_batch;
    } cases[] = {{"1", 7}, {"1", 3}, {"0", 2}};
    float *expected = NULL;
    double apart = 0, together = 0;
    qn_dataset *dataset = open_text(scratch, true), *whole = open_text(scratch, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *weights = NULL;
        double loss;
        struct test_run run = open_run(cases[i].fused, cases[i].micro_batch);
        assert_int_equal(evaluate(dataset, run.trainer, &loss), BATCH * LENGTH - newlines());
        assert_int_equal(evaluate(whole, run.trainer, &together), BATCH * LENGTH);
        apart = i ? apart : loss;
        assert_true(fabs(loss - apart) < 1e-6 && fabs(loss - together) > 1e-4);
        assert_true(fabs(train(dataset, run.trainer) - loss) < 1e-5);
        const int64_t count = test_weights(run.trainer, &weights);
        if (!expected)
            expected = weights;
        else
            assert_true(test_distance(weights, expected, count) < 1e-5);
        if (weights != expected)
            free(weights);
        test_close(&run);
    }
    free(expected);
    qn_dataset_close(&dataset);
    qn_dataset_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_SCRATCH(what_counts_is_the_same_in_any_split)};
    return cmocka_run_group_tests_name("tokens", tests, open_device, close_device);
}
