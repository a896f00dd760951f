/* SPDX-License-Identifier: MIT
 *
 * The facts and params of a plan: defaults and checks.
 */
#include "base/log.h"
#include "op/optimizer.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    FILL(matrix_layout);
    FILL(blas_rows);
    FILL(blas_columns);
    FILL(blas_terms);
    FILL(blas_side);
    FILL(flops);
    FILL(bytes_per_second);
    FILL(launch_seconds);
    if (facts->alignment > 0)
        facts->max_alloc_bytes -= facts->max_alloc_bytes % facts->alignment;
}

static const struct range {
    const char *name;
    double least, most;
} ranges[] = {
#define RANGE(name, type, least, most) {#name, least, most},
    QN_FACTS_LIST(RANGE)
#undef RANGE
};

static qn_status check_facts(const struct qn_log *log, const struct qn_facts *facts)
{
    const double values[] = {
#define VALUE(name, type, least, most) (double)facts->name,
        QN_FACTS_LIST(VALUE)
#undef VALUE
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(values[i] >= ranges[i].least && values[i] <= ranges[i].most))
            return qn_fail(log, QN_ERR_ARGUMENT,
                           "plan: facts: %s: %.15g is not from %.15g to %.15g", ranges[i].name,
                           values[i], ranges[i].least, ranges[i].most);
    if (facts->vector_width & (facts->vector_width - 1))
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: facts: vector_width: %d is none of 4, 8, 16",
                       facts->vector_width);
    if (facts->alignment % (int64_t)sizeof(float))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "plan: facts: alignment: %" PRId64 " is not a multiple of %zu",
                       facts->alignment, sizeof(float));
    return QN_OK;
}

static bool is_share(double value)
{
    return value >= 0 && value < 1;
}

static qn_status refuse_optimizer(const struct qn_log *log, const char *name)
{
    char known[160] = "";
    for (int i = 0; qn_optimizer_name(i); i++) {
        const size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                 qn_optimizer_name(i));
    }
    return qn_fail(log, QN_ERR_ARGUMENT, "plan: there is no optimizer '%s', but %s", name, known);
}

static qn_status check_optimizer(const struct qn_log *log, const struct qn_plan_params *params)
{
    if (!qn_optimizer_find(params->optimizer.name))
        return refuse_optimizer(log, params->optimizer.name);
    QN_REQUIRE(log, is_share(params->optimizer.momentum));
    QN_REQUIRE(log, !params->optimizer.nesterov || params->optimizer.momentum > 0);
    QN_REQUIRE(log, is_share(params->optimizer.beta1) && is_share(params->optimizer.beta2));
    QN_REQUIRE(log, params->optimizer.eps >= 0 && isfinite(params->optimizer.eps));
    QN_REQUIRE(log, is_share(params->optimizer.ema));
    return QN_OK;
}

static qn_status check_members(const struct qn_log *log, const struct qn_plan_params *params)
{
    QN_REQUIRE(log, params->members >= 0 && params->members <= QN_MAX_GROUP);
    QN_REQUIRE(log, params->member >= 0 && params->member <= params->members);
    QN_REQUIRE(log, !params->members || params->member < params->members);
    if (params->members > 1 && params->early_updates)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "plan: early_updates do not wait for the other members");
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
    if (params->micro_batch < 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: micro-batch %" PRId64 " is below 1",
                       params->micro_batch);
    if (params->batch[0] <= 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: the effective batch must be at least 1");
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        if (params->batch[i] < 0)
            return qn_fail(log, QN_ERR_ARGUMENT, "plan: batch %" PRId64 " is below 1",
                           params->batch[i]);
    for (int i = 0; i < QN_MAX_BATCH_SIZES && params->batch[i]; i++)
        if (params->whole[i] && params->whole[i] < params->batch[i])
            return qn_fail(log, QN_ERR_ARGUMENT,
                           "plan: whole: a cycle of %" PRId64 " samples has no share of %" PRId64,
                           params->whole[i], params->batch[i]);
    return QN_OK;
}

static qn_status check_micro_batch(const struct qn_log *log, const qn_graph *graph,
                                   const struct qn_plan_params *params)
{
    int64_t group = qn_graph_batch_group(graph), size = params->micro_batch;
    if (group < 0)
        return qn_fail(log, QN_ERR_ARGUMENT, "plan: the groups of batch norm have no common size");
    if (size % group && size < qn_largest_batch(params))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "plan: micro-batch %" PRId64 " is not a multiple of batch norm's group of "
                       "%" PRId64 ": take %" PRId64,
                       size, group, size < group ? group : size / group * group);
    return QN_OK;
}

/* The node of an operator that is called `name`; NULL: there is none. */
static struct qn_node *node_of(const qn_graph *graph, const char *name, size_t length)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_OPERATOR && strlen(graph->nodes[n].name) == length &&
            strncmp(graph->nodes[n].name, name, length) == 0)
            return &graph->nodes[n];
    return NULL;
}

static bool is_node(const struct qn_plan *plan, const char *name, size_t length)
{
    for (int g = 0; g < plan->n_graphs; g++)
        if (node_of(plan->graphs[g], name, length))
            return true;
    return false;
}

static qn_status check_chosen(const struct qn_plan *plan)
{
    for (const char *at = plan->params.chosen; at && *at;) {
        size_t word = strcspn(at, ",");
        if (!is_node(plan, at, word))
            return qn_fail(&plan->log, QN_ERR_ARGUMENT, "plan: no node is called %.*s", (int)word,
                           at);
        at += word + (at[word] == ',');
    }
    return QN_OK;
}

void qn_plan_mark_chosen(qn_graph *graph, const char *chosen)
{
    for (const char *at = chosen; at && *at;) {
        size_t word = strcspn(at, ",");
        struct qn_node *node = node_of(graph, at, word);
        if (node)
            node->recompute = true;
        at += word + (at[word] == ',');
    }
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

/* Whether a wish "op=variant" or "op=variant:setting" names an operator with that variant. */
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

qn_status qn_plan_check_graphs(const struct qn_plan *plan)
{
    for (int g = 0; g < plan->n_graphs; g++)
        QN_TRY(check_micro_batch(&plan->log, plan->graphs[g], &plan->params));
    return check_chosen(plan);
}

qn_status qn_plan_check(const struct qn_log *log, const struct qn_facts *facts,
                        const struct qn_plan_params *params)
{
    QN_TRY(check_facts(log, facts));
    QN_TRY(check_choices(log, params));
    QN_TRY(check_optimizer(log, params));
    QN_TRY(check_members(log, params));
    QN_TRY(check_batches(log, params));
    return check_variants(log, params->variants);
}
