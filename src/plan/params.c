/* SPDX-License-Identifier: MIT
 *
 * What was asked of a plan, filled in and checked.
 */
#include "base/log.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a buffer or a device: so many that their sums cannot overflow. */
static const int64_t MOST_BYTES = INT64_C(1) << 48;

#define FILL(field) facts->field = facts->field ? facts->field : defaults.field

void qn_plan_fill_facts(struct qn_facts *facts)
{
    struct qn_facts defaults;
    qn_facts_default(&defaults, facts->cpu);
    if (!*facts->name)
        memcpy(facts->name, defaults.name, sizeof facts->name);
    FILL(vector_width);
    FILL(compute_units);
    FILL(max_work_group);
    FILL(local_bytes);
    FILL(global_bytes);
    FILL(max_alloc_bytes);
    FILL(alignment);
    FILL(flops);
    FILL(bytes_per_second);
    FILL(launch_seconds);
    if (facts->alignment > 0)
        facts->max_alloc_bytes -= facts->max_alloc_bytes % facts->alignment;
}

static qn_status check_facts(const struct qn_log *log, const struct qn_facts *facts)
{
    QN_REQUIRE(log,
               facts->vector_width == 4 || facts->vector_width == 8 || facts->vector_width == 16);
    QN_REQUIRE(log, facts->compute_units > 0);
    QN_REQUIRE(log, facts->max_work_group > 0 && facts->local_bytes > 0);
    QN_REQUIRE(log, facts->global_bytes > 0 && facts->global_bytes <= MOST_BYTES);
    QN_REQUIRE(log, facts->max_alloc_bytes > 0 && facts->max_alloc_bytes <= MOST_BYTES);
    QN_REQUIRE(log, facts->alignment > 0 && facts->alignment % (int64_t)sizeof(float) == 0);
    QN_REQUIRE(log, facts->flops > 0 && facts->bytes_per_second > 0 && facts->launch_seconds > 0);
    return QN_OK;
}

static bool is_share(double value)
{
    return value >= 0 && value < 1;
}

static qn_status check_optimizer(const struct qn_log *log, const struct qn_plan_params *params)
{
    QN_REQUIRE(log, (int)params->optimizer.kind >= 0 && params->optimizer.kind <= QN_ADAMW);
    QN_REQUIRE(log, is_share(params->optimizer.momentum));
    QN_REQUIRE(log, !params->optimizer.nesterov || params->optimizer.momentum > 0);
    QN_REQUIRE(log, is_share(params->optimizer.beta1) && is_share(params->optimizer.beta2));
    QN_REQUIRE(log, params->optimizer.eps >= 0 && isfinite(params->optimizer.eps));
    return QN_OK;
}

static qn_status check_choices(const struct qn_log *log, const struct qn_plan_params *params)
{
    QN_REQUIRE(log, params->budget >= 0);
    QN_REQUIRE(log, (int)params->recompute >= 0 && params->recompute <= QN_RECOMPUTE_CHOSEN);
    QN_REQUIRE(log, (int)params->effort >= 0 && params->effort <= QN_EFFORT_THOROUGH);
    return QN_OK;
}

static qn_status check_batches(const struct qn_log *log, const struct qn_plan_params *params)
{
    if (params->batch[0] <= 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: the effective batch must be at least 1");
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        if (params->batch[i] < 0)
            return qn_fail(log, QN_ERR_ARGUMENT, "plan: batch %" PRId64 " is below 1",
                           params->batch[i]);
    return QN_OK;
}

static qn_status check_micro_batch(const struct qn_log *log, const qn_graph *graph,
                                   const struct qn_plan_params *params)
{
    int64_t group = qn_graph_batch_group(graph), size = params->micro_batch;
    if (size < 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: micro-batch %" PRId64 " is below 1", size);
    if (group < 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: the groups of batch norm have no common size");
    if (size % group && size < qn_largest_batch(params))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "plan: micro-batch %" PRId64 " is not a multiple of batch norm's group of "
                       "%" PRId64 ": take %" PRId64,
                       size, group, size < group ? group : size / group * group);
    return QN_OK;
}

static bool is_node(const qn_graph *graph, const char *name, size_t length)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_OPERATOR && strlen(graph->nodes[n].name) == length &&
            strncmp(graph->nodes[n].name, name, length) == 0)
            return true;
    return false;
}

static qn_status check_chosen(const struct qn_log *log, const qn_graph *graph, const char *chosen)
{
    for (const char *at = chosen; at && *at;) {
        size_t word = strcspn(at, ",");
        if (!is_node(graph, at, word))
            return qn_fail(log, QN_ERR_ARGUMENT, "plan: no node is called %.*s", (int)word, at);
        at += word + (at[word] == ',');
    }
    return QN_OK;
}

static bool has_variant(const struct qn_op *op, const char *wish, size_t length)
{
    char name[96], *setting;
    snprintf(name, sizeof name, "%.*s", (int)length, wish);
    if ((setting = strchr(name, ':')))
        *setting++ = 0;
    for (int g = 0; g < QN_MAX_GROUPS && op->groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && op->groups[g].variant[v].name; v++) {
            const struct qn_variant *variant = &op->groups[g].variant[v];
            if (strcmp(variant->name, name) == 0 &&
                (!setting || qn_setting_index(variant, setting) >= 0))
                return true;
        }
    return false;
}

/* One "op=variant". */
static bool names_variant(const char *wish, size_t length)
{
    size_t op = strcspn(wish, "=");
    for (const struct qn_op *const *known = qn_op_all(); op < length && *known; known++)
        if (strlen((*known)->name) == op && strncmp((*known)->name, wish, op) == 0)
            return has_variant(*known, wish + op + 1, length - op - 1);
    return false;
}

static qn_status check_variants(const struct qn_log *log, const char *variants)
{
    for (const char *at = variants; at && *at;) {
        size_t word = strcspn(at, ",");
        if (!names_variant(at, word))
            return qn_fail(log, QN_ERR_ARGUMENT,
                           "plan: variants: '%.*s' is no operator=variant of this library",
                           (int)word, at);
        at += word + (at[word] == ',');
    }
    return QN_OK;
}

static qn_status check_graph(const struct qn_log *log, const qn_graph *graph)
{
    if (graph->status != QN_OK)
        return qn_fail(log, graph->status, "%s", graph->error);
    if (!graph->n_losses)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: the graph has no loss (qn_loss)");
    return QN_OK;
}

qn_status qn_plan_check(const struct qn_log *log, const qn_graph *graph,
                        const struct qn_facts *facts, const struct qn_plan_params *params)
{
    QN_TRY(check_graph(log, graph));
    QN_TRY(check_facts(log, facts));
    QN_TRY(check_choices(log, params));
    QN_TRY(check_optimizer(log, params));
    QN_TRY(check_batches(log, params));
    QN_TRY(check_micro_batch(log, graph, params));
    QN_TRY(check_chosen(log, graph, params->chosen));
    return check_variants(log, params->variants);
}
