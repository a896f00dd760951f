/* SPDX-License-Identifier: MIT
 *
 * The constants that qn_rotary gives its kernel: the turns of each point from one position to the
 * next, right far beyond the digits of a float.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/graph.h"
#include <quern/ops.h>

#include <math.h>
#include <string.h>

enum { TOKENS = 3, HEADS = 4, SIZE = 128, POINTS = SIZE / 2 };

static const qn_tensor none = {0};
static const qn_rotary_params llama3 = {.base = 500000,
                                        .factor = 8,
                                        .low_freq_factor = 1,
                                        .high_freq_factor = 4,
                                        .original_positions = 8192};

static qn_graph *new_graph(void)
{
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    return graph;
}

static qn_tensor tokens(qn_graph *graph)
{
    return qn_input(graph, "x", QN_F32, 3, (int64_t[]){QN_BATCH, TOKENS, HEADS * SIZE});
}

static double of_10000(int point)
{
    return pow(10000, -2.0 * point / SIZE);
}

static double of_500000(int point)
{
    return pow(500000, -2.0 * point / SIZE);
}

static double halved(int point)
{
    return of_10000(point) / 2;
}

/* By the number of positions that a whole turn takes, as in Llama 3.1: 8 times slower beyond 8192,
 * as it was below 2048. */
static double by_parts(int point)
{
    const double angle = of_500000(point), wavelength = 2 * acos(-1) / angle;
    const double smooth = (8192 / wavelength - 1) / (4 - 1);
    if (wavelength > 8192)
        return angle / 8;
    return wavelength < 2048 ? angle : (1 - smooth) * angle / 8 + smooth * angle;
}

/* The angle of position 2^24 is right to 1e-6. */
static void check_rates(qn_rotary_params params, double (*angle_of)(int point))
{
    qn_graph *graph = new_graph();
    params.heads = HEADS;
    params.still = 1;
    const qn_tensor y = qn_rotary(graph, tokens(graph), none, &params);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    const struct qn_node *node = &graph->nodes[graph->tensors[y.id].node];
    const float *rates = graph->nodes[graph->tensors[node->in[1]].node].values;
    assert_int_equal(qn_shape_of(graph, (qn_tensor){node->in[1]}).dim[0], SIZE);
    for (int i = 0; i < POINTS; i++) {
        const double turns = (double)rates[i] + (double)rates[POINTS + i];
        assert_true(fabs(turns * 2 * acos(-1) - angle_of(i)) < 1e-6 / (1 << 24));
    }
    qn_graph_destroy(&graph);
}

static void rates_have_two_floats(void **state)
{
    (void)state;
    check_rates((qn_rotary_params){0}, of_10000);
    check_rates((qn_rotary_params){.base = 500000}, of_500000);
    check_rates((qn_rotary_params){.factor = 2}, halved);
    check_rates(llama3, by_parts);
}

static void refuse(qn_tensor (*make)(qn_graph *graph, const char **reason))
{
    qn_graph *graph = new_graph();
    const char *reason;
    assert_int_equal(make(graph, &reason).id, 0);
    assert_int_equal(qn_graph_status(graph), QN_ERR_SHAPE);
    if (!strstr(qn_graph_error(graph), reason))
        fail_msg("%s: no \"%s\"", qn_graph_error(graph), reason);
    qn_graph_destroy(&graph);
}

static qn_tensor of_a_matrix(qn_graph *graph, const char **reason)
{
    *reason = "rotary takes x (b, t, heads * n)";
    return qn_rotary(graph, qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 8}), none, NULL);
}

static qn_tensor of_too_many_heads(qn_graph *graph, const char **reason)
{
    *reason = "are not 1024 heads of an even size";
    return qn_rotary(graph, tokens(graph), none, &(qn_rotary_params){.heads = 1024});
}

static qn_tensor of_heads_below_0(qn_graph *graph, const char **reason)
{
    *reason = "0 of -1 heads";
    return qn_rotary(graph, tokens(graph), none, &(qn_rotary_params){.heads = -1});
}

static qn_tensor of_a_base_below_0(qn_graph *graph, const char **reason)
{
    *reason = "base -2 is not a number above 1";
    return qn_rotary(graph, tokens(graph), none, &(qn_rotary_params){.base = -2});
}

static void scalings_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        qn_rotary_params params;
        const char *error;
    } cases[] = {
        {{.factor = 0.5}, "rotary: factor 0.5 is not a number from 1"},
        {{.factor = NAN}, "rotary: factor nan is not a number from 1"},
        {{.original_positions = -1}, "rotary: -1 original positions"},
        {{.original_positions = 8},
         "rotary: factors of frequency 0 and 0 do not rise from above 0"},
        {{.low_freq_factor = 4, .high_freq_factor = 4, .original_positions = 8},
         "rotary: factors of frequency 4 and 4 do not rise from above 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = new_graph();
        assert_int_equal(qn_rotary(graph, tokens(graph), none, &cases[i].params).id, 0);
        assert_int_equal(qn_graph_status(graph), QN_ERR_ARGUMENT);
        assert_string_equal(qn_graph_error(graph), cases[i].error);
        qn_graph_destroy(&graph);
    }
}

static void what_cannot_be_turned_is_refused(void **state)
{
    (void)state;
    refuse(of_a_matrix);
    refuse(of_too_many_heads);
    refuse(of_heads_below_0);
    refuse(of_a_base_below_0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_have_two_floats),
        cmocka_unit_test(scalings_that_are_none_are_refused),
        cmocka_unit_test(what_cannot_be_turned_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
