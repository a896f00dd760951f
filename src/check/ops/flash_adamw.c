/* SPDX-License-Identifier: MIT */
#include "check/moments8.h"

#include <math.h>

extern const struct qn_op qn_op_flash_adamw;
extern const struct qn_check_op qn_check_flash_adamw;

enum { CORRECTION = 4 };

/* --- companding --- */

static double first_value(int code)
{
    const double z = (code - 127) / 127.0;
    return z / (2 - fabs(z));
}

static double first_code(double x)
{
    return 127 + 127 * (2 * x / (1 + fabs(x)));
}

static double second_value(int code)
{
    return code / 255.0 * (code / 255.0);
}

static double second_code(double x)
{
    return 255 * sqrt(x);
}

/* The least number of 8 bits that is not below. */
static double scale(double top)
{
    int exponent;
    const double fraction = frexp(top, &exponent);
    return ldexp(ceil(ldexp(fraction, 8)), exponent - 8);
}

/* --- the update --- */

static double parameter(const struct qn_reference *r, int64_t i)
{
    const double stored = r->in[0][i];
    return r->call->in[0].dtype == QN_BF16
               ? qn_check_corrected(stored, (int)r->state[CORRECTION][i])
               : stored;
}

static void reference(const struct qn_reference *r)
{
    static const struct qn_check_codes codes = {32,          first_value, first_code, second_value,
                                                second_code, scale,       parameter};
    qn_check_moments8(r, &codes);
}

/* --- cases --- */

/* Powers of two, next to which a step is half of one above. */
static const double powers[37] = {1,     -1,  2,   -2,   4,     -4,    0.5, -0.5, 0.25, -0.25,
                                  8,     -8,  16,  -16,  0.125, 32,    1,   -1,   2,    -2,
                                  4,     -4,  0.5, -0.5, 0.25,  -0.25, 8,   -8,   16,   -16,
                                  0.125, -32, 64,  -64,  1,     -1,    2};

#define POWERS                                                                                     \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_BF16, .rank = 1, .dim = {37}, .values = powers          \
    }

static const struct qn_check_case cases[] = {
    {"one chunk", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &qn_check_wide_eps,
     .small = true},
    {"neighbours", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours),
     &qn_check_wide_eps},
    {"other betas", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours),
     &qn_check_other_betas},
    {"small eps", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &qn_check_small_eps},
    {"powers of two",
     {POWERS, QN_CHECK_PARAMETERS(37), QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &qn_check_wide_eps},
    {"every decade",
     {QN_CHECK_STORED(QN_BF16, 37), QN_CHECK_GIVEN(37, qn_check_decades),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &qn_check_forgetful},
    {"gradients of 0",
     {QN_CHECK_STORED(QN_BF16, 37), QN_CHECK_GIVEN(37, qn_check_zeros),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &qn_check_forgetful},
    {"first update", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours),
     &qn_check_wide_eps, .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk),
     &qn_check_wide_eps, .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_STORED_BLOCK(QN_BF16, 1, 1, qn_check_one_element), &qn_check_wide_eps},
    {"f32", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &qn_check_wide_eps, .small = true},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &qn_check_wide_eps,
     .small = true},
    {0},
};

const struct qn_check_op qn_check_flash_adamw = {.op = &qn_op_flash_adamw,
                                                 .cases = cases,
                                                 .reference = reference,
                                                 .refused = qn_check_update_refused,
                                                 .outputs = qn_check_update_outputs,
                                                 .word = qn_check_update_word};
