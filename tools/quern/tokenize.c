/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "json_texts.h"
#include "line.h"
#include "tokens.h"
#include "value.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <quern/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One call of the command. */
struct tokenizing {
    const struct arguments *arguments;
    struct failure *failure;
    const char *in, *out; /* out NULL: standard output */
    const void *bytes;    /* of the file `in` */
    size_t size;
    qn_tokenizer *tokenizer;
    int width; /* bytes of a token in a file of tokens */
    int64_t tokens;
};

/* --- what was done --- */

static int print_json(const struct tokenizing *t, int64_t vocabulary)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", t->in);
    if (t->out)
        cJSON_AddStringToObject(root, "out", t->out);
    cJSON_AddNumberToObject(root, "bytes", (double)t->size);
    cJSON_AddNumberToObject(root, "vocabulary", (double)vocabulary);
    if (t->width) {
        cJSON_AddNumberToObject(root, "tokens", (double)t->tokens);
        cJSON_AddNumberToObject(root, "token_bytes", t->width);
    }
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return failure_set(t->failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static int report(const struct tokenizing *t, int64_t vocabulary)
{
    if (t->arguments->value[OPTION_JSON])
        return print_json(t, vocabulary);
    if (t->out && t->arguments->value[OPTION_DECODE])
        line_print(stdout, "%s: the text of %" PRId64 " tokens", t->out, t->tokens);
    else if (t->out && t->width)
        line_print(stdout, "%s: %" PRId64 " tokens of %d bytes each from %zu bytes of text", t->out,
                   t->tokens, t->width, t->size);
    else if (t->out)
        line_print(stdout, "%s: %" PRId64 " tokens, made from %zu bytes", t->out, vocabulary,
                   t->size);
    return CODE_DONE;
}

/* --- text to tokens --- */

static qn_status print_ids(void *user, const int32_t *ids, int64_t count)
{
    struct tokenizing *t = user;
    for (int64_t i = 0; i < count && !t->arguments->value[OPTION_JSON]; i++)
        printf("%s%" PRId32, t->tokens + i ? " " : "", ids[i]);
    t->tokens += count;
    return QN_OK;
}

static int encode_file(struct tokenizing *t)
{
    const qn_encode_params params = {.fn = print_ids, .user = t};
    t->width = tokens_width(t->tokenizer);
    if (t->out)
        return tokens_write(t->out, t->tokenizer, t->bytes, t->size, &t->tokens, t->failure);
    TRY_LIBRARY(t->failure, NULL, qn_tokenizer_encode(t->tokenizer, t->bytes, t->size, &params));
    if (!t->arguments->value[OPTION_JSON])
        printf("\n");
    return CODE_DONE;
}

/* --- tokens to text --- */

/* The ids of a file of tokens, all of which the tokenizer has; the caller frees. */
static int read_ids(struct tokenizing *t, int32_t **ids)
{
    const unsigned char *bytes = t->bytes;
    if (t->size % (size_t)t->width)
        return failure_set(t->failure, CODE_FAILED, "%s: %zu bytes are no tokens of %d bytes each",
                           t->in, t->size, t->width);
    t->tokens = (int64_t)(t->size / (size_t)t->width);
    *ids = calloc((size_t)t->tokens, sizeof **ids);
    if (!*ids)
        return failure_set(t->failure, CODE_FAILED, "%s: out of memory", t->in);
    for (int64_t i = 0; i < t->tokens; i++) {
        uint32_t id = 0;
        for (int b = t->width; b--;)
            id = id << 8 | bytes[i * t->width + b];
        (*ids)[i] = (int32_t)id;
        if (!qn_tokenizer_text(t->tokenizer, (*ids)[i]))
            return failure_set(t->failure, CODE_FAILED,
                               "%s: token %" PRId64 ": %" PRIu32 " is not in the vocabulary of %s",
                               t->in, i, id, t->arguments->value[OPTION_TOKENIZER]);
    }
    return CODE_DONE;
}

static int give_text(struct tokenizing *t, const char *text, size_t size)
{
    if (t->arguments->value[OPTION_JSON] && !t->out)
        return CODE_DONE;
    if (!t->out && isatty(STDOUT_FILENO))
        return line_show(text, size)
                   ? CODE_DONE
                   : failure_set(t->failure, CODE_FAILED, "%s: out of memory", t->in);
    if (!t->out) {
        fwrite(text, 1, size, stdout);
        return CODE_DONE;
    }
    return file_write(t->out, text, size, t->failure);
}

static int decode_ids(struct tokenizing *t, const int32_t *ids)
{
    char *text;
    size_t size;
    TRY_LIBRARY(t->failure, NULL, qn_tokenizer_decode(t->tokenizer, ids, t->tokens, &text, &size));
    const int code = give_text(t, text, size);
    qn_free(text);
    return code;
}

static int decode_file(struct tokenizing *t)
{
    int32_t *ids = NULL;
    t->width = tokens_width(t->tokenizer);
    int code = read_ids(t, &ids);
    if (!code)
        code = decode_ids(t, ids);
    free(ids);
    return code;
}

/* --- the command --- */

static int open_file(struct tokenizing *t)
{
    const char *field = t->arguments->value[OPTION_FIELD];
    struct file_part part;
    if (!field)
        return file_map(&t->bytes, &t->size, t->in, t->failure);
    TRY(json_texts_join(&part, t->out, t->in, field, t->failure));
    const int code = file_map(&t->bytes, &t->size, part.name, t->failure);
    file_drop(&part);
    return code;
}

static int train(struct tokenizing *t)
{
    const char *text = t->arguments->value[OPTION_TRAIN];
    qn_tokenizer_train_params params = {
        .log = failure_log(t->failure), .path = t->out, .text = t->bytes, .size = t->size};
    int64_t tokens = 0;
    const char *reason = value_count(text, 1, INT32_MAX, &params.vocabulary);
    if (reason)
        return failure_set(t->failure, CODE_USAGE, "--train: '%s' %s", text, reason);
    TRY_LIBRARY(t->failure, NULL, qn_tokenizer_train(&params, &tokens));
    if (tokens < params.vocabulary)
        say("warning: %s: has only %" PRId64 " tokens for lack of pairs", t->out, tokens);
    return report(t, tokens);
}

static int convert(struct tokenizing *t)
{
    const qn_log log = failure_log(t->failure);
    const bool back = t->arguments->value[OPTION_DECODE] != NULL;
    TRY_LIBRARY(t->failure, NULL,
                qn_tokenizer_open(&t->tokenizer, t->arguments->value[OPTION_TOKENIZER], &log));
    TRY(back ? decode_file(t) : encode_file(t));
    return report(t, qn_tokenizer_size(t->tokenizer));
}

static int check(const struct arguments *a, struct failure *failure)
{
    const bool train = a->value[OPTION_TRAIN], tokenizer = a->value[OPTION_TOKENIZER];
    if (train && (tokenizer || a->value[OPTION_DECODE]))
        return failure_set(failure, CODE_USAGE, "tokenize: --train and %s exclude each other",
                           tokenizer ? "--tokenizer" : "--decode");
    if (train && !a->value[OPTION_TOKENS])
        return failure_set(failure, CODE_USAGE, "tokenize: --train needs --out FILE");
    if (!train && a->value[OPTION_FIELD])
        return failure_set(failure, CODE_USAGE, "tokenize: --field goes with --train");
    if (!train && !tokenizer)
        return failure_set(failure, CODE_USAGE, "tokenize: needs --tokenizer PATH, or --train N");
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct tokenizing t = {
        .arguments = a, .failure = failure, .in = a->operand, .out = a->value[OPTION_TOKENS]};
    TRY(check(a, failure));
    TRY(open_file(&t));
    const int code = a->value[OPTION_TRAIN] ? train(&t) : convert(&t);
    qn_tokenizer_close(&t.tokenizer);
    file_unmap(t.bytes, t.size);
    return code;
}

const struct command command_tokenize = {
    "tokenize",
    "FILE",
    "text to tokens and back, and vocabularies made from text",
    "Prints the numbers of the tokens of a text, or writes them to --out: little-endian, 2 bytes\n"
    "each where the vocabulary has fewer than 65536, else 4. Tokenizers are those of GPT-2, Llama "
    "3\n"
    "and BERT. Bytes that are not UTF-8 are tokens, too. --decode goes back from such a file.\n"
    "--train makes a byte-level vocabulary as GPT-2 has it, also from the texts of JSON lines;\n"
    "its first token is <|endoftext|>.",
    false,
    run,
    {OPTION_TOKENIZER, OPTION_TOKENS, OPTION_DECODE, OPTION_TRAIN, OPTION_FIELD, OPTION_JSON,
     OPTION_COUNT},
};
