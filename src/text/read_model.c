/* SPDX-License-Identifier: MIT
 *
 * The part "model" of a tokenizer.json: vocabulary, merges, and what is unknown.
 */
#include "base/log.h"
#include "io/path.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHERE_BYTES = 48 };

/* A merge as a pair ["a", "b"], or as a text "a b" before version 0.20 of the package. */
static qn_status read_merge(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *item,
                            int32_t rank)
{
    char where[WHERE_BYTES];
    snprintf(where, sizeof where, "model.merges[%d]", rank);
    if (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 2 && cJSON_IsString(item->child) &&
        cJSON_IsString(item->child->next)) {
        const char *left = item->child->valuestring, *right = item->child->next->valuestring;
        return qn_read_merge(t, t->path, where, left, strlen(left), right, strlen(right), rank);
    }
    const char *text = cJSON_IsString(item) ? item->valuestring : "", *blank = strchr(text, ' ');
    if (!blank || strchr(blank + 1, ' '))
        return qn_json_wrong(json, where, "", "is neither [\"a\", \"b\"] nor \"a b\"");
    return qn_read_merge(t, t->path, where, text, (size_t)(blank - text), blank + 1,
                         strlen(blank + 1), rank);
}

static qn_status read_merges(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *model)
{
    const cJSON *merges = qn_json_member(model, "merges"), *item;
    int32_t rank = 0;
    if (!cJSON_IsArray(merges))
        return qn_json_wrong(json, "model", "merges", "is not a list");
    cJSON_ArrayForEach(item, merges)
    {
        QN_TRY(read_merge(t, json, item, rank));
        rank++;
    }
    return QN_OK;
}

/* Texts that must be empty and switches that must be off. */
static qn_status refuse_others(const struct qn_json *json, const cJSON *model)
{
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const char *text = "";
        QN_TRY(qn_json_text(json, model, "model", texts[i], &text));
        if (*text)
            return qn_json_wrong(json, "model", texts[i], "'%.60s' is not supported for BPE", text);
    }
    bool fallback = false;
    QN_TRY(qn_json_bool(json, model, "model", "byte_fallback", &fallback));
    if (fallback)
        return qn_json_wrong(json, "model", "byte_fallback", "is not supported");
    const cJSON *dropout = qn_json_member(model, "dropout");
    return !dropout || (cJSON_IsNumber(dropout) && dropout->valuedouble == 0)
               ? QN_OK
               : qn_json_wrong(json, "model", "dropout", "is not supported");
}

/* The id of model.unk_token; -1: there is none. */
static qn_status read_unknown(const struct qn_tokenizer *t, const struct qn_json *json,
                              const cJSON *model, int32_t *id)
{
    const char *text = NULL;
    *id = -1;
    QN_TRY(qn_json_text(json, model, "model", "unk_token", &text));
    if (text)
        *id = qn_vocab_id(&t->vocab, text, strlen(text));
    return !text || *id >= 0
               ? QN_OK
               : qn_json_wrong(json, "model", "unk_token", "'%.60s' is not in model.vocab", text);
}

static qn_status read_bpe(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *model)
{
    t->kind = QN_BPE;
    QN_TRY(refuse_others(json, model));
    QN_TRY(qn_json_bool(json, model, "model", "fuse_unk", &t->bpe.fuse_unknown));
    QN_TRY(qn_json_bool(json, model, "model", "ignore_merges", &t->bpe.ignore_merges));
    QN_TRY(read_unknown(t, json, model, &t->bpe.unknown));
    QN_TRY(read_merges(t, json, model));
    qn_bpe_bytes(&t->bpe, &t->vocab);
    return QN_OK;
}

static qn_status read_wordpiece(struct qn_tokenizer *t, const struct qn_json *json,
                                const cJSON *model)
{
    const char *prefix = "##";
    t->kind = QN_WORDPIECE;
    t->wordpiece.longest = 100;
    QN_TRY(qn_bert_check(t->path, &t->log));
    QN_TRY(qn_json_text(json, model, "model", "continuing_subword_prefix", &prefix));
    if (qn_json_member(model, "max_input_chars_per_word"))
        QN_TRY(qn_json_number(json, model, "model", "max_input_chars_per_word", 0,
                              QN_LONGEST_PIECES, &t->wordpiece.longest));
    QN_TRY(read_unknown(t, json, model, &t->wordpiece.unknown));
    if (t->wordpiece.unknown < 0)
        return qn_json_wrong(json, "model", "unk_token", "is missing");
    t->wordpiece.n_prefix = strlen(prefix);
    t->wordpiece.prefix = strdup(prefix);
    return t->wordpiece.prefix ? QN_OK : qn_fail_memory(&t->log, t->path);
}

qn_status qn_read_model(struct qn_tokenizer *t, const struct qn_json *json)
{
    const cJSON *model = qn_json_member(json->root, "model");
    if (!cJSON_IsObject(model))
        return qn_json_wrong(json, "model", "", "is not an object");
    const char *type = qn_json_type(model);
    if (!*type) /* files of the first versions do not say it */
        type = qn_json_member(model, "merges") ? "BPE" : "WordPiece";
    const bool bpe = strcmp(type, "BPE") == 0;
    if (!bpe && strcmp(type, "WordPiece") != 0)
        return qn_json_wrong(json, "model", "type", "'%.60s' is neither BPE nor WordPiece", type);
    QN_TRY(qn_read_vocab(t, json, qn_json_member(model, "vocab"), "model.vocab"));
    return bpe ? read_bpe(t, json, model) : read_wordpiece(t, json, model);
}
