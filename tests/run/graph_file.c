/* SPDX-License-Identifier: MIT
 *
 * Graphs from their text train to the same bits as those built in C, and the model "graph" predicts
 * without labels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 24, UPDATES = 2, SIDE = 12, TOKENS = 8, CLASSES = 5 };

static const struct network {
    const char *model;
    qn_model_option options[3];
    qn_model_data data;
    qn_dtype storage;
} networks[] = {
    {"mlp",
     {{"hidden1", "24"}, {"dropout", "0.3"}, {"lora_rank", "2"}},
     {.channels = 2, .height = SIDE, .width = SIDE, .classes = CLASSES},
     QN_F32},
    {"cnn",
     {{"width", "4"}, {"group", "4"}, {"dropout", "0.3"}},
     {.channels = 2, .height = SIDE, .width = SIDE, .classes = CLASSES, .mean = {0.25f, 0.5f}},
     QN_F16},
    {"llama",
     {{"layers", "1"}, {"heads", "4"}, {"width", "32"}},
     {.channels = 1, .height = 1, .width = TOKENS, .tokens = CLASSES},
     QN_F32},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct network *network = user;
    const bool images = strcmp(input, "images") == 0;
    const int64_t row = images ? 2 * SIDE * SIDE : network->data.tokens ? TOKENS : 1;
    for (int64_t i = 0; i < count * row; i++) {
        const int64_t number = (first * row + i) * 2654435761 >> 7;
        if (images)
            ((uint8_t *)rows)[i] = (uint8_t)number;
        else
            ((int32_t *)rows)[i] = (int32_t)(number % CLASSES);
    }
    return QN_OK;
}

/* The network as it is built, or by its text. */
static qn_graph *build(const struct network *network, bool by_text)
{
    qn_graph *graph = test_graph(network->storage), *again;
    assert_int_equal(qn_model_build(graph, network->model, &network->data, network->options, 3),
                     QN_OK);
    if (!by_text)
        return graph;
    char *text = qn_graph_write(graph, NULL);
    qn_graph_destroy(&graph);
    again = test_graph(network->storage);
    assert_non_null(text);
    assert_int_equal(qn_graph_read(again, text, "text"), QN_OK);
    free(text);
    return again;
}

static int64_t train(const struct network *network, bool by_text, float **weights, uint64_t *hash)
{
    const qn_plan_params params = {
        .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = 8, .effort = QN_EFFORT_INSTANT};
    const qn_cycle cycle = {SAMPLES, 0, fetch, (void *)network};
    qn_graph *graph = build(network, by_text);
    struct test_run run = test_open(device, graph, &params, &(qn_trainer_params){.seed = 5});
    for (int i = 0; i < UPDATES; i++)
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, NULL), QN_OK);
    *hash = qn_plan_facts(run.plan)->hash;
    const int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    qn_graph_destroy(&graph);
    return count;
}

static void texts_train_to_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++) {
        float *built, *read;
        uint64_t hash, other;
        const int64_t count = train(&networks[i], false, &built, &hash);
        assert_int_equal(count, train(&networks[i], true, &read, &other));
        assert_true(hash == other);
        assert_memory_equal(built, read, (size_t)count * sizeof *built);
        free(built);
        free(read);
    }
}

/* --- predictions --- */

struct results {
    float logits[SAMPLES * CLASSES];
    int calls;
};

struct asked {
    const struct network *network;
    struct results *results;
};

static qn_status fetch_images(void *user, const char *input, int64_t first, int64_t count,
                              void *rows)
{
    assert_string_equal(input, "images");
    return fetch((void *)((struct asked *)user)->network, input, first, count, rows);
}

static qn_status take(void *user, const char *output, int64_t first, int64_t count,
                      const void *rows)
{
    struct results *results = ((struct asked *)user)->results;
    assert_string_equal(output, "logits");
    memcpy(results->logits + first * CLASSES, rows, (size_t)count * CLASSES * sizeof(float));
    results->calls++;
    return QN_OK;
}

static void predict(const char *model, const qn_model_option *options, int n_options,
                    struct results *results)
{
    qn_model_data data = networks[0].data;
    data.predict = true;
    qn_graph *graph = test_graph(QN_F32);
    struct asked asked = {&networks[0], results};
    qn_predictor *predictor = NULL;
    assert_int_equal(qn_model_build(graph, model, &data, options, n_options), QN_OK);
    const qn_plan_params plan = {.budget = 64 << 20};
    const qn_predictor_params params = {.graph = graph, .plan = &plan};
    assert_int_equal(qn_predictor_open(&predictor, device, &params, NULL), QN_OK);
    assert_int_equal(qn_predictor_run(predictor, SAMPLES, fetch_images, take, &asked), QN_OK);
    qn_predictor_close(&predictor);
    qn_graph_destroy(&graph);
    assert_true(results->calls > 0);
}

/* Parameters are drawn by their names: the same ones without a file. */
static void graph_files_predict(void **state)
{
    (void)state;
    struct results built = {.calls = 0}, read = {.calls = 0};
    qn_graph *graph = build(&networks[0], false);
    char *text = qn_graph_write(graph, NULL);
    const qn_model_option option = {"text", text};
    assert_non_null(text);
    predict("mlp", networks[0].options, 3, &built);
    predict("graph", &option, 1, &read);
    assert_memory_equal(built.logits, read.logits, sizeof built.logits);
    free(text);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_train_to_the_same_bits),
                                       cmocka_unit_test(graph_files_predict)};
    return cmocka_run_group_tests_name("graph files", tests, open_device, close_device);
}
