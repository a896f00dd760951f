/* SPDX-License-Identifier: MIT
 *
 * Which member of a group computes which samples of a cycle.
 */
#include "base/log.h"
#include "group/member.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The part of a share that whole units do not give. */
struct rest {
    double part;
    int member;
};

static int by_part(const void *a, const void *b)
{
    const struct rest *x = a, *y = b;
    return x->part != y->part ? (x->part < y->part) - (x->part > y->part) : x->member - y->member;
}

static double share_of(const double *shares, int member)
{
    return shares ? shares[member] : 1;
}

static qn_status add_shares(const double *shares, int members, double *sum)
{
    *sum = 0;
    for (int m = 0; m < members; m++) {
        const double share = share_of(shares, m);
        if (!(share >= 0) || !isfinite(share))
            return qn_fail(NULL, QN_ERR_ARGUMENT, "share: that of member %d is no number from 0 on",
                           m);
        *sum += share;
    }
    return *sum > 0 ? QN_OK : qn_fail(NULL, QN_ERR_ARGUMENT, "share: all are 0");
}

/* Units by largest remainder. */
static void give_units(int64_t units, const double *shares, double sum, int members,
                       struct rest *rest, int64_t *counts)
{
    int64_t left = units;
    for (int m = 0; m < members; m++) {
        const double exact = (double)units * (share_of(shares, m) / sum);
        counts[m] = (int64_t)floor(exact);
        rest[m] = (struct rest){exact - floor(exact), m};
        left -= counts[m];
    }
    qsort(rest, (size_t)members, sizeof *rest, by_part);
    for (int i = 0; left > 0 && i < members; i++, left--)
        counts[rest[i].member]++;
}

/* From units to samples, of which the last unit may have fewer. */
static void count_samples(int64_t samples, int64_t unit, int members, int64_t *counts)
{
    int last = 0;
    for (int m = 0; m < members; m++) {
        last = counts[m] ? m : last;
        counts[m] *= unit;
    }
    counts[last] -= samples % unit ? unit - samples % unit : 0;
}

static qn_status check_given(const double *shares, int members, const int64_t *counts)
{
    for (int m = 0; m < members; m++)
        if (!counts[m] && share_of(shares, m) > 0)
            return qn_fail(NULL, QN_ERR_ARGUMENT,
                           "share: nothing of the batch is left for member %d; give it 0, or a "
                           "larger share, or all of them a larger batch",
                           m);
    return QN_OK;
}

qn_status qn_group_deal(int64_t samples, int64_t unit, const double *shares, int members,
                        int64_t *counts)
{
    double sum;
    QN_REQUIRE(NULL, samples > 0 && unit > 0 && members > 0 && members <= QN_MAX_GROUP && counts);
    QN_TRY(add_shares(shares, members, &sum));
    struct rest *rest = malloc((size_t)members * sizeof *rest);
    if (!rest)
        return qn_fail(NULL, QN_ERR_MEMORY, "group: out of host memory");
    give_units(samples / unit + (samples % unit != 0), shares, sum, members, rest, counts);
    free(rest);
    count_samples(samples, unit, members, counts);
    return QN_OK;
}

qn_status qn_group_split(int64_t samples, int64_t unit, const double *shares, int members,
                         int64_t *counts)
{
    QN_TRY(qn_group_deal(samples, unit, shares, members, counts));
    return check_given(shares, members, counts);
}

int64_t qn_member_first(const struct qn_member *member)
{
    int64_t first = 0;
    for (int m = 0; m < member->transport.member; m++)
        first += member->group->counts[m];
    return first;
}
