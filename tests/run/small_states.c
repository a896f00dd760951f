/* SPDX-License-Identifier: MIT
 *
 * Optimizers with small states: their bytes, and that trainings by them are the same to the bit
 * with early updates, from a checkpoint on, and when the budget changes; and nearly the same when
 * the cycle is split. The formulas are the business of the operators' checks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shape.h"
#include "plan/plan.h"
#include "two_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The large weight, and what slots of its rows and columns take for each of its elements: moments
 * of either side; two of the longer one, and a number, which takes a whole unit. */
enum { ROWS = 512, COLUMNS = 1024 };
#define ADAFACTOR (4.0 * (ROWS + COLUMNS) / (ROWS * COLUMNS))
#define APOLLO ((4.0 * 2 * COLUMNS + 512) / (ROWS * COLUMNS))

/* What is trained, by which optimizer. */
static const struct subject {
    const char *optimizer;
    qn_dtype stored; /* type of the weights */
    bool no_master;
    double slot_bytes; /* of an element of the large weight, scales, masters and corrections
                          included */
    double apart;      /* at most, if the cycle is split */
} subjects[] = {
    {"adamw8", QN_F32, false, 2 + 8.0 / 256, 1e-5},
    {"adamw8", QN_BF16, false, 4 + 2 + 8.0 / 256, 1e-4},
    {"adamw8", QN_BF16, true, 2 + 8.0 / 256, 5e-3},
    {"flash_adamw", QN_F32, false, 2 + 4.0 / 32, 1e-5},
    {"flash_adamw", QN_BF16, false, 2 + 1 + 4.0 / 32, 1e-3},
    {"flash_adamw", QN_F16, false, 4 + 2 + 4.0 / 32, 1e-4},
    {"adafactor", QN_F32, false, ADAFACTOR, 1e-5},
    {"adafactor", QN_BF16, false, 4 + ADAFACTOR, 1e-4},
    {"adafactor", QN_BF16, true, ADAFACTOR, 5e-3},
    {"apollo", QN_F32, false, APOLLO, 1e-5},
    {"apollo", QN_F16, true, APOLLO, 1e-3},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

static qn_plan_params params_of(const struct subject *s)
{
    return (qn_plan_params){.budget = 64 << 20,
                            .batch = {SAMPLES},
                            .micro_batch = SAMPLES,
                            .effort = QN_EFFORT_INSTANT,
                            .cache_dir = "",
                            .optimizer = {.name = s->optimizer, .no_master = s->no_master}};
}

/* --- bytes --- */

static int64_t optimizer_bytes(const qn_graph *graph, const qn_plan_params *params)
{
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL), QN_OK);
    const int64_t bytes = qn_plan_facts(plan)->bytes_by_tag[QN_TAG_OPTIMIZER];
    qn_plan_destroy(&plan);
    return bytes;
}

/* A graph of one large weight, whose slots are all but the table of chunks. */
static void bytes_are_few(void **state)
{
    (void)state;
    const int64_t dim[] = {ROWS, COLUMNS}, count = dim[0] * dim[1];
    for (int i = 0; i < SUBJECTS; i++) {
        const struct subject *s = &subjects[i];
        const qn_graph_params how = {.log = test_log, .parameter_storage = s->stored};
        const qn_plan_params params = params_of(s);
        const qn_init init = qn_init_fan_in(COLUMNS);
        qn_graph *graph;
        assert_int_equal(qn_graph_create(&graph, &how), QN_OK);
        qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, COLUMNS});
        qn_tensor weight = qn_parameter(graph, "weight", 2, dim, &init);
        x = qn_linear(graph, x, weight, (qn_tensor){0});
        qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, ROWS});
        qn_loss(graph, qn_squared_error(graph, x, target), "loss", NULL);
        const int64_t table = count / QN_CHUNK * (int64_t)sizeof(struct qn_chunk);
        const int64_t slots = optimizer_bytes(graph, &params) - stored_bytes(table);
        print_message("  %s of %s%s: %.4f bytes a parameter\n", s->optimizer,
                      qn_dtype_name(s->stored), s->no_master ? " without masters" : "",
                      (double)slots / (double)count);
        assert_true((double)slots == s->slot_bytes * (double)count);
        qn_graph_destroy(&graph);
    }
}

/* --- the same training --- */

static void it_trains(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        qn_graph *graph = two_layers(subjects[i].stored);
        const qn_plan_params params = params_of(&subjects[i]);
        struct trained end = train(graph, &params, &trainer_params, false);
        assert_true(end.metrics[UPDATES - 1].loss < end.metrics[0].loss);
        free(end.weights);
        qn_graph_destroy(&graph);
    }
}

static void early_updates_are_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        qn_graph *graph = two_layers(subjects[i].stored);
        const qn_plan_params params = params_of(&subjects[i]);
        check_early(graph, &params, &trainer_params);
        qn_graph_destroy(&graph);
    }
}

static void a_resumed_training_is_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        qn_graph *graph = two_layers(subjects[i].stored);
        const qn_plan_params params = params_of(&subjects[i]),
                             early = smallest_early(graph, &params);
        check_resumes(graph, &params, &trainer_params);
        check_resumes(graph, &early, &trainer_params);
        qn_graph_destroy(&graph);
    }
}

static void a_budget_that_changes(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        qn_graph *graph = two_layers(subjects[i].stored);
        const qn_plan_params params = params_of(&subjects[i]);
        check_budgets(graph, &params, &trainer_params);
        qn_graph_destroy(&graph);
    }
}

/* With a clip: the same but for the order of sums, and for codes and weights in 16 bits that fall
 * to the other side. */
static void a_split_cycle_is_nearly_the_same(void **state)
{
    (void)state;
    const qn_trainer_params clipped = {.seed = 11, .weight_decay = 0.01, .clip = 0.01};
    for (int i = 0; i < SUBJECTS; i++) {
        qn_graph *graph = two_layers(subjects[i].stored);
        const qn_plan_params whole = params_of(&subjects[i]);
        qn_plan_params split = whole;
        split.micro_batch = 12;
        struct trained a = train(graph, &whole, &clipped, false);
        struct trained b = train(graph, &split, &clipped, false);
        const double far = test_distance(a.weights, b.weights, a.count);
        print_message("  %s of %s: %.2g\n", subjects[i].optimizer,
                      qn_dtype_name(subjects[i].stored), far);
        assert_true(a.metrics[0].grad_norm > 0.02);
        assert_true(far > 0 && far < subjects[i].apart);
        free(a.weights);
        free(b.weights);
        qn_graph_destroy(&graph);
    }
}

/* --- small tensors --- */

/* Those below 4096 elements lie in blocks of another optimizer, with the slots of that one. */
static void small_tensors_keep_f32(void **state)
{
    (void)state;
    qn_graph *graph = two_layers(subjects[0].stored);
    const qn_plan_params params = params_of(&subjects[0]);
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    const struct qn_persist *persist = &run.plan->persist;
    assert_string_equal(qn_plan_facts(run.plan)->optimizer, "adamw8");
    for (int p = 0; p < PARAMETERS; p++) {
        const struct qn_block *block = &persist->blocks[persist->parameters[p].block];
        const bool small = qn_operand_count(&persist->parameters[p].node->leaf) < 4096;
        assert_string_equal(block->optimizer->name, small ? "adamw" : "adamw8");
        assert_int_equal(persist->values[block->state[0]].operand.dtype, small ? QN_F32 : QN_U8);
    }
    test_close(&run);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_few),
        cmocka_unit_test(it_trains),
        cmocka_unit_test(early_updates_are_the_same),
        cmocka_unit_test(a_resumed_training_is_the_same),
        cmocka_unit_test(a_budget_that_changes),
        cmocka_unit_test(a_split_cycle_is_nearly_the_same),
        cmocka_unit_test(small_tensors_keep_f32),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
