/* SPDX-License-Identifier: MIT
 *
 * Which kernels tuning times, in which order and for how long. Runs take what the test says: no
 * kernel is built or run, no clock is read (meson.build puts the functions below in the place of
 * those of the rig and of the self-test).
 */
#include "support.h"

#include "tune/rig.h"
#include "tune/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct layer layer = {.batch = 24, .n = 24, .k = 40};

static struct {
    double compiled, timed;   /* seconds that each call takes */
    double first, rival;      /* of a run of a task's first variant, and of its others */
    double first_again;       /* of the first in turns with the best; 0: as before */
    int runs, tests, stop_at; /* runs and self-tests so far; runs after which to end; 0: never */
} script;

qn_status __wrap_qn_rig_time(struct qn_rig *rig, struct qn_rig_run *run,
                             struct qn_verdict *verdict);
bool __wrap_qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                            int variant, int setting);

qn_status __wrap_qn_rig_time(struct qn_rig *rig, struct qn_rig_run *run, struct qn_verdict *verdict)
{
    (void)verdict;
    const bool first = run->variant == rig->task->variant && run->setting == rig->task->setting;
    script.runs++;
    rig->watch->compiled += run->again ? 0 : script.compiled;
    rig->watch->timed += script.timed;
    run->cost = (struct qn_cost){.flops = 1e6, .bytes = 1e6, .launches = 1};
    run->seconds = run->median = first ? script.first : script.rival;
    if (first && run->again && script.first_again > 0)
        run->seconds = script.first_again;
    return QN_OK;
}

bool __wrap_qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                            int variant, int setting)
{
    (void)device, (void)tuning, (void)task, (void)variant, (void)setting;
    script.tests++;
    return true;
}

static bool stop(void *user)
{
    (void)user;
    return script.stop_at > 0 && script.runs >= script.stop_at;
}

static int count(const char *text, const char *word)
{
    int times = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        times++;
    return times;
}

/* What is known after `params->known`, and the number of tasks that were timed for it. */
static char *tune(struct bench_device *d, const qn_tune_params *params, int *timed)
{
    struct layer tuned = layer;
    char *text = NULL;
    qn_tune_result result;
    tuned.tuning = params->known;
    qn_plan *plan = layer_plan(d, &tuned);
    script.runs = script.tests = 0;
    assert_int_equal(qn_tune(d->device, plan, params, &text, &result), QN_OK);
    *timed = result.timed;
    assert_non_null(text);
    qn_plan_destroy(&plan);
    return text;
}

static int open_script(void **state)
{
    static struct bench_device d;
    bench_device_open(&d, NULL, NULL);
    memset(&script, 0, sizeof script);
    script.first = script.rival = 1e-3;
    script.timed = 1;
    *state = &d;
    return 0;
}

static int close_script(void **state)
{
    bench_device_close(*state);
    return 0;
}

static void what_was_timed_is_what_is_counted(void **state)
{
    int timed, all = 0;
    char *known = strdup("");
    for (int call = 0; call < 20; call++) {
        char *more = tune(*state, &(qn_tune_params){known, -1, .measuring = 2.5}, &timed);
        assert_int_equal(timed, script.runs);
        assert_true(timed <= 3);
        all += timed;
        free(known);
        known = more;
        assert_int_equal(count(known, "\"task\""), all);
        assert_int_equal(count(known, "\"seconds\": 0.001"), all);
    }
    assert_int_equal(timed, 0);
    assert_true(all > 6);
    assert_int_equal(script.tests, 0);
    free(known);
}

struct order {
    int tasks, searched; /* when all of the plan's had been timed; those that came then */
};

static void look(void *user, const qn_tune_progress *progress)
{
    struct order *order = user;
    if (script.tests == 0)
        order->tasks = progress->timed;
    order->searched += script.tests > 0;
    assert_true(progress->done <= progress->total);
    assert_true(progress->timing_seconds >= progress->timed);
}

static void what_the_plan_runs_is_timed_before_others(void **state)
{
    struct order order = {0};
    int timed;
    free(tune(*state, &(qn_tune_params){.fn = look, .user = &order, .all = true}, &timed));
    assert_int_equal(order.tasks, timed);
    assert_true(order.searched > 0);
}

static void building_does_not_use_up_the_time(void **state)
{
    int timed, few;
    free(tune(*state, &(qn_tune_params){.seconds = -1}, &timed));
    script.compiled = 1000;
    free(tune(*state, &(qn_tune_params){.seconds = -1, .measuring = 100}, &few));
    assert_int_equal(few, timed);
    /* Among others there is an end to it: the first contest is the last. */
    script.compiled = 3;
    free(tune(*state, &(qn_tune_params){.seconds = 1.5, .all = true}, &few));
    assert_int_equal(few, timed);
    assert_true(script.runs < timed + 4);
}

static void a_rival_has_to_win_in_turns_too(void **state)
{
    int timed;
    script.rival = 0.8e-3;
    char *won = tune(*state, &(qn_tune_params){.all = true}, &timed);
    script.first_again = 0.7e-3;
    char *lost = tune(*state, &(qn_tune_params){.all = true}, &timed);
    assert_true(count(won, "\"seconds\": 0.0008") > 0);
    assert_int_equal(count(lost, "\"seconds\": 0.0008"), 0);
    assert_true(count(lost, "\"seconds\": 0.0007") > 0);
    free(won);
    free(lost);
}

/* A plan with what was searched for it, once it was; one that ended early is gone on with. */
static void ends_when_it_is_told_to(void **state)
{
    int timed, more;
    script.stop_at = 3;
    char *some = tune(*state, &(qn_tune_params){.stop = stop, .all = true}, &timed);
    assert_int_equal(script.runs, 3);
    assert_int_equal(timed, 3);
    script.stop_at = 0;
    char *rest = tune(*state, &(qn_tune_params){.known = some, .stop = stop, .all = true}, &more);
    const int tasks = count(rest, "\"task\"");
    assert_true(tasks > 6);
    script.stop_at = tasks + 2; /* in the first search */
    char *most = tune(*state, &(qn_tune_params){.stop = stop, .all = true}, &timed);
    assert_int_equal(script.runs, tasks + 2);
    assert_int_equal(timed, tasks);
    assert_true(count(most, "\"alone\": true") > 0);
    assert_int_equal(count(rest, "\"alone\": true"), 0);
    free(some);
    free(rest);
    free(most);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_script, close_script)
    const struct CMUnitTest tests[] = {
        TEST(what_was_timed_is_what_is_counted), TEST(what_the_plan_runs_is_timed_before_others),
        TEST(building_does_not_use_up_the_time), TEST(a_rival_has_to_win_in_turns_too),
        TEST(ends_when_it_is_told_to),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
