/* SPDX-License-Identifier: MIT
 *
 * For tests of tokenizers: the golden files, and ids collected.
 */
#ifndef QN_TESTS_TEXT_SAMPLE_H
#define QN_TESTS_TEXT_SAMPLE_H

#include "io/scratch.h"

#include <quern/text.h>

enum { SAMPLE_IDS = 1 << 16 };

struct sample {
    int32_t ids[SAMPLE_IDS];
    int64_t count;
};

static inline qn_status sample_take(void *user, const int32_t *ids, int64_t count)
{
    struct sample *sample = user;
    if (sample->count + count > SAMPLE_IDS)
        return QN_ERR_ARGUMENT;
    memcpy(sample->ids + sample->count, ids, (size_t)count * sizeof *ids);
    sample->count += count;
    return QN_OK;
}

static inline qn_tokenizer *sample_open(const char *name)
{
    qn_tokenizer *tokenizer = NULL;
    char path[512];
    snprintf(path, sizeof path, GOLDEN "/%s", name);
    if (qn_tokenizer_open(&tokenizer, path, NULL) != QN_OK)
        fail_msg("%s", qn_last_error());
    return tokenizer;
}

static inline void sample_encode(struct sample *sample, const qn_tokenizer *tokenizer,
                                 const char *text, size_t size, bool frame)
{
    const qn_encode_params params = {.frame = frame, .fn = sample_take, .user = sample};
    sample->count = 0;
    if (qn_tokenizer_encode(tokenizer, text, size, &params) != QN_OK)
        fail_msg("%s", qn_last_error());
}

/* The ids decode to the text. */
static inline void sample_is(const struct sample *sample, const qn_tokenizer *tokenizer,
                             const char *text, size_t size)
{
    char *decoded;
    size_t length;
    assert_int_equal(qn_tokenizer_decode(tokenizer, sample->ids, sample->count, &decoded, &length),
                     QN_OK);
    assert_int_equal(length, size);
    assert_memory_equal(decoded, text, size);
    assert_int_equal(decoded[size], 0);
    qn_free(decoded);
}

#endif
