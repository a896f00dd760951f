/* SPDX-License-Identifier: MIT */
#include "group/buckets.h"

qn_reduce_slice qn_piece_slice(const struct qn_buckets *buckets, const struct qn_piece *piece,
                               int64_t before, int64_t first, int64_t count, int64_t *at)
{
    const qn_reduce_slice *slice = &buckets->slices[piece->slice];
    const int64_t from = first > before ? first : before;
    const int64_t end = before + piece->count, asked_end = first + count;
    const int64_t to = end < asked_end ? end : asked_end;
    *at = from - first;
    return (qn_reduce_slice){slice->array, slice->first + piece->first + from - before,
                             to > from ? to - from : 0};
}

/* --- of a size --- */

/* Slice number i of the order in which they are packed. */
static int in_order(const struct qn_buckets *b, int i, int rest)
{
    const int gradients = b->n_slices - rest;
    return i < gradients ? gradients - 1 - i : i;
}

static void add_bucket(struct qn_buckets *b, bool shared)
{
    int64_t *part = b->parts + (int64_t)b->n_buckets * (b->members + 1);
    b->buckets[b->n_buckets++] =
        (struct qn_bucket){.first_piece = b->n_pieces, .part = part, .shared = shared};
}

static void add_piece(struct qn_buckets *b, int slice, int64_t first, int64_t count)
{
    struct qn_bucket *bucket = &b->buckets[b->n_buckets - 1];
    b->pieces[b->n_pieces++] = (struct qn_piece){slice, first, count};
    bucket->n_pieces++;
    bucket->count += count;
    b->largest = bucket->count > b->largest ? bucket->count : b->largest;
}

/* Into the last bucket, as far as there is room, and new ones; `anew`: into new ones alone. */
static void pack_slice(struct qn_buckets *b, int slice, bool anew, int64_t most)
{
    const int64_t all = b->slices[slice].count;
    for (int64_t first = 0, count; first < all; first += count) {
        if (anew || !b->n_buckets || b->buckets[b->n_buckets - 1].count >= most)
            add_bucket(b, false);
        const int64_t room = most - b->buckets[b->n_buckets - 1].count, left = all - first;
        count = left < room ? left : room;
        add_piece(b, slice, first, count);
        anew = false;
    }
}

static void divide(const struct qn_buckets *b, struct qn_bucket *bucket)
{
    for (int m = 0; m <= b->members; m++)
        bucket->part[m] =
            bucket->count / b->members * m + bucket->count % b->members * m / b->members;
}

/* --- of the ranges of a shard --- */

/* The numbers of parameter p in a range. */
static void find_part(const struct qn_persist *persist, const struct qn_range *range, int p,
                      int64_t *first, int64_t *count)
{
    const struct qn_parameter *parameter = &persist->parameters[p];
    const int64_t begin = range->first_chunk - parameter->first_chunk;
    const int64_t all = qn_operand_count(&parameter->node->leaf);
    const int64_t end = (begin + range->chunks) * QN_CHUNK;
    *first = begin > 0 ? begin * QN_CHUNK : 0;
    *count = (end < all ? end : all) - *first;
}

/* What a range has of a slice, in pieces of buckets of its owner alone if it is one that is not cut
 * by members. */
static void pack_part(struct qn_buckets *b, const struct qn_range *range, int slice, int64_t first,
                      int64_t count, int64_t most)
{
    for (int64_t done = 0, size; done < count; done += size) {
        struct qn_bucket *last = &b->buckets[b->n_buckets - 1];
        if (most && last->count >= most) {
            add_bucket(b, true);
            last++;
        }
        size = most && most - last->count < count - done ? most - last->count : count - done;
        add_piece(b, slice, first + done, size);
        for (int m = range->owner + 1; m <= b->members; m++)
            last->part[m] = last->count;
    }
}

/* All pieces of a range, in the last bucket, or of at most `most` numbers. */
static void pack_range(struct qn_buckets *b, const struct qn_persist *persist,
                       const struct qn_range *range, int64_t most)
{
    int slice = -1;
    for (int p = 0; p < persist->n_parameters; p++) {
        int64_t first, count;
        slice += persist->parameters[p].trainable;
        if (persist->parameters[p].block != range->block)
            continue;
        find_part(persist, range, p, &first, &count);
        pack_part(b, range, slice, first, count, most);
    }
}

static void pack_shard(struct qn_buckets *b, const struct qn_persist *persist, int64_t most)
{
    const struct qn_shard *shard = &persist->shard;
    for (int r = 0; r < shard->n_ranges; r++) {
        const struct qn_range *range = &shard->ranges[r];
        if (!r || range->bucket != range[-1].bucket)
            add_bucket(b, true);
        pack_range(b, persist, range, persist->blocks[range->block].optimizer->whole ? most : 0);
    }
}

/* --- both --- */

/* Buckets that there may be: those of the shard, and one for each slice and each `most` numbers. */
static size_t most_buckets(const struct qn_buckets *b, const struct qn_persist *persist,
                           int64_t most)
{
    size_t buckets = (size_t)persist->shard.n_buckets + 1;
    for (int i = 0; i < b->n_slices; i++)
        buckets += (size_t)(b->slices[i].count / most) + 1;
    return buckets;
}

/* A slice is cut where a bucket or a range begins. */
static bool open_rooms(struct qn_buckets *b, struct qn_arena *arena,
                       const struct qn_persist *persist, int64_t most)
{
    const size_t buckets = most_buckets(b, persist, most);
    const size_t pieces = buckets + (size_t)b->n_slices + (size_t)persist->shard.n_ranges;
    b->pieces = qn_arena_new(arena, struct qn_piece, pieces);
    b->buckets = qn_arena_new(arena, struct qn_bucket, buckets);
    b->parts = qn_arena_new(arena, int64_t, buckets * ((size_t)b->members + 1));
    return b->pieces && b->buckets && b->parts;
}

bool qn_buckets_pack(struct qn_buckets *b, struct qn_arena *arena, const struct qn_persist *persist,
                     int rest, int64_t most)
{
    const int gradients = b->n_slices - rest;
    if (!open_rooms(b, arena, persist, most))
        return false;
    if (persist->shard.members)
        pack_shard(b, persist, most);
    for (int i = persist->shard.members ? gradients : 0; i < b->n_slices; i++)
        pack_slice(b, in_order(b, i, rest), i == gradients, most);
    for (int k = 0; k < b->n_buckets; k++)
        if (!b->buckets[k].shared)
            divide(b, &b->buckets[k]);
    return true;
}
