/* SPDX-License-Identifier: MIT */
#include "data/order.h"
#include "../io/scratch.h"

static void each_epoch_is_a_permutation(void **state)
{
    static const int64_t counts[] = {1, 2, 3, 10, 257};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct qn_order order;
        int64_t n = counts[c];
        assert_int_equal(qn_order_make(&order, 7, n, false, NULL), QN_OK);
        for (int64_t epoch = 0; epoch < 6; epoch++) {
            char seen[257] = {0};
            for (int64_t i = 0; i < n; i++) {
                int64_t sample = qn_order_at(&order, epoch * n + i);
                assert_in_range(sample, 0, n - 1);
                assert_int_equal(seen[sample]++, 0);
            }
        }
        qn_order_free(&order);
    }
}

static int64_t equal_places(uint64_t seed, int64_t first, uint64_t other_seed, int64_t other_first)
{
    struct qn_order a, b;
    int64_t equal = 0;
    assert_int_equal(qn_order_make(&a, seed, 1000, false, NULL), QN_OK);
    assert_int_equal(qn_order_make(&b, other_seed, 1000, false, NULL), QN_OK);
    for (int64_t i = 0; i < 1000; i++)
        equal += qn_order_at(&a, first + i) == qn_order_at(&b, other_first + i);
    qn_order_free(&a);
    qn_order_free(&b);
    return equal;
}

static void seed_and_epoch_decide(void **state)
{
    (void)state;
    assert_int_equal(equal_places(1, 0, 1, 0), 1000);
    assert_int_equal(equal_places(1, 5000, 1, 5000), 1000);
    assert_true(equal_places(1, 0, 2, 0) < 10);
    assert_true(equal_places(1, 0, 1, 1000) < 10);
    assert_true(equal_places(1, 0, 1, 2000) < 10);
    assert_true(equal_places(UINT64_MAX, 0, 1, 0) < 10);
}

/* Any position may be asked for at any time, as far out as there are positions. */
static void access_is_random(void **state)
{
    static const int64_t positions[] = {0, 5, 999, 20, 13, 7, 6, INT64_MAX, 13, INT64_MAX - 30, 5};
    (void)state;
    struct qn_order walked;
    assert_int_equal(qn_order_make(&walked, 3, 10, false, NULL), QN_OK);
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct qn_order fresh;
        assert_int_equal(qn_order_make(&fresh, 3, 10, false, NULL), QN_OK);
        assert_int_equal(qn_order_at(&walked, positions[i]), qn_order_at(&fresh, positions[i]));
        qn_order_free(&fresh);
    }
    qn_order_free(&walked);
}

/* Changing the order changes every training run: these are values to keep. */
static void the_order_is_what_it_was(void **state)
{
    static const int64_t expected[][10] = {
        {7, 9, 5, 1, 0, 3, 2, 6, 4, 8},
        {0, 6, 1, 4, 7, 8, 9, 5, 2, 3},
    };
    (void)state;
    struct qn_order order;
    assert_int_equal(qn_order_make(&order, 1, 10, false, NULL), QN_OK);
    for (int64_t i = 0; i < 20; i++)
        assert_int_equal(qn_order_at(&order, i), expected[i / 10][i % 10]);
    qn_order_free(&order);
}

/* Over many epochs every sample stands in every place about equally often: chi-squared with 81
 * degrees of freedom stays below 141 with probability 0.99996. */
static void places_are_uniform(void **state)
{
    enum { N = 10, EPOCHS = 10000 };
    static int times[N][N];
    (void)state;
    struct qn_order order;
    assert_int_equal(qn_order_make(&order, 11, N, false, NULL), QN_OK);
    for (int64_t i = 0; i < (int64_t)N * EPOCHS; i++)
        times[i % N][qn_order_at(&order, i)]++;
    double chi = 0, mean = EPOCHS / N;
    for (int i = 0; i < N * N; i++) {
        double off = times[i / N][i % N] - mean;
        chi += off * off / mean;
    }
    assert_true(chi < 141);
    qn_order_free(&order);
}

static void sequential_is_in_order(void **state)
{
    (void)state;
    struct qn_order order;
    assert_int_equal(qn_order_make(&order, 1, 10, true, NULL), QN_OK);
    for (int64_t i = 0; i < 35; i++)
        assert_int_equal(qn_order_at(&order, i), i % 10);
    qn_order_free(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_epoch_is_a_permutation),
        cmocka_unit_test(seed_and_epoch_decide),
        cmocka_unit_test(access_is_random),
        cmocka_unit_test(the_order_is_what_it_was),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(sequential_is_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
