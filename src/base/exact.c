/* SPDX-License-Identifier: MIT */
#include "base/exact.h"

#include <math.h>
#include <stdbool.h>

enum { LEAST = -1074, MANTISSA = 53 }; /* exponent of a double's least bit, and its bits */

static const int64_t LIMB = (int64_t)1 << 32, MOST_WAITING = 1 << 30;

/* Leaves every limb but the last in [0, 2^32): equal sums are equal limbs then. */
static void carry(struct qn_exact *sum)
{
    for (int i = 0; i + 1 < QN_EXACT_LIMBS; i++) {
        const int64_t rest = sum->limb[i] & (LIMB - 1);
        sum->limb[i + 1] += (sum->limb[i] - rest) / LIMB;
        sum->limb[i] = rest;
    }
    sum->waiting = 0;
}

void qn_exact_add(struct qn_exact *sum, double value)
{
    int exponent;
    if (!isfinite(value)) {
        sum->not_finite += value;
        return;
    }
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &exponent), MANTISSA);
    int at = exponent - MANTISSA - LEAST;
    if (at < 0) { /* a subnormal number: its last bits are 0 */
        mantissa >>= -at;
        at = 0;
    }
    const int shift = at % 32;
    const uint64_t low = mantissa << shift, high = shift ? mantissa >> (64 - shift) : 0;
    const int64_t sign = value < 0 ? -1 : 1;
    int64_t *limb = &sum->limb[at / 32];
    limb[0] += sign * (int64_t)(low % (uint64_t)LIMB);
    limb[1] += sign * (int64_t)(low / (uint64_t)LIMB);
    limb[2] += sign * (int64_t)high;
    if (++sum->waiting >= MOST_WAITING)
        carry(sum);
}

void qn_exact_join(struct qn_exact *sum, const struct qn_exact *other)
{
    struct qn_exact more = *other;
    carry(&more);
    carry(sum);
    for (int i = 0; i < QN_EXACT_LIMBS; i++)
        sum->limb[i] += more.limb[i];
    sum->waiting = 1;
    sum->not_finite += more.not_finite;
}

static bool is_negative(const struct qn_exact *carried)
{
    return carried->limb[QN_EXACT_LIMBS - 1] < 0;
}

static void negate(struct qn_exact *sum)
{
    for (int i = 0; i < QN_EXACT_LIMBS; i++)
        sum->limb[i] = -sum->limb[i];
    carry(sum);
}

static uint64_t limb_of(const struct qn_exact *sum, int i)
{
    return i >= 0 ? (uint64_t)sum->limb[i] : 0;
}

/* Of one that is carried and not negative: its first 64 bits, the last of which stands for all that
 * follow, are rounded to 53. */
static double round_off(const struct qn_exact *sum)
{
    int top = QN_EXACT_LIMBS - 1, bits;
    while (top > 0 && !sum->limb[top])
        top--;
    frexp((double)sum->limb[top], &bits);
    const int shift = 32 - bits;
    const uint64_t next = limb_of(sum, top - 2) << shift;
    uint64_t head = (limb_of(sum, top) << 32 | limb_of(sum, top - 1)) << shift;
    bool more = next % (uint64_t)LIMB;
    head |= next / (uint64_t)LIMB;
    for (int i = top - 3; i >= 0; i--)
        more |= sum->limb[i] != 0;
    return ldexp((double)(head | more), 32 * (top - 1) - shift + LEAST);
}

double qn_exact_value(const struct qn_exact *sum)
{
    struct qn_exact carried = *sum;
    if (sum->not_finite != 0)
        return sum->not_finite;
    carry(&carried);
    if (!is_negative(&carried))
        return round_off(&carried);
    negate(&carried);
    return -round_off(&carried);
}

double qn_exact_rest(const struct qn_exact *sum)
{
    struct qn_exact rest = *sum;
    qn_exact_add(&rest, -qn_exact_value(sum));
    return qn_exact_value(&rest);
}
