/* SPDX-License-Identifier: MIT
 *
 * What an adaptive batch learns comes one update late, whether or not somebody waited.
 */
#include "batches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct train_settings train = {
    .adaptive = {.batch = {.least = 8, .most = 64, .decay = 0.5}}};

/* Of update u; its norms give other estimates than those of others. */
static qn_metrics metrics_of(const struct batches *b, int64_t update)
{
    return (qn_metrics){.valid = true,
                        .update = update,
                        .samples = b->now,
                        .grad_norm = 1 + 0.01 * (double)update,
                        .micro_samples = 4,
                        .micro_norm = 2};
}

/* Update u begins, and its step tells of the one before unless that was known already. */
static void run_update(struct batches *b, int64_t update, bool known)
{
    const qn_metrics none = {0}, before = update ? metrics_of(b, update - 1) : none;
    batches_next(b, update);
    batches_learn(b, known ? &none : &before);
}

/* Waits for the last update. */
static void settle(struct batches *b, int64_t update)
{
    const qn_metrics last = metrics_of(b, update);
    batches_keep(b, &last);
}

static void waiting_changes_nothing(void **state)
{
    struct batches a = batches_open(&train), b = a;
    (void)state;
    for (int64_t u = 0; u < 12; u++) {
        run_update(&a, u, false);
        run_update(&b, u, u % 3 == 2);
        if (u % 3 == 1)
            settle(&b, u);
        assert_int_equal(a.now, b.now);
        assert_true(a.adaptive.batch.signal == b.adaptive.batch.signal);
        assert_true(a.adaptive.batch.noise == b.adaptive.batch.noise);
    }
    assert_true(a.now > 8);
    assert_true(a.scale[1] == b.scale[1] && isfinite(a.scale[1]));
}

static void a_schedule_needs_no_norms(void **state)
{
    static const struct train_settings steps = {.batches = {2, {{0, 10}, {3, 30}}}};
    struct batches b = batches_open(&steps);
    (void)state;
    assert_false(batches_adapt(&b));
    for (int64_t u = 0; u < 6; u++) {
        run_update(&b, u, false);
        assert_int_equal(b.now, u < 3 ? 10 : 30);
        assert_true(isnan(b.scale[u % 2]));
    }
}

static void norms_that_overflow_are_not_kept(void **state)
{
    struct batches b = batches_open(&train);
    (void)state;
    run_update(&b, 0, false);
    qn_metrics last = metrics_of(&b, 0);
    last.grad_norm = INFINITY;
    batches_keep(&b, &last);
    assert_int_equal(b.adaptive.kept.batch, 0);
    settle(&b, 0);
    assert_int_equal(b.adaptive.kept.batch, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_changes_nothing),
        cmocka_unit_test(a_schedule_needs_no_norms),
        cmocka_unit_test(norms_that_overflow_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
