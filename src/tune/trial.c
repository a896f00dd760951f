/* SPDX-License-Identifier: MIT */
#include "tune/trial.h"

#include "check/selftest.h"
#include "cl/device.h"

#include <string.h>

static bool is_made_for_gpus(const char *variant)
{
    return strcmp(variant, "gpu") == 0 || strcmp(variant, "clblast") == 0;
}

unsigned qn_trial_candidates(const struct qn_problem *problem, const struct qn_task *task,
                             const struct qn_facts *facts, bool all)
{
    struct qn_call call;
    unsigned candidates = 0;
    qn_task_call(problem, task, true, &call);
    for (int v = 0; v < QN_MAX_VARIANTS && task->group->variant[v].name; v++) {
        const struct qn_variant *variant = &task->group->variant[v];
        const char *why;
        if (!qn_call_fits(&call, variant, 0, &why))
            continue;
        if (all || !facts->cpu || !is_made_for_gpus(variant->name))
            candidates |= 1u << v;
    }
    return candidates;
}

static struct qn_self_test test_of(const struct qn_task *task, int variant, int setting)
{
    const struct qn_variant *v = &task->group->variant[variant];
    return (struct qn_self_test){.op = task->op->name,
                                 .variant = v->name,
                                 .setting = qn_setting_name(v, setting),
                                 .storage = qn_dtype_name(qn_task_storage(task)),
                                 .reason = ""};
}

static void say(qn_device *device, const struct qn_self_test *test, const char *what,
                const char *reason)
{
    qn_log_write(qn_device_log(device), QN_LOG_WARNING, "%s: variant %s%s%s (%s) %s: %s", test->op,
                 test->variant, *test->setting ? ":" : "", test->setting, test->storage, what,
                 reason);
}

void qn_trial_fail(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                   int variant, int setting, const char *reason)
{
    const int count = setting ? 0 : qn_setting_count(&task->group->variant[variant]);
    struct qn_self_test test = test_of(task, variant, setting);
    test.reason = reason;
    qn_tuning_add_test(tuning, &test);
    say(device, &test, "computes wrong numbers on this device and is not used", reason);
    for (int s = 1; s < count; s++) {
        test.setting = qn_setting_name(&task->group->variant[variant], s);
        qn_tuning_add_test(tuning, &test);
    }
}

void qn_trial_refuse(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting)
{
    struct qn_self_test test = test_of(task, variant, setting);
    const struct qn_self_test *known = qn_tuning_test(tuning, &test);
    if (known && *known->reason)
        return;
    test.reason = qn_last_error();
    qn_tuning_add_test(tuning, &test);
    say(device, &test, "cannot be launched on this device and is not used", test.reason);
}

/* Runs the self-test and notes a lasting failure: wrong numbers, or kernels that cannot run. */
static bool passes(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                   int variant, int setting, bool all)
{
    const struct qn_self_test test = test_of(task, variant, setting);
    const struct qn_self_test_of what = {task->op, test.variant, setting, qn_task_storage(task)};
    char reason[QN_SELF_TEST_TEXT];
    const qn_status status = qn_self_test(device, &what, all, reason);
    if (status == QN_OK && !*reason)
        return true;
    if (status == QN_OK)
        qn_trial_fail(device, tuning, task, variant, setting, reason);
    else if (status == QN_ERR_BUILD)
        qn_trial_refuse(device, tuning, task, variant, setting);
    else
        say(device, &test, "could not be tested and is not used now", reason);
    return false;
}

/* Whether the default setting (0), the only one tested against the reference, passes. */
static bool default_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                           int variant)
{
    const struct qn_self_test like = test_of(task, variant, 0);
    const struct qn_self_test *known = qn_tuning_test(tuning, &like);
    if (known)
        return !*known->reason;
    return passes(device, tuning, task, variant, 0, false) && qn_tuning_add_test(tuning, &like);
}

bool qn_trial_passed(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting)
{
    const struct qn_self_test like = test_of(task, variant, setting);
    const struct qn_self_test *known = qn_tuning_test(tuning, &like);
    return default_passed(device, tuning, task, variant) && (!known || !*known->reason);
}

bool qn_trial_stands(qn_device *device, struct qn_tuning *tuning, const struct qn_task *task,
                     int variant, int setting)
{
    return passes(device, tuning, task, variant, setting, true);
}
