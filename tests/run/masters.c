/* SPDX-License-Identifier: MIT
 *
 * Parameters in f16 and bf16. With f32 masters: the masters are updated as f32 parameters are, and
 * operators read them rounded to nearest. Without: the parameters are updated themselves and
 * rounded stochastically.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/shape.h"
#include "check/stochastic.h"
#include "plan/plan.h"
#include "run/trainer.h"
#include "same.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first weight has two chunks. */
enum { HIDDEN = 74, MOST_ELEMENTS = HIDDEN * WIDTH };

static const struct {
    qn_dtype activations, parameters;
} storages[] = {{QN_F32, QN_BF16}, {QN_F32, QN_F16}, {QN_BF16, QN_BF16}, {QN_F16, QN_F16}};
enum { STORAGES = sizeof storages / sizeof *storages };

static const qn_plan_params with_masters = {.budget = 64 << 20,
                                            .batch = {SAMPLES},
                                            .micro_batch = SAMPLES,
                                            .effort = QN_EFFORT_INSTANT,
                                            .cache_dir = ""};
static const double rate = 0.05;
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

static qn_plan_params without_masters(void)
{
    qn_plan_params params = with_masters;
    params.optimizer.no_master = true;
    return params;
}

static qn_graph *network(qn_dtype activations, qn_dtype parameters)
{
    qn_graph *graph;
    const qn_graph_params params = {
        .log = test_log, .storage = activations, .parameter_storage = parameters};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    const qn_init init = qn_init_fan_in(WIDTH);
    const int64_t in[] = {HIDDEN, WIDTH}, out[] = {TEST_CLASSES, HIDDEN};
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor a = qn_parameter(graph, "in.weight", 2, in, &init);
    qn_tensor bias = qn_parameter(graph, "in.bias", 1, in, &init);
    qn_tensor b = qn_parameter(graph, "out.weight", 2, out, &init);
    x = qn_linear(graph, qn_tanh(graph, qn_linear(graph, x, a, bias)), b, (qn_tensor){0});
    const qn_cross_entropy_params loss = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &loss), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static const struct qn_parameter *parameter_at(const struct test_run *run, int p)
{
    return &run->plan->persist.parameters[p];
}

static int64_t count_of(const struct qn_parameter *parameter)
{
    return qn_operand_count(&parameter->node->leaf);
}

static void read_parameter(qn_trainer *trainer, const struct qn_parameter *parameter, bool gradient,
                           float *values)
{
    assert_int_equal((gradient ? qn_trainer_read_gradient : qn_trainer_read)(
                         trainer, parameter->node->name, values, count_of(parameter)),
                     QN_OK);
}

static float rounded(qn_dtype dtype, float value)
{
    unsigned char bytes[4];
    double number = (double)value;
    qn_number_encode(dtype, &number, 1, bytes);
    qn_number_decode(dtype, bytes, 1, &number);
    return (float)number;
}

/* --- with masters --- */

/* What operators read is the master to nearest. */
static void check_working(const struct test_run *run, const struct qn_parameter *parameter,
                          const float *master)
{
    static uint16_t stored[MOST_ELEMENTS];
    static double numbers[MOST_ELEMENTS];
    const struct qn_value *working = &run->plan->persist.values[parameter->working];
    assert_true(parameter->working != parameter->value);
    assert_int_equal(working->operand.dtype, parameter->node->leaf.dtype);
    assert_int_equal(
        qn_trainer_read_value(run->trainer, parameter->working, 0, stored, working->bytes), QN_OK);
    qn_number_decode(working->operand.dtype, stored, count_of(parameter), numbers);
    for (int64_t i = 0; i < count_of(parameter); i++)
        assert_true(numbers[i] == (double)rounded(working->operand.dtype, master[i]));
}

/* One update of `run`, whose gradient has to be that of `plain`: parameters in f32 that are the
 * rounded masters. Gives how far both are apart. */
static double follow(const struct test_run *run, const struct test_run *plain,
                     const qn_cycle *cycle, struct test_data *data)
{
    static float before[3][MOST_ELEMENTS], after[MOST_ELEMENTS], values[MOST_ELEMENTS];
    float *have, *want;
    for (int p = 0; p < 3; p++) {
        const struct qn_parameter *parameter = parameter_at(run, p);
        read_parameter(run->trainer, parameter, false, before[p]);
        for (int64_t i = 0; i < count_of(parameter); i++)
            values[i] = rounded(parameter->node->leaf.dtype, before[p][i]);
        assert_int_equal(
            qn_trainer_write(plain->trainer, parameter->node->name, values, count_of(parameter)),
            QN_OK);
    }
    const int64_t count = test_gradients(run->trainer, data, SAMPLES, &have);
    assert_int_equal(test_gradients(plain->trainer, data, SAMPLES, &want), count);
    const double far = test_distance(have, want, count);
    assert_int_equal(qn_trainer_step(run->trainer, cycle, NULL), QN_OK);
    for (int p = 0, at = 0; p < 3; p++) {
        const struct qn_parameter *parameter = parameter_at(run, p);
        const double decay = (double)parameter->node->decay * trainer_params.weight_decay;
        read_parameter(run->trainer, parameter, false, after);
        for (int64_t i = 0; i < count_of(parameter); i++, at++) {
            const double p_ = (double)before[p][i];
            const double wanted = p_ - rate * ((double)have[at] + decay * p_);
            assert_true(fabs((double)after[i] - wanted) < 1e-7);
        }
        if (parameter->node->leaf.dtype != QN_F32)
            check_working(run, parameter, after);
    }
    free(have);
    free(want);
    return far;
}

static void masters_are_updated_as_f32_is(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_cycle cycle = {SAMPLES, rate, test_fetch, &data};
    for (int s = 0; s < STORAGES; s++) {
        double far = 0;
        qn_graph *graph = network(storages[s].activations, storages[s].parameters);
        qn_graph *f32 = network(storages[s].activations, QN_F32);
        struct test_run run = test_open(device, graph, &with_masters, &trainer_params);
        struct test_run plain = test_open(device, f32, &with_masters, &trainer_params);
        for (int update = 0; update < UPDATES; update++)
            far = fmax(far, follow(&run, &plain, &cycle, &data));
        print_message("  %s with %s: gradients differ by %.2g\n",
                      qn_dtype_name(storages[s].parameters), qn_dtype_name(storages[s].activations),
                      far);
        assert_true(far < (storages[s].activations == QN_F32 ? 1e-6 : 1e-2));
        test_close(&run);
        test_close(&plain);
        qn_graph_destroy(&graph);
        qn_graph_destroy(&f32);
    }
    test_data_free(&data);
}

/* --- without --- */

/* Sums over the parameters in 16 bits: how far they are from the exact update in units of the
 * spacing, the variance that this ought to have, and how many moved. */
struct moves {
    double sum, variance;
    int64_t moved, count;
};

static void update_and_compare(const struct test_run *run, const qn_cycle *cycle,
                               struct test_data *data, struct moves *moves)
{
    static float before[3][MOST_ELEMENTS], after[MOST_ELEMENTS];
    float *gradients;
    for (int p = 0; p < 3; p++)
        read_parameter(run->trainer, parameter_at(run, p), false, before[p]);
    test_gradients(run->trainer, data, SAMPLES, &gradients);
    assert_int_equal(qn_trainer_step(run->trainer, cycle, NULL), QN_OK);
    for (int p = 0, at = 0; p < 3; p++) {
        const struct qn_parameter *parameter = parameter_at(run, p);
        const qn_dtype dtype = parameter->node->leaf.dtype;
        const double decay = (double)parameter->node->decay * trainer_params.weight_decay;
        read_parameter(run->trainer, parameter, false, after);
        for (int64_t i = 0; i < count_of(parameter); i++, at++) {
            const double p_ = (double)before[p][i];
            const double wanted =
                (double)(float)(p_ - cycle->lr * ((double)gradients[at] + decay * p_));
            if (dtype == QN_F32)
                continue;
            const double spacing = qn_check_spacing(dtype, wanted), share = wanted / spacing;
            const double up = share - floor(share), off = (double)after[i] / spacing - share;
            assert_true(after[i] == rounded(dtype, after[i]));
            assert_true(fabs(off) < 1 + 1e-3);
            moves->sum += off;
            moves->variance += up * (1 - up);
            moves->moved += after[i] != before[p][i];
            moves->count++;
        }
    }
    free(gradients);
}

/* Five standard deviations. */
static void check_mean(const struct moves *moves)
{
    print_message("  %lld of %lld moved; off by %.2g standard deviations\n",
                  (long long)moves->moved, (long long)moves->count,
                  moves->sum / sqrt(moves->variance));
    assert_true(moves->variance > 1 && fabs(moves->sum) < 5 * sqrt(moves->variance));
}

/* Of small steps those arrive that rounding to nearest would lose. */
static void rounding_is_right_on_average(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_plan_params params = without_masters();
    for (int s = 0; s < STORAGES; s++) {
        struct moves large = {0}, small = {0};
        qn_graph *graph = network(storages[s].activations, storages[s].parameters);
        struct test_run run = test_open(device, graph, &params, &trainer_params);
        const qn_cycle cycles[] = {{SAMPLES, rate, test_fetch, &data},
                                   {SAMPLES, rate / 64, test_fetch, &data}};
        for (int update = 0; update < UPDATES; update++) {
            update_and_compare(&run, &cycles[0], &data, &large);
            update_and_compare(&run, &cycles[1], &data, &small);
        }
        check_mean(&large);
        check_mean(&small);
        assert_true(small.moved > 0 && small.moved < large.moved);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    test_data_free(&data);
}

/* Each has random words of its own, whatever block it lies in. */
static void chunks_are_numbered(void **state)
{
    (void)state;
    struct qn_chunk table[8];
    int32_t next = 0;
    qn_graph *graph = network(QN_F32, QN_BF16);
    const qn_plan_params params = without_masters();
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    const struct qn_persist *persist = &run.plan->persist;
    assert_int_equal(persist->n_blocks, 2);
    for (int b = 0; b < persist->n_blocks; b++) {
        qn_block_table(persist, &persist->blocks[b], table);
        for (int k = 0; k < persist->blocks[b].chunks; k++)
            assert_int_equal(table[k].number, next++);
    }
    assert_int_equal(next, 4);
    test_close(&run);
    qn_graph_destroy(&graph);
}

/* --- both --- */

static void bytes_are_those_of_the_types(void **state)
{
    (void)state;
    qn_graph *graph = network(QN_F32, QN_BF16);
    const int64_t tables = stored_bytes(sizeof(struct qn_chunk)) +
                           stored_bytes(3 * sizeof(struct qn_chunk)),
                  bias = stored_bytes(HIDDEN * 4);
    const int64_t weights =
        stored_bytes(HIDDEN * WIDTH * 2) + stored_bytes(TEST_CLASSES * HIDDEN * 2);
    const qn_plan_params params[] = {with_masters, without_masters()};
    for (int i = 0; i < 2; i++) {
        struct trained end = train(graph, &params[i], &trainer_params, false);
        assert_int_equal(end.info.bytes_by_tag[QN_TAG_PARAMETERS], weights + bias);
        assert_int_equal(end.info.bytes_by_tag[QN_TAG_OPTIMIZER], tables + (i ? 0 : 2 * weights));
        free(end.weights);
    }
    qn_graph_destroy(&graph);
}

static void early_updates_are_the_same(void **state)
{
    (void)state;
    qn_graph *graph = network(QN_BF16, QN_BF16);
    const qn_plan_params params[] = {with_masters, without_masters()};
    for (int i = 0; i < 2; i++) {
        check_early(graph, &params[i], &trainer_params);
    }
    qn_graph_destroy(&graph);
}

static void a_resumed_training_is_the_same(void **state)
{
    (void)state;
    qn_graph *graph = network(QN_BF16, QN_BF16);
    const qn_plan_params params[] = {with_masters, without_masters()};
    for (int i = 0; i < 2; i++) {
        const qn_plan_params early = smallest_early(graph, &params[i]);
        check_resumes(graph, &params[i], &trainer_params);
        check_resumes(graph, &early, &trainer_params);
    }
    qn_graph_destroy(&graph);
}

static void a_budget_that_changes(void **state)
{
    (void)state;
    qn_graph *graph = network(QN_F32, QN_F16);
    check_budgets(graph, &with_masters, &trainer_params);
    qn_graph_destroy(&graph);
}

static void whole_numbers_are_no_parameters(void **state)
{
    (void)state;
    qn_graph *graph;
    const qn_graph_params params = {.parameter_storage = QN_I32};
    assert_int_equal(qn_graph_create(&graph, &params), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masters_are_updated_as_f32_is),
        cmocka_unit_test(rounding_is_right_on_average),
        cmocka_unit_test(chunks_are_numbered),
        cmocka_unit_test(bytes_are_those_of_the_types),
        cmocka_unit_test(early_updates_are_the_same),
        cmocka_unit_test(a_resumed_training_is_the_same),
        cmocka_unit_test(a_budget_that_changes),
        cmocka_unit_test(whole_numbers_are_no_parameters),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
