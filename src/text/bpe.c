/* SPDX-License-Identifier: MIT */
#include "text/bpe.h"
#include "base/log.h"
#include "base/room.h"
#include "io/path.h"
#include "text/alphabet.h"
#include "text/heap.h"

/* A token of a word under way, in a list in both directions. */
struct qn_symbol {
    int32_t id;          /* -1: went into its left neighbour */
    int32_t left, right; /* -1: none */
};

/* Two neighbours that may become one; out of date where they have changed since. */
struct qn_candidate {
    int32_t rank, at, id;
};

/* The longest word: its list and its heap are numbered in int32_t. */
enum { LONGEST = 1 << 28 };

/* --- the heap: the smallest rank first, the leftmost of equal ones --- */

static bool before(const struct qn_candidate *a, const struct qn_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

QN_HEAP(struct qn_candidate, before)

/* --- one word --- */

/* Adds the candidate that begins at a symbol, if there is one. */
static void offer(const struct qn_bpe *bpe, struct qn_bpe_scratch *s, size_t *count, int32_t at)
{
    if (at < 0 || s->symbol[at].right < 0)
        return;
    const struct qn_pair *merge =
        qn_pairs_find(&bpe->merges, s->symbol[at].id, s->symbol[s->symbol[at].right].id);
    if (merge)
        push(s->heap, count, (struct qn_candidate){merge->rank, at, merge->id});
}

/* Whether the neighbours still become the token of the candidate. */
static bool is_current(const struct qn_bpe *bpe, const struct qn_symbol *symbol,
                       const struct qn_candidate *candidate)
{
    const struct qn_symbol *left = &symbol[candidate->at];
    if (left->id < 0 || left->right < 0)
        return false;
    const struct qn_pair *merge = qn_pairs_find(&bpe->merges, left->id, symbol[left->right].id);
    return merge && merge->id == candidate->id;
}

static void join(struct qn_symbol *symbol, int32_t at, int32_t id)
{
    struct qn_symbol *left = &symbol[at], *right = &symbol[left->right];
    left->id = id;
    left->right = right->right;
    right->id = -1;
    if (left->right >= 0)
        symbol[left->right].left = at;
}

static void merge_all(const struct qn_bpe *bpe, struct qn_bpe_scratch *s, int32_t count)
{
    size_t waiting = 0;
    for (int32_t i = 0; i + 1 < count; i++)
        offer(bpe, s, &waiting, i);
    while (waiting) {
        const struct qn_candidate top = pop(s->heap, &waiting);
        if (!is_current(bpe, s->symbol, &top))
            continue;
        join(s->symbol, top.at, top.id);
        offer(bpe, s, &waiting, s->symbol[top.at].left);
        offer(bpe, s, &waiting, top.at);
    }
}

/* The tokens of the single bytes; their number through `count`. */
static qn_status begin(const struct qn_bpe *bpe, struct qn_bpe_scratch *s, const char *word,
                       size_t size, const struct qn_sink *sink, int32_t *count)
{
    int32_t n = 0;
    bool fused = false;
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)word[i];
        const bool known = bpe->byte_id[byte] >= 0;
        if (!known && bpe->unknown < 0)
            return qn_fail(sink->log, QN_ERR_FORMAT,
                           "%s: model.vocab: no token for the byte 0x%02x of the text", sink->path,
                           byte);
        if (!known && fused)
            continue;
        fused = !known && bpe->fuse_unknown;
        s->symbol[n] = (struct qn_symbol){known ? bpe->byte_id[byte] : bpe->unknown, n - 1, n + 1};
        n++;
    }
    s->symbol[n - 1].right = -1;
    *count = n;
    return QN_OK;
}

/* The token that the whole word is; -1: there is none. */
static qn_status whole(const struct qn_vocab *vocab, struct qn_bpe_scratch *s, const char *word,
                       size_t size, const struct qn_sink *sink, int32_t *id)
{
    s->text.count = 0;
    if (!qn_alphabet_write(&s->text, word, size))
        return qn_fail_memory(sink->log, sink->path);
    *id = qn_vocab_id(vocab, s->text.at, s->text.count);
    return QN_OK;
}

void qn_bpe_bytes(struct qn_bpe *bpe, const struct qn_vocab *vocab)
{
    for (int byte = 0; byte < 256; byte++) {
        char utf8[2];
        const uint32_t point = qn_alphabet_point((uint8_t)byte);
        utf8[0] = (char)(point < 0x80 ? point : 0xc0 | point >> 6);
        utf8[1] = (char)(0x80 | (point & 0x3f));
        bpe->byte_id[byte] = qn_vocab_id(vocab, utf8, point < 0x80 ? 1 : 2);
    }
}

qn_status qn_bpe_word(const struct qn_bpe *bpe, const struct qn_vocab *vocab,
                      struct qn_bpe_scratch *scratch, const char *word, size_t size,
                      struct qn_sink *sink)
{
    int32_t count = 0, id = -1;
    if (bpe->ignore_merges)
        QN_TRY(whole(vocab, scratch, word, size, sink, &id));
    if (id >= 0)
        return qn_sink_put(sink, id);
    if (size > LONGEST)
        return qn_fail(sink->log, QN_ERR_FORMAT, "%s: a word of %zu bytes, at most %d can be split",
                       sink->path, size, LONGEST);
    /* every merge takes a symbol away and offers at most two candidates */
    if (!QN_ROOM(scratch->symbol, scratch->room_symbol, size) ||
        !QN_ROOM(scratch->heap, scratch->room_heap, 3 * size))
        return qn_fail_memory(sink->log, sink->path);
    QN_TRY(begin(bpe, scratch, word, size, sink, &count));
    merge_all(bpe, scratch, count);
    for (int32_t at = 0; at >= 0; at = scratch->symbol[at].right)
        QN_TRY(qn_sink_put(sink, scratch->symbol[at].id));
    return QN_OK;
}

void qn_bpe_scratch_free(struct qn_bpe_scratch *scratch)
{
    free(scratch->symbol);
    free(scratch->heap);
    qn_bytes_free(&scratch->text);
    *scratch = (struct qn_bpe_scratch){0};
}
