/* SPDX-License-Identifier: MIT
 *
 * Persistent values, and which of them each node of each graph has.
 */
#include "plan/lowering/persist.h"

#include "base/log.h"
#include "base/shape.h"
#include "op/control.h"

/* Early updates drop each gradient, members of a group sum up only their own: the norms of their
 * chunks stay for the norm of the whole. */
static void add_norms(struct qn_persist *persist)
{
    if ((persist->early || persist->shard.members) && persist->n_chunks)
        persist->norms = qn_persist_add_array(persist, "gradient norm", QN_F32, persist->n_chunks,
                                              QN_TAG_SCRATCH, QN_LIFE_CYCLE);
}

/* --- the nodes of a graph --- */

/* Adds the value of a constant or of a parameter that is not trained. */
static int add_untrained(struct qn_persist *persist, const struct qn_node *node)
{
    const struct qn_value value = {.name = node->name,
                                   .operand = node->leaf,
                                   .bytes = qn_operand_bytes(&node->leaf),
                                   .tag = QN_TAG_PARAMETERS,
                                   .life = QN_LIFE_TRAINING,
                                   .block = -1};
    return qn_persist_add(persist, &value);
}

static void bind_leaf(struct qn_persist *persist, struct qn_bound *bound, int n)
{
    const struct qn_node *node = &bound->graph->nodes[n];
    struct qn_parameter *parameter =
        bound->parameter[n] >= 0 ? &persist->parameters[bound->parameter[n]] : NULL;
    if (parameter && parameter->value < 0)
        parameter->value = parameter->working = add_untrained(persist, node);
    bound->leaf[n] = parameter ? parameter->working : add_untrained(persist, node);
    bound->gradient[n] = parameter ? parameter->gradient : -1;
}

static qn_status bind_graph(const struct qn_lowering *how, struct qn_persist *persist,
                            struct qn_bound *bound)
{
    const struct qn_graph *graph = bound->graph;
    struct qn_shapes shapes;
    QN_TRY(qn_graph_shapes(graph, qn_one_group(how->params, graph), how->arena, how->log, &shapes));
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct qn_node *node = &graph->nodes[n];
        if (node->kind == QN_NODE_OPERATOR)
            QN_TRY(qn_persist_bind_states(how, persist, bound, n, &shapes.calls[n]));
        else if (node->kind == QN_NODE_INPUT)
            qn_persist_bind_cell(persist, bound, n);
        else
            bind_leaf(persist, bound, n);
    }
    qn_persist_bind_tables(persist, bound);
    return QN_OK;
}

/* --- making --- */

static int *new_numbers(const struct qn_lowering *how, size_t count)
{
    int *numbers = qn_arena_new(how->arena, int, count + 1);
    for (size_t i = 0; numbers && i <= count; i++)
        numbers[i] = -1;
    return numbers;
}

static bool open_bound(const struct qn_lowering *how, const struct qn_graph *graph,
                       struct qn_bound *bound)
{
    const size_t nodes = (size_t)graph->n_nodes;
    *bound =
        (struct qn_bound){.graph = graph,
                          .parameter = new_numbers(how, nodes),
                          .leaf = new_numbers(how, nodes),
                          .gradient = new_numbers(how, nodes),
                          .state = (int(*)[QN_MAX_STATE])new_numbers(how, nodes * QN_MAX_STATE),
                          .gather = (int(*)[QN_MAX_STATE])new_numbers(how, nodes * QN_MAX_STATE)};
    return bound->parameter && bound->leaf && bound->gradient && bound->state && bound->gather;
}

static bool allocate(const struct qn_lowering *how, const struct qn_graph *const *graphs,
                     struct qn_persist *persist)
{
    size_t nodes = 0;
    persist->graphs = qn_arena_new(how->arena, struct qn_bound, (size_t)persist->n_graphs + 1);
    for (int g = 0; g < persist->n_graphs; g++) {
        nodes += (size_t)graphs[g]->n_nodes;
        if (!persist->graphs || !open_bound(how, graphs[g], &persist->graphs[g]))
            return false;
    }
    const size_t values =
        nodes * (2 + 4 * QN_MAX_STATE) + QN_MAX_BLOCKS * (6 + QN_MAX_STATE) + 2 * QN_MAX_CELLS + 4;
    struct qn_optimizer_attr *settings = qn_arena_new(how->arena, struct qn_optimizer_attr, 1);
    struct qn_average_attr *averaging = qn_arena_new(how->arena, struct qn_average_attr, 1);
    persist->values = qn_arena_new(how->arena, struct qn_value, values);
    persist->moving = qn_arena_new(how->arena, struct qn_moving, nodes * QN_MAX_STATE + 1);
    persist->settings = settings;
    if (!settings || !averaging || !persist->values || !persist->moving)
        return false;
    *settings = qn_optimizer_settings(&how->params->optimizer, graphs[0]->storage == QN_F16);
    *averaging = (struct qn_average_attr){how->params->optimizer.ema};
    persist->averaging = averaging->decay > 0 ? averaging : NULL;
    return true;
}

static qn_status check_sizes(const struct qn_lowering *how, const struct qn_persist *persist)
{
    for (int v = 0; v < persist->n_values; v++)
        QN_TRY(qn_persist_check_size(how, persist->values[v].name, persist->values[v].bytes,
                                     how->facts->max_alloc_bytes));
    return QN_OK;
}

qn_status qn_persist_make(const struct qn_lowering *how, const struct qn_graph *const *graphs,
                          int n_graphs, const struct qn_run_set *runs, struct qn_persist *persist)
{
    *persist =
        (struct qn_persist){.n_graphs = n_graphs, .runs = *runs, .early = how->early, .norms = -1};
    if (how->params->members > 1)
        persist->shard =
            (struct qn_shard){.members = how->params->members, .member = how->params->member};
    persist->optimizer = qn_optimizer_find(how->params->optimizer.name);
    if (!allocate(how, graphs, persist))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    persist->control = qn_persist_add_array(persist, "control block", QN_F32,
                                            (int64_t)(sizeof(struct qn_control) / sizeof(float)),
                                            QN_TAG_STATE, QN_LIFE_TRAINING);
    QN_TRY(qn_persist_list_parameters(how, persist));
    QN_TRY(qn_persist_lay_blocks(how, persist));
    add_norms(persist);
    QN_TRY(qn_persist_lay_norm_groups(how, persist));
    qn_persist_lay_cells(how, persist);
    for (int g = 0; g < n_graphs; g++)
        QN_TRY(bind_graph(how, persist, &persist->graphs[g]));
    return check_sizes(how, persist);
}
