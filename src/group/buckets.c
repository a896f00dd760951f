/* SPDX-License-Identifier: MIT */
#include "group/buckets.h"

qn_reduce_slice qn_piece_slice(const struct qn_buckets *buckets, const struct qn_piece *piece)
{
    const qn_reduce_slice *slice = &buckets->slices[piece->slice];
    return (qn_reduce_slice){slice->array, slice->first + piece->first, piece->count};
}

/* Slice number i of the order in which they are packed. */
static int in_order(const struct qn_buckets *b, int i, int rest)
{
    const int gradients = b->n_slices - rest;
    return i < gradients ? gradients - 1 - i : i;
}

static int64_t most_pieces(const struct qn_buckets *b, int64_t most)
{
    int64_t pieces = b->n_slices;
    for (int i = 0; i < b->n_slices; i++)
        pieces += b->slices[i].count / most + 1;
    return pieces;
}

/* The bucket that takes what comes next: a new one where the last is full, and for what is complete
 * with the cycle alone. */
static struct qn_bucket *bucket_for(struct qn_buckets *b, bool anew, int64_t most)
{
    struct qn_bucket *last = b->n_buckets ? &b->buckets[b->n_buckets - 1] : NULL;
    if (last && !anew && last->count < most)
        return last;
    b->buckets[b->n_buckets] = (struct qn_bucket){.first_piece = b->n_pieces};
    return &b->buckets[b->n_buckets++];
}

static void pack_slice(struct qn_buckets *b, int slice, bool anew, int64_t most)
{
    int64_t first = 0, left = b->slices[slice].count;
    while (left > 0) {
        struct qn_bucket *bucket = bucket_for(b, anew, most);
        const int64_t room = most - bucket->count, count = left < room ? left : room;
        b->pieces[b->n_pieces++] = (struct qn_piece){slice, first, count};
        bucket->n_pieces++;
        bucket->count += count;
        b->largest = bucket->count > b->largest ? bucket->count : b->largest;
        first += count;
        left -= count;
        anew = false;
    }
}

bool qn_buckets_pack(struct qn_buckets *b, struct qn_arena *arena, int rest, int64_t most)
{
    const size_t room = (size_t)most_pieces(b, most) + 1;
    b->pieces = qn_arena_new(arena, struct qn_piece, room);
    b->buckets = qn_arena_new(arena, struct qn_bucket, room);
    if (!b->pieces || !b->buckets)
        return false;
    for (int i = 0; i < b->n_slices; i++)
        pack_slice(b, in_order(b, i, rest), i == b->n_slices - rest, most);
    return true;
}
