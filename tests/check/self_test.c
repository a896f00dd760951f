/* SPDX-License-Identifier: MIT
 *
 * The self-test of a variant over all cases of the harness, which decides where two variants
 * differ: one that is right passes it in every storage type.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/selftest.h"

extern const struct qn_check_op qn_check_attention, qn_check_rms_norm, qn_check_sigmoid;

/* With other values than those of the harness each failed in some type of 16 bits, since its
 * gradient comes from what was rounded to that. */
static void right_variants_stand(void **state)
{
    (void)state;
    static const qn_dtype types[] = {QN_F16, QN_BF16};
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    const char *shape = qn_device_facts(device)->cpu ? "cpu" : "gpu";
    const struct qn_self_test_of all[] = {{qn_check_sigmoid.op, "any", 0, 0},
                                          {qn_check_rms_norm.op, shape, 0, 0},
                                          {qn_check_attention.op, shape, 0, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int t = 0; t < 2; t++) {
            struct qn_self_test_of what = all[i];
            char reason[QN_SELF_TEST_TEXT];
            what.storage = types[t];
            assert_int_equal(qn_self_test(device, &what, true, reason), QN_OK);
            assert_string_equal(reason, "");
        }
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_variants_stand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
