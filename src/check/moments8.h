/* SPDX-License-Identifier: MIT
 *
 * What the checks of optimizers share that keep Adam's moments in 8 bits.
 */
#ifndef QN_CHECK_MOMENTS8_H
#define QN_CHECK_MOMENTS8_H

#include "check/update.h"

/* What codes mean: numbers from -1 to 1 of the first moment, from 0 to 1 of the second. The code of
 * a number is a fraction where it lies between those of two codes. */
struct qn_check_codes {
    int shared; /* elements that share a scale */
    double (*first_value)(int code), (*first_code)(double x);
    double (*second_value)(int code), (*second_code)(double x);
    double (*scale)(double top);                                  /* of moments up to this one */
    double (*parameter)(const struct qn_reference *r, int64_t i); /* before the update */
};

/* What cases share. Codes are drawn at random, so that some second moments are near 0: with an eps
 * of the size of others their steps do not hide those of the rest. */
extern const struct qn_optimizer_attr qn_check_wide_eps, qn_check_small_eps, qn_check_other_betas,
    qn_check_forgetful;               /* without memory the moments are those of the gradient */
extern const double qn_check_zeros[]; /* 37 */
/* 37 of twelve decades; squares that are far below the least share that has a code. */
extern const double qn_check_decades[];

/* AdamW; out[0] becomes the new parameters, not rounded. */
void qn_check_moments8(const struct qn_reference *r, const struct qn_check_codes *codes);

/* Where x lies among the values of codes 0 to 255, which rise; beyond them: the last one. */
double qn_check_code(double (*value)(int code), double x);

#endif
