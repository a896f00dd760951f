/* SPDX-License-Identifier: MIT
 *
 * Optimizers that see parameters as wholes: several updates beside those of their references in
 * double, with the slots that each parameter has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "check/check.h"
#include "op/optimizer.h"
#include "plan/plan.h"
#include "run/trainer.h"
#include "two_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct qn_check_op qn_check_adafactor, qn_check_apollo, qn_check_adamw;

enum { FEW = 6 };
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01, .clip = 0.5};

/* --- the formula --- */

/* A parameter in double, with what its optimizer keeps of it. */
struct exact {
    const struct qn_check_op *check; /* of the optimizer that has the parameter */
    struct qn_call call;
    double p[MOST_ELEMENTS], state[QN_MAX_STATE][MOST_ELEMENTS], table[QN_CHUNK_NUMBERS];
};

static const struct qn_check_op *check_of(const struct qn_op *op)
{
    static const struct qn_check_op *const all[] = {&qn_check_adafactor, &qn_check_apollo,
                                                    &qn_check_adamw};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->op == op)
            return all[i];
    fail_msg("%s updates a parameter", op->name);
    return NULL;
}

/* The call of the parameter's optimizer, whose states are all 0 at first. */
static void begin_exact(struct exact *e, struct test_run *run, int parameter)
{
    static float values[MOST_ELEMENTS];
    const struct qn_persist *persist = &run->plan->persist;
    const struct qn_parameter *of = &persist->parameters[parameter];
    const struct qn_operand *leaf = &of->node->leaf;
    const struct qn_op *op = persist->blocks[of->block].optimizer;
    struct qn_shape_call shapes = {.attr = persist->settings, .in = {*leaf, *leaf}};
    memset(e, 0, sizeof *e);
    qn_shape_set(&shapes.in[2], QN_I32, 2, (int64_t[]){1, QN_CHUNK_NUMBERS});
    assert_int_equal(op->shape(&shapes), QN_OK);
    e->check = check_of(op);
    e->call = (struct qn_call){.op = op, .attr = persist->settings};
    memcpy(e->call.in, shapes.in, sizeof shapes.in);
    memcpy(e->call.state, shapes.state, sizeof shapes.state);
    assert_int_equal(qn_trainer_read(run->trainer, of->node->name, values, qn_operand_count(leaf)),
                     QN_OK);
    for (int64_t i = 0; i < qn_operand_count(leaf); i++)
        e->p[i] = (double)values[i];
}

/* The table's first row, as the references read it: factors are bits of f32. */
static void set_row(struct exact *e, const struct qn_parameter *of)
{
    const float factors[] = {of->node->rate, of->node->decay};
    int32_t bits[2];
    memcpy(bits, factors, sizeof bits);
    const double row[] = {0, (double)qn_operand_count(&of->node->leaf), of->first_chunk, bits[0],
                          bits[1]};
    memcpy(e->table, row, sizeof row);
}

static void update_exact(struct exact *e, const struct qn_control *control, const double *gradient)
{
    static double p[MOST_ELEMENTS], state[QN_MAX_STATE][MOST_ELEMENTS];
    struct qn_control after = *control;
    struct qn_reference r = {.call = &e->call,
                             .in = {e->p, gradient, e->table},
                             .out = {p},
                             .control = control,
                             .new_control = &after};
    for (int s = 0; s < QN_MAX_STATE; s++) {
        r.state[s] = qn_present(&e->call.state[s]) ? e->state[s] : NULL;
        r.new_state[s] = r.state[s] ? state[s] : NULL;
    }
    e->check->reference(&r);
    memcpy(e->p, p, sizeof p);
    memcpy(e->state, state, sizeof state);
}

static struct qn_control read_control(struct test_run *run)
{
    struct qn_control control;
    assert_int_equal(qn_trainer_read_value(run->trainer, run->plan->persist.control, 0, &control,
                                           sizeof control),
                     QN_OK);
    return control;
}

static void read_gradient(struct test_run *run, int parameter, double *gradient)
{
    static float values[MOST_ELEMENTS];
    const struct qn_node *node = run->plan->persist.parameters[parameter].node;
    const int64_t count = qn_operand_count(&node->leaf);
    assert_int_equal(qn_trainer_read_gradient(run->trainer, node->name, values, count), QN_OK);
    for (int64_t i = 0; i < count; i++)
        gradient[i] = (double)values[i];
}

/* The largest difference between a parameter and the formula's. */
static double compare_exact(const struct exact *e, struct test_run *run, int parameter)
{
    static float values[MOST_ELEMENTS];
    const struct qn_node *node = run->plan->persist.parameters[parameter].node;
    const int64_t count = qn_operand_count(&node->leaf);
    double worst = 0;
    assert_int_equal(qn_trainer_read(run->trainer, node->name, values, count), QN_OK);
    for (int64_t i = 0; i < count; i++)
        worst = fmax(worst, fabs((double)values[i] - e->p[i]));
    return worst;
}

/* Weights of about 0.1 in f32 after six updates: 1e-6. The gradients are the device's own. */
static void check_updates(const char *optimizer, double rate)
{
    static struct exact exact[PARAMETERS];
    static double gradient[PARAMETERS][MOST_ELEMENTS];
    struct test_data data;
    double worst = 0;
    const qn_plan_params params = {.budget = 64 << 20,
                                   .batch = {SAMPLES},
                                   .micro_batch = SAMPLES,
                                   .effort = QN_EFFORT_INSTANT,
                                   .cache_dir = "",
                                   .optimizer = {.name = optimizer}};
    qn_graph *graph = two_layers(QN_F32);
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_cycle cycle = {SAMPLES, rate, test_fetch, &data};
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    for (int p = 0; p < PARAMETERS; p++) {
        begin_exact(&exact[p], &run, p);
        set_row(&exact[p], &run.plan->persist.parameters[p]);
    }
    for (int update = 0; update < FEW; update++) {
        assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
        for (int p = 0; p < PARAMETERS; p++)
            read_gradient(&run, p, gradient[p]);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        const struct qn_control control = read_control(&run);
        for (int p = 0; p < PARAMETERS; p++)
            update_exact(&exact[p], &control, gradient[p]);
    }
    for (int p = 0; p < PARAMETERS; p++)
        worst = fmax(worst, compare_exact(&exact[p], &run, p));
    print_message("  %s: weights differ by %.2g at most\n", optimizer, worst);
    assert_true(worst < 1e-6);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

static void adafactor_is_its_formula(void **state)
{
    (void)state;
    check_updates("adafactor", 0.02);
}

static void apollo_is_its_formula(void **state)
{
    (void)state;
    check_updates("apollo", 0.001);
}

/* --- slots --- */

struct slot {
    const char *parameter;
    int index;
    int64_t first, count; /* in the block's array */
};

static void check_slots(const char *optimizer, const struct slot *slots, int n)
{
    qn_graph *graph = two_layers(QN_F32);
    const qn_plan_params params = {.budget = 64 << 20,
                                   .batch = {SAMPLES},
                                   .effort = QN_EFFORT_INSTANT,
                                   .cache_dir = "",
                                   .optimizer = {.name = optimizer}};
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    const struct qn_persist *persist = &run.plan->persist;
    for (int i = 0; i < n; i++)
        for (int p = 0; p < persist->n_parameters; p++) {
            const struct qn_parameter *parameter = &persist->parameters[p];
            const struct qn_state_part *part = &parameter->part[slots[i].index];
            if (strcmp(parameter->node->name, slots[i].parameter) != 0)
                continue;
            assert_int_equal(part->count, slots[i].count);
            assert_true(!part->count || part->first == slots[i].first);
        }
    test_close(&run);
    qn_graph_destroy(&graph);
}

/* Of matrices rows, then columns, side by side in the block; of vectors all elements. */
static void slots_are_of_rows_and_columns(void **state)
{
    (void)state;
    static const struct slot adafactor[] = {
        {"in.weight", 0, 0, HIDDEN}, {"out.weight", 0, HIDDEN, TEST_CLASSES},
        {"in.weight", 1, 0, WIDTH},  {"out.weight", 1, WIDTH, HIDDEN},
        {"in.bias", 2, 0, HIDDEN},   {"out.bias", 2, HIDDEN, TEST_CLASSES},
        {"in.weight", 2, 0, 0},      {"in.bias", 0, 0, 0},
    };
    static const struct slot apollo[] = {
        {"in.weight", 0, 0, HIDDEN}, {"out.weight", 1, HIDDEN, HIDDEN}, {"in.weight", 2, 0, 1},
        {"out.weight", 2, 1, 1},     {"in.bias", 1, 0, HIDDEN},         {"in.bias", 2, 0, 0},
    };
    check_slots("adafactor", adafactor, sizeof adafactor / sizeof *adafactor);
    check_slots("apollo", apollo, sizeof apollo / sizeof *apollo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adafactor_is_its_formula),
        cmocka_unit_test(apollo_is_its_formula),
        cmocka_unit_test(slots_are_of_rows_and_columns),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
