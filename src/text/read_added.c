/* SPDX-License-Identifier: MIT
 *
 * The part "added_tokens" of a tokenizer.json.
 */
#include "base/log.h"
#include "io/path.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { WHERE_BYTES = 48 };

static qn_status add_id(struct qn_tokenizer *t, const struct qn_json *json, const char *where,
                        const char *text, int32_t id)
{
    size_t size = 0;
    switch (qn_vocab_add(&t->vocab, text, strlen(text), id)) {
    case QN_VOCAB_NEW:
    case QN_VOCAB_SAME:
        return QN_OK;
    case QN_VOCAB_HAS_TEXT:
        return qn_json_wrong(json, where, "id", "%d, but '%.60s' has the id %d", id, text,
                             qn_vocab_id(&t->vocab, text, strlen(text)));
    case QN_VOCAB_HAS_ID:
        return qn_json_wrong(json, where, "id", "%d is that of '%.60s', too", id,
                             qn_vocab_text(&t->vocab, id, &size));
    case QN_VOCAB_MEMORY:
        break;
    }
    return qn_fail_memory(json->log, json->path);
}

/* Makes the token one that is found in text: as it is, or normalised as the text is. */
static qn_status add_text(struct qn_tokenizer *t, const char *text, bool normalized,
                          const struct qn_added_token *token)
{
    struct qn_bytes changed = {0};
    bool done = normalized && t->kind == QN_WORDPIECE
                    ? qn_bert_normalize(&t->bert, &changed, text, strlen(text))
                    : qn_bytes_put(&changed, text, strlen(text));
    if (done && changed.count)
        done = qn_added_put(normalized ? &t->normal : &t->raw, changed.at, changed.count, token);
    qn_bytes_free(&changed);
    return done ? QN_OK : qn_fail_memory(&t->log, t->path);
}

static qn_status read_token(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *item,
                            const char *where)
{
    struct qn_added_token token = {0};
    const char *text = "";
    bool single = false, normalized = false, special = false;
    int64_t id;
    QN_TRY(qn_json_number(json, item, where, "id", 0, QN_MOST_TOKENS - 1, &id));
    QN_TRY(qn_json_text(json, item, where, "content", &text));
    QN_TRY(qn_json_bool(json, item, where, "single_word", &single));
    QN_TRY(qn_json_bool(json, item, where, "lstrip", &token.blanks_left));
    QN_TRY(qn_json_bool(json, item, where, "rstrip", &token.blanks_right));
    QN_TRY(qn_json_bool(json, item, where, "normalized", &normalized));
    QN_TRY(qn_json_bool(json, item, where, "special", &special));
    if (!*text)
        return qn_json_wrong(json, where, "content", "is missing or empty");
    if (single)
        return qn_json_wrong(json, where, "single_word", "is not supported");
    QN_TRY(add_id(t, json, where, text, (int32_t)id));
    token.id = (int32_t)id;
    t->vocab.marks[id] = (uint8_t)(QN_MARK_ADDED | (special ? QN_MARK_SPECIAL : 0));
    return add_text(t, text, normalized, &token);
}

qn_status qn_read_added(struct qn_tokenizer *t, const struct qn_json *json)
{
    const cJSON *list = qn_json_member(json->root, "added_tokens"), *item;
    int index = 0;
    if (list && !cJSON_IsArray(list))
        return qn_json_wrong(json, "added_tokens", "", "is not a list");
    cJSON_ArrayForEach(item, list)
    {
        char where[WHERE_BYTES];
        snprintf(where, sizeof where, "added_tokens[%d]", index++);
        QN_TRY(read_token(t, json, item, where));
    }
    qn_added_sort(&t->raw);
    qn_added_sort(&t->normal);
    return QN_OK;
}
