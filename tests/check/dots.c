/* SPDX-License-Identifier: MIT
 *
 * Products by the dot products of a CPU's core, whether these are fast there or not: all cases of
 * linear and batch_matmul in bf16, at each setting. Status 77: the core or the driver has none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "check/cell.h"
#include "check/choose.h"
#include "cl/private.h"

extern const struct qn_check_op qn_check_linear, qn_check_batch_matmul;

/* Settings at which dot products fit the case, and were right. */
static int check_case(qn_device *device, const struct qn_check_op *check,
                      const struct qn_check_case *item)
{
    struct qn_subject subject = {.check = check,
                                 .item = item,
                                 .storage = QN_BF16,
                                 .store_parameters = true,
                                 .brief = true,
                                 .seed = 1};
    struct qn_verdict verdict = {0};
    int count = 0;
    assert_true(qn_subject_open(&subject, &verdict));
    for (int setting = 0; setting < qn_variant_settings(check->op, "tiles"); setting++) {
        struct qn_picks picks = {.facts = qn_device_facts(device)};
        const char *why;
        if (!qn_pick_all(&picks, &subject, "tiles", setting, &why))
            continue;
        qn_cell_check(&subject, device, &picks, &verdict);
        if (verdict.failed)
            fail_msg("%s, setting %d: %s", item->name, setting, verdict.text);
        count++;
    }
    qn_subject_close(&subject);
    return count;
}

static bool has_dots(const qn_device *device)
{
    return device->quirks & QN_QUIRK_HOST_ASM && qn_has_dots();
}

static void products_are_right(void **state)
{
    static const struct qn_check_op *const checks[] = {&qn_check_linear, &qn_check_batch_matmul};
    qn_device *device = *state;
    device->facts.matrix_units = QN_MATRIX_BF16_DOTS; /* before any program is built with it */
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int count = 0;
        for (const struct qn_check_case *item = checks[i]->cases; item->name; item++)
            count += check_case(device, checks[i], item);
        assert_true(count > 0);
    }
}

int main(void)
{
    qn_device *device = NULL;
    if (qn_device_open(&device, NULL) != QN_OK)
        return 1;
    int status = 77;
    if (has_dots(device)) {
        const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(products_are_right, device)};
        status = cmocka_run_group_tests(tests, NULL, NULL);
    } else {
        puts("skipped: the core or the driver has no dot products of bf16");
    }
    qn_device_close(&device);
    return status;
}
