/* SPDX-License-Identifier: MIT
 *
 * Which chunks of parameters each member of a group updates. Blocks are cut from the end, where
 * gradients are complete first, into buckets of some numbers, and every bucket into a range for
 * each member: so that members have equal shares of what is exchanged at any time. A parameter that
 * the optimizer wants whole is a bucket of one owner.
 */
#include "base/log.h"
#include "plan/lowering/persist.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of a bucket, at least; and chunks of each member in it. */
enum { BUCKET_NUMBERS = 1 << 18, CHUNKS_EACH = 4 };

static int64_t bucket_numbers(int members)
{
    const int64_t each = (int64_t)members * CHUNKS_EACH * QN_CHUNK;
    return each > BUCKET_NUMBERS ? each : BUCKET_NUMBERS;
}

/* A block that is being divided. */
struct division {
    struct qn_persist *persist;
    int number;
    const struct qn_block *block;
    const struct qn_chunk *table;
};

/* --- ranges --- */

/* Makes room for the ranges of a block. */
static bool room_for(const struct qn_lowering *how, struct qn_persist *persist,
                     const struct qn_block *block)
{
    struct qn_shard *shard = &persist->shard;
    const int64_t more = block->optimizer->whole
                             ? persist->n_parameters
                             : (block->count / bucket_numbers(shard->members) + 1) * shard->members;
    struct qn_range *all =
        qn_arena_new(how->arena, struct qn_range, (size_t)shard->n_ranges + (size_t)more);
    if (all && shard->n_ranges)
        memcpy(all, shard->ranges, (size_t)shard->n_ranges * sizeof *all);
    shard->ranges = all;
    return all;
}

static int parameter_of(const struct division *d, int chunk)
{
    int p = 0;
    for (; p + 1 < d->persist->n_parameters; p++) {
        const struct qn_parameter *parameter = &d->persist->parameters[p];
        if (parameter->block == d->number && chunk < parameter->first_chunk + parameter->chunks)
            break;
    }
    return p;
}

static int64_t element_of(const struct division *d, int row)
{
    return row < d->block->chunks ? d->table[row].first : d->block->count;
}

/* The rows of the block's table from `first` to before `end`, for member `owner`. */
static void add_range(const struct division *d, int owner, int first, int end)
{
    struct qn_shard *shard = &d->persist->shard;
    const int64_t element = element_of(d, first);
    shard->ranges[shard->n_ranges++] =
        (struct qn_range){.block = d->number,
                          .owner = owner,
                          .bucket = shard->n_buckets,
                          .parameter = parameter_of(d, d->block->first_chunk + first),
                          .first_chunk = d->block->first_chunk + first,
                          .chunks = end - first,
                          .first = element,
                          .count = element_of(d, end) - element};
}

/* The rows from `first` to before `end`, which have so many numbers, for all members: a row is that
 * member's in whose part of the numbers its middle lies. */
static void add_bucket(const struct division *d, int first, int end, int64_t numbers)
{
    struct qn_shard *shard = &d->persist->shard;
    int64_t before = 0;
    for (int m = 0, row = first; m < shard->members; m++) {
        const int64_t upto = numbers * (m + 1) / shard->members;
        const int begin = row;
        while (row < end && before + d->table[row].count / 2 < upto)
            before += d->table[row++].count;
        if (row > begin)
            add_range(d, m, begin, row);
    }
    shard->n_buckets++;
}

static void cut_chunks(const struct division *d)
{
    const int64_t most = bucket_numbers(d->persist->shard.members);
    for (int end = d->block->chunks, first; end > 0; end = first) {
        int64_t numbers = 0;
        for (first = end; first > 0 && numbers < most;)
            numbers += d->table[--first].count;
        add_bucket(d, first, end, numbers);
    }
}

/* The member that has the fewest elements so far. */
static int least_loaded(const struct qn_shard *shard, int64_t *loads)
{
    int least = 0;
    memset(loads, 0, (size_t)shard->members * sizeof *loads);
    for (int r = 0; r < shard->n_ranges; r++)
        loads[shard->ranges[r].owner] += shard->ranges[r].count;
    for (int m = 1; m < shard->members; m++)
        least = loads[m] < loads[least] ? m : least;
    return least;
}

static void give_whole(const struct division *d, int64_t *loads)
{
    for (int p = d->persist->n_parameters - 1; p >= 0; p--) {
        const struct qn_parameter *parameter = &d->persist->parameters[p];
        const int first = parameter->first_chunk - d->block->first_chunk;
        if (parameter->block != d->number)
            continue;
        add_range(d, least_loaded(&d->persist->shard, loads), first, first + parameter->chunks);
        d->persist->shard.n_buckets++;
    }
}

/* --- what is this member's --- */

static bool is_own_of(const struct qn_persist *persist, const struct qn_range *range, int block)
{
    return range->block == block && qn_range_is_own(&persist->shard, range);
}

/* A member that has nothing of a block keeps the place of one parameter: values have a size. */
static void keep_own(const struct qn_lowering *how, struct qn_persist *persist, int block,
                     struct qn_kept *kept)
{
    *kept = (struct qn_kept){0};
    for (int r = 0; r < persist->shard.n_ranges; r++) {
        struct qn_range *range = &persist->shard.ranges[r];
        if (!is_own_of(persist, range, block))
            continue;
        range->kept = kept->count;
        range->kept_chunk = kept->chunks;
        kept->count += range->count;
        kept->chunks += range->chunks;
    }
    if (!kept->chunks)
        *kept = (struct qn_kept){how->facts->alignment, 1};
}

qn_status qn_shard_block(const struct qn_lowering *how, struct qn_persist *persist, int block,
                         struct qn_kept *kept)
{
    const struct qn_block *of = &persist->blocks[block];
    struct qn_shard *shard = &persist->shard;
    *kept = (struct qn_kept){of->count, of->chunks};
    if (shard->members < 2)
        return QN_OK;
    struct qn_chunk *table = qn_arena_new(how->arena, struct qn_chunk, (size_t)of->chunks);
    int64_t *loads = qn_arena_new(how->arena, int64_t, (size_t)shard->members);
    if (!table || !loads || !room_for(how, persist, of))
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    qn_block_rows(persist, of, table);
    const struct division d = {persist, block, of, table};
    if (of->optimizer->whole)
        give_whole(&d, loads);
    else
        cut_chunks(&d);
    keep_own(how, persist, block, kept);
    return QN_OK;
}

/* --- states --- */

struct qn_state_part qn_range_part(const struct qn_persist *persist, const struct qn_range *range,
                                   int slot)
{
    const struct qn_block *block = &persist->blocks[range->block];
    const int each = slot < 0 ? 0 : block->optimizer->state[slot].per_chunk;
    if (slot >= 0 && block->optimizer->whole)
        return persist->parameters[range->parameter].part[slot];
    if (each)
        return (struct qn_state_part){(int64_t)(range->first_chunk - block->first_chunk) * each,
                                      (int64_t)range->chunks * each};
    return (struct qn_state_part){range->first, range->count};
}

/* Of optimizers that want whole parameters: one range's behind the other's. */
static void place_whole(struct qn_persist *persist, int block, struct qn_slots *slots)
{
    for (int s = 0; s < QN_MAX_STATE; s++) {
        int64_t count = 0;
        for (int r = 0; r < persist->shard.n_ranges; r++) {
            struct qn_range *range = &persist->shard.ranges[r];
            if (!is_own_of(persist, range, block))
                continue;
            range->kept_state[s] = count;
            count += qn_range_part(persist, range, s).count;
        }
        slots->count[s] = slots->count[s] && !count ? 1 : count;
    }
}

static void place_elements(struct qn_persist *persist, int block)
{
    const struct qn_op *optimizer = persist->blocks[block].optimizer;
    for (int r = 0; r < persist->shard.n_ranges; r++) {
        struct qn_range *range = &persist->shard.ranges[r];
        for (int s = 0; is_own_of(persist, range, block) && s < QN_MAX_STATE; s++) {
            const int each = optimizer->state[s].per_chunk;
            range->kept_state[s] = each ? (int64_t)range->kept_chunk * each : range->kept;
        }
    }
}

void qn_shard_states(struct qn_persist *persist, int block, struct qn_slots *slots)
{
    if (persist->shard.members < 2)
        return;
    if (persist->blocks[block].optimizer->whole)
        place_whole(persist, block, slots);
    else
        place_elements(persist, block);
}

/* --- all blocks --- */

struct bucket {
    int number, parameter; /* the earliest that it has numbers of */
};

/* Gradients are complete from the last parameter to the first. */
static int by_completion(const void *a, const void *b)
{
    const struct bucket *x = a, *y = b;
    return x->parameter != y->parameter ? y->parameter - x->parameter : x->number - y->number;
}

static int by_bucket(const void *a, const void *b)
{
    const struct qn_range *x = a, *y = b;
    return x->bucket != y->bucket ? x->bucket - y->bucket : x->first_chunk - y->first_chunk;
}

qn_status qn_shard_order(const struct qn_lowering *how, struct qn_persist *persist)
{
    struct qn_shard *shard = &persist->shard;
    struct bucket *buckets = qn_arena_new(how->arena, struct bucket, (size_t)shard->n_buckets + 1);
    int *place = qn_arena_new(how->arena, int, (size_t)shard->n_buckets + 1);
    if (!buckets || !place)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    for (int r = shard->n_ranges - 1; r >= 0; r--)
        buckets[shard->ranges[r].bucket] =
            (struct bucket){shard->ranges[r].bucket, shard->ranges[r].parameter};
    qsort(buckets, (size_t)shard->n_buckets, sizeof *buckets, by_completion);
    for (int b = 0; b < shard->n_buckets; b++)
        place[buckets[b].number] = b;
    for (int r = 0; r < shard->n_ranges; r++)
        shard->ranges[r].bucket = place[shard->ranges[r].bucket];
    if (shard->n_ranges)
        qsort(shard->ranges, (size_t)shard->n_ranges, sizeof *shard->ranges, by_bucket);
    return QN_OK;
}

/* --- the table --- */

int qn_shard_table(const struct qn_persist *persist, const struct qn_block *block,
                   struct qn_chunk *table)
{
    int rows = 0;
    for (int r = 0; r < persist->shard.n_ranges; r++) {
        const struct qn_range *range = &persist->shard.ranges[r];
        if (!is_own_of(persist, range, (int)(block - persist->blocks)))
            continue;
        const struct qn_parameter *parameter = &persist->parameters[range->parameter];
        for (int c = range->first_chunk; c < range->first_chunk + range->chunks; c++, rows++) {
            while (parameter->block != range->block ||
                   c >= parameter->first_chunk + parameter->chunks)
                parameter++;
            table[range->kept_chunk + c - range->first_chunk] = qn_chunk_row(
                parameter, c - parameter->first_chunk, parameter->first - range->first);
        }
    }
    return rows;
}
