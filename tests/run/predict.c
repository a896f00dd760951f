/* SPDX-License-Identifier: MIT
 *
 * Predictions: those of the evaluation in training, bit for bit, from a checkpoint and from a file
 * of weights, in fewer bytes, which are those of the plan; and what cannot be predicted with.
 */
#include "../support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shipped.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, SAMPLES = 20, MOST = SAMPLES * SHIPPED_CLASSES * SHIPPED_SIDE * SHIPPED_SIDE };

static const char *const names[] = {"mlp", "cnn", "unet_odd", "gpt_tied", "gpt_steps", NULL};

/* Fills in what a run gives for its samples. */
struct seen {
    const struct shipped *network;
    float logits[MOST];
    int64_t row; /* logits of a sample */
    bool labels; /* were asked for */
    int others;  /* outputs beside the logits */
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct seen *seen = user;
    seen->labels |= strcmp(input, "labels") == 0;
    return shipped_fetch((void *)seen->network, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct seen *seen = user;
    if (strcmp(name, "logits") == 0)
        memcpy(seen->logits + first * seen->row, rows, (size_t)(count * seen->row) * sizeof(float));
    else
        seen->others++;
    return QN_OK;
}

static struct seen *look_at(const struct shipped *network)
{
    const int64_t rows[] = {
        [IMAGES] = 1, [MASKS] = SHIPPED_SIDE * SHIPPED_SIDE, [TEXT] = SHIPPED_TOKENS};
    struct seen *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    seen->network = network;
    seen->row = SHIPPED_CLASSES * rows[network->data];
    return seen;
}

/* A network that was trained a little and saved, and what it says of the samples. */
struct trained {
    qn_graph *graph; /* to predict */
    struct seen *want;
    char folder[FOLDER_BYTES];
    int64_t bytes; /* of the training */
};

static struct trained train(const struct shipped *network)
{
    struct trained trained = {.want = look_at(network)};
    qn_graph *graph = shipped_build(network, false);
    const qn_plan_params params = {.batch = {BATCH}, .micro_batch = BATCH, .cache_dir = ""};
    const qn_cycle cycle = {BATCH, 0.05, fetch, trained.want};
    struct test_run run = test_open(device, graph, &params, NULL);
    for (int u = 0; u < 3; u++)
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, SAMPLES, fetch, receive, trained.want),
                     QN_OK);
    make_folder(trained.folder);
    assert_int_equal(qn_checkpoint_save(run.trainer, trained.folder, NULL), QN_OK);
    trained.bytes = qn_plan_facts(run.plan)->peak_bytes;
    test_close(&run);
    qn_graph_destroy(&graph);
    trained.graph = shipped_build(network, true);
    return trained;
}

static void end(struct trained *trained)
{
    remove_folder(trained->folder);
    qn_graph_destroy(&trained->graph);
    free(trained->want);
}

static void check(const struct trained *trained, const char *weights, const qn_plan_params *plan,
                  bool same)
{
    const qn_predictor_params params = {
        .log = test_log, .graph = trained->graph, .weights = weights, .plan = plan};
    struct seen *have = look_at(trained->want->network);
    qn_predictor *predictor;
    if (largest_since)
        largest_since();
    assert_int_equal(qn_predictor_open(&predictor, device, &params, NULL), QN_OK);
    for (int again = 0; again < 2; again++)
        assert_int_equal(qn_predictor_run(predictor, SAMPLES, fetch, receive, have), QN_OK);
    const int64_t bytes = qn_plan_facts(qn_predictor_plan(predictor))->peak_bytes;
    if (largest_since)
        assert_int_equal(largest_since(), bytes);
    assert_true(bytes < trained->bytes && (!plan->budget || bytes <= plan->budget));
    const int64_t count = SAMPLES * have->row;
    if (same)
        assert_memory_equal(have->logits, trained->want->logits, (size_t)count * sizeof(float));
    assert_true(test_distance(have->logits, trained->want->logits, count) < 1e-5);
    assert_false(have->labels || have->others);
    free(have);
    qn_predictor_close(&predictor);
    assert_null(predictor);
}

static const struct shipped *named(const char *name)
{
    const struct shipped *network = shipped;
    while (network->name && strcmp(network->name, name) != 0)
        network++;
    assert_non_null(network->name);
    return network;
}

static void predictions_are_those_of_the_evaluation(void **state)
{
    (void)state;
    for (const char *const *name = names; *name; name++) {
        struct trained trained = train(named(*name));
        char file[FOLDER_BYTES + 32];
        const qn_plan_params plan = {.batch = {BATCH}, .micro_batch = BATCH, .cache_dir = ""};
        snprintf(file, sizeof file, "%s/last/weights.safetensors", trained.folder);
        check(&trained, trained.folder, &plan, true);
        check(&trained, file, &plan, true);
        end(&trained);
    }
}

/* Batch norm goes by running averages: any number of samples is as good as its group. */
static void samples_need_no_group(void **state)
{
    (void)state;
    struct trained trained = train(named("cnn"));
    for (int samples = 1; samples < BATCH; samples += 2) {
        const qn_plan_params plan = {.batch = {samples}, .micro_batch = samples, .cache_dir = ""};
        check(&trained, trained.folder, &plan, false);
    }
    end(&trained);
}

/* The smallest budget is named, and enough. */
static void small_budgets(void **state)
{
    (void)state;
    for (const char *const *name = names; *name; name++) {
        struct trained trained = train(named(*name));
        qn_plan_params plan = {.batch = {BATCH}, .cache_dir = "", .budget = 1000};
        const qn_predictor_params params = {.graph = trained.graph, .plan = &plan};
        qn_predictor *predictor;
        int64_t smallest;
        assert_int_equal(qn_predictor_open(&predictor, device, &params, &smallest), QN_ERR_BUDGET);
        assert_null(predictor);
        assert_true(smallest > 1000);
        plan.budget = smallest;
        check(&trained, trained.folder, &plan, false);
        end(&trained);
    }
}

/* One sentence for each; nothing stays open. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct trained mlp = train(named("mlp")), cnn = train(named("cnn"));
    qn_graph *broken = shipped_build(named("mlp"), true);
    qn_input(broken, "images", QN_F32, 1, (int64_t[]){QN_BATCH});
    const struct {
        qn_predictor_params params;
        qn_status status;
    } cases[] = {
        {{.graph = mlp.graph, .weights = cnn.folder}, QN_ERR_FORMAT},
        {{.graph = mlp.graph, .weights = "/nowhere/at/all"}, QN_ERR_IO},
        {{.graph = mlp.graph, .weights = "/"}, QN_ERR_IO},
        {{.graph = NULL}, QN_ERR_ARGUMENT},
        {{.graph = broken}, QN_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_predictor *predictor = (qn_predictor *)cases;
        assert_int_equal(qn_predictor_open(&predictor, device, &cases[i].params, NULL),
                         cases[i].status);
        assert_null(predictor);
        assert_true(strlen(qn_last_error()) > 0);
    }
    assert_int_equal(qn_predictor_run(NULL, 1, fetch, receive, NULL), QN_ERR_ARGUMENT);
    assert_null(qn_predictor_plan(NULL));
    assert_null(qn_predictor_trainer(NULL));
    qn_predictor_close(NULL);
    qn_graph_destroy(&broken);
    end(&mlp);
    end(&cnn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_those_of_the_evaluation),
        cmocka_unit_test(small_budgets),
        cmocka_unit_test(samples_need_no_group),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("predict", tests, open_counted, close_device);
}
