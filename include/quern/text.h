/* SPDX-License-Identifier: MIT
 *
 * Text as numbers: tokenizers in the files of the Hugging Face tokenizers package (tokenizer.json)
 * and of GPT-2 (vocab.json and merges.txt), vocabularies made from text, and the texts of JSON
 * lines.
 *
 *     qn_tokenizer_open(&tokenizer, "gpt2/tokenizer.json", NULL);
 *     qn_tokenizer_encode(tokenizer, text, size, &(qn_encode_params){.fn = take, .user = &list});
 *
 * Two kinds are read. Byte-level byte-pair encoding (BPE), of GPT-2 and Llama 3: a pattern splits
 * the text into words, and in each word the neighbours that come first in the list of merges become
 * one token, again and again (Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words
 * with Subword Units, 2016). WordPiece of BERT: words are split at blanks and punctuation, and each
 * is taken as the longest known beginning, the longest known continuation and so on. What a file
 * asks for beyond these is refused with one line, `FILE: field: reason`; limits of length and
 * padding in a file are not applied: a text becomes as many tokens as it has.
 *
 * Where the ids differ from those of the tokenizers package: characters newer than the tables of
 * PCRE2 (Unicode 14 in version 10.42) may be split otherwise; for BERT, whose tables there are
 * those of Unicode 8, so are punctuation marks, accents and format characters that are newer; bytes
 * that are not UTF-8, which the package refuses, are words of their own, as many as stand in a row,
 * and for BERT the character U+FFFD; a byte without a token is an error where the vocabulary has no
 * token for what is unknown, not left out; added tokens are decoded as they are written.
 */
#ifndef QUERN_TEXT_H
#define QUERN_TEXT_H

#include <quern/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens and how text is split into them.
 * Thread-safety: Safe; nothing changes after opening.
 * Lifetime: until qn_tokenizer_close. */
typedef struct qn_tokenizer qn_tokenizer;

/* Opens a tokenizer.json, a vocab.json with merges.txt beside it, or a folder with either, the
 * first before the second. Of a vocab.json the token "<|endoftext|>", if it has one, is special.
 * QN_ERR_IO: not readable; QN_ERR_FORMAT: not what it should be, something that is not supported,
 * or a library that was built without PCRE2 (BPE) or utf8proc (WordPiece). `log` may be NULL and
 * is copied. */
QN_API qn_status qn_tokenizer_open(qn_tokenizer **tokenizer, const char *path, const qn_log *log);
/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_tokenizer_close(qn_tokenizer **tokenizer);

/* Rows of a table that has one for each token: 1 + the largest id. */
QN_API int64_t qn_tokenizer_size(const qn_tokenizer *tokenizer);
/* The id of a token as its file writes it ("<|endoftext|>", "##ing", or with the characters that
 * stand for bytes in BPE, " the" as "\u0120the"); -1: there is none. */
QN_API int32_t qn_tokenizer_id(const qn_tokenizer *tokenizer, const char *text);
/* The reverse; NULL: no token has this id. Borrowed from the tokenizer. */
QN_API const char *qn_tokenizer_text(const qn_tokenizer *tokenizer, int32_t id);
/* Whether the file calls the token special: a mark ("[SEP]"), not a piece of text. */
QN_API bool qn_tokenizer_is_special(const qn_tokenizer *tokenizer, int32_t id);

/* Takes the next ids, at least 1. Whatever it returns but QN_OK ends the encoding. */
typedef qn_status (*qn_ids_fn)(void *user, const int32_t *ids, int64_t count);

typedef struct qn_encode_params {
    bool frame;   /* add the special tokens that the file puts around a text ([CLS], [SEP]) */
    int64_t most; /* ids, those of the frame among them: the end of the text is cut off; 0: all */
    const qn_log *log; /* NULL: that of the tokenizer */
    qn_ids_fn fn;
    void *user;
} qn_encode_params;

/* Gives the ids of a text of `size` bytes to params->fn, in order and in parts of some thousand.
 * Special tokens that stand in the text become their ids. QN_ERR_FORMAT: the vocabulary has no
 * token for a byte of the text, or the split pattern of the file exceeds PCRE2's limits;
 * QN_ERR_ARGUMENT: the frame alone has more than `most` ids; QN_ERR_MEMORY. Bytes of memory:
 * proportional to the longest word for BPE (to the text, if the file wants a blank before it), to
 * the longest stretch without a special token for WordPiece. */
QN_API qn_status qn_tokenizer_encode(const qn_tokenizer *tokenizer, const void *text, size_t size,
                                     const qn_encode_params *params);

/* Takes the text of a line: `size` bytes with a NUL behind them. Whatever it returns but QN_OK ends
 * the reading. */
typedef qn_status (*qn_text_fn)(void *user, const char *text, size_t size);

/* Gives the texts of a file of JSON lines, of which each is an object with a text under the name
 * `field`, to `fn`, in order. What is not UTF-8 is taken as it is. QN_ERR_IO: not readable;
 * QN_ERR_FORMAT: the file is empty, or a line is no object, longer than 64 MiB, or without that
 * field, has it twice or as something else than a text, or has a character 0 anywhere. Bytes of
 * memory: some times the longest line. `log` may be NULL. */
QN_API qn_status qn_json_lines_texts(const char *path, const char *field, qn_text_fn fn, void *user,
                                     const qn_log *log);

/* The text of `count` ids, `*size` bytes and a NUL behind them, which the caller frees with
 * qn_free. BPE gives the very bytes that were encoded; WordPiece puts blanks between words.
 * QN_ERR_ARGUMENT: there is no token of an id. */
QN_API qn_status qn_tokenizer_decode(const qn_tokenizer *tokenizer, const int32_t *ids,
                                     int64_t count, char **text, size_t *size);

typedef struct qn_tokenizer_train_params {
    qn_log log;
    const char *path; /* the tokenizer.json to write; it appears whole or not at all */
    const void *text; /* (size) */
    size_t size;
    int64_t vocabulary; /* tokens in all, from 257 to 2^24: <|endoftext|>, 256 bytes, merges */
} qn_tokenizer_train_params;

/* Makes a byte-level BPE vocabulary with GPT-2's split pattern: the most frequent pair of
 * neighbouring tokens within words becomes a token, until there are enough; of equally frequent
 * pairs the one with the smaller ids, the left before the right, as in the tokenizers package,
 * whose merges these are. A text with too few different pairs gives fewer tokens, which `*size`
 * (may be NULL) tells. Bytes of memory: some hundred times the different words of the text. */
QN_API qn_status qn_tokenizer_train(const qn_tokenizer_train_params *params, int64_t *size);

#ifdef __cplusplus
}
#endif
#endif
