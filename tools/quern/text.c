/* SPDX-License-Identifier: MIT */
#include "text.h"
#include "file.h"
#include "json_texts.h"
#include "tokens.h"
#include "waiting.h"

#include <errno.h>
#include <quern/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what was made of what --- */

enum { VERSION = 1, KEY_BYTES = 17 };

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t hash(uint64_t sum, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size--; at++)
        sum = (sum ^ *at) * UINT64_C(0x100000001b3);
    return sum;
}

static uint64_t hash_start(void)
{
    const int version = VERSION;
    return hash(UINT64_C(0xcbf29ce484222325), &version, sizeof version);
}

/* A text by its place, size and time of change, so that nobody reads it twice; JSON lines besides
 * by what is taken of them. */
static int hash_text(uint64_t *sum, const struct data_settings *s, const char *path,
                     struct failure *failure)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return failure_set(failure, CODE_FAILED, "%s: cannot read: %s", path, strerror(errno));
    const int64_t numbers[] = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                               (int64_t)status.st_dev, (int64_t)status.st_ino};
    *sum = hash(hash(*sum, numbers, sizeof numbers), path, strlen(path));
    if (s->kind == DATA_JSONL)
        *sum = hash(hash(*sum, &s->separator, sizeof s->separator), s->field, strlen(s->field) + 1);
    return CODE_DONE;
}

static void hash_file(uint64_t *sum, const char *folder, int length, const char *name)
{
    struct failure none = FAILURE_NONE; /* a file that is missing is no part of the tokenizer */
    char path[2 * TEXT_PATH_BYTES];
    const void *bytes;
    size_t size;
    snprintf(path, sizeof path, "%.*s%s", length, folder, name);
    if (file_map(&bytes, &size, path, &none))
        return;
    *sum = hash(*sum, bytes, size);
    file_unmap(bytes, size);
}

/* A tokenizer by the bytes of all files that it may have been read from. */
static void hash_tokenizer(uint64_t *sum, const char *path)
{
    static const char *const names[] = {"/tokenizer.json", "/vocab.json", "/merges.txt"};
    const char *slash = strrchr(path, '/');
    const int whole = (int)strlen(path), folder = slash ? (int)(slash + 1 - path) : 0;
    if (!file_is_folder(path)) {
        hash_file(sum, path, whole, "");
        hash_file(sum, path, folder, "merges.txt");
        return;
    }
    for (int i = 0; i < 3; i++)
        hash_file(sum, path, whole, names[i]);
}

/* --- where it lies --- */

static int make_folder(struct text *text, struct failure *failure)
{
    const char *root = getenv("TMPDIR");
    snprintf(text->folder, sizeof text->folder, "%s/quern-XXXXXX", root && *root ? root : P_tmpdir);
    if (!mkdtemp(text->folder))
        return failure_set(failure, CODE_FAILED, "%s: %s", text->folder, strerror(errno));
    text->temporary = true;
    return CODE_DONE;
}

/* The path of what has this key: FOLDER/KEY.SUFFIX. */
static int place(struct text *text, char path[TEXT_PATH_BYTES], uint64_t key, const char *suffix,
                 struct failure *failure)
{
    if (!*text->folder && !qn_cache_folder(text->folder, sizeof text->folder))
        TRY(make_folder(text, failure));
    if (snprintf(path, TEXT_PATH_BYTES, "%s/%016" PRIx64 "%s", text->folder, key, suffix) <
        TEXT_PATH_BYTES)
        return CODE_DONE;
    return failure_set(failure, CODE_FAILED, "%s: the path is too long", text->folder);
}

/* --- the tokenizer --- */

static int make_of(const struct text *text, const void *bytes, size_t size, struct failure *failure)
{
    const struct data_settings *s = text->settings;
    const qn_tokenizer_train_params params = {.log = failure_log(failure),
                                              .path = text->tokenizer_path,
                                              .text = bytes,
                                              .size = size,
                                              .vocabulary = s->vocabulary};
    int64_t tokens = 0;
    failure_clear(failure);
    const qn_status status = qn_tokenizer_train(&params, &tokens);
    if (status == QN_OK && tokens < s->vocabulary)
        say("warning: %s: gives only %" PRId64 " tokens for lack of pairs", s->path, tokens);
    return status == QN_OK ? CODE_DONE : failure_library(failure, status, s->path);
}

static int make_of_file(const struct text *text, const char *path, struct failure *failure)
{
    const void *bytes;
    size_t size;
    TRY(file_map(&bytes, &size, path, failure));
    const int code = make_of(text, bytes, size, failure);
    file_unmap(bytes, size);
    return code;
}

/* The texts of JSON lines lie in a part of the tokenizer's file, which goes before it appears. */
static int make_of_lines(const struct text *text, struct failure *failure)
{
    const struct data_settings *s = text->settings;
    struct file_part part;
    TRY(json_texts_join(&part, text->tokenizer_path, s->path, s->field, failure));
    const int code = make_of_file(text, part.name, failure);
    file_drop(&part);
    return code;
}

static int make_tokenizer(const struct text *text, struct failure *failure)
{
    struct waiting waiting;
    waiting_begin(&waiting, text->quiet ? NULL : "making a vocabulary ...");
    const int code = text->settings->kind == DATA_JSONL
                         ? make_of_lines(text, failure)
                         : make_of_file(text, text->settings->path, failure);
    waiting_end(&waiting);
    return code;
}

static int find_tokenizer(struct text *text, struct failure *failure)
{
    const struct data_settings *s = text->settings;
    uint64_t key = hash(hash_start(), &s->vocabulary, sizeof s->vocabulary);
    text->made = s->vocabulary > 0;
    if (!text->made) {
        snprintf(text->tokenizer_path, sizeof text->tokenizer_path, "%s", s->tokenizer);
        return CODE_DONE;
    }
    TRY(hash_text(&key, s, s->path, failure));
    TRY(place(text, text->tokenizer_path, key, ".tokenizer.json", failure));
    return access(text->tokenizer_path, R_OK) == 0 ? CODE_DONE : make_tokenizer(text, failure);
}

int text_open(struct text *text, const struct data_settings *settings, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    text->settings = settings;
    if (!settings->tokenizer && !settings->vocabulary)
        return CODE_DONE;
    TRY(find_tokenizer(text, failure));
    TRY_LIBRARY(failure, NULL, qn_tokenizer_open(&text->tokenizer, text->tokenizer_path, &log));
    return CODE_DONE;
}

int text_save(const struct text *text, const char *path, struct failure *failure)
{
    const void *bytes;
    size_t size;
    TRY(file_map(&bytes, &size, text->tokenizer_path, failure));
    const int code = file_write(path, bytes, size, failure);
    file_unmap(bytes, size);
    return code;
}

void text_close(struct text *text)
{
    qn_tokenizer_close(&text->tokenizer);
    if (text->temporary)
        file_remove_folder(text->folder);
    *text = (struct text){0};
}

/* --- tokens --- */

static int write_file(const struct text *text, const char *path, const char *tokens,
                      struct failure *failure)
{
    const void *bytes;
    size_t size;
    int64_t count;
    TRY(file_map(&bytes, &size, path, failure));
    const int code = tokens_write(tokens, text->tokenizer, bytes, size, &count, failure);
    file_unmap(bytes, size);
    return code;
}

static int write_lines(const struct text *text, const char *path, const char *tokens,
                       struct failure *failure)
{
    const struct data_settings *s = text->settings;
    struct tokens_file file;
    TRY(tokens_begin(&file, tokens, text->tokenizer, failure));
    return tokens_end(&file, json_texts_add(&file, path, s->field, (int32_t)s->separator));
}

static int make_tokens(const struct text *text, const char *path, const char *tokens,
                       struct failure *failure)
{
    struct waiting waiting;
    waiting_begin(&waiting, text->quiet ? NULL : "making tokens of the text ...");
    const int code = text->settings->kind == DATA_JSONL ? write_lines(text, path, tokens, failure)
                                                        : write_file(text, path, tokens, failure);
    waiting_end(&waiting);
    return code;
}

int text_tokens(struct text *text, const char *path, char tokens[TEXT_PATH_BYTES],
                qn_token_type *type, struct failure *failure)
{
    static const struct {
        qn_token_type type;
        const char *suffix;
    } kinds[] = {
        [1] = {QN_TOKEN_U8, ".u8"}, [2] = {QN_TOKEN_U16, ".u16"}, [4] = {QN_TOKEN_U32, ".u32"}};
    const int width = tokens_width(text->tokenizer);
    uint64_t key = hash_start();
    TRY(hash_text(&key, text->settings, path, failure));
    if (text->tokenizer)
        hash_tokenizer(&key, text->tokenizer_path);
    TRY(place(text, tokens, key, kinds[width].suffix, failure));
    *type = kinds[width].type;
    return access(tokens, R_OK) == 0 ? CODE_DONE : make_tokens(text, path, tokens, failure);
}

/* --- bytes of tokens --- */

/* Bytes and number of the labels that count. */
struct sizes {
    const qn_tokenizer *tokenizer;
    double bytes, labels;
};

static qn_status add_sizes(struct sizes *sizes, const int32_t *labels, int64_t count)
{
    char *text;
    size_t size;
    for (int64_t i = 0, n; i < count; i += n) {
        const bool counts = labels[i] != QN_IGNORED_LABEL;
        for (n = 1; i + n < count && (labels[i + n] != QN_IGNORED_LABEL) == counts; n++)
            ;
        if (!counts)
            continue;
        const qn_status status = qn_tokenizer_decode(sizes->tokenizer, labels + i, n, &text, &size);
        if (status != QN_OK)
            return status;
        qn_free(text);
        sizes->bytes += (double)size;
        sizes->labels += (double)n;
    }
    return QN_OK;
}

static qn_status add_samples(struct sizes *sizes, qn_loader *loader, int64_t samples)
{
    qn_batch batch;
    qn_status status = QN_OK;
    for (int64_t i = 0; i < samples && status == QN_OK; i++) {
        status = qn_loader_next(loader, 1, &batch);
        if (status != QN_OK)
            return status;
        const qn_column *labels = qn_batch_column(&batch, "labels");
        status = add_sizes(sizes, labels->data, labels->shape.dim[0]);
    }
    return status;
}

int text_measure(const struct text *text, const qn_dataset *dataset, double *bytes_per_token,
                 struct failure *failure)
{
    struct sizes sizes = {.tokenizer = text->tokenizer};
    const qn_loader_params params = {
        .log = failure_log(failure), .max_samples = 1, .sequential = true};
    qn_loader *loader = NULL;
    TRY_LIBRARY(failure, NULL, qn_loader_open(&loader, dataset, &params));
    failure_clear(failure);
    const qn_status status = add_samples(&sizes, loader, qn_dataset_describe(dataset)->count);
    qn_loader_close(&loader);
    if (status != QN_OK)
        return failure_library(failure, status, NULL);
    *bytes_per_token = sizes.labels > 0 ? sizes.bytes / sizes.labels : 0;
    return CODE_DONE;
}
