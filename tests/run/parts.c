/* SPDX-License-Identifier: MIT
 *
 * A tensor that was doubled, cut and joined to what it was, enlarged and made small again is the
 * same tensor, and so is its gradient: training with and without that gives the same bits. So does
 * training with a convolution of two images, and with one of what joins them; with the sum of twice
 * the same, and its double; with a norm of channels as groups, and as rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <stdlib.h>

enum { SAMPLES = 40, WIDTH = 60, SIDE = 8 };

static qn_device *device;
static struct test_data data;

/* The halves of two tensors side by side, and those the right way round. The parts have no whole
 * vectors, and each tensor has two readers. */
static qn_tensor cut_and_join(qn_graph *graph, qn_tensor x)
{
    enum { FIRST = 17 };
    const qn_tensor twice = qn_concat(graph, 2, (qn_tensor[]){x, x}, 1);
    const qn_tensor turned = qn_slice(graph, twice, 1, FIRST, WIDTH);
    const qn_tensor parts[] = {qn_slice(graph, turned, 1, WIDTH - FIRST, FIRST),
                               qn_slice(graph, turned, 1, 0, WIDTH - FIRST)};
    return qn_concat(graph, 2, parts, 1);
}

/* Four pixels of one value have that value in the mean. */
static qn_tensor enlarge_and_shrink(qn_graph *graph, qn_tensor x)
{
    x = qn_reshape(graph, x, 4, (int64_t[]){QN_BATCH, 3, 4, 5});
    x = qn_upsample2d(graph, x, NULL);
    return qn_flatten(graph, qn_avg_pool2d(graph, x, &(qn_pool2d_params){.size = {2, 2}}));
}

/* Of the images and of what comes of a convolution of them and themselves. */
static qn_tensor convolve(qn_graph *graph, qn_tensor x,
                          qn_tensor (*both)(qn_graph *graph, qn_tensor a, qn_tensor b,
                                            qn_tensor weight))
{
    const qn_init init = qn_init_fan_in(54);
    const qn_tensor first = qn_parameter(graph, "conv1", 4, (int64_t[]){2, 6, 3, 3}, &init);
    const qn_tensor last = qn_parameter(graph, "conv2", 4, (int64_t[]){3, 5, 3, 3}, &init);
    x = qn_reshape(graph, x, 4, (int64_t[]){QN_BATCH, 3, 4, 5});
    return qn_flatten(graph, both(graph, x, both(graph, x, x, first), last));
}

static const qn_conv2d_params padded = {.padding = {1, 1}};

static qn_tensor both_at_once(qn_graph *graph, qn_tensor a, qn_tensor b, qn_tensor weight)
{
    return qn_conv2d_concat(graph, a, b, weight, (qn_tensor){0}, &padded);
}

static qn_tensor both_joined(qn_graph *graph, qn_tensor a, qn_tensor b, qn_tensor weight)
{
    const qn_tensor joined = qn_concat(graph, 2, (qn_tensor[]){a, b}, 1);
    return qn_conv2d(graph, joined, weight, (qn_tensor){0}, &padded);
}

static qn_tensor convolve_at_once(qn_graph *graph, qn_tensor x)
{
    return convolve(graph, x, both_at_once);
}

static qn_tensor convolve_joined(qn_graph *graph, qn_tensor x)
{
    return convolve(graph, x, both_joined);
}

static qn_tensor double_by_sum(qn_graph *graph, qn_tensor x)
{
    x = qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, WIDTH, 1});
    return qn_sum(graph, qn_concat(graph, 2, (qn_tensor[]){x, x}, 2), 2);
}

static qn_tensor double_by_factor(qn_graph *graph, qn_tensor x)
{
    return qn_scale(graph, x, 2);
}

static qn_tensor norm_of_groups(qn_graph *graph, qn_tensor x)
{
    x = qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, 3, 20});
    const qn_group_norm_params params = {.groups = 3};
    return qn_flatten(graph, qn_group_norm(graph, x, (qn_tensor){0}, (qn_tensor){0}, &params));
}

static qn_tensor norm_of_rows(qn_graph *graph, qn_tensor x)
{
    x = qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, 3, 20});
    return qn_flatten(graph, qn_layer_norm(graph, x, (qn_tensor){0}, (qn_tensor){0}, NULL));
}

static qn_tensor same(qn_graph *graph, qn_tensor x)
{
    (void)graph;
    return x;
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    const qn_init init = qn_init_fan_in(in);
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, in}, &init),
                     (qn_tensor){0});
}

/* The weights after three updates of a network with `detour` between its layers. */
static int64_t train(qn_tensor (*detour)(qn_graph *graph, qn_tensor x), float **weights)
{
    static const qn_plan_params plan = {.budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = 16};
    static const qn_trainer_params trainer = {.seed = 3, .poison = true};
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, SIDE * SIDE});
    const qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = qn_tanh(graph, detour(graph, dense(graph, x, "first", SIDE * SIDE, WIDTH)));
    x = dense(graph, x, "last", WIDTH, TEST_CLASSES);
    const qn_cross_entropy_params loss = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &loss), "loss", NULL);
    assert_string_equal(qn_graph_error(graph), "");
    struct test_run run = test_open(device, graph, &plan, &trainer);
    test_train(run.trainer, &data, SAMPLES, 3);
    const int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    qn_graph_destroy(&graph);
    return count;
}

static void compare(qn_tensor (*straight)(qn_graph *graph, qn_tensor x),
                    qn_tensor (*detour)(qn_graph *graph, qn_tensor x))
{
    float *want, *have;
    const int64_t count = train(straight, &want);
    assert_int_equal(train(detour, &have), count);
    assert_memory_equal(have, want, (size_t)count * sizeof *have);
    free(have);
    free(want);
}

static void joined_parts_are_the_whole(void **state)
{
    (void)state;
    compare(same, cut_and_join);
}

static void the_mean_of_repeated_pixels_is_theirs(void **state)
{
    (void)state;
    compare(same, enlarge_and_shrink);
}

static void two_images_are_what_joins_them(void **state)
{
    (void)state;
    compare(convolve_joined, convolve_at_once);
}

static void a_sum_of_two_is_the_double(void **state)
{
    (void)state;
    compare(double_by_factor, double_by_sum);
}

static void groups_of_one_channel_are_rows(void **state)
{
    (void)state;
    compare(norm_of_rows, norm_of_groups);
}

static int open_all(void **state)
{
    (void)state;
    device = test_device();
    test_data_make(&data, SAMPLES, SIDE * SIDE);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    test_data_free(&data);
    qn_device_close(&device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_parts_are_the_whole),
        cmocka_unit_test(the_mean_of_repeated_pixels_is_theirs),
        cmocka_unit_test(two_images_are_what_joins_them),
        cmocka_unit_test(a_sum_of_two_is_the_double),
        cmocka_unit_test(groups_of_one_channel_are_rows),
    };
    return cmocka_run_group_tests_name("parts", tests, open_all, close_all);
}
