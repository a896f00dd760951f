/* SPDX-License-Identifier: MIT
 *
 * Predictions of one token of each row: the logits that the whole row's have in its place, in
 * shorter rows, too, for fewer bytes; and where none can be asked for.
 */
#include "../support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <string.h>

enum { LONGEST = 24, SHORT = 10, SAMPLES = 7, TOKENS = 300 };

static const struct network {
    const char *model;
    qn_model_option options[5];
    int n_options;
    bool causal;
} networks[] = {
    {"gpt", {{"layers", "2"}, {"heads", "2"}, {"width", "32"}, {"tied", "1"}}, 4, true},
    {"gpt", {{"layers", "2"}, {"heads", "2"}, {"width", "32"}, {"fused", "0"}}, 4, true},
    {"llama",
     {{"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"kv_heads", "2"}, {"inner", "64"}},
     5,
     true},
    {"bert", {{"layers", "2"}, {"heads", "2"}, {"width", "32"}, {"dropout", "0"}}, 4, false},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* Rows of a graph, and their logits: of all places, or of one. */
struct rows {
    int width;
    int64_t places;
    float logits[SAMPLES * LONGEST * TOKENS];
};

static int token_of(int64_t sample, int64_t place)
{
    return (int)((37 * sample + 11 * place + 5) % TOKENS);
}

/* The token that is asked for, and how many the row has: those behind do not matter. */
static int place_of(int64_t sample)
{
    return (int)(5 * sample % SHORT);
}

static int length_of(int64_t sample)
{
    return place_of(sample) + 1 + (int)sample % 2 * (SHORT - 1 - place_of(sample));
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *to)
{
    const struct rows *rows = user;
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(input, "lengths") == 0)
            ((int32_t *)to)[i] = length_of(first + i);
        for (int64_t t = 0; t < rows->width; t++) {
            if (strncmp(input, "tokens", strlen("tokens")) == 0)
                ((int32_t *)to)[i * rows->width + t] = token_of(first + i, t);
            if (strcmp(input, "asked") == 0)
                ((float *)to)[i * rows->width + t] = t == place_of(first + i);
        }
    }
    return QN_OK;
}

static qn_status take(void *user, const char *output, int64_t first, int64_t count,
                      const void *logits)
{
    struct rows *rows = user;
    const int64_t row = rows->places * TOKENS;
    assert_string_equal(output, "logits");
    memcpy(rows->logits + first * row, logits, (size_t)(count * row) * sizeof(float));
    return QN_OK;
}

static qn_model_data data_of(const struct network *network, int width, bool asked)
{
    return (qn_model_data){.channels = 1,
                           .height = 1,
                           .width = width,
                           .longest = LONGEST,
                           .tokens = TOKENS,
                           .lengths = !network->causal,
                           .predict = true,
                           .asked = asked};
}

/* Bytes of the plan. The weights are saved where `saves` is set, else loaded. */
static int64_t predict(const struct network *network, const char *weights, bool saves,
                       struct rows *rows, bool asked)
{
    const qn_model_data data = data_of(network, rows->width, asked);
    const qn_plan_params plan = {.batch = {SAMPLES}, .micro_batch = 3, .cache_dir = ""};
    qn_graph *graph = test_graph(QN_F32);
    qn_predictor *predictor;
    if (qn_model_build(graph, network->model, &data, network->options, network->n_options) != QN_OK)
        fail_msg("%s", qn_graph_error(graph));
    const qn_predictor_params params = {
        .graph = graph, .weights = saves ? NULL : weights, .plan = &plan};
    assert_int_equal(qn_predictor_open(&predictor, device, &params, NULL), QN_OK);
    if (saves)
        assert_int_equal(qn_trainer_save_weights(qn_predictor_trainer(predictor), weights, NULL),
                         QN_OK);
    assert_int_equal(qn_predictor_run(predictor, SAMPLES, fetch, take, rows), QN_OK);
    const int64_t bytes = qn_plan_facts(qn_predictor_plan(predictor))->peak_bytes;
    qn_predictor_close(&predictor);
    qn_graph_destroy(&graph);
    return bytes;
}

static void logits_are_those_of_the_place(void **state)
{
    (void)state;
    static struct rows all = {.width = LONGEST, .places = LONGEST};
    static struct rows one = {.width = LONGEST, .places = 1}, few = {.width = SHORT, .places = 1};
    char folder[FOLDER_BYTES], weights[FOLDER_BYTES + 8];
    make_folder(folder);
    snprintf(weights, sizeof weights, "%s/w", folder);
    for (int n = 0; n < N_NETWORKS; n++) {
        const int64_t whole = predict(&networks[n], weights, true, &all, false);
        const int64_t asked = predict(&networks[n], weights, false, &one, true);
        const int64_t least = predict(&networks[n], weights, false, &few, true);
        assert_true(asked < whole && least < asked);
        for (int64_t s = 0; s < SAMPLES; s++) {
            const float *want = all.logits + (s * LONGEST + place_of(s)) * TOKENS;
            assert_true(test_distance(one.logits + s * TOKENS, want, TOKENS) < 1e-6);
            assert_true(test_distance(few.logits + s * TOKENS, want, TOKENS) < 1e-6);
        }
    }
    remove_folder(folder);
}

static void other_models_are_asked_for_nothing(void **state)
{
    (void)state;
    const qn_model_data text = data_of(&networks[0], LONGEST, true);
    qn_model_data trained = text, classes = text, image = {.channels = 1, .height = 8, .width = 8};
    trained.predict = false;
    classes.classes = 3;
    image.classes = 3;
    image.predict = image.asked = true;
    const struct {
        const char *model;
        const qn_model_data *data;
        qn_model_option option;
    } cases[] = {
        {"gpt", &trained, {"layers", "1"}},
        {"bert", &classes, {"layers", "1"}},
        {"bert", &text, {"pooling", "mean"}},
        {"mlp", &image, {"hidden1", "8"}},
        {"graph", &text, {"text", "input tokens i32 batch 24"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = test_graph(QN_F32);
        assert_int_not_equal(
            qn_model_build(graph, cases[i].model, cases[i].data, &cases[i].option, 1), QN_OK);
        const char *error = qn_graph_error(graph);
        assert_true(strstr(error, "asked for") || strstr(error, "tells no tokens"));
        qn_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_place),
        cmocka_unit_test(other_models_are_asked_for_nothing),
    };
    return cmocka_run_group_tests_name("asked", tests, open_device, close_device);
}
