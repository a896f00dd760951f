/* SPDX-License-Identifier: MIT
 *
 * Half of the least local memory of OpenCL 1.2, which is what is left where a driver counts it
 * twice, keeps no operator from being checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/choose.h"

enum { LOCAL_BYTES = 16 << 10 };

static void check_picks(const struct qn_subject *subject, const struct qn_facts *facts,
                        const char *name, int setting)
{
    const struct qn_group *groups = subject->check->op->groups;
    struct qn_picks picks = {.facts = facts};
    const char *why;
    if (!qn_pick_all(&picks, subject, name, setting, &why))
        return;
    for (int g = 0; g < QN_MAX_GROUPS && groups[g].name; g++)
        if (!picks.group[g].variant)
            fail_msg("%s/%s, %s, setting %d: no variant of group %s fits", subject->check->op->name,
                     subject->item->name, name, setting, groups[g].name);
}

static void check_case(const struct qn_check_op *check, const struct qn_check_case *item, bool cpu)
{
    struct qn_subject subject = {.check = check, .item = item, .storage = QN_F32};
    struct qn_verdict verdict = {0};
    struct qn_facts facts;
    const char *names[QN_MAX_NAMES];
    const int count = qn_variant_names(check->op, names);
    qn_facts_default(&facts, cpu);
    facts.local_bytes = LOCAL_BYTES;
    assert_true(qn_subject_describe(&subject, &verdict));
    for (int i = 0; i < count; i++)
        for (int s = 0; s < qn_variant_settings(check->op, names[i]); s++)
            check_picks(&subject, &facts, names[i], s);
    qn_subject_close(&subject);
}

static void each_group_has_a_variant(void **state)
{
    (void)state;
    for (const struct qn_check_op *const *check = qn_check_all(); *check; check++)
        for (const struct qn_check_case *item = (*check)->cases; item && item->name; item++)
            for (int cpu = 0; cpu < 2; cpu++)
                check_case(*check, item, cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_group_has_a_variant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
