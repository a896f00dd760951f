/* SPDX-License-Identifier: MIT */
#include "plan/placement/shelf.h"

#include <stdlib.h>

struct key {
    int64_t major, minor;
    int index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->major != y->major)
        return x->major > y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor > y->minor ? -1 : 1;
    return x->index - y->index;
}

static int64_t length_of(const struct qn_storage *s)
{
    return s->end - s->start + 1;
}

static struct key by_size(const struct qn_storage *s)
{
    return (struct key){s->bytes, length_of(s), 0};
}

static struct key by_length(const struct qn_storage *s)
{
    return (struct key){length_of(s), s->bytes, 0};
}

static struct key by_area(const struct qn_storage *s)
{
    return (struct key){s->bytes / 512 * length_of(s), s->bytes, 0};
}

static struct key by_start(const struct qn_storage *s)
{
    return (struct key){-s->start, s->bytes, 0};
}

static struct key (*const orders[QN_ORDERS])(const struct qn_storage *) = {by_size, by_length,
                                                                           by_area, by_start};

bool qn_order_storages(const struct qn_storage *storages, int count, int which, int *order,
                       struct qn_arena *arena)
{
    struct key *keys = qn_arena_new(arena, struct key, (size_t)count + 1);
    if (!keys)
        return false;
    for (int i = 0; i < count; i++) {
        keys[i] = orders[which](&storages[i]);
        keys[i].index = i;
    }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    for (int i = 0; i < count; i++)
        order[i] = keys[i].index;
    return true;
}
