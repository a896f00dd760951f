/* SPDX-License-Identifier: MIT
 *
 * A figure that is watched: what is best, when the rate is made smaller, when the training ends.
 */
#include <math.h>
#include <quern/schedule.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-15;
}

static void best(void **state)
{
    static const struct {
        double figure;
        bool better;
    } taken[] = {{NAN, false}, {-3, true},        {-3, false}, {-2.5, true},
                 {-4, false},  {INFINITY, false}, {7, true}};
    qn_improvement it = {0};
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_int_equal(qn_improvement_take(&it, taken[i].figure), taken[i].better);
    assert_true(it.best == 7 && it.waited == 0);
    assert_false(qn_improvement_ends(&it));
    assert_true(qn_improvement_scale(&it) == 1);
}

static void patience(void **state)
{
    static const double figures[] = {5, 4, 6, 6, 5, 3};
    qn_improvement it = {.patience = 3};
    (void)state;
    for (int i = 0; i < 6; i++) {
        assert_false(qn_improvement_ends(&it));
        qn_improvement_take(&it, figures[i]);
    }
    assert_true(qn_improvement_ends(&it)); /* none after the first 6 was above it */
    qn_improvement_take(&it, 7);
    assert_false(qn_improvement_ends(&it));
}

static void plateau(void **state)
{
    static const double figures[] = {1, 1, 1, 1, 1, 2, 2, NAN};
    static const double scales[] = {1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125};
    qn_improvement it = {.plateau_patience = 2, .plateau_factor = 0.5}, saved;
    (void)state;
    for (int i = 0; i < 8; i++) {
        saved = it; /* what is saved and put back goes on the same */
        qn_improvement_take(&it, figures[i]);
        assert_true(near(qn_improvement_scale(&it), scales[i]));
        qn_improvement_take(&saved, figures[i]);
        assert_true(near(qn_improvement_scale(&saved), scales[i]));
    }
    assert_false(qn_improvement_ends(&it));
    it.plateau_factor = 0;
    assert_true(near(qn_improvement_scale(&it), 1e-3));
}

static void nothing(void **state)
{
    (void)state;
    assert_false(qn_improvement_take(NULL, 1));
    assert_false(qn_improvement_ends(NULL));
    assert_true(qn_improvement_scale(NULL) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best),
        cmocka_unit_test(patience),
        cmocka_unit_test(plateau),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
