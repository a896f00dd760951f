/* SPDX-License-Identifier: MIT */
#include "tokens.h"

enum { WIDE = 65536 };

int tokens_width(const qn_tokenizer *tokenizer)
{
    if (!tokenizer)
        return 1;
    return qn_tokenizer_size(tokenizer) < WIDE ? 2 : 4;
}

int tokens_begin(struct tokens_file *file, const char *path, const qn_tokenizer *tokenizer,
                 struct failure *failure)
{
    file->failure = failure;
    file->tokenizer = tokenizer;
    file->width = tokens_width(tokenizer);
    file->count = 0;
    file->used = 0;
    return file_begin(&file->part, path, failure);
}

static int flush(struct tokens_file *file)
{
    const size_t used = file->used;
    file->used = 0;
    return file_add(&file->part, file->bytes, used, file->failure);
}

int tokens_add_id(struct tokens_file *file, int32_t id)
{
    for (int b = 0; b < file->width; b++)
        file->bytes[file->used++] = (unsigned char)((uint32_t)id >> 8 * b);
    file->count++;
    return file->used == sizeof file->bytes ? flush(file) : CODE_DONE;
}

static qn_status add_ids(void *user, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (tokens_add_id(user, ids[i]))
            return QN_ERR_IO;
    return QN_OK;
}

static int add_bytes(struct tokens_file *file, const unsigned char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        TRY(tokens_add_id(file, text[i]));
    return CODE_DONE;
}

int tokens_add(struct tokens_file *file, const void *text, size_t size)
{
    const qn_encode_params params = {.fn = add_ids, .user = file};
    if (!file->tokenizer)
        return add_bytes(file, text, size);
    TRY_LIBRARY(file->failure, NULL, qn_tokenizer_encode(file->tokenizer, text, size, &params));
    return CODE_DONE;
}

int tokens_end(struct tokens_file *file, int code)
{
    return file_end(&file->part, code ? code : flush(file), file->failure);
}

int tokens_write(const char *path, const qn_tokenizer *tokenizer, const void *text, size_t size,
                 int64_t *count, struct failure *failure)
{
    struct tokens_file file;
    TRY(tokens_begin(&file, path, tokenizer, failure));
    const int code = tokens_add(&file, text, size);
    *count = file.count;
    return tokens_end(&file, code);
}
