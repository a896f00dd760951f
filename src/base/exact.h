/* SPDX-License-Identifier: MIT
 *
 * Sums of doubles that are rounded once, when they are read: so they depend neither on the order in
 * which numbers are added nor on how they were dealt out among sums that are joined later. The idea
 * of keeping as many bits as a double may need is Kulisch's; of limbs whose carries wait, Neal's
 * ("Fast exact summation using small and large superaccumulators", arXiv:1505.05571).
 */
#ifndef QN_BASE_EXACT_H
#define QN_BASE_EXACT_H

#include <stdint.h>

/* From the least bit of a double, 2^-1074, to the largest, and room above. */
enum { QN_EXACT_LIMBS = 68 };

/* Zeroed: 0. The sum of limb[i] 2^(32 i - 1074), as long as all numbers are finite. */
struct qn_exact {
    int64_t limb[QN_EXACT_LIMBS];
    int64_t waiting;   /* additions whose carries are still in their limbs */
    double not_finite; /* the sum of those that are not */
};

void qn_exact_add(struct qn_exact *sum, double value);
void qn_exact_join(struct qn_exact *sum, const struct qn_exact *other);
/* The nearest double. */
double qn_exact_value(const struct qn_exact *sum);
/* The nearest double to what that leaves out. */
double qn_exact_rest(const struct qn_exact *sum);

#endif
