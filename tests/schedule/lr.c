/* SPDX-License-Identifier: MIT
 *
 * Learning rates against those of torch.optim.lr_scheduler (1.13), and the warm-up.
 */
#include <math.h>
#include <quern/schedule.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct point {
    int64_t update;
    double lr;
};

static void check(const qn_lr_schedule *schedule, const struct point *points, int count)
{
    for (int i = 0; i < count; i++)
        assert_true(fabs(qn_schedule_lr(schedule, points[i].update) - points[i].lr) <
                    1e-12 * schedule->lr);
}

static const qn_lr_schedule base = {.lr = 0.1, .every = 30, .total = 100};

static void constant(void **state)
{
    static const struct point points[] = {{0, 0.1}, {99, 0.1}, {1000, 0.1}};
    (void)state;
    check(&base, points, 3);
    assert_true(qn_schedule_lr(NULL, 0) == 0);
}

/* StepLR(30, 0.1) */
static void step(void **state)
{
    static const struct point points[] = {{0, 0.1}, {29, 0.1}, {30, 0.01}, {99, 0.0001}};
    qn_lr_schedule schedule = base;
    (void)state;
    schedule.kind = QN_LR_STEP;
    check(&schedule, points, 4);
    schedule.every = 0;
    schedule.factor = 0.5;
    assert_true(qn_schedule_lr(&schedule, 999) == 0.1);
    assert_true(qn_schedule_lr(&schedule, 1000) == 0.05);
}

/* CosineAnnealingLR(100, 0.001) */
static void cosine(void **state)
{
    static const struct point points[] = {
        {0, 0.1}, {1, 0.099975574738103715}, {50, 0.0505}, {99, 0.0010244252618962857}};
    qn_lr_schedule schedule = base;
    (void)state;
    schedule.kind = QN_LR_COSINE;
    schedule.end = 0.001;
    check(&schedule, points, 4);
    assert_true(qn_schedule_lr(&schedule, 100) == 0.001);
    assert_true(qn_schedule_lr(&schedule, 5000) == 0.001);
}

/* LinearLR(1, 0.1, 100) */
static void linear(void **state)
{
    static const struct point points[] = {{0, 0.1}, {1, 0.0991}, {50, 0.055}, {99, 0.0109}};
    qn_lr_schedule schedule = base;
    (void)state;
    schedule.kind = QN_LR_LINEAR;
    schedule.end = 0.01;
    check(&schedule, points, 4);
}

/* OneCycleLR(0.1, total_steps=100); then total_steps=469, pct_start=0.2 */
static void one_cycle(void **state)
{
    static const struct point points[] = {
        {0, 0.004},
        {1, 0.0042813780565907483},
        {15, 0.054598667612100041},
        {29, 0.1},
        {30, 0.099949653528452434},
        {65, 0.047756967455440343},
        {99, 4e-07},
        {1000, 4e-07},
    };
    static const struct point uneven[] = {
        {0, 0.004},
        {1, 0.0040275025876419235},
        {92, 0.099982397738717629},
        {93, 0.099999929891246245},
        {94, 0.09999747610550834},
        {300, 0.041831364584545845},
        {468, 4e-07},
    };
    qn_lr_schedule schedule = base;
    (void)state;
    schedule.kind = QN_LR_ONE_CYCLE;
    check(&schedule, points, 8);
    schedule.total = 469;
    schedule.warmup = 0.2;
    check(&schedule, uneven, 7);
    schedule.end = -1;
    assert_true(qn_schedule_lr(&schedule, 468) == 0);
    schedule.end = 0.002;
    assert_true(qn_schedule_lr(&schedule, 468) == 0.002);
    schedule.warmup = -1;
    assert_true(qn_schedule_lr(&schedule, 0) == 0.1);
}

static void warmup(void **state)
{
    static const struct point points[] = {{0, 0.01}, {4, 0.05}, {9, 0.1}, {10, 0.1}, {55, 0.05}};
    qn_lr_schedule schedule = base;
    (void)state;
    schedule.kind = QN_LR_LINEAR;
    schedule.warmup = 10;
    check(&schedule, points, 5);
    schedule.warmup = 0.1;
    check(&schedule, points, 5);
    schedule.warmup = 1;
    assert_true(qn_schedule_lr(&schedule, 0) == 0.1);
}

/* Trainings of a few updates, warm-ups longer than all of it. */
static void extremes(void **state)
{
    (void)state;
    for (int kind = QN_LR_CONSTANT; kind <= QN_LR_ONE_CYCLE; kind++)
        for (int64_t total = 1; total <= 4; total++)
            for (int warm = -1; warm <= 6; warm++)
                for (int64_t update = 0; update < total + 2; update++) {
                    qn_lr_schedule schedule = base;
                    schedule.kind = (qn_lr_kind)kind;
                    schedule.total = total;
                    schedule.warmup = warm;
                    double lr = qn_schedule_lr(&schedule, update);
                    assert_true(lr >= 0 && lr <= schedule.lr);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant), cmocka_unit_test(step),      cmocka_unit_test(cosine),
        cmocka_unit_test(linear),   cmocka_unit_test(one_cycle), cmocka_unit_test(warmup),
        cmocka_unit_test(extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
