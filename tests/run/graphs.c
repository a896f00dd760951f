/* SPDX-License-Identifier: MIT
 *
 * Random graphs under random budgets: whatever is recomputed, shared or written in place, the same
 * bits as keeping everything, also when all that is dead is poisoned.
 *
 * Usage: test_run_graphs [COUNT [FIRST SEED]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 24, MICRO = 8, UPDATES = 2, BUDGETS = 3, SIDE = 6, NODES = 14, RECENT = 4 };

static qn_device *device;
static int count = 10, first_seed = 1;

/* A graph in the making: what a next node may read, all of (b, channels, SIDE, SIDE). */
struct drawing {
    qn_graph *graph;
    uint64_t seed, drawn;
    qn_tensor tensor[NODES + 1];
    int made, parameters;
};

static int draw(struct drawing *d, int below)
{
    return (int)(qn_random_bits(d->seed, 7, d->drawn++) % (uint64_t)below);
}

/* One of the last few: so that some have several readers, far from each other. */
static qn_tensor pick(struct drawing *d)
{
    const int back = draw(d, 3) ? 1 + draw(d, RECENT) : 1;
    return d->tensor[d->made > back ? d->made - back : d->made - 1];
}

static int64_t channels_of(const struct drawing *d, qn_tensor x)
{
    return qn_shape_of(d->graph, x).dim[1];
}

static qn_tensor parameter(struct drawing *d, int rank, const int64_t *dim)
{
    char name[32];
    snprintf(name, sizeof name, "p%d", d->parameters++);
    const qn_init init = rank == 1 ? qn_init_constant(0.5) : qn_init_fan_in(dim[1] * 9);
    return qn_parameter(d->graph, name, rank, dim, &init);
}

static qn_tensor convolve(struct drawing *d, qn_tensor x, int64_t to, int side)
{
    const int64_t dim[] = {to, channels_of(d, x), side, side};
    const qn_conv2d_params params = {.padding = {side / 2, side / 2}};
    qn_tensor bias = draw(d, 2) ? parameter(d, 1, dim) : (qn_tensor){0};
    return qn_conv2d(d->graph, x, parameter(d, 4, dim), bias, &params);
}

static qn_tensor normalise(struct drawing *d, qn_tensor x)
{
    const int64_t channels = channels_of(d, x);
    const qn_batch_norm_params params = {.group = 4};
    return qn_batch_norm(d->graph, x, parameter(d, 1, &channels), parameter(d, 1, &channels),
                         &params);
}

static qn_tensor bend(struct drawing *d, qn_tensor x)
{
    switch (draw(d, 6)) {
    case 0:
        return qn_sigmoid(d->graph, x);
    case 1:
        return qn_gelu(d->graph, x, QN_GELU_TANH);
    case 2:
        return qn_leaky_relu(d->graph, x, 0.1);
    case 3:
        return qn_dropout(d->graph, x, 0.25);
    case 4:
        return qn_scale(d->graph, x, 0.75);
    default:
        return qn_relu(d->graph, x);
    }
}

/* Of two tensors of one shape; the second is made to fit. */
static qn_tensor combine(struct drawing *d, qn_tensor a, qn_tensor b)
{
    if (channels_of(d, a) != channels_of(d, b))
        b = convolve(d, b, channels_of(d, a), 1);
    return draw(d, 3) ? qn_add(d->graph, a, b) : qn_multiply(d->graph, a, qn_sigmoid(d->graph, b));
}

static qn_tensor convolve_both(struct drawing *d, qn_tensor a, qn_tensor b)
{
    const int64_t dim[] = {2 + draw(d, 5), channels_of(d, a) + channels_of(d, b), 3, 3};
    const qn_conv2d_params params = {.padding = {1, 1}};
    return qn_conv2d_concat(d->graph, a, b, parameter(d, 4, dim), parameter(d, 1, dim), &params);
}

static qn_tensor join(struct drawing *d, qn_tensor a, qn_tensor b)
{
    if (draw(d, 2))
        return convolve_both(d, a, b);
    if (channels_of(d, a) + channels_of(d, b) > 12)
        return qn_slice(d->graph, a, 1, 1, channels_of(d, a) / 2);
    return qn_concat(d->graph, 2, (const qn_tensor[]){a, b}, 1);
}

static qn_tensor shrink_and_grow(struct drawing *d, qn_tensor x)
{
    x = qn_max_pool2d(d->graph, x, &(qn_pool2d_params){.size = {2, 2}});
    return qn_upsample2d(d->graph, x, NULL);
}

static qn_tensor next(struct drawing *d)
{
    qn_tensor x = pick(d);
    switch (draw(d, 8)) {
    case 0:
        return normalise(d, x);
    case 1:
    case 2:
        return convolve(d, x, 2 + draw(d, 5), 3);
    case 3:
        return combine(d, x, pick(d));
    case 4:
        return join(d, x, pick(d));
    case 5:
        return shrink_and_grow(d, x);
    default:
        return bend(d, x);
    }
}

static qn_graph *random_graph(uint64_t seed)
{
    struct drawing d = {.graph = test_graph(QN_F32), .seed = seed};
    qn_graph *graph = d.graph;
    qn_tensor x = qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 1, SIDE, SIDE});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    d.tensor[d.made++] = convolve(&d, x, 4, 3);
    for (; d.made <= NODES; d.made++)
        d.tensor[d.made] = next(&d);
    x = d.tensor[d.made - 1];
    qn_loss(graph, qn_mean(graph, pick(&d), 1), "other", NULL);
    const int64_t dim[] = {TEST_CLASSES, channels_of(&d, x)};
    x = qn_linear(graph, qn_global_avg_pool2d(graph, x), parameter(&d, 2, dim), (qn_tensor){0});
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* --- training --- */

static int64_t train(const qn_graph *graph, const qn_plan_params *params, bool poison,
                     float **weights, qn_plan_info *info)
{
    struct test_data data;
    const qn_trainer_params trainer = {
        .seed = 3, .clip = params->early_updates ? 0 : 1, .poison = poison};
    test_data_make(&data, SAMPLES, SIDE * SIDE);
    struct test_run run = test_open(device, graph, params, &trainer);
    assert_true(qn_plan_facts(run.plan)->peak_bytes <= qn_plan_facts(run.plan)->budget_bytes);
    test_train(run.trainer, &data, SAMPLES, UPDATES);
    const int64_t n = test_weights(run.trainer, weights);
    *info = *qn_plan_facts(run.plan);
    test_close(&run);
    test_data_free(&data);
    return n;
}

/* What some of the plans do. */
struct tally {
    int recomputed, early, parked;
};

/* Every second graph in one micro-step, and then with early updates where the bytes are few; every
 * third may park, half of them have the norms of groups of parameters. */
static void check_graph(uint64_t seed, struct tally *tally)
{
    qn_graph *graph = random_graph(seed);
    qn_plan_params params = {.budget = 64 << 20,
                             .batch = {SAMPLES},
                             .micro_batch = seed % 2 ? MICRO : SAMPLES,
                             .early_updates = seed % 2 == 0,
                             .norm_groups = seed % 4 < 2 ? "auto" : NULL,
                             .park = seed % 3 == 0,
                             .recompute = QN_RECOMPUTE_NONE,
                             .optimizer = {.name = "adamw"}};
    float *kept, *weights;
    qn_plan_info keep, info;
    const int64_t n = train(graph, &params, true, &kept, &keep);
    params.recompute = QN_RECOMPUTE_AUTO;
    const int64_t least = test_smallest_budget(device, graph, &params);
    for (int i = 0; i < BUDGETS; i++) {
        const double share = i ? qn_random_uniform(seed, 8, (uint64_t)i) : 0;
        params.budget = least + (int64_t)(share * (double)(keep.peak_bytes - least));
        assert_int_equal(train(graph, &params, i != 1, &weights, &info), n);
        assert_memory_equal(weights, kept, (size_t)n * sizeof *kept);
        tally->recomputed += info.recomputed_steps > 0;
        tally->early += info.early_updates;
        tally->parked += info.parked_bytes > 0;
        free(weights);
    }
    for (int64_t i = 0; i < n; i++)
        assert_true(isfinite(kept[i]));
    free(kept);
    qn_graph_destroy(&graph);
}

static void no_plan_changes_a_bit(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (int i = 0; i < count; i++) {
        print_message("  seed %d\n", first_seed + i);
        check_graph((uint64_t)(first_seed + i), &tally);
    }
    print_message("  %d of %d plans recompute, %d update early, %d park\n", tally.recomputed,
                  count * BUDGETS, tally.early, tally.parked);
    assert_true(tally.recomputed > count && tally.early >= count / 2 && tally.parked >= count / 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_plan_changes_a_bit)};
    count = argc > 1 ? atoi(argv[1]) : count;
    first_seed = argc > 2 ? atoi(argv[2]) : first_seed;
    device = test_device();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    qn_device_close(&device);
    return failed;
}
