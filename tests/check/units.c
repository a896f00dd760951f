/* SPDX-License-Identifier: MIT
 *
 * Products by matrix units of every layout, which devices without them emulate, over whole steps
 * and past the edges of tiles and sums: in f32, where operands are split, in f16 at each setting
 * and, in the first layout, in bf16, of which tests/cl/tile.c multiplies tiles in all. Forward and
 * both gradients take operands in every order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/cell.h"
#include "check/choose.h"
#include "op/tile.h"

#include <string.h>

extern const struct qn_check_op qn_check_linear;
static const char *const name = "whole vectors";
static const qn_dtype types[] = {QN_F32, QN_F16, QN_BF16};
enum { SETTINGS = 3 };

static const struct qn_check_case *find_case(void)
{
    const struct qn_check_case *item = qn_check_linear.cases;
    while (strcmp(item->name, name) != 0)
        item++;
    return item;
}

/* Settings that were checked; others do not fit. */
static int check_settings(qn_device *device, const struct qn_subject *subject,
                          const struct qn_facts *facts)
{
    int count = 0;
    for (int setting = 0; setting < (subject->storage == QN_F16 ? SETTINGS : 1); setting++) {
        struct qn_picks picks = {.facts = facts};
        struct qn_verdict verdict = {0};
        const char *why;
        if (!qn_pick_all(&picks, subject, "units", setting, &why))
            continue;
        qn_cell_check(subject, device, &picks, &verdict);
        if (verdict.failed)
            fail_msg("%s, %s, %s, setting %d: %s", qn_tile_layout(facts->matrix_layout)->name,
                     subject->item->name, qn_dtype_name(subject->storage), setting, verdict.text);
        count++;
    }
    return count;
}

static int check_type(qn_device *device, qn_dtype storage, int layout)
{
    struct qn_facts facts = *qn_device_facts(device);
    struct qn_subject subject = {.check = &qn_check_linear,
                                 .item = find_case(),
                                 .storage = storage,
                                 .store_parameters = true,
                                 .brief = true,
                                 .seed = 1};
    struct qn_verdict verdict = {0};
    facts.cpu = false;
    facts.vector_width = 4;
    facts.matrix_layout = layout;
    facts.matrix_units = qn_tile_layout(layout)->types;
    assert_true(qn_subject_open(&subject, &verdict));
    const int count = check_settings(device, &subject, &facts);
    qn_subject_close(&subject);
    return count;
}

/* In f32 the layouts with neither f32 nor tf32 multiply nothing. */
static void products_are_right(void **state)
{
    (void)state;
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    for (int layout = QN_TILE_LAYOUTS; layout > 0; layout--)
        for (int t = 0; t < (layout == 1 ? 3 : 2); t++) {
            const int wide = qn_tile_layout(layout)->types & (QN_MATRIX_F32 | QN_MATRIX_TF32);
            const int count = check_type(device, types[t], layout);
            assert_int_equal(count > 0, types[t] != QN_F32 || wide);
        }
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
