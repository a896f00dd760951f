/* SPDX-License-Identifier: MIT
 *
 * Measures on a device what every task of the networks takes and writes FOLDER/NAME.json, the cost
 * tables of plan/gates.
 *
 * Usage: measure_costs FOLDER [NAME...]
 */
#include "networks.h"

#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_log(void *user, qn_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static void print_progress(void *user, const qn_tune_progress *progress)
{
    fprintf(stderr, "\r%s: %d of %d tasks ", (const char *)user, progress->done, progress->total);
}

/* Every task, with nothing recomputed. */
static qn_plan *keep_all(const struct network *network, const qn_device *device)
{
    qn_plan *plan = NULL;
    const qn_plan_params params = {.budget = INT64_C(1) << 40,
                                   .batch = {network->batch},
                                   .micro_batch = network->batch,
                                   .recompute = QN_RECOMPUTE_NONE};
    qn_graph *graph = network_graph(network);
    qn_plan_create(&plan, graph, qn_device_facts(device), &params, NULL);
    qn_graph_destroy(&graph);
    return plan;
}

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    FILE *file = fopen(path, "w");
    const int failed = !file || fputs(text, file) < 0;
    if (failed || fclose(file)) {
        perror(path);
        return 1;
    }
    return 0;
}

static int measure(const struct network *network, qn_device *device, const char *folder)
{
    const qn_tune_params params = {.fn = print_progress, .user = (void *)network->name};
    char *text = NULL;
    qn_plan *plan = keep_all(network, device);
    const qn_status status = plan ? qn_tune(device, plan, &params, &text, NULL) : QN_ERR_ARGUMENT;
    const int failed = status != QN_OK || write_text(folder, network->name, text);
    fprintf(stderr, "\n");
    free(text);
    qn_plan_destroy(&plan);
    return failed;
}

static bool is_asked(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    const qn_device_params params = {.log = {print_log, NULL, QN_LOG_WARNING}};
    qn_device *device;
    int failed = 0;
    if (argc < 2 || qn_device_open(&device, &params) != QN_OK) {
        fprintf(stderr, "usage: measure_costs FOLDER [NAME...]\n");
        return 2;
    }
    for (int i = 0; i < N_NETWORKS && !failed; i++)
        if (is_asked(networks[i].name, argv + 2, argc - 2))
            failed = measure(&networks[i], device, argv[1]);
    qn_device_close(&device);
    return failed;
}
