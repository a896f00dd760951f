/* SPDX-License-Identifier: MIT
 *
 * Texts of any bytes: byte-level tokens decode to the very text, words of BERT to something.
 */
#include "file.h"
#include "fuzz.h"

#include <quern/text.h>
#include <string.h>

enum { MOST_IDS = 1 << 20 };

static const char bert_json[] =
    "{\"normalizer\": {\"type\": \"BertNormalizer\"}, "
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
    "\"added_tokens\": [{\"id\": 1, \"content\": \"[SEP]\", \"special\": true, \"lstrip\": true}, "
    "{\"id\": 7, \"content\": \"A\xcc\x88 b\", \"normalized\": true, \"rstrip\": true}], "
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"[SEP]\": "
    "1, "
    "\"a\": 2, \"##a\": 3, \"ab\": 4, \"##ba\": 5, \"\xe4\xb8\xad\": 6}}}";

struct list {
    int32_t ids[MOST_IDS];
    int64_t count;
};

static qn_status take(void *user, const int32_t *ids, int64_t count)
{
    struct list *list = user;
    if (list->count + count > MOST_IDS)
        abort();
    memcpy(list->ids + list->count, ids, (size_t)count * sizeof *ids);
    list->count += count;
    return QN_OK;
}

static qn_tokenizer *open_made(void)
{
    static const char text[] =
        "the river, the bridge and the boats; don't cross 1987 1998\n\n  over";
    qn_tokenizer *tokenizer;
    const qn_tokenizer_train_params params = {
        .path = fuzz_file(NULL, 0), .text = text, .size = sizeof text - 1, .vocabulary = 300};
    if (qn_tokenizer_train(&params, NULL) != QN_OK ||
        qn_tokenizer_open(&tokenizer, params.path, NULL) != QN_OK)
        abort();
    return tokenizer;
}

static qn_tokenizer *open_bert(void)
{
    qn_tokenizer *tokenizer;
    const char *path = fuzz_file((const uint8_t *)bert_json, sizeof bert_json - 1);
    return qn_tokenizer_open(&tokenizer, path, NULL) == QN_OK ? tokenizer : NULL;
}

static void there_and_back(const qn_tokenizer *tokenizer, const uint8_t *bytes, size_t size,
                           int same)
{
    static struct list list;
    char *text;
    size_t length;
    list.count = 0;
    const qn_encode_params params = {.fn = take, .user = &list};
    if (qn_tokenizer_encode(tokenizer, bytes, size, &params) != QN_OK ||
        qn_tokenizer_decode(tokenizer, list.ids, list.count, &text, &length) != QN_OK)
        abort();
    if (same && (length != size || (size && memcmp(text, bytes, size) != 0)))
        abort();
    qn_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static qn_tokenizer *made, *bert;
    if (!bert)
        bert = open_bert();
    if (!made)
        made = open_made();
    there_and_back(made, bytes, size, 1);
    if (bert)
        there_and_back(bert, bytes, size, 0);
    return 0;
}
