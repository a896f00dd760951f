/* SPDX-License-Identifier: MIT */
#include "check/moments8.h"

#include <math.h>

extern const struct qn_op qn_op_adamw8;
extern const struct qn_check_op qn_check_adamw8;

/* --- the dynamic map --- */

/* The positive numbers below 1 in rising order: 7 decades, the last one up to 1, of twice as many
 * equal parts each as the one before it has; their middles. */
static double magnitude(int number, int parts)
{
    for (int decade = -6; decade <= 0; decade++, parts *= 2) {
        if (number < parts)
            return pow(10, decade) * (0.1 + 0.9 * (number + 0.5) / parts);
        number -= parts;
    }
    return 1;
}

static double first_value(int code)
{
    return code == 127 ? 0 : code > 127 ? magnitude(code - 128, 1) : -magnitude(126 - code, 1);
}

static double second_value(int code)
{
    return code == 0 ? 0 : magnitude(code - 1, 2);
}

static double first_code(double x)
{
    return qn_check_code(first_value, x);
}

static double second_code(double x)
{
    return qn_check_code(second_value, x);
}

/* --- the update --- */

static double scale(double top)
{
    return top;
}

static double parameter(const struct qn_reference *r, int64_t i)
{
    return r->in[0][i];
}

static void reference(const struct qn_reference *r)
{
    static const struct qn_check_codes codes = {256,         first_value, first_code, second_value,
                                                second_code, scale,       parameter};
    qn_check_moments8(r, &codes);
}

/* --- cases --- */

/* Codes are drawn at random, so that some second moments are near 0: with an eps of the size of
 * others their steps do not hide those of the rest. */
static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 0.125};
static const struct qn_optimizer_attr small_eps = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};
/* Without memory the moments are those of the gradient. */
static const struct qn_optimizer_attr forgetful = {.beta1 = 0, .beta2 = 0, .eps = 0.125};

static const double zeros[37];
/* Twelve decades; squares that are far below 1e-7 of the largest. */
static const double decades[37] = {
    1,       -0.997,  0.99,   0.5,   -0.25,   0.101,  0.0999,  -0.05, 0.0101, 9.9e-3,
    -5e-3,   1.01e-3, 9.9e-4, -5e-4, 1.01e-4, 9.9e-5, -5e-5,   2e-5,  1.2e-5, 9.9e-6,
    -3.3e-6, 1.1e-6,  9e-7,   -7e-7, 5e-7,    3e-7,   -2.9e-7, 2e-7,  1e-7,   -1e-8,
    1e-9,    -1e-10,  1e-11,  1e-12, 0,       -0.0,   0.7};

static const struct qn_check_case cases[] = {
    {"one chunk", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual, .small = true},
    {"neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual},
    {"other betas", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &unusual},
    {"small eps", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &small_eps},
    {"every decade",
     {QN_CHECK_PARAMETERS(37), QN_CHECK_GIVEN(37, decades), QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &forgetful},
    {"gradients of 0",
     {QN_CHECK_PARAMETERS(37), QN_CHECK_GIVEN(37, zeros), QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &forgetful},
    {"first update", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &usual},
    {"bf16", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &usual},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &usual, .small = true},
    {0},
};

const struct qn_check_op qn_check_adamw8 = {.op = &qn_op_adamw8,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = qn_check_update_refused,
                                            .outputs = qn_check_update_outputs};
