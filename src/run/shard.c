/* SPDX-License-Identifier: MIT
 *
 * Masters, averages and states of which this member has its own ranges alone: reading and writing
 * them as if it had all.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <string.h>

/* What of which block a value is. */
struct shared {
    int root;            /* value of the block's array */
    int block;           /* -1: each member has all of it */
    int slot;            /* -1: masters or averages */
    int64_t size, first; /* bytes of an element; elements before what was asked for */
};

static int slot_of(const struct qn_block *block, int root)
{
    for (int s = 0; s < QN_MAX_STATE; s++)
        if (block->state[s] == root)
            return s;
    return -1;
}

static bool is_master(const struct qn_block *block, int root)
{
    return block->parameters == root && block->parameters != block->working;
}

static struct shared find_shared(const struct qn_trainer *trainer, int value, int64_t offset_bytes)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_value *of = &persist->values[value];
    struct shared found = {.root = of->block >= 0 ? of->block : value, .block = -1, .slot = -1};
    for (int b = 0; persist->shard.members && b < persist->n_blocks; b++) {
        const struct qn_block *block = &persist->blocks[b];
        const int slot = slot_of(block, found.root);
        if (slot < 0 && block->average != found.root && !is_master(block, found.root))
            continue;
        found.block = b;
        found.slot = slot;
        found.size = qn_dtype_size(of->operand.dtype);
        found.first = ((of->block >= 0 ? of->block_offset : 0) + offset_bytes) / found.size;
    }
    return found;
}

/* Elements of a range among the `count` that were asked for. */
struct piece {
    int owner;
    int64_t kept; /* if it is this member's own: where they are in its array */
    int64_t at, count;
};

/* False: the range has none of them. */
static bool find_piece(const struct qn_persist *persist, const struct shared *shared,
                       const struct qn_range *range, int64_t count, struct piece *piece)
{
    if (range->block != shared->block)
        return false;
    const struct qn_state_part part = qn_range_part(persist, range, shared->slot);
    const int64_t asked_end = shared->first + count, end = part.first + part.count;
    const int64_t from = part.first > shared->first ? part.first : shared->first;
    const int64_t to = end < asked_end ? end : asked_end;
    const int64_t kept = shared->slot < 0 ? range->kept : range->kept_state[shared->slot];
    *piece =
        (struct piece){range->owner, kept + from - part.first, from - shared->first, to - from};
    return piece->count > 0;
}

qn_status qn_shard_write(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                         const void *host, int64_t bytes)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct shared s = find_shared(trainer, value, offset_bytes);
    struct piece piece;
    if (s.block < 0)
        return qn_trainer_write_value(trainer, value, offset_bytes, host, bytes);
    for (int r = 0; r < persist->shard.n_ranges; r++)
        if (find_piece(persist, &s, &persist->shard.ranges[r], bytes / s.size, &piece) &&
            piece.owner == persist->shard.member)
            QN_TRY(qn_trainer_write_value(trainer, s.root, piece.kept * s.size,
                                          (const char *)host + piece.at * s.size,
                                          piece.count * s.size));
    return QN_OK;
}

static qn_status read_piece(struct qn_trainer *trainer, const struct shared *s,
                            const struct piece *piece, char *host)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_lender *lender = trainer->lender;
    const int64_t bytes = piece->count * s->size;
    if (piece->owner == persist->shard.member)
        return qn_trainer_read_value(trainer, s->root, piece->kept * s->size, host, bytes);
    if (lender)
        return lender->read(lender->user, piece->owner, s->root, (s->first + piece->at) * s->size,
                            host, bytes);
    if (is_master(&persist->blocks[s->block], s->root))
        return qn_trainer_read_rounded(trainer, persist->blocks[s->block].working,
                                       s->first + piece->at, (float *)host, piece->count);
    if (s->slot >= 0 && s->slot == qn_block_correction(&persist->blocks[s->block])) {
        const struct qn_op *optimizer = persist->blocks[s->block].optimizer;
        memset(host, (int)optimizer->state[s->slot].initial, (size_t)bytes);
        return QN_OK;
    }
    return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                   "%s: member %d of the group has it: qn_group_save",
                   persist->values[s->root].name, piece->owner);
}

qn_status qn_shard_read(struct qn_trainer *trainer, int value, int64_t offset_bytes, void *host,
                        int64_t bytes)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct shared s = find_shared(trainer, value, offset_bytes);
    struct piece piece;
    if (s.block < 0)
        return qn_trainer_read_value(trainer, value, offset_bytes, host, bytes);
    for (int r = 0; r < persist->shard.n_ranges; r++)
        if (find_piece(persist, &s, &persist->shard.ranges[r], bytes / s.size, &piece))
            QN_TRY(read_piece(trainer, &s, &piece, (char *)host + piece.at * s.size));
    return QN_OK;
}
