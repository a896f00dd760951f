/* SPDX-License-Identifier: MIT */
#include "tokens.h"
#include "file.h"

enum { WIDE = 65536 };

int tokens_width(const qn_tokenizer *tokenizer)
{
    return qn_tokenizer_size(tokenizer) < WIDE ? 2 : 4;
}

/* A file under way. */
struct writer {
    struct file_part part;
    struct failure *failure;
    int width;
    int64_t tokens;
};

static qn_status add(void *user, const int32_t *ids, int64_t count)
{
    struct writer *w = user;
    unsigned char bytes[4096];
    const int64_t most = (int64_t)sizeof bytes / w->width;
    for (int64_t done = 0, n; done < count; done += n) {
        n = count - done < most ? count - done : most;
        for (int64_t i = 0; i < n; i++)
            for (int b = 0; b < w->width; b++)
                bytes[i * w->width + b] = (unsigned char)((uint32_t)ids[done + i] >> 8 * b);
        if (file_add(&w->part, bytes, (size_t)(n * w->width), w->failure))
            return QN_ERR_IO;
    }
    w->tokens += count;
    return QN_OK;
}

static int encode(struct writer *w, const qn_tokenizer *tokenizer, const void *text, size_t size)
{
    const qn_encode_params params = {.fn = add, .user = w};
    TRY_LIBRARY(w->failure, NULL, qn_tokenizer_encode(tokenizer, text, size, &params));
    return CODE_DONE;
}

int tokens_write(const char *path, const qn_tokenizer *tokenizer, const void *text, size_t size,
                 int64_t *count, struct failure *failure)
{
    struct writer w = {.failure = failure, .width = tokens_width(tokenizer)};
    TRY(file_begin(&w.part, path, failure));
    const int code = encode(&w, tokenizer, text, size);
    *count = w.tokens;
    return file_end(&w.part, code, failure);
}
