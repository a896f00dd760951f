/* SPDX-License-Identifier: MIT
 *
 * A vocabulary made from text: its words are counted, merges learned, the file written.
 */
#include "text/train.h"
#include "base/log.h"
#include "base/room.h"
#include "io/path.h"
#include "text/alphabet.h"
#include "text/vocab.h"
#include "text/words.h"

#include <string.h>

static const char SPECIAL[] = "<|endoftext|>";
enum { LEAST_TOKENS = 257 };

/* --- words --- */

struct counting {
    struct qn_counted *counted;
    const qn_tokenizer_train_params *params;
};

static qn_status count_word(void *user, const char *word, size_t size)
{
    const struct counting *counting = user;
    struct qn_counted *counted = counting->counted;
    const size_t before = counted->words.count;
    const int64_t number = qn_strings_add(&counted->words, word, size);
    if (number < 0 || !QN_ROOM(counted->times, counted->room, counted->words.count))
        return qn_fail_memory(&counting->params->log, counting->params->path);
    if (counted->words.count > before)
        counted->times[number] = 0;
    counted->times[number]++;
    return QN_OK;
}

static qn_status count_words(struct qn_counted *counted, const qn_tokenizer_train_params *params)
{
    struct counting counting = {counted, params};
    struct qn_pattern *pattern;
    QN_TRY(qn_pattern_open(&pattern, qn_pattern_gpt2, strlen(qn_pattern_gpt2), params->path,
                           "GPT-2's pattern", &params->log));
    struct qn_search search = {.pattern = pattern, .log = &params->log, .path = params->path};
    qn_status status = qn_search_begin(&search);
    if (status == QN_OK)
        status = qn_words_each(&search, params->text, params->size, count_word, &counting);
    qn_search_end(&search);
    qn_pattern_close(&pattern);
    return status;
}

/* --- the tokens before the first merge: the special one, then bytes in the order of the characters
 * that stand for them --- */

static bool begin_tokens(struct qn_strings *tokens)
{
    bool done = qn_strings_add(tokens, SPECIAL, strlen(SPECIAL)) == 0;
    for (uint32_t point = 0; point < 0x180; point++)
        for (int byte = 0; byte < 256 && done; byte++)
            if (qn_alphabet_point((uint8_t)byte) == point)
                done = qn_strings_add(tokens, &(char){(char)byte}, 1) >= 0;
    return done;
}

static qn_status make(struct qn_counted *counted, struct qn_learned *learned,
                      const qn_tokenizer_train_params *params)
{
    if (!begin_tokens(&learned->tokens))
        return qn_fail_memory(&params->log, params->path);
    QN_TRY(count_words(counted, params));
    QN_TRY(qn_learn(learned, counted, params));
    return qn_learned_write(learned, params);
}

qn_status qn_tokenizer_train(const qn_tokenizer_train_params *params, int64_t *size)
{
    QN_REQUIRE(NULL, params);
    QN_REQUIRE(&params->log, params->path && (params->text || !params->size));
    if (params->vocabulary < LEAST_TOKENS || params->vocabulary > QN_MOST_TOKENS)
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "a vocabulary of %lld tokens: not from %d to %d",
                       (long long)params->vocabulary, LEAST_TOKENS, QN_MOST_TOKENS);
    struct qn_counted counted = {0};
    struct qn_learned learned = {0};
    const qn_status status = make(&counted, &learned, params);
    if (size)
        *size = (int64_t)learned.tokens.count;
    qn_strings_free(&counted.words);
    free(counted.times);
    qn_strings_free(&learned.tokens);
    free(learned.merge);
    return status;
}
