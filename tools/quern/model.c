/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "session.h"

#include <cjson/cJSON.h>
#include <quern/graph_file.h>
#include <stdio.h>
#include <stdlib.h>

/* Takes `text`. */
static int print(struct session *s, char *text)
{
    if (!text)
        return failure_set(s->failure, CODE_FAILED, "%s: %s", s->recipe.name,
                           *s->failure->logged ? s->failure->logged : "out of memory");
    fputs(text, stdout);
    qn_free(text);
    return CODE_DONE;
}

static cJSON *node_json(const qn_node_info *info)
{
    cJSON *object = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(object, "shape");
    cJSON_AddStringToObject(object, "name", info->name);
    cJSON_AddStringToObject(object, "operator", info->kind);
    cJSON_AddStringToObject(object, "type", qn_dtype_name(info->dtype));
    for (int i = 0; i < info->shape.rank; i++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)info->shape.dim[i]));
    if (info->parameters) {
        cJSON_AddNumberToObject(object, "parameters", (double)info->parameters);
        cJSON_AddBoolToObject(object, "frozen", info->frozen);
    } else {
        cJSON_AddNumberToObject(object, "flops", info->flops);
        cJSON_AddNumberToObject(object, "bytes", (double)info->bytes);
    }
    return object;
}

/* {"nodes": [...], "parameters": N, "flops": N}; of dimensions -N is N times the batch. */
static char *nodes_json(const qn_graph *graph)
{
    int count;
    double flops = 0, parameters = 0;
    qn_node_info *nodes = qn_graph_nodes(graph, &count);
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "nodes");
    for (int n = 0; n < count; n++) {
        cJSON_AddItemToArray(list, node_json(&nodes[n]));
        flops += nodes[n].flops;
        parameters += (double)nodes[n].parameters;
    }
    cJSON_AddNumberToObject(root, "parameters", parameters);
    cJSON_AddNumberToObject(root, "flops", flops);
    char *text = nodes ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    qn_free(nodes);
    return text;
}

static int show(struct session *s, const struct arguments *a)
{
    const qn_graph_write_params params = {.log = failure_log(s->failure), .summary = true};
    TRY(session_recipe(s, a->operand, a));
    TRY(data_look(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    failure_clear(s->failure);
    if (!a->value[OPTION_JSON])
        return print(s, qn_graph_write(s->graph, &params));
    TRY(print(s, nodes_json(s->graph)));
    printf("\n");
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    int code = show(session, a);
    session_close(session);
    free(session);
    return code;
}

const struct command command_model = {
    "model",
    "RECIPE",
    "prints a recipe's network: nodes, shapes, parameters, operations and bytes",
    "Prints the network as a graph file, a node a line, with comments: its shape, and of one "
    "sample\n"
    "the floating-point operations of the forward pass and the bytes of the result. What is "
    "printed\n"
    "can be changed and trained: [model] name = graph, path = FILE. With several lengths of "
    "samples\n"
    "it is that of the longest.",
    true,
    run,
    {OPTION_DATA, OPTION_STORAGE, OPTION_SET, OPTION_JSON, OPTION_COUNT},
};
