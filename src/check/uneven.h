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
/* QN_UNEVEN x QN_UNEVEN of them. */
#define QN_UNEVEN_WEIGHTS QN_UNEVEN_EIGHT, QN_UNEVEN_EIGHT, QN_UNEVEN_EIGHT
enum { QN_UNEVEN = 24 };

#endif
