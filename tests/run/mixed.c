/* SPDX-License-Identifier: MIT
 *
 * Images with two labels each: the gradient of a batch is made of those of single samples with one
 * label, by their shares, however the batch is split and whatever is recomputed; evaluations go by
 * the first label.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "device.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 9, PIXELS = 48, CLASSES = 5 };

/* Rows of the inputs; `base` is the first sample of the batch. */
struct rows {
    uint8_t images[SAMPLES][PIXELS];
    int32_t labels[SAMPLES], others[SAMPLES];
    float shares[SAMPLES];
    int64_t base;
    bool swapped; /* the label is the other's */
    int mixed;    /* fetches of what the other has */
};

static struct rows *make_rows(void)
{
    struct rows *rows = calloc(1, sizeof *rows);
    assert_non_null(rows);
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < PIXELS; j++)
            rows->images[i][j] = (uint8_t)qn_random_bits(7, 1, (uint64_t)(i * PIXELS + j));
        rows->labels[i] = i % CLASSES;
        rows->others[i] = (i * 3 + 1) % CLASSES;
        rows->shares[i] = i < 2 ? (float)i : (float)qn_random_uniform(7, 2, (uint64_t)i);
    }
    return rows;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *to)
{
    struct rows *rows = user;
    const int64_t at = rows->base + first;
    assert_true(at >= 0 && at + count <= SAMPLES);
    rows->mixed += strncmp(input, "mixed", 5) == 0;
    if (strcmp(input, "images") == 0)
        memcpy(to, rows->images[at], (size_t)(count * PIXELS));
    else if (strcmp(input, "labels") == 0)
        memcpy(to, (rows->swapped ? rows->others : rows->labels) + at, (size_t)count * 4);
    else if (strcmp(input, "mixed_labels") == 0)
        memcpy(to, rows->others + at, (size_t)count * 4);
    else if (strcmp(input, "mixed_shares") == 0)
        memcpy(to, rows->shares + at, (size_t)count * 4);
    else
        fail_msg("no input %s", input);
    return QN_OK;
}

static qn_model_data data_of(bool mixed)
{
    return (qn_model_data){
        .channels = 3, .height = 4, .width = 4, .classes = CLASSES, .mixed = mixed};
}

static qn_graph *build(bool mixed)
{
    const qn_model_option options[] = {{"hidden1", "16"}, {"hidden2", "8"}};
    const qn_model_data data = data_of(mixed);
    qn_graph *graph = test_graph(QN_F32);
    if (qn_model_build(graph, "mlp", &data, options, 2) != QN_OK)
        fail_msg("%s", qn_graph_error(graph));
    return graph;
}

static struct test_run open_run(const qn_graph *graph, int64_t batch, int64_t micro_batch,
                                qn_recompute_mode recompute)
{
    const qn_plan_params params = {
        .budget = 16 << 20, .batch = {batch}, .micro_batch = micro_batch, .recompute = recompute};
    return test_open(device, graph, &params, NULL);
}

static int64_t gradient_of(struct test_run *run, struct rows *rows, int64_t batch, float **values)
{
    const qn_cycle cycle = {batch, 0, fetch, rows};
    assert_int_equal(qn_trainer_accumulate(run->trainer, &cycle), QN_OK);
    return test_read_gradients(run->trainer, values);
}

/* What the batch must give, of single samples with one label. */
static int64_t add_up(struct rows *rows, float **sum)
{
    qn_graph *graph = build(false);
    struct test_run run = open_run(graph, 1, 1, QN_RECOMPUTE_NONE);
    int64_t count = 0;
    *sum = NULL;
    for (int i = 0; i < 2 * SAMPLES; i++) {
        float *one, share = rows->shares[i / 2];
        rows->base = i / 2;
        rows->swapped = i % 2;
        count = gradient_of(&run, rows, 1, &one);
        if (!*sum)
            *sum = calloc((size_t)count, sizeof **sum);
        assert_non_null(*sum);
        for (int64_t j = 0; j < count; j++)
            (*sum)[j] += (i % 2 ? share : 1 - share) * one[j] / SAMPLES;
        free(one);
    }
    rows->base = 0;
    rows->swapped = false;
    test_close(&run);
    qn_graph_destroy(&graph);
    return count;
}

static void gradients_are_shared(void **state)
{
    static const int64_t splits[] = {SAMPLES, 4, 1};
    struct rows *rows = make_rows();
    float *want, *is;
    (void)state;
    const int64_t count = add_up(rows, &want);
    qn_graph *graph = build(true);
    for (int i = 0; i < 6; i++) {
        struct test_run run =
            open_run(graph, SAMPLES, splits[i / 2], i % 2 ? QN_RECOMPUTE_ALL : QN_RECOMPUTE_NONE);
        assert_int_equal(gradient_of(&run, rows, SAMPLES, &is), count);
        assert_true(test_distance(is, want, count) < 1e-6);
        free(is);
        test_close(&run);
    }
    qn_graph_destroy(&graph);
    free(want);
    free(rows);
}

struct seen {
    struct rows *rows;
    float logits[SAMPLES * CLASSES], loss[SAMPLES];
};

static qn_status fetch_seen(void *user, const char *input, int64_t first, int64_t count, void *to)
{
    return fetch(((struct seen *)user)->rows, input, first, count, to);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *values)
{
    struct seen *seen = user;
    const bool logits = strcmp(name, "logits") == 0;
    const int64_t row = logits ? CLASSES : 1;
    memcpy((logits ? seen->logits : seen->loss) + first * row, values,
           (size_t)(count * row) * sizeof(float));
    return QN_OK;
}

/* As if nothing were mixed: of the first label, and no other is asked for. */
static void evaluations_go_by_the_label(void **state)
{
    struct rows *rows = make_rows();
    struct seen seen[2] = {{rows}, {rows}};
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        qn_graph *graph = build(mixed);
        struct test_run run = open_run(graph, SAMPLES, 4, QN_RECOMPUTE_NONE);
        assert_int_equal(
            qn_trainer_evaluate(run.trainer, SAMPLES, fetch_seen, receive, &seen[mixed]), QN_OK);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    assert_int_equal(rows->mixed, 0);
    assert_memory_equal(seen[0].logits, seen[1].logits, sizeof seen[0].logits);
    assert_memory_equal(seen[0].loss, seen[1].loss, sizeof seen[0].loss);
    free(rows);
}

static void what_has_no_class_is_refused(void **state)
{
    qn_graph *graph = test_graph(QN_F32);
    qn_model_data data = data_of(true);
    (void)state;
    data.masks = true;
    assert_int_equal(qn_model_build(graph, "unet", &data, NULL, 0), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_graph_error(graph), "images are mixed where each has one class"));
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_shared),
        cmocka_unit_test(evaluations_go_by_the_label),
        cmocka_unit_test(what_has_no_class_is_refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
