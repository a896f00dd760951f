/* SPDX-License-Identifier: MIT
 *
 * Weights of a convolution whose rows have one number that is the largest by far, at either end.
 */
#ifndef QN_CHECK_UNEVEN_H
#define QN_CHECK_UNEVEN_H

#define QN_UNEVEN_FEW 0.5, -1, 0.25, -0.75, 1, -0.5, 0.75, -0.25, 1.5, -1.5, 0.125
#define QN_UNEVEN_TWO                                                                              \
    64, QN_UNEVEN_FEW, QN_UNEVEN_FEW, -1, /* the next row */ -1, QN_UNEVEN_FEW, QN_UNEVEN_FEW, 64
#define QN_UNEVEN_EIGHT QN_UNEVEN_TWO, QN_UNEVEN_TWO, QN_UNEVEN_TWO, QN_UNEVEN_TWO
/* Channels on either side. */
enum { QN_UNEVEN = 24 };
static const double qn_uneven[QN_UNEVEN * QN_UNEVEN] = {QN_UNEVEN_EIGHT, QN_UNEVEN_EIGHT,
                                                        QN_UNEVEN_EIGHT};
/* The operand of a case. */
#define QN_UNEVEN_WEIGHT                                                                           \
    {                                                                                              \
        QN_ROLE_PARAMETER, .rank = 4, .dim = {QN_UNEVEN, QN_UNEVEN, 1, 1}, .values = qn_uneven     \
    }

#endif
