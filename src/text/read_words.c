/* SPDX-License-Identifier: MIT
 *
 * The parts "normalizer", "pre_tokenizer" and "decoder" of a tokenizer.json: how text becomes words
 * and tokens become text.
 */
#include "base/log.h"
#include "text/tokenizer.h"
#include "text/words.h"

#include <stdio.h>
#include <string.h>

enum { WHERE_BYTES = 64 };

static qn_status refuse_type(const struct qn_json *json, const char *where, const cJSON *item)
{
    return qn_json_wrong(json, where, "type", "'%.60s' is not supported here", qn_json_type(item));
}

/* --- byte-level BPE --- */

/* A step "Split": its pattern, whose matches and what lies between them are the words. */
static qn_status read_split(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *item,
                            const char *where)
{
    const char *behavior = "", *regex = NULL;
    bool invert = false;
    char field[2 * WHERE_BYTES];
    snprintf(field, sizeof field, "%s.pattern", where);
    QN_TRY(qn_json_text(json, item, where, "behavior", &behavior));
    QN_TRY(qn_json_bool(json, item, where, "invert", &invert));
    QN_TRY(qn_json_text(json, qn_json_member(item, "pattern"), field, "Regex", &regex));
    if (strcmp(behavior, "Isolated") != 0)
        return qn_json_wrong(json, where, "behavior", "'%.60s' is not supported, Isolated is",
                             behavior);
    if (invert)
        return qn_json_wrong(json, where, "invert", "is not supported");
    if (!regex)
        return qn_json_wrong(json, field, "Regex", "is missing");
    if (t->pattern)
        return qn_json_wrong(json, where, "", "is a second pattern, which is not supported");
    return qn_pattern_open(&t->pattern, regex, strlen(regex), json->path, field, &t->log);
}

/* A step "ByteLevel", the last one. */
static qn_status read_byte_level(struct qn_tokenizer *t, const struct qn_json *json,
                                 const cJSON *item, const char *where)
{
    bool regex = true;
    t->blank_first = true;
    QN_TRY(qn_json_bool(json, item, where, "use_regex", &regex));
    QN_TRY(qn_json_bool(json, item, where, "add_prefix_space", &t->blank_first));
    if (t->pattern && regex)
        return qn_json_wrong(json, where, "use_regex",
                             "is a second pattern, which is not supported");
    if (t->pattern && t->blank_first)
        return qn_json_wrong(json, where, "add_prefix_space", "behind a Split is not supported");
    return regex ? qn_pattern_open(&t->pattern, qn_pattern_gpt2, strlen(qn_pattern_gpt2),
                                   json->path, where, &t->log)
                 : QN_OK;
}

static qn_status read_sequence(struct qn_tokenizer *t, const struct qn_json *json,
                               const cJSON *list)
{
    const cJSON *item;
    int index = 0;
    if (!cJSON_IsArray(list) || !list->child)
        return qn_json_wrong(json, "pre_tokenizer", "pretokenizers", "is not a list of steps");
    cJSON_ArrayForEach(item, list)
    {
        char where[WHERE_BYTES];
        snprintf(where, sizeof where, "pre_tokenizer.pretokenizers[%d]", index++);
        const bool last = !item->next;
        if (strcmp(qn_json_type(item), last ? "ByteLevel" : "Split") != 0)
            return refuse_type(json, where, item);
        QN_TRY(last ? read_byte_level(t, json, item, where) : read_split(t, json, item, where));
    }
    return QN_OK;
}

static qn_status read_bpe(struct qn_tokenizer *t, const struct qn_json *json)
{
    const cJSON *normalizer = qn_json_member(json->root, "normalizer");
    const cJSON *pre = qn_json_member(json->root, "pre_tokenizer");
    const cJSON *decoder = qn_json_member(json->root, "decoder");
    if (normalizer)
        return refuse_type(json, "normalizer", normalizer);
    if (decoder && strcmp(qn_json_type(decoder), "ByteLevel") != 0)
        return refuse_type(json, "decoder", decoder);
    if (strcmp(qn_json_type(pre), "Sequence") == 0)
        return read_sequence(t, json, qn_json_member(pre, "pretokenizers"));
    if (strcmp(qn_json_type(pre), "ByteLevel") == 0)
        return read_byte_level(t, json, pre, "pre_tokenizer");
    return refuse_type(json, "pre_tokenizer", pre);
}

/* --- WordPiece --- */

static qn_status read_bert(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *from)
{
    struct qn_bert *bert = &t->bert;
    const struct {
        const char *key;
        bool *value;
    } switches[] = {{"clean_text", &bert->clean},
                    {"handle_chinese_chars", &bert->chinese},
                    {"lowercase", &bert->lower}};
    *bert = (struct qn_bert){.clean = true, .chinese = true, .lower = true};
    for (int i = 0; i < 3; i++)
        QN_TRY(qn_json_bool(json, from, "normalizer", switches[i].key, switches[i].value));
    bert->strip = bert->lower; /* unless the file says otherwise */
    return qn_json_bool(json, from, "normalizer", "strip_accents", &bert->strip);
}

static qn_status read_wordpiece(struct qn_tokenizer *t, const struct qn_json *json)
{
    const cJSON *normalizer = qn_json_member(json->root, "normalizer");
    const cJSON *pre = qn_json_member(json->root, "pre_tokenizer");
    const cJSON *decoder = qn_json_member(json->root, "decoder");
    if (normalizer && strcmp(qn_json_type(normalizer), "BertNormalizer") != 0)
        return refuse_type(json, "normalizer", normalizer);
    if (strcmp(qn_json_type(pre), "BertPreTokenizer") != 0)
        return refuse_type(json, "pre_tokenizer", pre);
    if (decoder && strcmp(qn_json_type(decoder), "WordPiece") != 0)
        return refuse_type(json, "decoder", decoder);
    t->wordpiece.cleanup = true;
    QN_TRY(qn_json_bool(json, decoder, "decoder", "cleanup", &t->wordpiece.cleanup));
    return normalizer ? read_bert(t, json, normalizer) : QN_OK;
}

qn_status qn_read_words(struct qn_tokenizer *t, const struct qn_json *json)
{
    return t->kind == QN_BPE ? read_bpe(t, json) : read_wordpiece(t, json);
}
