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

static const struct qn_check_case cases[] = {
    {"one chunk", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &qn_check_wide_eps, .small = true},
    {"neighbours", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &qn_check_wide_eps},
    {"other betas", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &qn_check_other_betas},
    {"small eps", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &qn_check_small_eps},
    {"every decade",
     {QN_CHECK_PARAMETERS(37), QN_CHECK_GIVEN(37, qn_check_decades),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &qn_check_forgetful},
    {"gradients of 0",
     {QN_CHECK_PARAMETERS(37), QN_CHECK_GIVEN(37, qn_check_zeros),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &qn_check_forgetful},
    {"first update", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &qn_check_wide_eps,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_BLOCK(37, 1, qn_check_one_chunk), &qn_check_wide_eps,
     .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_BLOCK(1, 1, qn_check_one_element), &qn_check_wide_eps},
    {"bf16", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &qn_check_wide_eps},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &qn_check_wide_eps,
     .small = true},
    {0},
};

const struct qn_check_op qn_check_adamw8 = {.op = &qn_op_adamw8,
                                            .cases = cases,
                                            .reference = reference,
                                            .refused = qn_check_update_refused,
                                            .outputs = qn_check_update_outputs,
                                            .word = qn_check_update_word};
