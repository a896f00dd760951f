/* SPDX-License-Identifier: MIT
 *
 * The part "post_processor" of a tokenizer.json: the tokens around a text, such as [CLS] and [SEP].
 */
#include "base/log.h"
#include "base/room.h"
#include "io/path.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { WHERE_BYTES = 64, MOST_IDS = 1000 };

/* Adds the id of a number of the file, which must be that of a token. */
static qn_status put(struct qn_tokenizer *t, const struct qn_json *json, const char *where,
                     const cJSON *number)
{
    size_t size;
    const double id = cJSON_IsNumber(number) ? number->valuedouble : -1;
    if (!(id >= 0 && id < t->vocab.size) || id != (int32_t)id ||
        !qn_vocab_text(&t->vocab, (int32_t)id, &size))
        return qn_json_wrong(json, where, "", "is not the id of a token");
    if (t->frame.count == MOST_IDS)
        return qn_json_wrong(json, where, "", "is one of more than %d tokens", MOST_IDS);
    if (!QN_ROOM(t->frame.id, t->frame.room, t->frame.count + 1))
        return qn_fail_memory(&t->log, t->path);
    t->frame.id[t->frame.count++] = (int32_t)id;
    return QN_OK;
}

/* --- TemplateProcessing --- */

/* {"SpecialToken": {"id": NAME}}: the ids that "special_tokens" has under the name. */
static qn_status put_named(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *from,
                           const cJSON *token, const char *where)
{
    const char *name = "";
    const cJSON *number;
    QN_TRY(qn_json_text(json, token, where, "id", &name));
    const cJSON *ids =
        qn_json_member(qn_json_member(qn_json_member(from, "special_tokens"), name), "ids");
    if (!cJSON_IsArray(ids))
        return qn_json_wrong(json, where, "id", "'%.60s' is not one of special_tokens", name);
    cJSON_ArrayForEach(number, ids)
    {
        QN_TRY(put(t, json, where, number));
    }
    return QN_OK;
}

static qn_status read_template(struct qn_tokenizer *t, const struct qn_json *json,
                               const cJSON *from)
{
    const cJSON *single = qn_json_member(from, "single"), *item;
    int index = 0, texts = 0;
    if (!cJSON_IsArray(single))
        return qn_json_wrong(json, "post_processor", "single", "is not a list");
    cJSON_ArrayForEach(item, single)
    {
        char where[WHERE_BYTES];
        snprintf(where, sizeof where, "post_processor.single[%d]", index++);
        const cJSON *token = qn_json_member(item, "SpecialToken");
        if (token) {
            QN_TRY(put_named(t, json, from, token, where));
        } else if (qn_json_member(item, "Sequence")) {
            t->frame.before = t->frame.count;
            texts++;
        } else {
            return qn_json_wrong(json, where, "", "is neither a SpecialToken nor a Sequence");
        }
    }
    return texts == 1
               ? QN_OK
               : qn_json_wrong(json, "post_processor", "single", "has %d texts, not one", texts);
}

/* --- BertProcessing and RobertaProcessing: ["[CLS]", 101] and ["[SEP]", 102] --- */

static qn_status read_pair(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *from)
{
    static const char *const keys[] = {"cls", "sep"};
    for (int i = 0; i < 2; i++) {
        char where[WHERE_BYTES];
        snprintf(where, sizeof where, "post_processor.%s", keys[i]);
        QN_TRY(put(t, json, where, cJSON_GetArrayItem(qn_json_member(from, keys[i]), 1)));
    }
    t->frame.before = 1;
    return QN_OK;
}

static qn_status read_one(struct qn_tokenizer *t, const struct qn_json *json, const cJSON *from)
{
    const char *type = qn_json_type(from);
    if (strcmp(type, "ByteLevel") == 0) /* changes no ids */
        return QN_OK;
    if (t->frame.count)
        return qn_json_wrong(json, "post_processor", "",
                             "adds tokens twice, which is not supported");
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(t, json, from);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_pair(t, json, from);
    return qn_json_wrong(json, "post_processor", "type", "'%.60s' is not supported", type);
}

qn_status qn_read_frame(struct qn_tokenizer *t, const struct qn_json *json)
{
    const cJSON *from = qn_json_member(json->root, "post_processor");
    if (!from)
        return QN_OK;
    if (strcmp(qn_json_type(from), "Sequence") != 0)
        return read_one(t, json, from);
    const cJSON *item;
    cJSON_ArrayForEach(item, qn_json_member(from, "processors"))
    {
        QN_TRY(read_one(t, json, item));
    }
    return QN_OK;
}
