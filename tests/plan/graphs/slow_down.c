/* SPDX-License-Identifier: MIT
 *
 * Predicted and measured slow-down side by side: networks at a share of their activation bytes, or
 * at the least that they need, in turns with keeping everything, both planned at costs measured
 * just before. What has no room is recomputed or, with "park", parked.
 *
 * Usage: measure_slow_down [PERCENT [UPDATES [park]]]
 */
#include "base/clock.h"
#include "base/median.h"
#include "network.h"

#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UPDATES = 100 };

static const struct network networks[] = {
    {.title = "demonstration, 64 x 28^2",
     .model = "cnn",
     .batch = 64,
     .data = {.channels = 1, .height = 28, .width = 28, .classes = 10}},
    {.title = "ResNet-18, 16 x 64^2",
     .model = "resnet",
     .options = {{"depth", "18"}},
     .batch = 16,
     .data = {.channels = 3, .height = 64, .width = 64, .classes = 10}},
    {.title = "U-Net, 4 x 128^2",
     .model = "unet",
     .options = {{"width", "32"}, {"norm", "batch"}},
     .batch = 4,
     .data = {.channels = 3, .height = 128, .width = 128, .classes = 2, .masks = true}},
};

static void print_log(void *user, qn_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static void must(qn_status status)
{
    if (status == QN_OK)
        return;
    fprintf(stderr, "%s\n", qn_status_text(status));
    exit(1);
}

/* Pixels and classes: any small numbers do. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const qn_model_data *data = user;
    const int64_t pixels = data->height * data->width;
    const bool labels = strcmp(input, "labels") == 0;
    const int64_t row = !labels ? data->channels * pixels : data->masks ? pixels : 1;
    const int64_t most = labels ? data->classes : 256;
    for (int64_t i = 0; i < count * row; i++)
        ((unsigned char *)rows)[i] =
            (unsigned char)((first * row + i) * 2654435761 % 1000003 % most);
    return QN_OK;
}

/* A plan at costs that were measured for its own tasks. */
static qn_plan *plan_measured(const qn_graph *graph, qn_device *device, qn_plan_params *params,
                              char **costs)
{
    qn_plan *plan;
    qn_tune_result result = {.changed = true};
    must(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL));
    while (result.changed) {
        const qn_tune_params tune = {.known = *costs};
        char *found;
        must(qn_tune(device, plan, &tune, &found, &result));
        free(*costs);
        params->tuning = *costs = found;
        qn_plan_destroy(&plan);
        must(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL));
    }
    return plan;
}

/* --- timing --- */

static double time_update(qn_trainer *trainer, const qn_cycle *cycle)
{
    qn_metrics metrics;
    const double start = qn_clock();
    must(qn_trainer_step(trainer, cycle, NULL));
    must(qn_trainer_finish(trainer, &metrics));
    return qn_clock() - start;
}

/* How much longer an update of the second takes, in percent: the median of pairs. */
static double measure(qn_trainer *trainers[2], const qn_cycle *cycle, int updates)
{
    double slower[MOST_UPDATES];
    for (int i = -1; i < updates; i++) {
        const double keep = time_update(trainers[0], cycle), few = time_update(trainers[1], cycle);
        slower[i < 0 ? 0 : i] = 100 * (few / keep - 1);
    }
    return qn_median(slower, updates);
}

struct question {
    double percent;
    int updates;
    bool park;
};

static void compare(const struct network *network, qn_device *device, const struct question *asked)
{
    char *costs = NULL;
    qn_graph *graph = network_graph(network);
    qn_plan_params params = {.budget = INT64_C(8) << 30,
                             .batch = {network->batch},
                             .micro_batch = network->batch,
                             .recompute = QN_RECOMPUTE_NONE};
    qn_plan *plans[2] = {plan_measured(graph, device, &params, &costs)};
    const qn_plan_info *keep = qn_plan_facts(plans[0]);
    const int64_t part = activation_bytes(keep);
    params.recompute = asked->park ? QN_RECOMPUTE_NONE : QN_RECOMPUTE_AUTO;
    params.park = asked->park;
    plans[1] = plan_measured(graph, device, &params, &costs);
    const int64_t least = qn_plan_facts(plans[1])->smallest_budget;
    const int64_t share = keep->peak_bytes - part + (int64_t)((double)part * asked->percent / 100);
    qn_plan_destroy(&plans[1]);
    params.budget = share > least ? share : least;
    plans[1] = plan_measured(graph, device, &params, &costs);
    const qn_plan_info *few = qn_plan_facts(plans[1]);
    const qn_cycle cycle = {network->batch, 1e-3, fetch, (void *)&network->data};
    qn_trainer *trainers[2];
    for (int i = 0; i < 2; i++)
        must(qn_trainer_open(&trainers[i], device, plans[i], NULL));
    printf("%-26s at %.0f %%: ", network->title,
           100.0 * (double)(params.budget - keep->peak_bytes + part) / (double)part);
    if (asked->park)
        printf("%.1f MiB parked", (double)few->parked_bytes / (1 << 20));
    else
        printf("%d of %d steps recomputed", few->recomputed_steps, few->steps);
    printf(", predicted %+.1f %%", 100 * (few->seconds / keep->seconds - 1));
    printf(", measured %+.1f %%\n", measure(trainers, &cycle, asked->updates));
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        qn_trainer_close(&trainers[i]);
        qn_plan_destroy(&plans[i]);
    }
    qn_graph_destroy(&graph);
    free(costs);
}

int main(int argc, char **argv)
{
    const qn_device_params params = {.log = {print_log, NULL, QN_LOG_WARNING}};
    const struct question asked = {.percent = argc > 1 ? atof(argv[1]) : 40,
                                   .updates = argc > 2 ? atoi(argv[2]) : 21,
                                   .park = argc > 3 && strcmp(argv[3], "park") == 0};
    qn_device *device;
    if (asked.percent <= 0 || asked.updates < 1 || asked.updates > MOST_UPDATES ||
        (argc > 3 && !asked.park)) {
        fprintf(stderr, "usage: measure_slow_down [PERCENT [UPDATES, at most %d [park]]]\n",
                MOST_UPDATES);
        return 2;
    }
    must(qn_device_open(&device, &params));
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        compare(&networks[i], device, &asked);
    qn_device_close(&device);
    return 0;
}
