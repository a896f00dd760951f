/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>

static void print_log(void *user, qn_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

qn_graph *network_graph(const struct network *network)
{
    qn_graph *graph;
    const qn_graph_params params = {.log = {print_log, NULL, QN_LOG_WARNING}};
    int options = 0;
    while (options < MOST_OPTIONS && network->options[options].key)
        options++;
    if (qn_graph_create(&graph, &params) != QN_OK ||
        qn_model_build(graph, network->model, &network->data, network->options, options) != QN_OK)
        abort();
    return graph;
}

int64_t activation_bytes(const qn_plan_info *info)
{
    return info->bytes_by_tag[QN_TAG_KEPT] + info->bytes_by_tag[QN_TAG_ACTIVATION_GRADIENTS] +
           info->bytes_by_tag[QN_TAG_SCRATCH] + info->bytes_by_tag[QN_TAG_RECOMPUTED];
}
