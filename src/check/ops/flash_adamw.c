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

/* Codes are drawn at random, so that some second moments are near 0: with an eps of the size of
 * others their steps do not hide those of the rest. */
static const struct qn_optimizer_attr usual = {.beta1 = 0.9, .beta2 = 0.999, .eps = 0.125};
static const struct qn_optimizer_attr small_eps = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const struct qn_optimizer_attr unusual = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.125};
/* Without memory the moments are those of the gradient. */
static const struct qn_optimizer_attr forgetful = {.beta1 = 0, .beta2 = 0, .eps = 0.125};

static const double zeros[37];
/* Twelve decades; squares that are far below the least share that has a code. */
static const double decades[37] = {
    1,       -0.997,  0.99,   0.5,   -0.25,   0.101,  0.0999,  -0.05, 0.0101, 9.9e-3,
    -5e-3,   1.01e-3, 9.9e-4, -5e-4, 1.01e-4, 9.9e-5, -5e-5,   2e-5,  1.2e-5, 9.9e-6,
    -3.3e-6, 1.1e-6,  9e-7,   -7e-7, 5e-7,    3e-7,   -2.9e-7, 2e-7,  1e-7,   -1e-8,
    1e-9,    -1e-10,  1e-11,  1e-12, 0,       -0.0,   0.7};
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
    {"one chunk", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &usual, .small = true},
    {"neighbours", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &usual},
    {"other betas", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &unusual},
    {"small eps", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &small_eps},
    {"powers of two",
     {POWERS, QN_CHECK_PARAMETERS(37), QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &usual},
    {"every decade",
     {QN_CHECK_STORED(QN_BF16, 37), QN_CHECK_GIVEN(37, decades),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &forgetful},
    {"gradients of 0",
     {QN_CHECK_STORED(QN_BF16, 37), QN_CHECK_GIVEN(37, zeros),
      QN_CHECK_TABLE(1, qn_check_one_chunk)},
     &forgetful},
    {"first update", QN_CHECK_STORED_BLOCK(QN_BF16, 4437, 3, qn_check_neighbours), &usual,
     .control = &qn_check_first_update},
    {"skipped update", QN_CHECK_STORED_BLOCK(QN_BF16, 37, 1, qn_check_one_chunk), &usual,
     .control = &qn_check_skipped_update, .small = true},
    {"one element", QN_CHECK_STORED_BLOCK(QN_BF16, 1, 1, qn_check_one_element), &usual},
    {"f32", QN_CHECK_BLOCK(4437, 3, qn_check_neighbours), &usual, .small = true},
    {"f16", QN_CHECK_STORED_BLOCK(QN_F16, 37, 1, qn_check_one_chunk), &usual, .small = true},
    {0},
};

const struct qn_check_op qn_check_flash_adamw = {.op = &qn_op_flash_adamw,
                                                 .cases = cases,
                                                 .reference = reference,
                                                 .refused = qn_check_update_refused,
                                                 .outputs = qn_check_update_outputs};
