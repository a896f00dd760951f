/* SPDX-License-Identifier: MIT
 *
 * No operator mixes samples: in whatever a graph accepts, what belongs to one sample (to one group,
 * behind a batch norm) does not depend on the others, and what would is refused by a tensor's name.
 * Every case of the harness with the batch in any of its inputs, and random graphs in which any
 * tensor is offered as any operand; results are those of the references in double.
 *
 * Usage: test_graph_samples [COUNT [FIRST SEED]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/shape.h"
#include "check/number.h"
#include "graph/graph.h"
#include <quern/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4096, MOST_NODES = 64, OPERATORS = 64 };

static int count = 300, first_seed = 1;
static const struct qn_check_input normal = {.fill = QN_FILL_NORMAL},
                                   small_integer = {.fill = QN_FILL_INTEGER, .a = 0, .b = 4};

/* --- a graph in double --- */

/* A graph at one batch size, with how its leaves are filled (by node). Sample by sample the values
 * of unit `kept` are always the same, those of the others follow from `others`. */
struct evaluation {
    const qn_graph *graph;
    const struct qn_check_input *const *how;
    int64_t batch, unit, kept;
    uint64_t seed, others;
    struct qn_shapes shapes;
    struct qn_arena arena;
    double *value[MOST_NODES]; /* by tensor */
};

static const struct qn_check_op *check_of(const struct qn_op *op)
{
    const struct qn_check_op *const *check = qn_check_all();
    while ((*check)->op != op)
        check++;
    return *check;
}

static double *new_values(struct evaluation *e, const struct qn_operand *operand)
{
    double *values = qn_arena_new(&e->arena, double, (size_t)qn_operand_count(operand) + 1);
    assert_non_null(values);
    return values;
}

/* Where the values of the unit lie in a tensor with the batch in it. */
static void range_of(const struct evaluation *e, const struct qn_operand *operand, int64_t *first,
                     int64_t *n)
{
    const int64_t each = qn_operand_count(operand) / e->batch;
    const int64_t samples = e->unit < e->batch - e->kept ? e->unit : e->batch - e->kept;
    *first = e->kept * each;
    *n = samples * each;
}

static bool holds_batch(const qn_graph *graph, uint32_t tensor)
{
    const qn_shape shape = qn_shape_of(graph, (qn_tensor){tensor});
    for (int d = 1; d < shape.rank; d++)
        assert_true(shape.dim[d] >= 0);
    return shape.rank > 0 && shape.dim[0] < 0;
}

static void fill_leaf(struct evaluation *e, int n)
{
    const struct qn_node *node = &e->graph->nodes[n];
    const struct qn_operand *operand = &e->shapes.tensors[node->out];
    const int64_t elements = qn_operand_count(operand);
    const struct qn_check_input *how = e->how[n];
    double *values = e->value[node->out];
    const uint64_t stream = (uint64_t)n;
    qn_number_fill(values, elements, how, operand->dtype, e->seed, stream);
    if (!holds_batch(e->graph, node->out))
        return;
    int64_t first, kept;
    range_of(e, operand, &first, &kept);
    double *mine = new_values(e, operand);
    memcpy(mine, values + first, (size_t)kept * sizeof *mine);
    qn_number_fill(values, elements, how, operand->dtype, e->others, stream);
    memcpy(values + first, mine, (size_t)kept * sizeof *mine);
}

static void run_reference(struct evaluation *e, int n)
{
    const struct qn_node *node = &e->graph->nodes[n];
    const struct qn_shape_call *shapes = &e->shapes.calls[n];
    const struct qn_control control = {.seed_lo = 5, .sample = 48, .samples = (float)e->batch};
    struct qn_control new_control = control;
    struct qn_call call = {
        .op = node->op, .attr = node->attr, .node = (uint32_t)n, .batch = e->batch};
    memcpy(call.in, shapes->in, sizeof call.in);
    memcpy(call.out, shapes->out, sizeof call.out);
    struct qn_reference r = {.call = &call, .control = &control, .new_control = &new_control};
    for (int i = 0; i < node->op->n_in; i++)
        r.in[i] = node->in[i] ? e->value[node->in[i]] : NULL;
    for (int i = 0; i < node->op->n_out; i++)
        r.out[i] = e->value[node->out + (uint32_t)i];
    for (int i = 0; i < QN_MAX_STATE && qn_present(&shapes->state[i]); i++) {
        r.new_state[i] = new_values(e, &shapes->state[i]);
        r.state[i] = new_values(e, &shapes->state[i]);
    }
    if (node->op->view)
        memcpy(r.out[0], r.in[0], (size_t)qn_operand_count(&call.out[0]) * sizeof *r.out[0]);
    else
        check_of(node->op)->reference(&r);
}

static void evaluate(struct evaluation *e)
{
    assert_int_equal(qn_graph_shapes(e->graph, e->batch, &e->arena, NULL, &e->shapes), QN_OK);
    for (int t = 1; t < e->graph->n_tensors; t++)
        e->value[t] = new_values(e, &e->shapes.tensors[t]);
    for (int n = 0; n < e->graph->n_nodes; n++)
        if (e->graph->nodes[n].kind == QN_NODE_OPERATOR)
            run_reference(e, n);
        else
            fill_leaf(e, n);
}

/* Two batches that have one unit in common: all that belongs to it has the same bits. False: there
 * are no other samples. */
static bool check_apart(const qn_graph *graph, const struct qn_check_input *const *how,
                        int64_t batch, uint64_t seed)
{
    const int64_t unit = qn_graph_batch_group(graph);
    if (unit >= batch)
        return false;
    const int64_t kept = (int64_t)(seed % (uint64_t)((batch + unit - 1) / unit)) * unit;
    struct evaluation a = {graph, how, batch, unit, kept, seed, seed + 1}, b = a;
    b.others = seed + 2;
    evaluate(&a);
    evaluate(&b);
    for (uint32_t t = 1; t < (uint32_t)graph->n_tensors; t++) {
        const struct qn_node *node = &graph->nodes[graph->tensors[t].node];
        const struct qn_operand *operand = &a.shapes.tensors[t];
        int64_t first = 0, n = qn_operand_count(operand);
        if (holds_batch(graph, t))
            range_of(&a, operand, &first, &n);
        if (memcmp(a.value[t] + first, b.value[t] + first, (size_t)n * sizeof(double)) != 0)
            fail_msg("%s: samples mix", node->name);
    }
    qn_arena_free(&a.arena);
    qn_arena_free(&b.arena);
    return true;
}

/* Whether the graph refused because of the batch; it then names one of the tensors. */
static bool refused_for_batch(const qn_graph *graph, const char *const *names)
{
    const char *error = qn_graph_error(graph);
    if (!strstr(error, "the batch in"))
        return false;
    while (*names && !strstr(error, *names))
        names++;
    if (!*names)
        fail_msg("no tensor is named: %s", error);
    return true;
}

/* --- one operator --- */

/* How often the graph accepted, and refused for the sake of the batch. */
struct tally {
    int accepted, refused;
};

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

static const char *const leaf_names[QN_MAX_IN + 1] = {"in0", "in1", "in2", "in3",
                                                      "in4", "in5", "in6", "in7"};

/* The batch at which the inputs of the set have the sizes of the case; 0: they cannot. */
static int64_t batch_of(const struct qn_op *op, const struct qn_check_case *item, unsigned set)
{
    int64_t batch = 0, elements = 0;
    for (int i = 0; i < op->n_in; i++) {
        const struct qn_check_input *in = &item->in[i];
        const bool integer = in->role == QN_ROLE_FIXED && in->dtype != QN_F32;
        int64_t own = 1;
        for (int d = 0; d < in->rank; d++)
            own *= in->dim[d];
        elements += own;
        if (set >> i & 1u ? in->rank < 1 : in->rank >= 0 && integer)
            return 0;
        batch = set >> i & 1u ? gcd(in->dim[0], batch) : batch;
    }
    return elements > LARGEST ? 0 : batch;
}

static qn_tensor add_leaf(qn_graph *graph, const struct qn_check_input *in, const char *name,
                          int64_t batch)
{
    int64_t dim[QN_MAX_DIMS];
    memcpy(dim, in->dim, sizeof dim);
    if (in->rank < 0)
        return (qn_tensor){0};
    if (!batch)
        return qn_parameter(graph, name, in->rank, dim, NULL);
    dim[0] = QN_BATCH * (dim[0] / batch);
    return qn_input(graph, name, in->role == QN_ROLE_FIXED ? in->dtype : QN_F32, in->rank, dim);
}

/* The case with the batch in some of its inputs. */
static void check_set(const struct qn_check_op *check, const struct qn_check_case *item,
                      unsigned set, struct tally *tally)
{
    const int64_t batch = batch_of(check->op, item, set);
    const struct qn_check_input *how[MOST_NODES] = {NULL};
    const char *names[QN_MAX_IN + 1] = {NULL};
    qn_tensor in[QN_MAX_IN] = {{0}};
    qn_graph *graph;
    if (batch < 2)
        return;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    for (int i = 0, n = 0; i < check->op->n_in; i++) {
        how[graph->n_nodes] = &item->in[i];
        in[i] = add_leaf(graph, &item->in[i], leaf_names[i], set >> i & 1u ? batch : 0);
        if (set >> i & 1u)
            names[n++] = leaf_names[i];
    }
    assert_int_equal(qn_graph_status(graph), QN_OK);
    qn_op_apply(graph, check->op, in, item->attr);
    if (qn_graph_status(graph) == QN_OK)
        tally->accepted += check_apart(graph, how, batch, 7 + set);
    else
        tally->refused += refused_for_batch(graph, names);
    qn_graph_destroy(&graph);
}

static bool is_of_graphs(const struct qn_op *op)
{
    return op->view || op->groups[0].phase & QN_PHASE_TRAIN;
}

/* Losses over pairs: only graphs that say so (qn_graph_params.couples) may have them. */
static bool couples(const struct qn_op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (op->batch[i] != QN_BATCH_NEVER)
            return false;
    return true;
}

static void every_operator_keeps_samples_apart(void **state)
{
    (void)state;
    struct tally all = {0};
    for (const struct qn_check_op *const *check = qn_check_all(); *check; check++) {
        struct tally own = {0};
        if (!is_of_graphs((*check)->op))
            continue;
        for (const struct qn_check_case *item = (*check)->cases; item->name; item++)
            for (unsigned set = 1; set < 1u << (*check)->op->n_in; set++)
                check_set(*check, item, set, &own);
        if (couples((*check)->op) ? own.accepted || !own.refused : !own.accepted)
            fail_msg("%s: %d cases with the batch in it are accepted, %d refused",
                     (*check)->op->name, own.accepted, own.refused);
        all.accepted += own.accepted;
        all.refused += own.refused;
    }
    print_message("  %d accepted, %d refused for the batch\n", all.accepted, all.refused);
    assert_true(all.refused > 20);
}

/* --- random graphs --- */

/* A graph in the making: anything may be any operand. */
struct drawing {
    qn_graph *graph;
    uint64_t seed, drawn;
    const struct qn_check_input *how[MOST_NODES];
};

static int draw(struct drawing *d, int below)
{
    return (int)(qn_random_bits(d->seed, 7, d->drawn++) % (uint64_t)below);
}

static qn_tensor any(struct drawing *d)
{
    return (qn_tensor){(uint32_t)(1 + draw(d, d->graph->n_tensors - 1))};
}

static qn_tensor any_or_none(struct drawing *d)
{
    return draw(d, 2) ? any(d) : (qn_tensor){0};
}

static qn_tensor unary(struct drawing *d)
{
    switch (draw(d, 4)) {
    case 0:
        return qn_sigmoid(d->graph, any(d));
    case 1:
        return qn_dropout(d->graph, any(d), 0.5);
    case 2:
        return qn_softmax(d->graph, any(d));
    default:
        return qn_scale(d->graph, any(d), 0.5);
    }
}

static qn_tensor binary(struct drawing *d)
{
    switch (draw(d, 5)) {
    case 0:
        return qn_add(d->graph, any(d), any(d));
    case 1:
        return qn_squared_error(d->graph, any(d), any(d));
    case 2:
        return qn_bias(d->graph, any(d), any(d));
    case 3:
        return qn_gated(d->graph, any(d), any(d), QN_GATE_SILU);
    default:
        return qn_multiply(d->graph, any(d), any(d));
    }
}

static qn_tensor norm(struct drawing *d)
{
    switch (draw(d, 4)) {
    case 0:
        return qn_batch_norm(d->graph, any(d), any_or_none(d), any_or_none(d),
                             &(qn_batch_norm_params){.group = 2});
    case 1:
        return qn_layer_norm(d->graph, any(d), any_or_none(d), any_or_none(d), NULL);
    case 2:
        return qn_rms_norm(d->graph, any(d), any_or_none(d), NULL);
    default:
        return qn_group_norm(d->graph, any(d), any_or_none(d), any_or_none(d), NULL);
    }
}

static qn_tensor chain(struct drawing *d)
{
    const qn_tensor in[QN_CHAIN_INPUTS] = {any(d), [QN_CHAIN_BIAS] = any(d)};
    const qn_chain_step step = {QN_CHAIN_ADD, 0, QN_CHAIN_BIAS, 0};
    return qn_chain(d->graph, in, &step, 1);
}

static qn_tensor convolve(struct drawing *d)
{
    const qn_conv2d_params params = {.padding = {1, 1}};
    const qn_conv_transpose2d_params back = {.padding = {1, 1}};
    return draw(d, 2) ? qn_conv2d(d->graph, any(d), any(d), any_or_none(d), &params)
                      : qn_conv_transpose2d(d->graph, any(d), any(d), any_or_none(d), &back);
}

static qn_tensor multiply_matrices(struct drawing *d)
{
    const qn_batch_matmul_params params = {draw(d, 2), draw(d, 2)};
    return draw(d, 2) ? qn_batch_matmul(d->graph, any(d), any(d), &params)
                      : qn_linear(d->graph, any(d), any(d), any_or_none(d));
}

static qn_tensor look_up(struct drawing *d)
{
    return draw(d, 2)
               ? qn_embedding(d->graph, any(d), any(d))
               : qn_linear_cross_entropy(d->graph, any(d), any(d), any_or_none(d), any(d), NULL);
}

static qn_tensor attend(struct drawing *d)
{
    return draw(d, 2) ? qn_attention(d->graph, any(d), any(d), any(d), any_or_none(d), NULL)
                      : qn_masked_mean(d->graph, any(d), any_or_none(d));
}

static qn_tensor reshape(struct drawing *d)
{
    static const int64_t sizes[] = {0, 1, 2, 4, 8, QN_BATCH, 2 * QN_BATCH};
    const int64_t dim[] = {sizes[draw(d, 7)], sizes[draw(d, 5)], sizes[draw(d, 5)]};
    return qn_reshape(d->graph, any(d), 1 + draw(d, 3), dim);
}

static qn_tensor move(struct drawing *d)
{
    static const int axes[][QN_MAX_DIMS] = {
        {0, 2, 1, 3, 4, 5}, {1, 0, 2, 3, 4, 5}, {2, 1, 0, 3, 4, 5}, {0, 1, 2, 3, 4, 5}};
    const qn_tensor x = any(d);
    switch (draw(d, 4)) {
    case 0:
        return qn_transpose(d->graph, x, qn_shape_of(d->graph, x).rank, axes[draw(d, 4)]);
    case 1:
        return qn_concat(d->graph, 2, (const qn_tensor[]){x, any(d)}, draw(d, 2));
    case 2:
        return qn_slice(d->graph, x, draw(d, 3), draw(d, 2), 2);
    default:
        return qn_sum(d->graph, x, draw(d, 3));
    }
}

static qn_tensor (*const makers[])(struct drawing *) = {
    unary,  binary,  norm,    chain, convolve, multiply_matrices, multiply_matrices,
    attend, look_up, reshape, move,
};

static void add_leaves(struct drawing *d)
{
    qn_graph *g = d->graph;
    qn_input(g, "images", QN_F32, 4, (int64_t[]){QN_BATCH, 4, 4, 4});
    qn_input(g, "rows", QN_F32, 2, (int64_t[]){QN_BATCH, 8});
    qn_input(g, "pairs", QN_F32, 2, (int64_t[]){2 * QN_BATCH, 8});
    qn_input(g, "tokens", QN_F32, 3, (int64_t[]){QN_BATCH, 4, 8});
    qn_input(g, "numbers", QN_F32, 1, (int64_t[]){QN_BATCH});
    qn_input(g, "ids", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_parameter(g, "kernel", 4, (int64_t[]){4, 4, 3, 3}, NULL);
    qn_parameter(g, "matrix", 2, (int64_t[]){8, 8}, NULL);
    qn_parameter(g, "eight", 1, (int64_t[]){8}, NULL);
    qn_parameter(g, "four", 1, (int64_t[]){4}, NULL);
    for (int n = 0; n < g->n_nodes; n++)
        d->how[n] = strcmp(g->nodes[n].name, "ids") == 0 ? &small_integer : &normal;
}

static void list_names(const qn_graph *graph, const char *names[MOST_NODES + 1])
{
    for (int n = 0; n < graph->n_nodes; n++)
        names[n] = graph->nodes[n].name;
    names[graph->n_nodes] = NULL;
}

/* What is refused is tried on a copy, and forgotten. */
static void check_graph(uint64_t seed, struct tally *tally)
{
    enum { WANTED = 10, ATTEMPTS = 600, BATCH = 6 };
    const char *names[MOST_NODES + 1];
    struct drawing d = {.seed = seed};
    assert_int_equal(qn_graph_create(&d.graph, NULL), QN_OK);
    add_leaves(&d);
    const int wanted = d.graph->n_nodes + WANTED;
    for (int i = 0; i < ATTEMPTS && d.graph->n_nodes < wanted; i++) {
        qn_graph *before = qn_graph_clone(d.graph);
        assert_non_null(before);
        list_names(before, names);
        makers[draw(&d, sizeof makers / sizeof *makers)](&d);
        const bool refused = qn_graph_status(d.graph) != QN_OK;
        tally->refused += refused && refused_for_batch(d.graph, names);
        tally->accepted += !refused;
        qn_graph_destroy(refused ? &d.graph : &before);
        d.graph = refused ? before : d.graph;
    }
    check_apart(d.graph, d.how, BATCH, seed);
    qn_graph_destroy(&d.graph);
}

static void random_graphs_keep_samples_apart(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (int i = 0; i < count; i++)
        check_graph((uint64_t)(first_seed + i), &tally);
    print_message("  %d operators accepted, %d refused for the batch\n", tally.accepted,
                  tally.refused);
    assert_true(tally.accepted > 5 * count && tally.refused > count / 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_keeps_samples_apart),
        cmocka_unit_test(random_graphs_keep_samples_apart),
    };
    count = argc > 1 ? atoi(argv[1]) : count;
    first_seed = argc > 2 ? atoi(argv[2]) : first_seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
