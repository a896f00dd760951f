/* SPDX-License-Identifier: MIT */
#include "text/pairs.h"

#include <stdbool.h>
#include <stdlib.h>

/* The place of a pair, or the free one where it belongs. */
static struct qn_pair *look(const struct qn_pairs *pairs, int32_t left, int32_t right)
{
    uint64_t hash =
        ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9e3779b97f4a7c15);
    const size_t mask = pairs->places - 1;
    for (size_t at = (size_t)(hash >> 32) & mask;; at = (at + 1) & mask) {
        struct qn_pair *pair = &pairs->place[at];
        if (pair->left < 0 || (pair->left == left && pair->right == right))
            return pair;
    }
}

/* Keeps at least half of the places free. */
static bool widen(struct qn_pairs *pairs)
{
    if (pairs->count * 2 < pairs->places)
        return true;
    struct qn_pairs wider = {.places = pairs->places ? pairs->places * 2 : 64,
                             .count = pairs->count};
    wider.place = calloc(wider.places, sizeof *wider.place);
    if (!wider.place)
        return false;
    for (size_t i = 0; i < wider.places; i++)
        wider.place[i].left = -1;
    for (size_t i = 0; i < pairs->places; i++)
        if (pairs->place[i].left >= 0)
            *look(&wider, pairs->place[i].left, pairs->place[i].right) = pairs->place[i];
    free(pairs->place);
    *pairs = wider;
    return true;
}

struct qn_pair *qn_pairs_add(struct qn_pairs *pairs, int32_t left, int32_t right)
{
    if (!widen(pairs))
        return NULL;
    struct qn_pair *pair = look(pairs, left, right);
    if (pair->left < 0) {
        *pair = (struct qn_pair){.left = left, .right = right};
        pairs->count++;
    }
    return pair;
}

const struct qn_pair *qn_pairs_find(const struct qn_pairs *pairs, int32_t left, int32_t right)
{
    if (!pairs->count)
        return NULL;
    const struct qn_pair *pair = look(pairs, left, right);
    return pair->left < 0 ? NULL : pair;
}

void qn_pairs_free(struct qn_pairs *pairs)
{
    free(pairs->place);
    *pairs = (struct qn_pairs){0};
}
