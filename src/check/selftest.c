/* SPDX-License-Identifier: MIT
 *
 * The short check of one variant on the device that is to run it.
 */
#include "check/selftest.h"

#include "check/cell.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Cases that a variant must pass; few, as each may build kernels, which takes most of the time. */
enum { CASES = 2 };

static const struct qn_check_op *check_of(const struct qn_op *op)
{
    for (const struct qn_check_op *const *check = qn_check_all(); *check; check++)
        if ((*check)->op == op)
            return *check;
    return NULL;
}

struct trial {
    qn_device *device;
    const struct qn_check_op *check;
    const struct qn_self_test_of *what;
    int passed, wanted;
    qn_status status;
};

/* Runs one case if it uses the variant. False: the verdict says what is wrong. */
static bool try_case(struct trial *trial, const struct qn_check_case *item,
                     struct qn_verdict *verdict)
{
    const struct qn_self_test_of *what = trial->what;
    struct qn_subject subject = {.check = trial->check,
                                 .item = item,
                                 .storage = what->storage,
                                 .seed = qn_subject_seed(1, trial->check, item)};
    struct qn_picks picks = {.facts = qn_device_facts(trial->device)};
    const char *why = "";
    bool ok = qn_subject_open(&subject, verdict);
    if (ok && qn_pick_all(&picks, &subject, what->variant, what->setting, &why)) {
        qn_cell_check(&subject, trial->device, &picks, verdict);
        trial->passed += !verdict->failed;
    }
    qn_subject_close(&subject);
    trial->status = verdict->status;
    return !verdict->failed;
}

static bool try_cases(struct trial *trial, bool small, char reason[QN_SELF_TEST_TEXT])
{
    const struct qn_check_case *c = trial->check->cases;
    for (; c->name && trial->passed < trial->wanted; c++) {
        struct qn_verdict verdict = {0};
        if (c->small == small && !try_case(trial, c, &verdict)) {
            snprintf(reason, QN_SELF_TEST_TEXT, "%s: %.180s", c->name, verdict.text);
            return false;
        }
    }
    return true;
}

qn_status qn_self_test(qn_device *device, const struct qn_self_test_of *what, bool all,
                       char reason[QN_SELF_TEST_TEXT])
{
    struct trial trial = {device, check_of(what->op), what, 0, all ? INT_MAX : CASES, QN_OK};
    *reason = 0;
    if (!trial.check)
        snprintf(reason, QN_SELF_TEST_TEXT, "the operator has no reference");
    /* Small cases come first: they are quick, and their sizes are those that show wrong edges. */
    else if (try_cases(&trial, true, reason) && (all || !trial.passed) &&
             try_cases(&trial, false, reason) && !trial.passed)
        snprintf(reason, QN_SELF_TEST_TEXT, "no case uses it on this device");
    return trial.status;
}
