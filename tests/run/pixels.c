/* SPDX-License-Identifier: MIT
 *
 * Losses with a label a pixel: the mean is over the pixels that count, however they are spread over
 * samples and micro-steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 3, SIDE = 4, PIXELS = 4 * SIDE * SIDE, SAMPLES = 7 };

/* One sample counts nothing, one has a single pixel that counts. */
static int32_t label_of(int64_t sample, int64_t pixel)
{
    const bool counts = sample == 2 ? false : sample == 4 ? pixel == 9 : pixel % 5 > 0;
    return counts ? (int32_t)((sample + pixel / 2) % CLASSES) : TEST_IGNORED;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    if (strcmp(input, "x") == 0)
        for (int64_t i = 0; i < count * SIDE * SIDE; i++)
            ((float *)rows)[i] = (float)sin((double)(first * SIDE * SIDE + i));
    else
        for (int64_t i = 0; i < count * PIXELS; i++)
            ((int32_t *)rows)[i] = label_of(first + i / PIXELS, i % PIXELS);
    return QN_OK;
}

/* An image of twice the side, all of whose logits are 0 at the start. */
static qn_graph *doubling(void)
{
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 1, SIDE, SIDE});
    qn_tensor labels =
        qn_input(graph, "labels", QN_I32, 3, (int64_t[]){QN_BATCH, 2 * SIDE, 2 * SIDE});
    qn_tensor w = qn_parameter(graph, "w", 4, (int64_t[]){1, CLASSES, 2, 2}, NULL);
    qn_tensor b = qn_parameter(graph, "b", 1, (int64_t[]){CLASSES}, NULL);
    x = qn_conv_transpose2d(graph, x, w, b, &(qn_conv_transpose2d_params){.stride = {2, 2}});
    const qn_cross_entropy_params params = {
        .ignore = true, .ignore_label = TEST_IGNORED, .class_dim = 1};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* The mean of p - 1 for the label's class and of p for the others, where p is 1 / CLASSES. */
static void expect(double gradient[CLASSES])
{
    int counted = 0, of_class[CLASSES] = {0};
    for (int64_t i = 0; i < SAMPLES * PIXELS; i++) {
        const int32_t label = label_of(i / PIXELS, i % PIXELS);
        if (label == TEST_IGNORED)
            continue;
        counted++;
        of_class[label]++;
    }
    for (int c = 0; c < CLASSES; c++)
        gradient[c] = 1.0 / CLASSES - (double)of_class[c] / counted;
}

static void pixels_that_count_share_the_mean(void **state)
{
    (void)state;
    static const int64_t splits[] = {SAMPLES, 3, 1};
    double want[CLASSES];
    float have[CLASSES];
    expect(want);
    for (int i = 0; i < 3; i++) {
        qn_graph *graph = doubling();
        const qn_plan_params params = {
            .budget = 16 << 20, .batch = {SAMPLES}, .micro_batch = splits[i]};
        struct test_run run = test_open(device, graph, &params, NULL);
        const qn_cycle cycle = {.samples = SAMPLES, .lr = 0.1, .fetch = fetch};
        qn_metrics metrics;
        assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
        assert_int_equal(qn_trainer_read_gradient(run.trainer, "b", have, CLASSES), QN_OK);
        for (int c = 0; c < CLASSES; c++)
            assert_true(fabs((double)have[c] - want[c]) < 1e-6);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        assert_true(fabs(metrics.loss - log(CLASSES)) < 1e-6);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pixels_that_count_share_the_mean)};
    return cmocka_run_group_tests_name("pixels", tests, open_device, close_device);
}
