/* SPDX-License-Identifier: MIT
 *
 * Networks inside larger ones: what their names begin with, and parameters that they share; towers
 * of dual encoders, which are such networks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <quern/graph_file.h>
#include <quern/quern.h>

#include <string.h>

static const int64_t row[] = {QN_BATCH, 4}, square[] = {4, 4};

static qn_graph *new_graph(void)
{
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    return graph;
}

static qn_tensor put(qn_graph *graph, const char *prefix, const char *parameters)
{
    qn_graph_begin_scope(graph, &(qn_scope){prefix, parameters, 0});
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, row);
    x = qn_linear(graph, x, qn_parameter(graph, "w", 2, square, NULL), (qn_tensor){0});
    qn_name(graph, x, "layer");
    qn_output(graph, x, "y");
    qn_graph_end_scope(graph);
    return x;
}

static int count_parameters(const qn_graph *graph)
{
    int count = 0;
    while (qn_graph_parameter(graph, count, NULL))
        count++;
    return count;
}

static void test_prefixes(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    put(graph, "a.", NULL);
    put(graph, "b.", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    assert_string_equal(qn_graph_input(graph, 1, NULL), "b.x");
    assert_string_equal(qn_graph_output(graph, 0, NULL), "a.y");
    assert_string_equal(qn_graph_parameter(graph, 1, NULL), "b.w");
    qn_input(graph, "x", QN_F32, 2, row);
    assert_string_equal(qn_graph_input(graph, 2, NULL), "x");
    put(graph, "b.", NULL);
    assert_string_equal(qn_graph_error(graph), "b.x: the name is already taken");
    qn_graph_destroy(&graph);
}

static void test_shared(void **state)
{
    (void)state;
    qn_graph *graph = new_graph();
    put(graph, "a.", "both.");
    put(graph, "b.", "both.");
    put(graph, "c.", "");
    put(graph, "d.", "");
    assert_int_equal(qn_graph_status(graph), QN_OK);
    assert_int_equal(count_parameters(graph), 2);
    assert_string_equal(qn_graph_parameter(graph, 0, NULL), "both.w");
    assert_string_equal(qn_graph_parameter(graph, 1, NULL), "w");
    qn_graph_begin_scope(graph, &(qn_scope){"e.", "", 0});
    qn_parameter(graph, "w", 1, square, NULL); /* of another shape */
    assert_string_equal(qn_graph_error(graph), "w: the name is already taken");
    qn_graph_destroy(&graph);
}

/* Three rows a sample. */
static void test_each(void **state)
{
    (void)state;
    qn_tensor x;
    qn_graph *graph = new_graph();
    qn_graph_begin_scope(graph, &(qn_scope){"a.", NULL, 3});
    qn_tensor y = qn_input(graph, "x", QN_I32, 2, row);
    qn_tensor lengths = qn_input(graph, "lengths", QN_I32, 1, row);
    qn_graph_end_scope(graph);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    assert_string_equal(qn_graph_input(graph, 0, &x), "a.x");
    const qn_shape given = qn_shape_of(graph, x), seen = qn_shape_of(graph, y);
    assert_true(given.rank == 3 && given.dim[0] == QN_BATCH && given.dim[1] == 3);
    assert_true(seen.rank == 2 && seen.dim[0] == 3 * QN_BATCH && seen.dim[1] == 4);
    assert_true(qn_shape_of(graph, lengths).dim[0] == 3 * QN_BATCH);
    qn_graph_destroy(&graph);
}

static qn_status read_scope(qn_graph *graph, const char *prefix, int64_t each, const char *text)
{
    qn_graph_begin_scope(graph, &(qn_scope){prefix, "", each});
    const qn_status status = qn_graph_read(graph, text, "file");
    qn_graph_end_scope(graph);
    return status;
}

/* Lines of a graph file name what the scope has; B is its batch. */
static void test_read(void **state)
{
    (void)state;
    static const char text[] = "input x f32 Bx4\nparameter w 4x4 init=ones frozen=yes\n"
                               "y = linear(x, w)\nz = reshape(y) shape=Bx2x2\noutput z\n";
    qn_tensor z;
    qn_graph *graph = new_graph();
    assert_int_equal(read_scope(graph, "a.", 1, text), QN_OK);
    assert_int_equal(read_scope(graph, "b.", 3, text), QN_OK);
    assert_int_equal(count_parameters(graph), 1);
    assert_string_equal(qn_graph_parameter(graph, 0, NULL), "w");
    assert_string_equal(qn_graph_input(graph, 1, NULL), "b.x");
    assert_string_equal(qn_graph_output(graph, 1, &z), "b.z");
    const qn_shape shape = qn_shape_of(graph, z);
    assert_true(shape.rank == 3 && shape.dim[0] == 3 * QN_BATCH && shape.dim[1] == 2);
    assert_int_equal(read_scope(graph, "c.", 1, "input x f32 Bx4\nu = linear(a.x, w)\n"),
                     QN_ERR_FORMAT);
    assert_string_equal(qn_graph_error(graph), "file:2: u: no line above makes 'a.x'");
    qn_graph_destroy(&graph);
    graph = new_graph();
    assert_int_equal(read_scope(graph, "a.", 1, "parameter w 4\nparameter w 4\n"), QN_ERR_FORMAT);
    assert_string_equal(qn_graph_error(graph), "file:2: w: the name is already taken");
    qn_graph_destroy(&graph);
}

/* Cells of a network are named as its inputs and outputs are: a program has them by these names. */
static void test_cells(void **state)
{
    (void)state;
    static const char text[] = "input x f32 Bx4\ncell kept f32 6x4\n"
                               "z = tanh(x)\ny = batch_matmul(z, kept) transpose_b=yes\n"
                               "output kept = z\noutput y\n";
    qn_tensor y;
    qn_graph *graph = new_graph();
    assert_int_equal(read_scope(graph, "a.", 1, text), QN_OK);
    assert_int_equal(read_scope(graph, "b.", 3, text), QN_OK);
    assert_string_equal(qn_graph_input(graph, 1, NULL), "b.x");
    assert_string_equal(qn_graph_output(graph, 2, NULL), "b.kept");
    assert_string_equal(qn_graph_output(graph, 3, &y), "b.y");
    const qn_shape shape = qn_shape_of(graph, y);
    assert_true(shape.dim[0] == 3 * QN_BATCH && shape.dim[1] == 6);
    qn_graph_begin_scope(graph, &(qn_scope){"b.", NULL, 0});
    assert_int_equal(qn_cell_input(graph, "kept", QN_F32, 2, (int64_t[]){6, 4}).id, 0);
    assert_non_null(strstr(qn_graph_error(graph), "b.kept: the name is already taken"));
    qn_graph_destroy(&graph);
}

/* Without a scope names are taken once. */
static void test_refused(void **state)
{
    (void)state;
    char text[64];
    qn_graph *graph = new_graph();
    qn_graph_begin_scope(graph, &(qn_scope){"a.", NULL, 0});
    qn_graph_begin_scope(graph, &(qn_scope){"b.", NULL, 0});
    assert_string_equal(qn_graph_error(graph), "qn_graph_begin_scope: b.: a. has not ended");
    qn_graph_destroy(&graph);
    graph = new_graph();
    qn_graph_begin_scope(graph, &(qn_scope){"", NULL, 0});
    assert_string_equal(qn_graph_error(graph),
                        "qn_graph_begin_scope: a prefix has from 1 to 100 bytes");
    qn_graph_destroy(&graph);
    graph = new_graph();
    memset(text, 'a', 60);
    text[60] = 0;
    qn_graph_begin_scope(graph, &(qn_scope){text, NULL, 0});
    qn_input(graph, text, QN_F32, 2, row);
    assert_non_null(strstr(qn_graph_error(graph), "the name is longer than 100 bytes"));
    qn_graph_destroy(&graph);
}

/* --- towers --- */

static const char *refusal(qn_graph *graph, const char *model, int embedding, int other)
{
    static const qn_model_option options[] = {{"width", "16"}};
    const qn_model_data images = {.channels = 1, .height = 8, .width = 8};
    qn_towers towers = {.query = {.model = model, .data = images},
                        .passage = {.model = "cnn", .data = images}};
    qn_tensor queries, passages;
    towers.query.data.embedding = embedding;
    towers.passage.data.embedding = other;
    towers.passage.options = options;
    towers.passage.n_options = 1;
    qn_towers_build(&towers, graph, &queries, &passages);
    return qn_graph_error(graph);
}

static void test_towers(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int embedding, other;
        const char *error;
    } cases[] = {{"mlp", 5, 5, ""},
                 {"resnet", 5, 5, ""},
                 {"cnn", 5, 5, ""},
                 {"mlp", 5, 6, "towers: give vectors of one size, at least 1"},
                 {"mlp", 0, 0, "towers: give vectors of one size, at least 1"},
                 {"unet", 5, 5, "model unet: gives no vector for each sample"},
                 {"gpt", 5, 5, "model gpt: gives no vector for each sample"},
                 {"graph", 5, 5, "model graph: model.path: missing: the file of the graph"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = new_graph();
        assert_string_equal(refusal(graph, cases[i].model, cases[i].embedding, cases[i].other),
                            cases[i].error);
        if (!*cases[i].error)
            assert_null(qn_graph_output(graph, 0, NULL));
        qn_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_each),     cmocka_unit_test(test_read),
        cmocka_unit_test(test_cells),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_towers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
