/* SPDX-License-Identifier: MIT */
#include "text/tokenizer.h"
#include "base/log.h"
#include "io/names.h"
#include "io/path.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

qn_status qn_tokenizer_read(struct qn_tokenizer *t, const struct qn_json *json)
{
    QN_TRY(qn_read_model(t, json));
    QN_TRY(qn_read_words(t, json));
    QN_TRY(qn_read_added(t, json));
    return qn_read_frame(t, json);
}

/* The file that a path means: itself, or in a folder tokenizer.json, else vocab.json. The caller
 * frees; NULL: out of memory. */
static char *find_file(const char *path)
{
    if (!qn_is_folder(path))
        return strdup(path);
    char *file = qn_path_join(path, "tokenizer.json"), *other = qn_path_join(path, "vocab.json");
    const bool second = file && (!other || (access(file, F_OK) != 0 && access(other, F_OK) == 0));
    free(second ? file : other);
    return second ? other : file;
}

static qn_status read_file(struct qn_tokenizer *t)
{
    struct qn_json json;
    QN_TRY(qn_json_open(&json, t->path, &t->log));
    const bool whole = cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(json.root, "model"));
    /* a vocabulary alone has a number for every text */
    const bool vocab = !whole && cJSON_IsNumber(json.root->child);
    const qn_status status = vocab ? qn_tokenizer_read_gpt2(t, &json) : qn_tokenizer_read(t, &json);
    qn_json_close(&json);
    return status;
}

qn_status qn_tokenizer_open(qn_tokenizer **tokenizer, const char *path, const qn_log *log)
{
    QN_REQUIRE(log, tokenizer && path);
    *tokenizer = NULL;
    struct qn_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return qn_fail_memory(log, path);
    t->log = log ? *log : (qn_log){0};
    t->path = find_file(path);
    const qn_status status = t->path ? read_file(t) : qn_fail_memory(log, path);
    if (status == QN_OK)
        *tokenizer = t;
    else
        qn_tokenizer_close(&t);
    return status;
}

void qn_tokenizer_close(qn_tokenizer **tokenizer)
{
    struct qn_tokenizer *t = tokenizer ? *tokenizer : NULL;
    if (!t)
        return;
    qn_vocab_free(&t->vocab);
    qn_added_free(&t->raw);
    qn_added_free(&t->normal);
    qn_pairs_free(&t->bpe.merges);
    qn_pattern_close(&t->pattern);
    free(t->wordpiece.prefix);
    free(t->frame.id);
    free(t->path);
    free(t);
    *tokenizer = NULL;
}

int64_t qn_tokenizer_size(const qn_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->vocab.size : 0;
}

int32_t qn_tokenizer_id(const qn_tokenizer *tokenizer, const char *text)
{
    return tokenizer && text ? qn_vocab_id(&tokenizer->vocab, text, strlen(text)) : -1;
}

const char *qn_tokenizer_text(const qn_tokenizer *tokenizer, int32_t id)
{
    size_t size;
    return tokenizer ? qn_vocab_text(&tokenizer->vocab, id, &size) : NULL;
}

bool qn_tokenizer_is_special(const qn_tokenizer *tokenizer, int32_t id)
{
    return tokenizer && id >= 0 && id < tokenizer->vocab.size &&
           (tokenizer->vocab.marks[id] & QN_MARK_SPECIAL);
}
