/* SPDX-License-Identifier: MIT
 *
 * Tokens are chosen as often as their probabilities say, among those that top_k and top_p leave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <quern/generate.h>
#include <string.h>

enum { DRAWS = 40000, MOST = 6 };

/* Draws often: how many of each token. */
static void count_draws(const float *logits, int count, const qn_sampling *sampling, int *drawn)
{
    memset(drawn, 0, MOST * sizeof *drawn);
    for (uint64_t i = 0; i < DRAWS; i++) {
        int32_t token = -1;
        assert_int_equal(qn_sample(&token, logits, count, sampling, i), QN_OK);
        assert_in_range(token, 0, count - 1);
        drawn[token]++;
    }
}

/* Within five standard deviations of the share; none where it is 0. */
static void assert_shares(const int *drawn, const double *share, int count)
{
    for (int i = 0; i < count; i++) {
        const double away = fabs(drawn[i] - share[i] * DRAWS);
        if (!(away <= 5 * sqrt(share[i] * (1 - share[i]) * DRAWS)))
            fail_msg("token %d: %d of %d draws, not %g", i, drawn[i], (int)DRAWS, share[i]);
    }
}

/* log of 1, 2, 3, 4 sixteenths and 6 of them, out of order. */
static const float five[] = {0, 1.0986123f, 1.7917595f, 0.6931472f, 1.3862944f};

static void draws_follow_the_probabilities(void **state)
{
    (void)state;
    static const struct {
        qn_sampling sampling;
        double share[5];
    } cases[] = {
        {{.temperature = 1}, {1 / 16., 3 / 16., 6 / 16., 2 / 16., 4 / 16.}},
        {{.temperature = 1, .seed = 9}, {1 / 16., 3 / 16., 6 / 16., 2 / 16., 4 / 16.}},
        {{.temperature = 0.5}, {1 / 66., 9 / 66., 36 / 66., 4 / 66., 16 / 66.}},
        {{.temperature = 1, .top_k = 1}, {0, 0, 1, 0, 0}},
        {{.temperature = 1, .top_k = 2}, {0, 0, .6, 0, .4}},
        {{.temperature = 1, .top_k = 4}, {0, 3 / 15., 6 / 15., 2 / 15., 4 / 15.}},
        {{.temperature = 1, .top_k = 99}, {1 / 16., 3 / 16., 6 / 16., 2 / 16., 4 / 16.}},
        {{.temperature = 1, .top_p = 1}, {1 / 16., 3 / 16., 6 / 16., 2 / 16., 4 / 16.}},
        {{.temperature = 1, .top_p = 1e-9}, {0, 0, 1, 0, 0}},
        {{.temperature = 1, .top_p = 0.37}, {0, 0, 1, 0, 0}},
        {{.temperature = 1, .top_p = 0.38}, {0, 0, .6, 0, .4}},
        {{.temperature = 1, .top_p = 0.62}, {0, 0, .6, 0, .4}},
        {{.temperature = 1, .top_p = 0.64}, {0, 3 / 13., 6 / 13., 0, 4 / 13.}},
        /* of the two that are left the first has 0.6 */
        {{.temperature = 1, .top_k = 2, .top_p = 0.59}, {0, 0, 1, 0, 0}},
        {{.temperature = 1, .top_k = 2, .top_p = 0.61}, {0, 0, .6, 0, .4}},
    };
    int drawn[MOST];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        count_draws(five, 5, &cases[i].sampling, drawn);
        assert_shares(drawn, cases[i].share, 5);
    }
}

static void zero_takes_the_first_of_the_best(void **state)
{
    (void)state;
    const float logits[] = {-3, 2, 7, 7, -1e30f};
    int32_t token;
    assert_int_equal(qn_sample(&token, logits, 5, NULL, 0), QN_OK);
    assert_int_equal(token, 2);
    assert_int_equal(qn_sample(&token, logits, 1, &(qn_sampling){.temperature = 2}, 0), QN_OK);
    assert_int_equal(token, 0);
}

static void of_equal_tokens_the_first_stay(void **state)
{
    (void)state;
    static const float equal[] = {1, 1, 1, 1, 1, 1};
    int drawn[MOST];
    count_draws(equal, 6, &(qn_sampling){.temperature = 1, .top_k = 2}, drawn);
    assert_shares(drawn, (double[]){.5, .5, 0, 0, 0, 0}, 6);
    count_draws(equal, 6, &(qn_sampling){.temperature = 1, .top_p = 0.45}, drawn);
    assert_shares(drawn, (double[]){1 / 3., 1 / 3., 1 / 3., 0, 0, 0}, 6);
}

/* Many tokens, most of them improbable: what is left out before sorting is not missed. */
static void long_tails_are_cut_where_they_should(void **state)
{
    (void)state;
    enum { COUNT = 5000, TOP = 40 };
    static float logits[COUNT];
    for (int i = 0; i < COUNT; i++)
        logits[i] = i % 113 == 5 ? 9 + 0.01f * (float)i / COUNT : -(float)(i % 7);
    int seen = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        int32_t token;
        const qn_sampling all = {.temperature = 1, .top_p = 0.97};
        assert_int_equal(qn_sample(&token, logits, COUNT, &all, i), QN_OK);
        assert_int_equal(token % 113, 5);
        const qn_sampling few = {.temperature = 1, .top_k = TOP};
        assert_int_equal(qn_sample(&token, logits, COUNT, &few, i), QN_OK);
        assert_int_equal(token % 113, 5);
        assert_true(token > COUNT - (TOP + 1) * 113);
        seen |= token < COUNT - (TOP - 1) * 113;
    }
    assert_true(seen);
}

static void seed_and_number_say_which(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    const qn_sampling one = {.temperature = 1, .seed = 1}, two = {.temperature = 1, .seed = 2};
    int32_t first[COUNT], again, other;
    int apart = 0, runs = 0;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(qn_sample(&first[i], five, 5, &one, (uint64_t)i), QN_OK);
    for (int i = COUNT - 1; i >= 0; i--) {
        assert_int_equal(qn_sample(&again, five, 5, &one, (uint64_t)i), QN_OK);
        assert_int_equal(qn_sample(&other, five, 5, &two, (uint64_t)i), QN_OK);
        assert_int_equal(again, first[i]);
        apart += other != first[i];
        runs += i && first[i] != first[i - 1];
    }
    assert_true(apart > COUNT / 4 && runs > COUNT / 4);
}

static void what_is_out_of_range_is_refused(void **state)
{
    (void)state;
    static const qn_sampling wrong[] = {{.temperature = -1},
                                        {.temperature = NAN},
                                        {.temperature = INFINITY},
                                        {.temperature = 1, .top_k = -1},
                                        {.temperature = 1, .top_p = -0.1},
                                        {.temperature = 1, .top_p = 1.1},
                                        {.temperature = 1, .top_p = NAN}};
    int32_t token;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(qn_sample(&token, five, 5, &wrong[i], 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_sample(&token, five, 0, NULL, 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_sample(&token, NULL, 5, NULL, 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_sample(NULL, five, 5, NULL, 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_sample(&token, (float[]){0, NAN}, 2, NULL, 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_sample(&token, (float[]){0, INFINITY}, 2, NULL, 0), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(zero_takes_the_first_of_the_best),
        cmocka_unit_test(of_equal_tokens_the_first_stay),
        cmocka_unit_test(long_tails_are_cut_where_they_should),
        cmocka_unit_test(seed_and_number_say_which),
        cmocka_unit_test(what_is_out_of_range_is_refused),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
