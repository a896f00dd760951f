/* SPDX-License-Identifier: MIT
 *
 * What a task costs: measured where it was timed, estimated elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/cost/seconds.h"
#include "plan/plan.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs at 1e9 operations, 1e9 bytes a second and 1 ms a launch. */
static const struct qn_facts facts = {
    .flops = 1e9, .bytes_per_second = 1e9, .launch_seconds = 1e-3};

static struct qn_tuned run_at(int64_t batch, double seconds, double flops)
{
    return (struct qn_tuned){.task = "task",
                             .batch = batch,
                             .variant = "cpu",
                             .setting = "",
                             .seconds = seconds,
                             .flops = flops,
                             .launches = 1};
}

static void assert_near(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-9 * wanted)
        fail_msg("%g, wanted %g", value, wanted);
}

static void what_takes_longer_counts(void **state)
{
    (void)state;
    assert_near(qn_seconds_estimated(&facts, &(struct qn_cost){.flops = 3e6, .bytes = 1e6}), 3e-3);
    assert_near(qn_seconds_estimated(&facts, &(struct qn_cost){.flops = 3e6, .bytes = 7e6}), 7e-3);
    assert_near(qn_seconds_estimated(&facts, &(struct qn_cost){.flops = 3e6, .launches = 2}), 5e-3);
}

static void the_nearest_run_counts_and_grows_as_estimated(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    const struct qn_tuned runs[] = {run_at(4, 0.1, 4e6), run_at(64, 0.2, 64e6), run_at(16, 0, 0)};
    for (int i = 0; i < 3; i++)
        assert_true(qn_tuning_add_choice(&table, &runs[i]));
    static const struct {
        int64_t batch;
        double flops, wanted;
    } cases[] = {{4, 4e6, 0.1}, {8, 9e6, 0.2}, {64, 64e6, 0.2}, {32, 12e6, 0.04}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct qn_tuned like = run_at(cases[i].batch, 0, 0);
        const struct qn_cost cost = {.flops = cases[i].flops, .launches = 1};
        assert_near(qn_seconds_measured(&table, &facts, &like, &cost), cases[i].wanted);
    }
    qn_tuning_free(&table);
}

static void other_variants_and_settings_were_not_measured(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    struct qn_tuned run = run_at(4, 0.1, 4e6), like = run;
    const struct qn_cost cost = {.flops = 4e6, .launches = 1};
    assert_true(qn_tuning_add_choice(&table, &run));
    assert_true(qn_seconds_measured(&table, &facts, &like, &cost) > 0);
    like.variant = "gpu";
    assert_true(qn_seconds_measured(&table, &facts, &like, &cost) <= 0);
    like = run;
    like.setting = "8x2";
    assert_true(qn_seconds_measured(&table, &facts, &like, &cost) <= 0);
    like = run;
    like.task = "another";
    assert_true(qn_seconds_measured(&table, &facts, &like, &cost) <= 0);
    qn_tuning_free(&table);
}

/* Runs of twice the samples take twice as long here, so that all rates are equal. */
static void a_guess_has_a_margin(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    const struct qn_tuned run = run_at(8, 0.1, 8e6);
    struct qn_tuned like = run_at(8, 0, 0);
    const struct qn_cost same = {.flops = 8e6, .launches = 1},
                         twice = {.flops = 17e6, .launches = 1};
    const double guess = qn_seconds_guess(100. / 9, 8, 16);
    assert_near(qn_seconds_guess(0, 8, 16), 1);
    assert_near(qn_seconds_guess(3, 8, 8), 3);
    assert_near(qn_seconds_guess(3, 0, 8), 3);
    assert_near(qn_seconds_counted(NULL, &facts, 1, &like, &same).seconds, 9e-3);
    assert_near(qn_seconds_counted(&table, &facts, 1, &like, &same).seconds, 9e-3);
    assert_true(qn_tuning_add_choice(&table, &run));
    struct qn_seconds counted = qn_seconds_counted(&table, &facts, guess, &like, &same);
    assert_near(counted.seconds, 0.1);
    assert_true(counted.measured);
    like.batch = 16;
    counted = qn_seconds_counted(&table, &facts, guess, &like, &twice);
    assert_near(counted.seconds, 1.1 * 0.2);
    assert_false(counted.measured);
    like.task = "another";
    counted = qn_seconds_counted(&table, &facts, guess, &like, &twice);
    assert_near(counted.seconds, 1.25 * 0.2);
    assert_false(counted.measured);
    qn_tuning_free(&table);
}

static double calibration_of(const struct qn_tuning *table)
{
    struct qn_arena arena = {0};
    double calibration;
    assert_true(qn_seconds_calibrate(table, &facts, &arena, &calibration));
    qn_arena_free(&arena);
    return calibration;
}

/* Earlier tables did not say what their runs computed. */
static void a_run_without_its_work_is_no_measurement(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    struct qn_tuned run = run_at(4, 0.1, 0);
    run.launches = 0;
    assert_true(qn_tuning_add_choice(&table, &run));
    const struct qn_cost cost = {.flops = 4e6, .launches = 1};
    assert_true(qn_seconds_measured(&table, &facts, &run, &cost) <= 0);
    assert_true(calibration_of(&table) <= 0);
    qn_tuning_free(&table);
}

static void calibrates_by_the_median(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    static const double slower[] = {2, 50, 0.5, 3, 2.5};
    assert_true(calibration_of(&table) <= 0);
    for (int i = 0; i < 5; i++) {
        struct qn_tuned run = run_at(i + 1, slower[i] * 5e-3, 4e6);
        assert_true(qn_tuning_add_choice(&table, &run));
    }
    assert_near(calibration_of(&table), 2.5);
    qn_tuning_free(&table);
}

/* --- a plan --- */

/* Two seconds for the forward pass of the first product at a batch of 8, and what it computes. */
static const char costs[] =
    "{\"quern_tuning\": 1, \"self_tests\": [], \"choices\": [{\"task\": \"linear/forward "
    "in0=f32[*,32] in1=f32[32,32] out0=f32[*,32]\", \"batch\": 8, \"variant\": \"%s\", "
    "\"setting\": \"%s\", \"seconds\": 2, \"flops\": 16384, \"bytes\": 6144, \"launches\": 1}]}";

static double planned_seconds(const qn_graph *graph, int64_t batch, const char *tuning,
                              const char *words)
{
    const qn_plan_params params = {.budget = 64 << 20,
                                   .batch = {batch},
                                   .micro_batch = batch,
                                   .recompute = QN_RECOMPUTE_NONE,
                                   .tuning = tuning};
    qn_plan *plan = test_plan(graph, &params);
    char *text = qn_plan_text(plan);
    assert_non_null(text);
    if (!strstr(text, words))
        fail_msg("no '%s' in\n%s", words, text);
    free(text);
    const double seconds = qn_plan_facts(plan)->seconds;
    qn_plan_destroy(&plan);
    return seconds;
}

/* The chosen variant of the first product and its setting. */
static void find_variant(const qn_graph *graph, char variant[64], char setting[64])
{
    const qn_plan_params params = {.budget = 64 << 20, .batch = {8}, .micro_batch = 8};
    qn_plan *plan = test_plan(graph, &params);
    char *table = qn_plan_variants_json(plan);
    const char *at = strstr(table, "\"linear\", \"forward\"");
    assert_non_null(at);
    *setting = 0;
    assert_in_range(
        sscanf(at, "\"linear\", \"forward\", \"%63[^\"]\", \"%63[^\"]\"", variant, setting), 1, 2);
    free(table);
    qn_plan_destroy(&plan);
}

static void a_plan_says_what_was_measured_and_takes_it(void **state)
{
    (void)state;
    char tuning[1024], variant[64], setting[64];
    qn_graph *graph = test_chain(3, 32);
    find_variant(graph, variant, setting);
    snprintf(tuning, sizeof tuning, costs, variant, setting);
    const double estimated = planned_seconds(graph, 8, NULL, "costs estimated");
    const double measured =
        planned_seconds(graph, 8, tuning, "costs measured for 3 of 17 steps, 16 % of the time");
    assert_true(estimated < 0.01);
    /* Three products, and all the rest calibrated: more than 6 s. */
    assert_true(measured > 6);
    /* Half the samples: less, but launches and weights stay, and a margin is added: nobody timed
     * them. */
    const double half = planned_seconds(graph, 4, tuning, "costs estimated");
    assert_true(half < 1.1 * measured && half > measured / 4);
    qn_graph_destroy(&graph);
}

static int64_t micro_batch_after(const qn_graph *graph, int64_t kept, double spread)
{
    qn_plan_params params = {.budget = 64 << 20, .batch = {8192}};
    char tuning[512];
    qn_plan *plan = test_plan(graph, &params);
    snprintf(tuning, sizeof tuning,
             "{\"quern_tuning\": 1, \"kept\": [{\"training\": \"%016" PRIx64
             "\", \"micro_batch\": %" PRId64
             "}], \"self_tests\": [], \"choices\": [{\"task\": \"t\", "
             "\"batch\": 1, \"variant\": \"cpu\", \"seconds\": 1, \"spread\": %g}]}",
             qn_plan_training(plan), kept, spread);
    qn_plan_destroy(&plan);
    params.tuning = tuning;
    plan = test_plan(graph, &params);
    const int64_t taken = qn_plan_facts(plan)->micro_batch;
    qn_plan_destroy(&plan);
    return taken;
}

/* Half the batch costs a few launches more, a sixteenth of it far more than a tenth. */
static void the_first_micro_batch_is_left_for_a_gain_alone(void **state)
{
    (void)state;
    qn_graph *graph = test_chain(3, 32);
    assert_int_equal(micro_batch_after(graph, 8192, 1), 8192);
    assert_int_equal(micro_batch_after(graph, 4096, 1), 4096);
    assert_int_equal(micro_batch_after(graph, 512, 1), 8192);
    assert_int_equal(micro_batch_after(graph, 512, 1.4), 512); /* another program ran beside it */
    qn_graph_destroy(&graph);
}

/* Costs for which sums and products overflow: every step that the table does not hold takes what it
 * says of the first, 1e300 times as long as estimated. */
static void a_plan_is_made_whatever_runs_are_said_to_take(void **state)
{
    (void)state;
    static const struct {
        const char *seconds, *flops;
    } said[] = {{"1e9", "1e-300"}, {"1e-300", "1e30"}, {"1e-300", "1e-300"}};
    qn_graph *graph = test_model("cnn", NULL, 0);
    for (int i = 0; i < 3; i++) {
        char tuning[512];
        int64_t least;
        qn_plan *plan;
        snprintf(tuning, sizeof tuning,
                 "{\"quern_tuning\": 1, \"self_tests\": [], \"choices\": [{\"task\": \"x\", "
                 "\"batch\": 8, \"variant\": \"cpu\", \"seconds\": %s, \"flops\": %s, "
                 "\"bytes\": 0, \"launches\": 0}]}",
                 said[i].seconds, said[i].flops);
        qn_plan_params params = {.budget = 1, .batch = {64}, .tuning = tuning};
        const struct qn_facts device = test_facts();
        assert_int_equal(qn_plan_create(&plan, graph, &device, &params, &least), QN_ERR_BUDGET);
        params.budget = least;
        plan = test_plan(graph, &params);
        assert_true(isfinite(qn_plan_facts(plan)->seconds));
        test_interpret(plan);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_longer_counts),
        cmocka_unit_test(the_nearest_run_counts_and_grows_as_estimated),
        cmocka_unit_test(other_variants_and_settings_were_not_measured),
        cmocka_unit_test(a_run_without_its_work_is_no_measurement),
        cmocka_unit_test(a_guess_has_a_margin),
        cmocka_unit_test(calibrates_by_the_median),
        cmocka_unit_test(a_plan_says_what_was_measured_and_takes_it),
        cmocka_unit_test(the_first_micro_batch_is_left_for_a_gain_alone),
        cmocka_unit_test(a_plan_is_made_whatever_runs_are_said_to_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
