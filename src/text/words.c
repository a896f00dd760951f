/* SPDX-License-Identifier: MIT */
#include "text/words.h"
#include "base/log.h"
#include "text/bytes.h"

const char qn_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static qn_status give(qn_word_fn fn, void *user, const char *word, size_t size)
{
    return size ? fn(user, word, size) : QN_OK;
}

/* Well-formed UTF-8. */
static qn_status split(struct qn_search *search, const char *text, size_t size, qn_word_fn fn,
                       void *user)
{
    if (!search->pattern)
        return fn(user, text, size);
    for (size_t at = 0, from, to; at < size; at = to) {
        from = at;
        QN_TRY(qn_search_next(search, text, size, &from, &to));
        QN_TRY(give(fn, user, text + at, from - at));
        QN_TRY(give(fn, user, text + from, to - from));
    }
    return QN_OK;
}

/* The bytes at the beginning of a text that are all well-formed UTF-8, or all are not: *good. */
static size_t same_kind(const char *text, size_t size, bool *good)
{
    uint32_t point;
    size_t at = qn_point_next(text, size, &point);
    *good = point != QN_NO_POINT;
    while (at < size) {
        const size_t taken = qn_point_next(text + at, size - at, &point);
        if ((point != QN_NO_POINT) != *good)
            break;
        at += taken;
    }
    return at;
}

qn_status qn_words_each(struct qn_search *search, const char *text, size_t size, qn_word_fn fn,
                        void *user)
{
    for (size_t at = 0, run; at < size; at += run) {
        bool good;
        run = same_kind(text + at, size - at, &good);
        QN_TRY(good ? split(search, text + at, run, fn, user) : fn(user, text + at, run));
    }
    return QN_OK;
}
