/* SPDX-License-Identifier: MIT
 *
 * Choosing a token by the logits of all.
 */
#include "base/random.h"

#include <math.h>
#include <quern/generate.h>
#include <stdlib.h>

/* A token that may be chosen; weight: exp((logit - the largest) / temperature). */
struct candidate {
    double weight;
    int32_t token;
};

/* The most probable first, of equal ones the first. */
static int by_weight(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return (a->token > b->token) - (a->token < b->token);
}

static int32_t largest(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

static double sum_of(const struct candidate *list, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += list[i].weight;
    return sum;
}

/* Puts the `k` first by by_weight() in front, in any order: Hoare's selection. */
static void select_first(struct candidate *list, int64_t count, int64_t k)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const struct candidate pivot = list[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (by_weight(&list[i], &pivot) < 0)
                i++;
            while (by_weight(&list[j], &pivot) > 0)
                j--;
            if (i <= j) {
                const struct candidate kept = list[i];
                list[i++] = list[j];
                list[j--] = kept;
            }
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            return;
    }
}

/* Leaves out the least probable, which have less than 1 - share together even if all of them were
 * as probable as the limit: no need to sort them. */
static int64_t drop_rare(struct candidate *list, int64_t count, double all, double share)
{
    const double limit = (1 - share) * all / (double)count;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (list[i].weight >= limit)
            list[kept++] = list[i];
    return kept;
}

/* The first that have `share` of the sum together, sorted: gives how many. */
static int64_t nucleus(struct candidate *list, int64_t count, double share)
{
    const double all = sum_of(list, count);
    double sum = 0;
    count = drop_rare(list, count, all, share);
    qsort(list, (size_t)count, sizeof *list, by_weight);
    for (int64_t i = 0; i < count; i++)
        if ((sum += list[i].weight) >= share * all)
            return i + 1;
    return count;
}

static int32_t draw(const struct candidate *list, int64_t count, double uniform)
{
    double left = uniform * sum_of(list, count);
    int64_t i = 0;
    while (i + 1 < count && left >= list[i].weight)
        left -= list[i++].weight;
    return list[i].token;
}

static bool usable(const float *logits, int64_t count, const qn_sampling *s)
{
    bool finite = logits && count >= 1 && count <= INT32_MAX;
    for (int64_t i = 0; finite && i < count; i++)
        finite = isfinite(logits[i]);
    return finite && s->temperature >= 0 && isfinite(s->temperature) && s->top_k >= 0 &&
           s->top_p >= 0 && s->top_p <= 1;
}

qn_status qn_sample(int32_t *token, const float *logits, int64_t count, const qn_sampling *sampling,
                    uint64_t number)
{
    static const uint64_t STREAM = 0x746f6b656e; /* of random numbers, apart from others of the
                                                     same seed */
    const qn_sampling none = {0}, *s = sampling ? sampling : &none;
    if (!token || !usable(logits, count, s))
        return QN_ERR_ARGUMENT;
    const int32_t best = largest(logits, count);
    *token = best;
    if (s->temperature == 0)
        return QN_OK;
    struct candidate *list = malloc((size_t)count * sizeof *list);
    if (!list)
        return QN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        list[i] = (struct candidate){
            exp(((double)logits[i] - (double)logits[best]) / s->temperature), (int32_t)i};
    if (s->top_k && s->top_k < count) {
        select_first(list, count, s->top_k);
        count = s->top_k;
        qsort(list, (size_t)count, sizeof *list, by_weight);
    }
    if (s->top_p > 0 && s->top_p < 1)
        count = nucleus(list, count, s->top_p);
    *token = draw(list, count, qn_random_uniform(s->seed, STREAM, number));
    free(list);
    return QN_OK;
}
