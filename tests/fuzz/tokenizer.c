/* SPDX-License-Identifier: MIT
 *
 * Tokenizer files: what opens encodes a short text, and its ids decode.
 */
#include "file.h"
#include "fuzz.h"

#include <quern/text.h>
#include <string.h>

/* The ids are those of tokens. */
static qn_status take(void *user, const int32_t *ids, int64_t count)
{
    const qn_tokenizer *tokenizer = user;
    char *text;
    size_t size;
    for (int64_t i = 0; i < count; i++)
        if (!qn_tokenizer_text(tokenizer, ids[i]))
            abort();
    if (qn_tokenizer_decode(tokenizer, ids, count, &text, &size) != QN_OK)
        abort();
    qn_free(text);
    return QN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char text[] = "ab aab\xc3\xa9 \xff 12 <x>[SEP]\n\xe4\xb8\xad Ab's";
    qn_tokenizer *tokenizer;
    if (qn_tokenizer_open(&tokenizer, fuzz_file(bytes, size), NULL) != QN_OK)
        return 0;
    const qn_encode_params params = {.frame = true, .fn = take, .user = tokenizer};
    qn_tokenizer_encode(tokenizer, text, sizeof text - 1, &params);
    qn_tokenizer_close(&tokenizer);
    return 0;
}
