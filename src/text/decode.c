/* SPDX-License-Identifier: MIT
 *
 * Ids to text.
 */
#include "base/log.h"
#include "io/path.h"
#include "text/alphabet.h"
#include "text/tokenizer.h"

static bool put_token(const struct qn_tokenizer *t, struct qn_bytes *to, int32_t id,
                      const char *token, size_t size, bool first)
{
    if (t->kind == QN_WORDPIECE)
        return qn_wordpiece_decode(&t->wordpiece, to, token, size, first);
    if (t->vocab.marks[id] & QN_MARK_ADDED)
        return qn_bytes_put(to, token, size);
    return qn_alphabet_read(to, token, size);
}

static qn_status put_all(const struct qn_tokenizer *t, struct qn_bytes *to, const int32_t *ids,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        const char *token = qn_vocab_text(&t->vocab, ids[i], &size);
        if (!token)
            return qn_fail(&t->log, QN_ERR_ARGUMENT, "%s: no token has the id %d", t->path, ids[i]);
        if (!put_token(t, to, ids[i], token, size, i == 0))
            return qn_fail_memory(&t->log, t->path);
    }
    return qn_bytes_put(to, "", 1) ? QN_OK : qn_fail_memory(&t->log, t->path);
}

qn_status qn_tokenizer_decode(const qn_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                              char **text, size_t *size)
{
    QN_REQUIRE(tokenizer ? &tokenizer->log : NULL,
               tokenizer && (ids || !count) && count >= 0 && text && size);
    struct qn_bytes bytes = {0};
    const qn_status status = put_all(tokenizer, &bytes, ids, count);
    *text = NULL;
    *size = 0;
    if (status != QN_OK) {
        qn_bytes_free(&bytes);
        return status;
    }
    *text = bytes.at;
    *size = bytes.count - 1;
    return QN_OK;
}
