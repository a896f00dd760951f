/* SPDX-License-Identifier: MIT
 *
 * Byte-pair encoding learned from the words of a text (Sennrich, Haddow, Birch 2016): pairs of
 * neighbours wait in a heap, the most frequent one first, each with the words in which it stands.
 * The order of equally frequent pairs and the bookkeeping are those of the tokenizers package, so
 * that the merges are the same.
 */
#include "base/log.h"
#include "base/room.h"
#include "io/path.h"
#include "text/bytes.h"
#include "text/heap.h"
#include "text/pairs.h"
#include "text/train.h"

/* A pair, how frequent it was when it came into the heap, and the words in which it stands. */
struct waiting {
    int64_t count;
    int32_t left, right;
    uint32_t *word;
    size_t n_words, room;
};

struct learning {
    const struct qn_counted *counted;
    struct qn_learned *learned;
    int32_t *symbol;  /* ids of all words */
    size_t *begin;    /* (words): the first symbol of each */
    uint32_t *length; /* (words): how many symbols each has left */
    /* count: over the text; rank: 1 + place in `fresh`, 0: in none; id: 1 + number of its merge */
    struct qn_pairs pairs;
    struct waiting *heap, *fresh; /* fresh: pairs that became more frequent by the last merge */
    size_t n_heap, room_heap, n_fresh, room_fresh;
};

/* --- the heap: the most frequent first, of equally frequent ones the smallest ids --- */

static bool before(const struct waiting *a, const struct waiting *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

QN_HEAP(struct waiting, before)

/* --- counts of pairs --- */

/* The pair stands in the word more often than before. */
static bool note_word(struct learning *l, struct qn_pair *pair, uint32_t word)
{
    if (!pair->rank) {
        if (!QN_ROOM(l->fresh, l->room_fresh, l->n_fresh + 1))
            return false;
        l->fresh[l->n_fresh] = (struct waiting){.left = pair->left, .right = pair->right};
        pair->rank = (int32_t)++l->n_fresh;
    }
    struct waiting *fresh = &l->fresh[pair->rank - 1];
    if (fresh->n_words && fresh->word[fresh->n_words - 1] == word)
        return true;
    if (!QN_ROOM(fresh->word, fresh->room, fresh->n_words + 1))
        return false;
    fresh->word[fresh->n_words++] = word;
    return true;
}

/* One pair more (1) or less (-1) in a word. */
static bool count_pair(struct learning *l, int32_t left, int32_t right, int change, uint32_t word)
{
    struct qn_pair *pair = qn_pairs_add(&l->pairs, left, right);
    if (!pair)
        return false;
    pair->count += change * l->counted->times[word];
    return change < 0 || note_word(l, pair, word);
}

/* Pairs that became more frequent go into the heap. */
static bool push_fresh(struct learning *l)
{
    for (size_t i = 0; i < l->n_fresh; i++) {
        struct waiting *fresh = &l->fresh[i];
        struct qn_pair *pair = qn_pairs_add(&l->pairs, fresh->left, fresh->right);
        pair->rank = 0;
        fresh->count = pair->count;
        if (fresh->count <= 0)
            free(fresh->word);
        else if (!QN_ROOM(l->heap, l->room_heap, l->n_heap + 1))
            return false;
        else
            push(l->heap, &l->n_heap, *fresh);
        fresh->word = NULL;
    }
    l->n_fresh = 0;
    return true;
}

/* --- the beginning: words as single bytes --- */

static bool begin_words(struct learning *l)
{
    const struct qn_strings *words = &l->counted->words;
    l->symbol = calloc(words->count ? words->begin[words->count] : 1, sizeof *l->symbol);
    l->begin = calloc(words->count + 1, sizeof *l->begin);
    l->length = calloc(words->count + 1, sizeof *l->length);
    if (!l->symbol || !l->begin || !l->length)
        return false;
    for (size_t w = 0, at = 0; w < words->count; w++) {
        size_t size;
        const char *bytes = qn_strings_at(words, (int64_t)w, &size);
        l->begin[w] = at;
        l->length[w] = (uint32_t)size;
        for (size_t i = 0; i < size; i++)
            l->symbol[at++] = (int32_t)qn_strings_find(&l->learned->tokens, bytes + i, 1);
        const int32_t *symbol = l->symbol + l->begin[w];
        for (size_t i = 0; i + 1 < size; i++)
            if (!count_pair(l, symbol[i], symbol[i + 1], 1, (uint32_t)w))
                return false;
    }
    return push_fresh(l);
}

/* --- one merge --- */

/* Puts `id` in the place of each pair in a word, from the left, and counts the pairs that this
 * makes and ends. */
static bool merge_word(struct learning *l, const struct waiting *pair, int32_t id, uint32_t word)
{
    int32_t *symbol = l->symbol + l->begin[word];
    const uint32_t length = l->length[word];
    uint32_t to = 0;
    bool done = true;
    for (uint32_t from = 0; from < length; to++) {
        if (symbol[from] != pair->left || from + 1 == length || symbol[from + 1] != pair->right) {
            symbol[to] = symbol[from++];
            continue;
        }
        if (to)
            done = done && count_pair(l, symbol[to - 1], pair->left, -1, word) &&
                   count_pair(l, symbol[to - 1], id, 1, word);
        from += 2;
        if (from < length)
            done = done && count_pair(l, pair->right, symbol[from], -1, word) &&
                   count_pair(l, id, symbol[from], 1, word);
        symbol[to] = id;
    }
    l->length[word] = to;
    return done;
}

/* The token that a pair becomes, which may be there already; -1: out of memory. */
static int32_t add_token(struct learning *l, const struct waiting *pair)
{
    struct qn_strings *tokens = &l->learned->tokens;
    struct qn_bytes whole = {0};
    int64_t id = -1;
    size_t size;
    const char *part = qn_strings_at(tokens, pair->left, &size);
    if (qn_bytes_put(&whole, part, size)) {
        part = qn_strings_at(tokens, pair->right, &size);
        if (qn_bytes_put(&whole, part, size))
            id = qn_strings_add(tokens, whole.at, whole.count);
    }
    qn_bytes_free(&whole);
    return (int32_t)id;
}

/* Of a pair that is merged twice the second time counts. */
static bool add_merge(struct learning *l, const struct waiting *top)
{
    struct qn_learned *learned = l->learned;
    struct qn_pair *pair = qn_pairs_add(&l->pairs, top->left, top->right);
    if (!pair || !QN_ROOM(learned->merge, learned->room, learned->count + 1))
        return false;
    if (pair->id)
        learned->merge[pair->id - 1].left = -1;
    learned->merge[learned->count] = (struct qn_merge){top->left, top->right};
    pair->id = (int32_t)++learned->count;
    return true;
}

static bool merge(struct learning *l, const struct waiting *top)
{
    const int32_t id = add_token(l, top);
    if (id < 0 || !add_merge(l, top))
        return false;
    for (size_t i = 0; i < top->n_words; i++)
        if (!merge_word(l, top, id, top->word[i]))
            return false;
    return push_fresh(l);
}

/* False: out of memory. */
static bool merge_all(struct learning *l, int64_t size)
{
    while ((int64_t)l->learned->tokens.count < size && l->n_heap) {
        struct waiting top = pop(l->heap, &l->n_heap);
        const int64_t count = qn_pairs_find(&l->pairs, top.left, top.right)->count;
        if (top.count != count && count > 0) {
            top.count = count;
            push(l->heap, &l->n_heap, top);
            continue;
        }
        const bool done = count <= 0 || merge(l, &top);
        free(top.word);
        if (!done)
            return false;
    }
    return true;
}

qn_status qn_learn(struct qn_learned *learned, const struct qn_counted *counted,
                   const qn_tokenizer_train_params *params)
{
    struct learning l = {.counted = counted, .learned = learned};
    const bool done = begin_words(&l) && merge_all(&l, params->vocabulary);
    for (size_t i = 0; i < l.n_heap; i++)
        free(l.heap[i].word);
    for (size_t i = 0; i < l.n_fresh; i++)
        free(l.fresh[i].word);
    free(l.heap);
    free(l.fresh);
    free(l.symbol);
    free(l.begin);
    free(l.length);
    qn_pairs_free(&l.pairs);
    return done ? QN_OK : qn_fail_memory(&params->log, params->path);
}
