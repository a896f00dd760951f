/* SPDX-License-Identifier: MIT
 *
 * Tokens and merges, as both kinds of files have them.
 */
#include "base/log.h"
#include "io/path.h"
#include "text/tokenizer.h"

#include <string.h>

/* Names in messages are cut there. */
#define NAME "'%.60s'"

static qn_status add(struct qn_tokenizer *t, const struct qn_json *json, const char *where,
                     const char *text, int32_t id)
{
    size_t size = 0;
    switch (qn_vocab_add(&t->vocab, text, strlen(text), id)) {
    case QN_VOCAB_NEW:
        return QN_OK;
    case QN_VOCAB_SAME:
        return qn_json_wrong(json, where, "", "the token " NAME " is there twice", text);
    case QN_VOCAB_HAS_TEXT:
        return qn_json_wrong(json, where, "", "the token " NAME " has two ids, %d and %d", text,
                             qn_vocab_id(&t->vocab, text, strlen(text)), id);
    case QN_VOCAB_HAS_ID:
        return qn_json_wrong(json, where, "", "two tokens have the id %d, " NAME " and " NAME, id,
                             qn_vocab_text(&t->vocab, id, &size), text);
    case QN_VOCAB_MEMORY:
        break;
    }
    return qn_fail_memory(json->log, json->path);
}

qn_status qn_read_vocab(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *vocab,
                        const char *where)
{
    const cJSON *item;
    if (!cJSON_IsObject(vocab))
        return qn_json_wrong(json, where, "", "is not an object");
    cJSON_ArrayForEach(item, vocab)
    {
        const double id = item->valuedouble;
        if (!cJSON_IsNumber(item) || !(id >= 0 && id < QN_MOST_TOKENS) || id != (int32_t)id)
            return qn_json_wrong(json, where, "",
                                 "the id of " NAME " is not a whole number from 0 to %d",
                                 item->string, QN_MOST_TOKENS - 1);
        QN_TRY(add(t, json, where, item->string, (int32_t)id));
    }
    return vocab->child ? QN_OK : qn_json_wrong(json, where, "", "is empty");
}

/* The id of one of the parts of a merge. */
static qn_status part(const struct qn_tokenizer *t, const char *path, const char *where,
                      const char *text, size_t size, int32_t *id)
{
    *id = qn_vocab_id(&t->vocab, text, size);
    return *id >= 0
               ? QN_OK
               : qn_fail(&t->log, QN_ERR_FORMAT, "%s: %s: '%.*s' is not a token of the vocabulary",
                         path, where, size < 60 ? (int)size : 60, text);
}

qn_status qn_read_merge(struct qn_tokenizer *t, const char *path, const char *where,
                        const char *left, size_t n_left, const char *right, size_t n_right,
                        int32_t rank)
{
    int32_t parts[2], id;
    struct qn_bytes whole = {0};
    QN_TRY(part(t, path, where, left, n_left, &parts[0]));
    QN_TRY(part(t, path, where, right, n_right, &parts[1]));
    if (!qn_bytes_put(&whole, left, n_left) || !qn_bytes_put(&whole, right, n_right)) {
        qn_bytes_free(&whole);
        return qn_fail_memory(&t->log, path);
    }
    const qn_status status = part(t, path, where, whole.at, whole.count, &id);
    qn_bytes_free(&whole);
    QN_TRY(status);
    struct qn_pair *merge = qn_pairs_add(&t->bpe.merges, parts[0], parts[1]);
    if (!merge)
        return qn_fail_memory(&t->log, path);
    merge->rank = rank;
    merge->id = id;
    return QN_OK;
}

qn_status qn_read_special(struct qn_tokenizer *t, const char *text)
{
    const size_t size = strlen(text);
    const struct qn_added_token token = {.id = qn_vocab_id(&t->vocab, text, size)};
    if (token.id < 0)
        return QN_OK;
    t->vocab.marks[token.id] = QN_MARK_ADDED | QN_MARK_SPECIAL;
    return qn_added_put(&t->raw, text, size, &token) ? QN_OK : qn_fail_memory(&t->log, t->path);
}
