/* SPDX-License-Identifier: MIT
 *
 * Every network that ships under random budgets: the bytes of all buffers, counted from outside by
 * clcount, are those of the plan and within the budget, and a trainer leaves none behind.
 *
 * Usage: test_run_bytes [NETWORK...]
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "counted.h"
#include "support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, BUDGETS = 10, OPTIONS = 5, SIDE = 32, TOKENS = 32, CLASSES = 10 };

struct network {
    const char *name, *model;
    qn_model_option options[OPTIONS];
    enum { IMAGES, MASKS, TEXT } data;
};

#define RESNET(depth)                                                                              \
    {                                                                                              \
        "resnet" #depth, "resnet", {{"depth", #depth}, {"group", "4"}, {"stem", "3"}}, IMAGES      \
    }
#define VGG(depth)                                                                                 \
    {"vgg" #depth, "vgg", {{"depth", #depth}, {"pool", "1"}, {"hidden", "32"}}, IMAGES},           \
    {                                                                                              \
        "vgg" #depth "_bn", "vgg",                                                                 \
            {{"depth", #depth},                                                                    \
             {"pool", "1"},                                                                        \
             {"hidden", "32"},                                                                     \
             {"batch_norm", "1"},                                                                  \
             {"group", "4"}},                                                                      \
            IMAGES                                                                                 \
    }
#define GPT(tied, fused)                                                                           \
    {                                                                                              \
        {"layers", "3"}, {"heads", "2"}, {"width", "48"}, {"tied", #tied},                         \
        {                                                                                          \
            "fused", #fused                                                                        \
        }                                                                                          \
    }

static const struct network networks[] = {
    {"mlp", "mlp", {{"hidden1", "96"}, {"hidden2", "64"}, {"dropout", "0.25"}}, IMAGES},
    {"cnn", "cnn", {{"width", "8"}, {"group", "4"}, {"dropout", "0.25"}}, IMAGES},
    RESNET(18),
    RESNET(34),
    RESNET(50),
    RESNET(101),
    RESNET(152),
    VGG(11),
    VGG(13),
    VGG(16),
    VGG(19),
    {"unet", "unet", {{"depth", "4"}, {"width", "8"}, {"group", "4"}, {"norm", "batch"}}, MASKS},
    {"unet_odd", "unet", {{"depth", "3"}, {"width", "5"}, {"group", "2"}}, MASKS},
    {"gpt", "gpt", GPT(0, 1), TEXT},
    {"gpt_tied", "gpt", GPT(1, 1), TEXT},
    {"gpt_steps", "gpt", GPT(1, 0), TEXT},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static int64_t bytes_now(void)
{
    largest_since();
    return (int64_t)largest_since();
}

/* --- made-up data --- */

static int64_t row_of(const struct network *network, const char *input)
{
    if (network->data == TEXT)
        return TOKENS;
    if (strcmp(input, "images") == 0)
        return 3 * SIDE * SIDE;
    return network->data == MASKS ? SIDE * SIDE : 1;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct network *network = user;
    const int64_t row = row_of(network, input);
    const bool bytes = network->data != TEXT && (network->data == MASKS || row > 1);
    for (int64_t i = 0; i < count * row; i++) {
        const int32_t value =
            (int32_t)(qn_random_bits(1, row > 1, (uint64_t)(first * row + i)) % CLASSES);
        if (bytes)
            ((uint8_t *)rows)[i] = (uint8_t)value;
        else
            ((int32_t *)rows)[i] = value;
    }
    return QN_OK;
}

static qn_graph *build(const struct network *network)
{
    const bool text = network->data == TEXT;
    const qn_model_data data = {.channels = text ? 1 : 3,
                                .height = text ? 1 : SIDE,
                                .width = text ? TOKENS : SIDE,
                                .classes = text ? 0 : CLASSES,
                                .tokens = text ? CLASSES : 0,
                                .masks = network->data == MASKS};
    qn_graph *graph = test_graph(QN_F32);
    int options = 0;
    while (options < OPTIONS && network->options[options].key)
        options++;
    assert_int_equal(qn_model_build(graph, network->model, &data, network->options, options),
                     QN_OK);
    return graph;
}

/* --- training --- */

/* What some of the plans do. */
struct tally {
    int recomputed, parked;
};

static void train(const struct network *network, const qn_graph *graph,
                  const qn_plan_params *params, struct tally *tally)
{
    const qn_cycle cycle = {BATCH, 0.01, fetch, (void *)network};
    assert_int_equal(bytes_now(), 0);
    struct test_run run = test_open(device, graph, params, NULL);
    const qn_plan_info info = *qn_plan_facts(run.plan);
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &(qn_metrics){0}), QN_OK);
    assert_int_equal(largest_since(), info.peak_bytes);
    assert_true(info.peak_bytes <= params->budget);
    test_close(&run);
    assert_int_equal(bytes_now(), 0);
    tally->recomputed += info.recomputed_steps > 0;
    tally->parked += info.parked_bytes > 0;
}

/* The smallest and the largest budget that matters. */
static void find_range(const qn_graph *graph, qn_plan_params params, int64_t range[2])
{
    qn_plan *plan;
    params.budget = INT64_C(1) << 40;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &params, NULL), QN_OK);
    range[0] = qn_plan_facts(plan)->smallest_budget;
    range[1] = qn_plan_facts(plan)->peak_bytes;
    qn_plan_destroy(&plan);
}

/* Whether the plan may park; if so it does not recompute, which mostly takes less time here. */
static void choose(qn_plan_params *params, bool park)
{
    params->park = park;
    params->recompute = park ? QN_RECOMPUTE_NONE : QN_RECOMPUTE_AUTO;
}

/* Half of the budgets at one micro-batch, where there is more to recompute. A third of all for
 * plans that may park. */
static struct tally check_network(const struct network *network, uint64_t number)
{
    qn_graph *graph = build(network);
    qn_plan_params params = {.batch = {BATCH}};
    int64_t ranges[2][2] = {{0}};
    struct tally tally = {0};
    for (int i = 0; i < BUDGETS; i++) {
        params.micro_batch = i < BUDGETS / 2 ? BATCH : 0;
        for (int park = 0; i % (BUDGETS / 2) == 0 && park < 2; park++) {
            choose(&params, park);
            find_range(graph, params, ranges[park]);
        }
        choose(&params, i % 3 == 0);
        const int64_t *range = ranges[params.park];
        params.budget = range[0] + (int64_t)(qn_random_uniform(7, number, (uint64_t)i) *
                                             (double)(range[1] - range[0]));
        train(network, graph, &params, &tally);
    }
    qn_graph_destroy(&graph);
    return tally;
}

/* Arguments: the networks to train; none: all. */
static char **chosen;

static void bytes_are_those_of_the_plan(void **state)
{
    (void)state;
    int plans = 0;
    struct tally all = {0};
    for (int i = 0; i < NETWORKS; i++) {
        if (!test_chosen(chosen, networks[i].name))
            continue;
        const struct tally some = check_network(&networks[i], (uint64_t)i);
        print_message("  %s: %d of %d plans recompute, %d park\n", networks[i].name,
                      some.recomputed, BUDGETS, some.parked);
        plans += BUDGETS;
        all.recomputed += some.recomputed;
        all.parked += some.parked;
    }
    print_message("  all: %d of %d, %d park\n", all.recomputed, plans, all.parked);
    assert_true(all.recomputed > plans / 3 && all.parked > plans / 10);
}

/* Nothing is tested where nobody counts. */
static int open_all(void **state)
{
    const int failed = open_counted(state);
    return largest_since ? failed : -1;
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_of_the_plan)};
    chosen = argv + 1;
    return cmocka_run_group_tests_name("bytes", tests, open_all, close_device);
}
