/* SPDX-License-Identifier: MIT
 *
 * The noise scale of made-up gradients whose noise scale is known, and the batches that follow it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"

#include <math.h>
#include <quern/schedule.h>

enum { DIM = 64, MICRO = 4 };

/* Samples whose gradient is (1, 0, 0, ...) times `signal` plus normal noise that makes the noise
 * scale `scale`: tr(S) = signal^2 scale. */
struct source {
    double signal, scale;
    uint64_t drawn;
};

static double square(const double *g)
{
    double sum = 0;
    for (int d = 0; d < DIM; d++)
        sum += g[d] * g[d];
    return sum;
}

/* Adds the gradient of one sample. */
static void add_sample(struct source *s, double *g)
{
    const double deviation = sqrt((s->signal * s->signal + (s->signal == 0)) * s->scale / DIM);
    for (int d = 0; d < DIM; d++)
        g[d] += deviation * qn_random_normal(3, 1, s->drawn++);
    g[0] += s->signal;
}

static qn_gradient_norms run_cycle(struct source *s, int64_t batch)
{
    qn_gradient_norms norms = {.batch = batch, .micro_batch = MICRO};
    double whole[DIM] = {0};
    for (int64_t i = 0; i < batch / MICRO; i++) {
        double part[DIM] = {0};
        for (int j = 0; j < MICRO; j++)
            add_sample(s, part);
        norms.micro_square += square(part) / (MICRO * MICRO) / (double)(batch / MICRO);
        for (int d = 0; d < DIM; d++)
            whole[d] += part[d];
    }
    norms.batch_square = square(whole) / (double)(batch * batch);
    return norms;
}

/* B = 8, b = 2: signal (8 x 3 - 2 x 6) / 6 = 2, noise (6 - 3) / (1/2 - 1/8) = 8. */
static void one_cycle_by_hand(void **state)
{
    qn_adaptive_batch a = {.least = 8, .most = 64, .decay = 0.5};
    (void)state;
    assert_true(isnan(qn_noise_scale(&a)));
    qn_batch_adapt(&a, &(qn_gradient_norms){8, 2, 3, 6});
    assert_true(a.signal == 1 && a.noise == 4);
    assert_true(qn_noise_scale(&a) == 4);
    qn_batch_adapt(&a, &(qn_gradient_norms){16, 8, 3, 3.5}); /* signal 2.5, noise 8 */
    assert_true(a.signal == 1.75 && a.noise == 6);
    a = (qn_adaptive_batch){.signal = -1, .noise = 2};
    assert_true(isinf(qn_noise_scale(&a)));
    a = (qn_adaptive_batch){.signal = 1, .noise = -2};
    assert_true(qn_noise_scale(&a) == 0);
    a = (qn_adaptive_batch){.signal = -1, .noise = -2};
    assert_true(isnan(qn_noise_scale(&a)));
}

/* The mean of single estimates is right at any two sizes: neither is biased. */
static void estimates_have_no_bias(void **state)
{
    static const int64_t batches[] = {8, 16, 64};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct source source = {.signal = 0.5, .scale = 20};
        double signal = 0, noise = 0;
        enum { CYCLES = 600 };
        for (int c = 0; c < CYCLES; c++) {
            qn_adaptive_batch once = {.least = 8, .most = 8, .decay = 1e-12};
            qn_gradient_norms norms = run_cycle(&source, batches[i]);
            qn_batch_adapt(&once, &norms);
            signal += once.signal / CYCLES;
            noise += once.noise / CYCLES;
        }
        print_message("  batch %d: signal %.4f of 0.25, noise %.4f of 5\n", (int)batches[i], signal,
                      noise);
        assert_true(fabs(signal - 0.25) < 0.25 * 0.05);
        assert_true(fabs(noise - 5) < 5 * 0.03);
    }
}

/* Where the batch stands after so many updates. */
static int64_t follow(qn_adaptive_batch *a, struct source *source, int updates)
{
    int64_t batch = qn_batch_adapt(a, NULL);
    for (int i = 0; i < updates; i++) {
        qn_gradient_norms norms = run_cycle(source, batch);
        batch = qn_batch_adapt(a, &norms);
    }
    return batch;
}

static void the_batch_follows_the_noise(void **state)
{
    struct source source = {.signal = 2, .scale = 100};
    qn_adaptive_batch up = {.least = 8, .most = 512},
                      down = {.least = 8, .most = 512, .batch = 512};
    (void)state;
    assert_int_equal(follow(&up, &source, 400), 64); /* 64 <= 100 < 128 */
    assert_int_equal(follow(&down, &source, 400), 128);
    print_message("  noise scale %.1f and %.1f of 100\n", qn_noise_scale(&up),
                  qn_noise_scale(&down));
    assert_true(fabs(qn_noise_scale(&up) - 100) < 25);
    source.scale = 1000; /* as it grows while a training goes on */
    assert_int_equal(follow(&up, &source, 400), 512);
    source.scale = 2;
    assert_int_equal(follow(&up, &source, 400), 8);
    source = (struct source){.signal = 0, .scale = 1}; /* nothing but noise */
    assert_int_equal(follow(&up, &source, 400), 512);
}

static void a_size_stays_for_a_while(void **state)
{
    static const qn_gradient_norms noisy = {8, 4, 1, 2};
    static const int64_t after[] = {8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 32, 32, 32};
    qn_adaptive_batch a = {.least = 8, .most = 40, .decay = 0.75};
    (void)state;
    assert_int_equal(qn_batch_adapt(&a, NULL), 8);
    for (int i = 0; i < 13; i++)
        assert_int_equal(qn_batch_adapt(&a, &noisy), after[i]);
    qn_adaptive_batch usual = {.least = 8, .most = 16};
    for (int i = 0; i < 20; i++)
        assert_int_equal(qn_batch_adapt(&usual, &noisy), i < 19 ? 8 : 16);
}

static void what_tells_nothing_changes_nothing(void **state)
{
    static const qn_gradient_norms nothing[] = {
        {8, 8, 1, 2}, {8, 0, 1, 2}, {8, 9, 1, 2}, {8, 4, NAN, 2}, {8, 4, 1, INFINITY}};
    qn_adaptive_batch a = {.least = 8, .most = 64, .decay = 0.25, .signal = 1, .noise = 9};
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(qn_batch_adapt(&a, &nothing[i]), 8);
        assert_true(a.signal == 1 && a.noise == 9 && a.measured == 0);
    }
    assert_int_equal(qn_batch_adapt(NULL, nothing), 0);
    assert_true(isnan(qn_noise_scale(NULL)));
}

/* A struct put back in the middle goes on with the same batches. */
static void it_is_resumed(void **state)
{
    struct source source = {.signal = 1, .scale = 60}, again;
    qn_adaptive_batch a = {.least = 8, .most = 256}, b;
    (void)state;
    follow(&a, &source, 45);
    b = a;
    again = source;
    for (int i = 0; i < 100; i++)
        assert_int_equal(follow(&a, &source, 1), follow(&b, &again, 1));
    assert_true(a.signal == b.signal && a.noise == b.noise && a.batch != 8);
}

static void sizes_are_powers_of_two_times_the_least(void **state)
{
    static const struct {
        int64_t least, most, largest;
        int count;
    } cases[] = {
        {48, 48, 48, 1},
        {48, 95, 48, 1},
        {48, 200, 192, 3},
        {1, 1 << 15, 1 << 15, 16},
        {1, INT64_MAX, 1 << 15, 16},
        {9, 8, 0, 0},
        {0, 8, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_adaptive_batch a = {.least = cases[i].least, .most = cases[i].most};
        int64_t sizes[QN_MAX_BATCH_SIZES];
        assert_int_equal(qn_adaptive_sizes(&a, sizes), cases[i].count);
        for (int j = 0; j < QN_MAX_BATCH_SIZES; j++)
            assert_int_equal(sizes[j], j < cases[i].count ? cases[i].largest >> j : 0);
    }
    assert_int_equal(qn_adaptive_sizes(NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_cycle_by_hand),
        cmocka_unit_test(estimates_have_no_bias),
        cmocka_unit_test(the_batch_follows_the_noise),
        cmocka_unit_test(a_size_stays_for_a_while),
        cmocka_unit_test(what_tells_nothing_changes_nothing),
        cmocka_unit_test(it_is_resumed),
        cmocka_unit_test(sizes_are_powers_of_two_times_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
