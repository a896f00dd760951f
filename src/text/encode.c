/* SPDX-License-Identifier: MIT
 *
 * Text to ids: added tokens, normalising, words, tokens of words.
 */
#include "base/log.h"
#include "io/path.h"
#include "text/tokenizer.h"
#include "text/words.h"

#include <stdlib.h>

/* One encoding under way. */
struct encoding {
    const struct qn_tokenizer *tokenizer;
    struct qn_sink sink;
    struct qn_search search;
    struct qn_bpe_scratch bpe;
    struct qn_bytes normal, word, first; /* normalised text, a piece of a word, the first word */
};

/* --- byte-level BPE --- */

static qn_status put_word(void *user, const char *word, size_t size)
{
    struct encoding *e = user;
    const struct qn_tokenizer *t = e->tokenizer;
    return qn_bpe_word(&t->bpe, &t->vocab, &e->bpe, word, size, &e->sink);
}

static qn_status put_bytes(struct encoding *e, const char *text, size_t size)
{
    return qn_words_each(&e->search, text, size, put_word, e);
}

/* The same behind a blank. It joins the first word, and so the text is copied. */
static qn_status put_behind_blank(struct encoding *e, const char *text, size_t size)
{
    e->first.count = 0;
    if (!qn_bytes_put(&e->first, " ", 1) || !qn_bytes_put(&e->first, text, size))
        return qn_fail_memory(e->sink.log, e->sink.path);
    return put_bytes(e, e->first.at, e->first.count);
}

/* --- WordPiece --- */

static qn_status put_words(struct encoding *e, const char *text, size_t size)
{
    const struct qn_tokenizer *t = e->tokenizer;
    for (size_t at = 0, begin; qn_bert_word(text, size, &begin, &at);)
        QN_TRY(qn_wordpiece_word(&t->wordpiece, &t->vocab, &e->word, text + begin, at - begin,
                                 &e->sink));
    return QN_OK;
}

/* --- both --- */

static qn_status put_piece(struct encoding *e, const char *text, size_t size)
{
    if (e->tokenizer->kind == QN_WORDPIECE)
        return put_words(e, text, size);
    return e->tokenizer->blank_first && *text != ' ' ? put_behind_blank(e, text, size)
                                                     : put_bytes(e, text, size);
}

/* Normalised text. */
static qn_status put_normal(struct encoding *e, const char *text, size_t size)
{
    struct qn_added_search search = {.added = &e->tokenizer->normal, .text = text, .size = size};
    struct qn_added_piece piece;
    while (qn_added_next(&search, &piece))
        QN_TRY(piece.id >= 0 ? qn_sink_put(&e->sink, piece.id)
                             : put_piece(e, text + piece.begin, piece.end - piece.begin));
    return QN_OK;
}

static qn_status put_raw(struct encoding *e, const char *text, size_t size)
{
    if (e->tokenizer->kind != QN_WORDPIECE)
        return put_normal(e, text, size);
    e->normal.count = 0;
    if (!qn_bert_normalize(&e->tokenizer->bert, &e->normal, text, size))
        return qn_fail_memory(e->sink.log, e->sink.path);
    return put_normal(e, e->normal.at, e->normal.count);
}

static qn_status put_frame(struct encoding *e, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        QN_TRY(qn_sink_put(&e->sink, e->tokenizer->frame.id[i]));
    return QN_OK;
}

static qn_status put_text(struct encoding *e, const char *text, size_t size)
{
    struct qn_added_search search = {.added = &e->tokenizer->raw, .text = text, .size = size};
    struct qn_added_piece piece;
    while (qn_added_next(&search, &piece))
        QN_TRY(piece.id >= 0 ? qn_sink_put(&e->sink, piece.id)
                             : put_raw(e, text + piece.begin, piece.end - piece.begin));
    return QN_OK;
}

/* As much of it as the sink takes. */
static qn_status put_beginning(struct encoding *e, const char *text, size_t size)
{
    const qn_status status = put_text(e, text, size);
    return e->sink.full ? QN_OK : status;
}

static qn_status encode(struct encoding *e, const char *text, size_t size,
                        const qn_encode_params *params)
{
    static const struct qn_frame none;
    const struct qn_frame *around = params->frame ? &e->tokenizer->frame : &none;
    const int64_t most = params->most ? params->most : INT64_MAX, frame = (int64_t)around->count;
    if (frame > most)
        return qn_fail(e->sink.log, QN_ERR_ARGUMENT,
                       "%s: puts %lld tokens around a text, of which %lld can be", e->sink.path,
                       (long long)frame, (long long)most);
    QN_TRY(qn_search_begin(&e->search));
    e->sink.left = frame;
    QN_TRY(put_frame(e, 0, around->before));
    e->sink.left = most - frame;
    QN_TRY(put_beginning(e, text, size));
    e->sink.left = frame;
    QN_TRY(put_frame(e, around->before, around->count));
    return qn_sink_flush(&e->sink);
}

qn_status qn_tokenizer_encode(const qn_tokenizer *tokenizer, const void *text, size_t size,
                              const qn_encode_params *params)
{
    QN_REQUIRE(tokenizer ? &tokenizer->log : NULL,
               tokenizer && (text || !size) && params && params->fn && params->most >= 0);
    const struct qn_log *log = params->log ? params->log : &tokenizer->log;
    struct encoding *e = calloc(1, sizeof *e);
    if (!e)
        return qn_fail_memory(log, tokenizer->path);
    e->tokenizer = tokenizer;
    e->sink.fn = params->fn;
    e->sink.user = params->user;
    e->search.pattern = tokenizer->pattern;
    e->sink.log = e->search.log = log;
    e->sink.path = e->search.path = tokenizer->path;
    const qn_status status = encode(e, text, size, params);
    qn_search_end(&e->search);
    qn_bpe_scratch_free(&e->bpe);
    qn_bytes_free(&e->normal);
    qn_bytes_free(&e->word);
    qn_bytes_free(&e->first);
    free(e);
    return status;
}
