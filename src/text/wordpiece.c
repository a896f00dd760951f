/* SPDX-License-Identifier: MIT */
#include "text/wordpiece.h"
#include "base/log.h"
#include "io/path.h"

#include <string.h>

/* Characters of a piece of UTF-8. */
static int64_t characters(const char *text, size_t size)
{
    int64_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += ((uint8_t)text[i] & 0xc0) != 0x80;
    return count;
}

/* The longest token that the word has at `from`, and where it ends; -1: none. `scratch` holds the
 * prefix and the whole word: what is looked up of a continuation stands with its prefix in the
 * place of what comes before it. */
static int32_t longest(const struct qn_wordpiece *w, const struct qn_vocab *vocab, char *scratch,
                       size_t size, size_t from, size_t *end)
{
    const size_t prefix = from ? w->n_prefix : 0;
    char *piece = scratch + w->n_prefix + from - prefix;
    if (prefix)
        memcpy(piece, w->prefix, prefix);
    for (*end = size; *end > from; --*end) {
        if (*end < size && ((uint8_t)piece[prefix + *end - from] & 0xc0) == 0x80)
            continue;
        const int32_t id = qn_vocab_id(vocab, piece, prefix + *end - from);
        if (id >= 0)
            return id;
    }
    return -1;
}

qn_status qn_wordpiece_word(const struct qn_wordpiece *wordpiece, const struct qn_vocab *vocab,
                            struct qn_bytes *scratch, const char *word, size_t size,
                            struct qn_sink *sink)
{
    int32_t ids[QN_LONGEST_PIECES];
    int count = 0;
    if (characters(word, size) > wordpiece->longest)
        return qn_sink_put(sink, wordpiece->unknown);
    scratch->count = 0;
    if (!qn_bytes_put(scratch, wordpiece->prefix, wordpiece->n_prefix) ||
        !qn_bytes_put(scratch, word, size))
        return qn_fail_memory(sink->log, sink->path);
    for (size_t from = 0, end; from < size; from = end) {
        ids[count] = longest(wordpiece, vocab, scratch->at, size, from, &end);
        if (ids[count++] < 0)
            return qn_sink_put(sink, wordpiece->unknown);
    }
    for (int i = 0; i < count; i++)
        QN_TRY(qn_sink_put(sink, ids[i]));
    return QN_OK;
}

/* Whether a word stands right behind the one before it. */
static bool is_close(const char *token, size_t size)
{
    static const char *const words[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (size >= strlen(words[i]) && memcmp(token, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

bool qn_wordpiece_decode(const struct qn_wordpiece *wordpiece, struct qn_bytes *to,
                         const char *token, size_t size, bool first)
{
    const size_t prefix = wordpiece->n_prefix;
    if (first)
        return qn_bytes_put(to, token, size);
    if (prefix && size >= prefix && memcmp(token, wordpiece->prefix, prefix) == 0)
        return qn_bytes_put(to, token + prefix, size - prefix);
    return ((wordpiece->cleanup && is_close(token, size)) || qn_bytes_put(to, " ", 1)) &&
           qn_bytes_put(to, token, size);
}
