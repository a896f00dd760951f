/* SPDX-License-Identifier: MIT
 *
 * Outputs of an evaluation: each under its own name, whole, for every sample once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 5, IN = 3, OUT = 2, OUTPUTS = 3 };

static const char *const names[OUTPUTS] = {"rows", "same", "view"};

/* What is asked, and what came back by name and sample. */
struct probe {
    struct test_data data; /* first, for test_fetch */
    float value[OUTPUTS][SAMPLES][OUT];
    int seen[OUTPUTS][SAMPLES];
};

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct probe *probe = user;
    int output = 0;
    while (output < OUTPUTS && strcmp(names[output], name) != 0)
        output++;
    assert_true(output < OUTPUTS && first + count <= SAMPLES);
    memcpy(probe->value[output][first], rows, (size_t)count * sizeof probe->value[0][0]);
    for (int64_t i = first; i < first + count; i++)
        probe->seen[output][i]++;
    return QN_OK;
}

static qn_graph *make_graph(void)
{
    qn_graph *graph = test_graph(QN_F32);
    const qn_init init = qn_init_fan_in(IN);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, IN});
    qn_tensor w = qn_parameter(graph, "w", 2, (int64_t[]){OUT, IN}, &init);
    qn_tensor y = qn_linear(graph, x, w, (qn_tensor){0});
    qn_output(graph, y, names[0]);
    qn_output(graph, y, names[1]);
    qn_output(graph, qn_reshape(graph, y, 3, (int64_t[]){QN_BATCH, 1, OUT}), names[2]);
    qn_loss(graph, qn_mean(graph, y, 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void every_output_has_its_name(void **state)
{
    (void)state;
    struct probe probe = {0};
    float w[OUT][IN];
    qn_device *device = test_device();
    qn_graph *graph = make_graph();
    const qn_plan_params params = {.budget = 1 << 20, .batch = {SAMPLES}, .micro_batch = 2};
    struct test_run run = test_open(device, graph, &params, NULL);
    test_data_make(&probe.data, SAMPLES, IN);
    assert_int_equal(qn_trainer_read(run.trainer, "w", w[0], OUT * IN), QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, SAMPLES, test_fetch, receive, &probe), QN_OK);
    for (int i = 0; i < OUTPUTS * SAMPLES * OUT; i++) {
        int output = i / OUT / SAMPLES, sample = i / OUT % SAMPLES, column = i % OUT;
        float sum = 0;
        for (int k = 0; k < IN; k++)
            sum += w[column][k] * probe.data.x[sample * IN + k];
        assert_int_equal(probe.seen[output][sample], 1);
        assert_true(fabsf(probe.value[output][sample][column] - sum) < 1e-5f);
    }
    test_data_free(&probe.data);
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_has_its_name),
    };
    return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
