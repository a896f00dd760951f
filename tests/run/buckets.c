/* SPDX-License-Identifier: MIT
 *
 * Models of text with a graph for each length of samples, on documents: a cycle whose micro-steps
 * have different graphs has the gradient of the whole batch in the longest, however it is split,
 * and no plan changes a bit of a training.
 */
#include "../io/scratch.h"
#include "device.h"
#include "support.h"

#include <math.h>

enum { LENGTHS = 3, LONGEST = 16, BATCH = 13, UPDATES = 3, CLASSES = 128, MASK = 127 };

static const int64_t lengths[LENGTHS] = {4, 8, LONGEST};

static const char text[] =
    "in\nthe beginning\nwas a mill\nof stone\nand it ground\nwhat\nit was given, slowly, by hand, "
    "one\nday\nafter\nthe other\n\nmore came\nthan it could\nhold\na\nand so\nit took\nless at a "
    "time\nb\nnot\nless\n";

static const struct network {
    const char *model;
    qn_model_option options[6];
    int n_options;
    bool masked;
} networks[] = {
    {"gpt", {{"layers", "2"}, {"heads", "2"}, {"width", "16"}}, 3, false},
    {"gpt", {{"layers", "1"}, {"heads", "2"}, {"width", "16"}, {"fused", "0"}}, 4, false},
    {"llama",
     {{"layers", "2"}, {"heads", "2"}, {"kv_heads", "1"}, {"width", "16"}, {"inner", "24"}},
     5,
     false},
    {"bert", {{"layers", "2"}, {"heads", "2"}, {"width", "16"}, {"dropout", "0"}}, 4, true},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* --- programs --- */

/* A graph for each length and a program of them. */
struct program {
    qn_graph *graphs[LENGTHS];
    qn_run runs[LENGTHS + 1];
    qn_run_list list;
};

static qn_graph *build(const struct network *network, int64_t length)
{
    const qn_model_data data = {
        .channels = 1, .height = 1, .width = (int)length, .tokens = CLASSES, .longest = LONGEST};
    qn_graph *graph = test_graph(QN_F32);
    if (qn_model_build(graph, network->model, &data, network->options, network->n_options) != QN_OK)
        fail_msg("%s: %s", network->model, qn_graph_error(graph));
    return graph;
}

/* Of the last `count` lengths. */
static void open_program(struct program *p, const struct network *network, int count)
{
    for (int i = 0; i < count; i++) {
        p->graphs[i] = build(network, lengths[LENGTHS - count + i]);
        p->runs[i] = (qn_run){.graph = p->graphs[i], .alternative = i > 0};
    }
    p->list = (qn_run_list){.runs = p->runs, .n_runs = count};
}

static void close_program(struct program *p)
{
    for (int i = 0; i < p->list.n_runs; i++)
        qn_graph_destroy(&p->graphs[i]);
}

static struct test_run open_run(const qn_run_list *list, int64_t micro_batch,
                                qn_recompute_mode recompute)
{
    const qn_plan_params params = {.budget = 64 << 20,
                                   .batch = {BATCH},
                                   .micro_batch = micro_batch,
                                   .recompute = recompute,
                                   .optimizer = {.name = "adamw"}};
    const qn_trainer_params trainer = {.seed = 5, .poison = true};
    struct test_run run = {0};
    assert_int_equal(qn_plan_create_runs(&run.plan, list, qn_device_facts(device), &params, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, &trainer), QN_OK);
    return run;
}

/* --- data --- */

static qn_dataset *open_documents(struct scratch *scratch, bool masked)
{
    qn_dataset *dataset = NULL;
    scratch_put(scratch, "text", text, sizeof text - 1);
    const qn_token_params params = {.log = test_log,
                                    .path = scratch->path,
                                    .type = QN_TOKEN_U8,
                                    .length = LONGEST,
                                    .tokens = CLASSES,
                                    .separate = true,
                                    .separator = '\n',
                                    .mlm_probability = masked ? 0.4 : 0,
                                    .mask_token = MASK,
                                    .n_lengths = LENGTHS,
                                    .lengths = lengths};
    assert_int_equal(qn_dataset_open_tokens(&dataset, &params), QN_OK);
    return dataset;
}

/* How often each length is chosen; with `counts` NULL nobody counts. */
struct source {
    qn_batch batch;
    int *counts;
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return qn_batch_fetch(&((struct source *)user)->batch, input, first, count, rows);
}

static int choose(void *user, int64_t first, int64_t count)
{
    struct source *source = user;
    const int chosen = qn_batch_choose(&source->batch, first, count);
    if (source->counts)
        source->counts[chosen]++;
    return chosen;
}

static qn_loader *open_loader(const qn_dataset *dataset)
{
    const qn_loader_params params = {.log = test_log, .seed = 2, .max_samples = BATCH};
    qn_loader *loader = NULL;
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

/* --- the tests --- */

/* The gradient of the first cycle. */
static int64_t gradient(const struct program *p, const qn_dataset *dataset, int64_t micro_batch,
                        int counts[LENGTHS], float **values)
{
    struct source source = {.counts = p->list.n_runs > 1 ? counts : NULL};
    const qn_cycle cycle = {
        .samples = BATCH, .fetch = fetch, .user = &source, .choose = source.counts ? choose : NULL};
    qn_loader *loader = open_loader(dataset);
    struct test_run run = open_run(&p->list, micro_batch, QN_RECOMPUTE_NONE);
    assert_int_equal(qn_loader_next(loader, BATCH, &source.batch), QN_OK);
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    const int64_t count = test_read_gradients(run.trainer, values);
    test_close(&run);
    qn_loader_close(&loader);
    return count;
}

static void no_split_changes_the_gradient(void **state)
{
    struct scratch *scratch = *state;
    static const int64_t micro_batches[] = {1, 2, 3, 5, BATCH};
    for (int n = 0; n < NETWORKS; n++) {
        qn_dataset *dataset = open_documents(scratch, networks[n].masked);
        struct program longest, program;
        float *whole, *split;
        int counts[LENGTHS] = {0};
        double worst = 0;
        open_program(&longest, &networks[n], 1);
        open_program(&program, &networks[n], LENGTHS);
        const int64_t count = gradient(&longest, dataset, BATCH, NULL, &whole);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(gradient(&program, dataset, micro_batches[i], counts, &split), count);
            worst = fmax(worst, test_distance(split, whole, count));
            free(split);
        }
        print_message("  %s: %.2g; chosen %d, %d, %d times\n", networks[n].model, worst, counts[0],
                      counts[1], counts[2]);
        assert_true(worst < 1e-5);
        assert_true(counts[0] > 5 && counts[1] > 5 && counts[2] > 5);
        free(whole);
        close_program(&longest);
        close_program(&program);
        qn_dataset_close(&dataset);
    }
}

static int64_t train(const struct program *p, const qn_dataset *dataset,
                     qn_recompute_mode recompute, float **weights, int *recomputed)
{
    qn_batch batch;
    const qn_cycle cycle = {.samples = BATCH,
                            .lr = 0.01,
                            .fetch = qn_batch_fetch,
                            .user = &batch,
                            .choose = qn_batch_choose};
    qn_loader *loader = open_loader(dataset);
    struct test_run run = open_run(&p->list, 3, recompute);
    for (int i = 0; i < UPDATES; i++) {
        qn_metrics metrics;
        assert_int_equal(qn_loader_next(loader, BATCH, &batch), QN_OK);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        assert_true(isfinite(metrics.loss) && metrics.grad_norm > 0 && !metrics.skipped);
    }
    const int64_t count = test_weights(run.trainer, weights);
    *recomputed = qn_plan_facts(run.plan)->recomputed_steps;
    test_close(&run);
    qn_loader_close(&loader);
    return count;
}

static void no_plan_changes_a_bit(void **state)
{
    struct scratch *scratch = *state;
    for (int n = 0; n < NETWORKS; n++) {
        qn_dataset *dataset = open_documents(scratch, networks[n].masked);
        struct program program;
        float *kept, *again;
        int recomputed;
        open_program(&program, &networks[n], LENGTHS);
        const int64_t count = train(&program, dataset, QN_RECOMPUTE_NONE, &kept, &recomputed);
        assert_int_equal(recomputed, 0);
        assert_int_equal(train(&program, dataset, QN_RECOMPUTE_ALL, &again, &recomputed), count);
        assert_true(recomputed > 0);
        assert_memory_equal(kept, again, (size_t)count * sizeof *kept);
        free(kept);
        free(again);
        close_program(&program);
        qn_dataset_close(&dataset);
    }
}

/* What a model of several lengths is not. */
static void bad_lengths_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        qn_model_data data;
        const char *error;
    } cases[] = {
        {"gpt",
         {.channels = 1, .height = 1, .width = 16, .tokens = 9, .longest = 8},
         "model gpt: a sample is longer than the longest"},
        {"llama",
         {.channels = 1, .height = 1, .width = 16, .tokens = 9, .longest = 16, .cache = 4},
         "model llama: a cache goes with samples of one length"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = test_graph(QN_F32);
        assert_int_equal(qn_model_build(graph, cases[i].model, &cases[i].data, NULL, 0),
                         QN_ERR_ARGUMENT);
        assert_string_equal(qn_graph_error(graph), cases[i].error);
        qn_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(no_split_changes_the_gradient),
        WITH_SCRATCH(no_plan_changes_a_bit),
        cmocka_unit_test(bad_lengths_are_refused),
    };
    return cmocka_run_group_tests_name("buckets", tests, open_device, close_device);
}
