/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/graph.h"
#include <quern/ops.h>

#include <math.h>
#include <string.h>

static qn_graph *new_graph(void)
{
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    return graph;
}

static void a_model_may_ask_for_the_storage_type(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    assert_int_equal(qn_graph_storage(graph), QN_F32);
    qn_graph_destroy(&graph);
    assert_int_equal(qn_graph_create(&graph, &(qn_graph_params){.storage = QN_BF16}), QN_OK);
    assert_int_equal(qn_graph_storage(graph), QN_BF16);
    qn_graph_destroy(&graph);
    assert_int_equal(qn_graph_storage(NULL), QN_F32);
}

static qn_tensor image(qn_graph *graph)
{
    return qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 3, 8, 8});
}

static void shapes_follow_the_batch(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_tensor w = qn_parameter(graph, "w", 4, (int64_t[]){5, 3, 3, 3}, NULL);
    qn_tensor y = qn_conv2d(graph, x, w, (qn_tensor){0}, NULL);
    qn_tensor flat = qn_flatten(graph, y);
    qn_shape shape = qn_shape_of(graph, y);
    assert_int_equal(shape.rank, 4);
    assert_int_equal(shape.dim[0], QN_BATCH);
    assert_int_equal(shape.dim[1], 5);
    assert_int_equal(shape.dim[2], 6);
    assert_int_equal(qn_shape_of(graph, flat).dim[1], 180);
    assert_int_equal(qn_graph_root(graph, flat.id), y.id);
    struct qn_arena arena = {0};
    struct qn_shapes shapes;
    assert_int_equal(qn_graph_shapes(graph, 7, &arena, NULL, &shapes), QN_OK);
    assert_int_equal(shapes.tensors[flat.id].shape.dim[0], 7);
    qn_arena_free(&arena);
    qn_graph_destroy(&graph);
    assert_null(graph);
}

static void the_first_error_sticks(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_tensor w = qn_parameter(graph, "w", 4, (int64_t[]){5, 4, 3, 3}, NULL);
    qn_tensor y = qn_conv2d(graph, x, w, (qn_tensor){0}, NULL);
    assert_int_equal(y.id, 0);
    assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
    char first[256];
    strcpy(first, qn_graph_error(graph));
    assert_int_equal(qn_relu(graph, y).id, 0);
    assert_int_equal(qn_parameter(graph, "v", 1, (int64_t[]){2}, NULL).id, 0);
    assert_string_equal(qn_graph_error(graph), first);
    qn_graph_destroy(&graph);
}

static void bad_leaves_are_refused(void **state)
{
    (void)state;
    static const int64_t fixed[] = {4, 3}, batch[] = {QN_BATCH, 3}, empty[] = {0};
    for (int i = 0; i < 5; i++) {
        qn_graph *graph = new_graph();
        qn_input(graph, "x", QN_F32, 2, batch);
        if (i == 0)
            qn_input(graph, "y", QN_F32, 2, fixed);
        if (i == 1)
            qn_parameter(graph, "p", 2, batch, NULL);
        if (i == 2)
            qn_parameter(graph, "x", 2, fixed, NULL);
        if (i == 3)
            qn_parameter(graph, "p", 1, empty, NULL);
        if (i == 4)
            qn_input(graph, "", QN_F32, 2, batch);
        assert_int_not_equal(qn_graph_status(graph), QN_OK);
        qn_graph_destroy(&graph);
    }
}

static void tensors_of_nobody_are_refused(void **state)
{
    (void)state;
    static const uint32_t ids[] = {12345, INT32_MAX, UINT32_C(0x80000000), UINT32_MAX};
    qn_graph *graph = NULL;
    for (int i = 0; i < 4; i++) {
        graph = new_graph();
        assert_int_equal(qn_shape_of(graph, (qn_tensor){ids[i]}).rank, 0);
        qn_relu(graph, (qn_tensor){ids[i]});
        assert_int_equal(qn_graph_status(graph), QN_ERR_ARGUMENT);
        qn_graph_destroy(&graph);
    }
    qn_graph_destroy(&graph);
    assert_int_equal(qn_graph_status(NULL), QN_ERR_ARGUMENT);
}

static void sizes_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    static const int64_t large[][2] = {
        {INT64_MIN, 1}, {-(INT64_C(1) << 62), 1}, {QN_BATCH, INT64_C(1) << 61}, {-INT64_MAX, 7}};
    for (int i = 0; i < 4; i++) {
        qn_graph *graph = new_graph();
        qn_input(graph, "x", QN_F32, 2, large[i]);
        assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
        qn_graph_destroy(&graph);
    }
    static const int64_t wanted[][2] = {
        {INT64_MIN, 1}, {INT64_C(1) << 62, 4}, {-(INT64_C(1) << 62), 4}, {INT64_C(1) << 62, 0}};
    for (int i = 0; i < 4; i++) {
        qn_graph *graph = new_graph();
        assert_int_equal(qn_reshape(graph, image(graph), 2, wanted[i]).id, 0);
        assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
        qn_graph_destroy(&graph);
    }
}

static void gradients_reach_what_can_learn(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor a = qn_parameter(graph, "a", 2, (int64_t[]){4, 4}, NULL);
    qn_tensor b = qn_parameter(graph, "b", 2, (int64_t[]){4, 4}, NULL);
    qn_freeze(graph, a);
    qn_tensor h = qn_relu(graph, qn_linear(graph, x, a, (qn_tensor){0}));
    qn_tensor y = qn_linear(graph, h, b, (qn_tensor){0});
    qn_loss(graph, y, "sum", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    bool wanted[64] = {0};
    int gradient[64];
    for (int n = 0; n < graph->n_nodes; n++)
        gradient[n] = graph->nodes[n].kind == QN_NODE_PARAMETER && !graph->nodes[n].frozen ? n : -1;
    qn_graph_mark_gradients(graph, gradient, wanted);
    assert_false(wanted[x.id]);
    assert_false(wanted[a.id]);
    assert_false(wanted[h.id]);
    assert_true(wanted[b.id]);
    assert_true(wanted[y.id]);
    qn_graph_destroy(&graph);
}

static void parameters_are_named_by_patterns(void **state)
{
    (void)state;
    static const char *const names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    qn_graph *graph = new_graph();
    qn_tensor made[4], tensor;
    for (int i = 0; i < 4; i++)
        made[i] = qn_parameter(graph, names[i], 2 - i % 2, (int64_t[]){4, 4}, NULL);
    qn_input(graph, "fc3.bias", QN_F32, 1, (int64_t[]){QN_BATCH});
    qn_freeze_named(graph, "fc1.*");
    qn_scale_rate(graph, " *.bias , fc2.weight", 0.5);
    qn_scale_rate(graph, "fc2.*", 3);
    qn_scale_decay(graph, "*", 1);
    qn_scale_decay(graph, "fc?.weight", 0.25);
    qn_freeze_named(graph, NULL);
    static const double rates[] = {1, 0.5, 3, 3}, decays[] = {0.25, 1, 0.25, 1};
    for (int i = 0; i < 4; i++) {
        const struct qn_node *node = &graph->nodes[graph->tensors[made[i].id].node];
        assert_string_equal(qn_graph_parameter(graph, i, &tensor), names[i]);
        assert_int_equal(tensor.id, made[i].id);
        assert_int_equal(node->frozen, i < 2);
        assert_int_equal(qn_frozen(graph, made[i]), i < 2);
        assert_true((double)node->rate == rates[i] && (double)node->decay == decays[i]);
    }
    assert_null(qn_graph_parameter(graph, 4, NULL));
    assert_null(qn_graph_parameter(graph, -1, NULL));
    assert_int_equal(qn_graph_status(graph), QN_OK);
    qn_graph_destroy(&graph);
}

static void patterns_that_name_nothing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *patterns;
        double factor;
        const char *error;
    } cases[] = {
        {"fc1.weigth", 1,
         "qn_scale_rate: no parameter is called 'fc1.weigth'; did you mean fc1.weight?"},
        {"*,fc1.wei?th,x", 1,
         "qn_scale_rate: no parameter is called 'fc1.wei?th'; did you mean fc1.weight?"},
        {"fd*.weight", 1,
         "qn_scale_rate: no parameter is called 'fd*.weight'; did you mean fc1.weight or "
         "fc2.weight?"},
        {"head.*", 1, "qn_scale_rate: no parameter is called 'head.*'; the first is fc1.weight"},
        {"fc1.weight,", 1, NULL},
        {"*", 0, NULL},
        {"*", -1, "qn_scale_rate: the factor -1 is not from 0 to 1e6"},
        {"*", 1e7, "qn_scale_rate: the factor 1e+07 is not from 0 to 1e6"},
        {"*", (double)NAN, "qn_scale_rate: the factor nan is not from 0 to 1e6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = new_graph();
        qn_parameter(graph, "fc1.weight", 1, (int64_t[]){4}, NULL);
        qn_parameter(graph, "fc2.weight", 1, (int64_t[]){4}, NULL);
        qn_scale_rate(graph, cases[i].patterns, cases[i].factor);
        assert_string_equal(qn_graph_error(graph), cases[i].error ? cases[i].error : "");
        qn_graph_destroy(&graph);
    }
    qn_graph *graph = new_graph();
    qn_freeze_named(graph, "*");
    assert_string_equal(qn_graph_error(graph), "qn_freeze_named: no parameter is called '*'");
    qn_graph_destroy(&graph);
}

static void a_clone_shares_nothing(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_tensor y = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                                &(qn_batch_norm_params){.group = 6});
    qn_name(graph, y, "norm");
    qn_output(graph, y, "y");
    qn_graph *clone = qn_graph_clone(graph);
    assert_non_null(clone);
    qn_graph_destroy(&graph);
    assert_int_equal(qn_graph_batch_group(clone), 6);
    assert_string_equal(clone->nodes[clone->tensors[y.id].node].name, "norm");
    assert_string_equal(clone->outputs[0].name, "y");
    qn_graph_destroy(&clone);
}

static void groups_have_a_common_multiple(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                      &(qn_batch_norm_params){.group = 6});
    qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0}, &(qn_batch_norm_params){.group = 4});
    assert_int_equal(qn_graph_batch_group(graph), 12);
    const int primes[] = {2147483647, 2147483629, 2147483587};
    for (int i = 0; i < 3; i++)
        x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                          &(qn_batch_norm_params){.group = primes[i]});
    qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0}, &(qn_batch_norm_params){.group = 2});
    assert_int_equal(qn_graph_status(graph), QN_OK);
    assert_int_equal(qn_graph_batch_group(graph), -1);
    qn_graph_destroy(&graph);
}

static void count_warnings(void *user, qn_log_level level, const char *message)
{
    assert_int_equal(level, QN_LOG_WARNING);
    assert_non_null(strstr(message, "batch norm of groups of 7"));
    ++*(int *)user;
}

static void a_batch_norm_of_few_samples_is_warned_of_once(void **state)
{
    (void)state;
    int warnings = 0;
    const qn_tensor none = {0};
    const qn_graph_params params = {.log = {count_warnings, &warnings, QN_LOG_WARNING}};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    qn_tensor x = image(graph);
    x = qn_batch_norm(graph, x, none, none, &(qn_batch_norm_params){.group = 8});
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 2; i++)
        x = qn_batch_norm(graph, x, none, none, &(qn_batch_norm_params){.group = 7});
    assert_int_equal(warnings, 1);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    qn_graph_destroy(&graph);
}

static void names_are_unique(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_name(graph, qn_relu(graph, x), "first");
    qn_name(graph, qn_relu(graph, x), "first");
    assert_int_equal(qn_graph_status(graph), QN_ERR_ARGUMENT);
    qn_graph_destroy(&graph);
}

/* With what stands behind it in a checkpoint a name has room. */
static void names_have_a_limit(void **state)
{
    (void)state;
    char name[102];
    memset(name, 'n', sizeof name);
    name[101] = 0;
    for (int i = 0; i < 6; i++) {
        qn_graph *graph = new_graph();
        qn_tensor y = qn_relu(graph, image(graph));
        if (i < 2)
            qn_name(graph, y, name + i);
        else if (i < 4)
            qn_parameter(graph, name + i - 2, 0, NULL, NULL);
        else
            for (int twice = 0; twice < 2; twice++)
                qn_constant(graph, name + i - 4, (const float[]){1}, 1);
        assert_int_equal(qn_graph_status(graph), i % 2 ? QN_OK : QN_ERR_ARGUMENT);
        qn_graph_destroy(&graph);
    }
}

static void numbers_are_checked(void **state)
{
    (void)state;
    static const qn_init inits[] = {{QN_INIT_NORMAL, 0, (double)INFINITY},
                                    {QN_INIT_CONSTANT, (double)NAN, 0},
                                    {(qn_init_kind)7, 0, 0}};
    static const qn_loss_params losses[] = {{.coefficient = (double)NAN},
                                            {.coefficient = (double)INFINITY},
                                            {.reduction = (qn_reduction)2}};
    for (int i = 0; i < 6; i++) {
        qn_graph *graph = new_graph();
        if (i < 3)
            qn_parameter(graph, "p", 0, NULL, &inits[i]);
        else
            qn_loss(graph, image(graph), NULL, &losses[i - 3]);
        assert_int_equal(qn_graph_status(graph), QN_ERR_ARGUMENT);
        qn_graph_destroy(&graph);
    }
}

/* Inputs stand among parameters and operators; outputs may be marked in any order. */
static void inputs_and_outputs_have_an_order(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor found = {0};
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){4, 4}, NULL);
    qn_tensor y = qn_linear(graph, x, w, (qn_tensor){0});
    qn_tensor z = qn_input(graph, "z", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor sum = qn_add(graph, y, z);
    qn_output(graph, sum, "sum");
    qn_output(graph, y, "y");
    assert_string_equal(qn_graph_input(graph, 0, &found), "x");
    assert_int_equal(found.id, x.id);
    assert_string_equal(qn_graph_input(graph, 1, &found), "z");
    assert_int_equal(found.id, z.id);
    assert_string_equal(qn_graph_output(graph, 0, &found), "sum");
    assert_int_equal(found.id, sum.id);
    assert_string_equal(qn_graph_output(graph, 1, &found), "y");
    assert_int_equal(found.id, y.id);
    assert_string_equal(qn_graph_output(graph, 1, NULL), "y");
    for (int i = -1; i <= 2; i += 3) {
        assert_null(qn_graph_input(graph, i, &found));
        assert_null(qn_graph_output(graph, i, &found));
    }
    qn_graph_destroy(&graph);
}

static void check_output(qn_graph *graph, qn_tensor tensor, const char *name, const char *reason)
{
    qn_output(graph, tensor, name);
    assert_int_equal(qn_graph_status(graph), reason ? QN_ERR_ARGUMENT : QN_OK);
    assert_true(!reason || strstr(qn_graph_error(graph), reason));
    qn_graph_destroy(&graph);
}

static void outputs_are_rows_that_operators_make(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        qn_graph *graph = new_graph();
        qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
        qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){4, 4}, NULL);
        qn_tensor y = qn_linear(graph, x, w, (qn_tensor){0});
        qn_output(graph, y, "y");
        if (i == 0)
            check_output(graph, x, "out", "x is computed by no operator");
        if (i == 1)
            check_output(graph, w, "out", "w is computed by no operator");
        if (i == 2)
            check_output(graph, qn_flatten(graph, x), "out", "computed by no operator");
        if (i == 3)
            check_output(graph, qn_scale(graph, w, 2), "out", "has no batch in dimension 0");
        if (i == 4)
            check_output(graph, y, "y", "y: the name is empty or already taken");
        if (i == 5)
            check_output(graph, y, "again", NULL);
    }
}

static void losses_have_names_of_their_own(void **state)
{
    (void)state;
    static const char *const taken[] = {"x", "same", "first", ""};
    for (int i = 0; i < 4; i++) {
        qn_graph *graph = new_graph();
        qn_tensor x = image(graph);
        qn_tensor y = qn_relu(graph, x);
        qn_name(graph, y, "same");
        qn_loss(graph, y, "first", NULL);
        qn_loss(graph, y, NULL, NULL);
        assert_int_equal(qn_graph_status(graph), QN_OK);
        qn_loss(graph, y, taken[i], NULL);
        assert_int_equal(qn_graph_status(graph), QN_ERR_ARGUMENT);
        qn_graph_destroy(&graph);
    }
}

/* A name that the graph makes up is never one that somebody took. */
static void made_up_names_are_free(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_parameter(graph, "relu_2", 0, NULL, NULL);
    qn_relu(graph, x);
    qn_parameter(graph, "loss_5", 0, NULL, NULL);
    qn_parameter(graph, "loss_6", 0, NULL, NULL);
    qn_loss(graph, x, NULL, NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    for (int a = 0; a < graph->n_nodes; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(graph->nodes[a].name, graph->nodes[b].name);
    qn_graph_destroy(&graph);
}

/* Whose samples are drawn, or normalised together, when there are none? */
static void samples_are_asked_for(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        qn_graph *graph = new_graph();
        qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){4, 4}, NULL);
        if (i == 0)
            qn_dropout(graph, w, 0.5);
        else
            qn_batch_norm(graph, w, (qn_tensor){0}, (qn_tensor){0}, NULL);
        assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
        assert_non_null(strstr(qn_graph_error(graph), "w has no batch in dimension 0"));
        qn_graph_destroy(&graph);
    }
}

/* Each offers a tensor with the batch in it where all samples would see all of it. */
static void samples_do_not_mix(void **state)
{
    (void)state;
    static const char *const reasons[] = {
        "linear_5: x (b, 4) has the batch in it, but input 1 is one for all samples",
        "conv2d_5: images (b, 3, 8, 8) has the batch in it, but input 1 is one for all samples",
        "embedding_5: x (b, 4) has the batch in it, but input 1 is one for all samples",
        "linear_cross_entropy_5: x (b, 4) has the batch in it, but input 1 is one for all samples",
        "chain_5: row (b) has the batch in it, but input 5 is one for all samples",
        "batch_matmul_5: x (b, 4) has the batch in it, but the result (4, 4) not in dimension 0 "
        "alone",
        "batch_matmul_5: x (b, 4) has the batch in it, but the result (b, b) not in dimension 0 "
        "alone",
    };
    for (int i = 0; i < 7; i++) {
        qn_graph *graph = new_graph();
        qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
        qn_tensor images = qn_input(graph, "images", QN_F32, 4, (int64_t[]){QN_BATCH, 3, 8, 8});
        qn_tensor ids = qn_input(graph, "ids", QN_I32, 1, (int64_t[]){QN_BATCH});
        qn_tensor row = qn_input(graph, "row", QN_F32, 1, (int64_t[]){QN_BATCH});
        qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){4, 4}, NULL), none = {0};
        const qn_tensor chained[QN_CHAIN_INPUTS] = {w, [QN_CHAIN_BIAS] = row};
        const qn_chain_step add = {QN_CHAIN_ADD, 0, QN_CHAIN_BIAS, 0};
        const qn_batch_matmul_params turned = {.transpose_a = i == 5, .transpose_b = i == 6};
        qn_tensor mixed = i == 0   ? qn_linear(graph, w, x, none)
                          : i == 1 ? qn_conv2d(graph, images, images, none, NULL)
                          : i == 2 ? qn_embedding(graph, ids, x)
                          : i == 3 ? qn_linear_cross_entropy(graph, x, x, none, ids, NULL)
                          : i == 4 ? qn_chain(graph, chained, &add, 1)
                                   : qn_batch_matmul(graph, x, x, &turned);
        assert_int_equal(mixed.id, 0);
        assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
        assert_string_equal(qn_graph_error(graph), reasons[i]);
        qn_graph_destroy(&graph);
    }
}

static void outputs_have_a_limit(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor y = qn_relu(graph, image(graph));
    for (int i = 0; i < QN_GRAPH_MAX_OUTPUTS; i++)
        qn_output(graph, y, (char[]){(char)('a' + i / 26), (char)('a' + i % 26), 0});
    assert_int_equal(qn_graph_status(graph), QN_OK);
    qn_output(graph, y, NULL);
    assert_string_equal(qn_graph_error(graph), "qn_output: relu_1: at most 96 outputs");
    qn_graph_destroy(&graph);
}

/* A parameter has no batch: there dimension 0 may move. */
static void the_batch_stays_in_front(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor ids = qn_input(graph, "ids", QN_I32, 2, (int64_t[]){QN_BATCH, 5});
    qn_tensor table = qn_parameter(graph, "table", 2, (int64_t[]){7, 3}, NULL);
    qn_tensor turned = qn_transpose(graph, table, 2, (int[]){1, 0});
    assert_int_equal(qn_shape_of(graph, turned).dim[0], 3);
    qn_tensor x = qn_embedding(graph, ids, table);
    x = qn_transpose(graph, x, 3, (int[]){0, 2, 1});
    const qn_shape shape = qn_shape_of(graph, x);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dim[0], QN_BATCH);
    assert_int_equal(shape.dim[1], 3);
    assert_int_equal(shape.dim[2], 5);
    assert_int_equal(qn_transpose(graph, x, 3, (int[]){1, 0, 2}).id, 0);
    assert_string_equal(qn_graph_error(graph), "transpose_5: the batch must stay in dimension 0");
    qn_graph_destroy(&graph);
}

static void tensors_are_joined_and_cut(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    qn_tensor x = image(graph);
    qn_tensor both = qn_concat(graph, 3, (const qn_tensor[]){x, qn_relu(graph, x), x}, 1);
    qn_tensor half = qn_slice(graph, both, 2, 4, 4);
    const qn_shape shape = qn_shape_of(graph, half);
    assert_int_equal(shape.rank, 4);
    assert_int_equal(shape.dim[0], QN_BATCH);
    assert_int_equal(shape.dim[1], 9);
    assert_int_equal(shape.dim[2], 4);
    assert_int_equal(shape.dim[3], 8);
    assert_int_equal(qn_concat(graph, 3, (const qn_tensor[]){x, x, {0}}, 1).id, 0);
    assert_string_equal(qn_graph_error(graph), "concat_4: tensor 2 of 3 is not there");
    qn_graph_destroy(&graph);
}

static void constants_are_copied(void **state)
{
    (void)state;
    float values[2] = {1, 2};
    qn_graph *graph = NULL;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor first = qn_constant(graph, "c", values, 2);
    values[1] = 3;
    qn_tensor second = qn_constant(graph, "c", values, 2);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    assert_true(first.id && second.id && graph->nodes[0].values[1] == 2.0f);
    assert_true(graph->nodes[1].values[1] == 3.0f && graph->nodes[1].frozen);
    assert_string_not_equal(graph->nodes[1].name, "c");
    assert_int_equal(qn_constant(graph, "none", NULL, 2).id, 0);
    assert_string_equal(qn_graph_error(graph), "none: a constant has a name and values");
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_the_batch),
        cmocka_unit_test(the_first_error_sticks),
        cmocka_unit_test(bad_leaves_are_refused),
        cmocka_unit_test(tensors_of_nobody_are_refused),
        cmocka_unit_test(sizes_beyond_63_bits_are_refused),
        cmocka_unit_test(gradients_reach_what_can_learn),
        cmocka_unit_test(parameters_are_named_by_patterns),
        cmocka_unit_test(patterns_that_name_nothing_are_refused),
        cmocka_unit_test(a_clone_shares_nothing),
        cmocka_unit_test(a_model_may_ask_for_the_storage_type),
        cmocka_unit_test(groups_have_a_common_multiple),
        cmocka_unit_test(a_batch_norm_of_few_samples_is_warned_of_once),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(inputs_and_outputs_have_an_order),
        cmocka_unit_test(outputs_are_rows_that_operators_make),
        cmocka_unit_test(losses_have_names_of_their_own),
        cmocka_unit_test(made_up_names_are_free),
        cmocka_unit_test(samples_do_not_mix),
        cmocka_unit_test(outputs_have_a_limit),
        cmocka_unit_test(samples_are_asked_for),
        cmocka_unit_test(tensors_are_joined_and_cut),
        cmocka_unit_test(constants_are_copied),
        cmocka_unit_test(the_batch_stays_in_front),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
