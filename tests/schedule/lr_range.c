/* SPDX-License-Identifier: MIT
 *
 * The range test of learning rates: its rates, and what it finds in losses of a known shape.
 */
#include <math.h>
#include <quern/schedule.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { UPDATES = 101 };

static const qn_lr_range range = {1e-5, 1, UPDATES};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static void rates(void **state)
{
    (void)state;
    assert_true(near(qn_lr_range_at(&range, 0), 1e-5));
    assert_true(near(qn_lr_range_at(&range, 20), 1e-4));
    assert_true(near(qn_lr_range_at(&range, 100), 1));
    const qn_lr_range all = qn_lr_range_whole(NULL);
    assert_true(all.least == 1e-7 && all.most == 10 && all.updates == 100);
    assert_true(near(qn_lr_range_at(NULL, 99), 10));
}

/* Falls along a logistic curve whose steepest place is update 40, and rises from 70 on. */
static double loss_at(int update)
{
    return 2 - 1 / (1 + exp(-(update - 40) / 5.0)) + (update > 70 ? 0.05 * (update - 70) : 0);
}

static void steepest(void **state)
{
    double losses[UPDATES], smoothed[UPDATES];
    (void)state;
    for (int i = 0; i < UPDATES; i++)
        losses[i] = loss_at(i) + 0.002 * (i % 2 ? 1 : -1);
    const qn_lr_found found = qn_lr_range_find(&range, losses, UPDATES, smoothed);
    assert_true(near(found.lr, qn_lr_range_at(&range, 40)));
    assert_true(found.lowest >= qn_lr_range_at(&range, 62) &&
                found.lowest <= qn_lr_range_at(&range, 72));
    for (int i = 0; i < UPDATES; i++)
        assert_true(fabs(smoothed[i] - loss_at(i)) < 0.1);
    assert_true(smoothed[0] == losses[0]); /* there is nothing on its other side */
}

/* What is behind the end of a training that diverged is not looked at. */
static void a_part(void **state)
{
    double losses[UPDATES], smoothed[UPDATES] = {0};
    (void)state;
    for (int i = 0; i < UPDATES; i++)
        losses[i] = i < 60 ? loss_at(i) : NAN;
    const qn_lr_found found = qn_lr_range_find(&range, losses, 60, smoothed);
    assert_true(near(found.lr, qn_lr_range_at(&range, 40)));
    assert_true(near(found.lowest, qn_lr_range_at(&range, 59)));
    assert_true(smoothed[60] == 0);
}

static void nothing(void **state)
{
    double losses[UPDATES], smoothed[UPDATES];
    (void)state;
    for (int i = 0; i < UPDATES; i++)
        losses[i] = i;
    assert_true(qn_lr_range_find(&range, losses, UPDATES, smoothed).lr == 0);
    assert_true(qn_lr_range_find(&range, losses, 2, smoothed).lr == 0);
    assert_true(qn_lr_range_find(&range, NULL, UPDATES, smoothed).lr == 0);
    assert_true(qn_lr_range_find(&range, losses, UPDATES, NULL).lr == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),
        cmocka_unit_test(steepest),
        cmocka_unit_test(a_part),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
