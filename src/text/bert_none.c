/* SPDX-License-Identifier: MIT
 *
 * In place of bert.c where utf8proc is missing.
 */
#include "base/log.h"
#include "text/bert.h"

qn_status qn_bert_check(const char *path, const struct qn_log *log)
{
    return qn_fail(log, QN_ERR_FORMAT, "%s: a tokenizer of BERT, and this libquern has no utf8proc",
                   path);
}

bool qn_bert_normalize(const struct qn_bert *bert, struct qn_bytes *to, const char *text,
                       size_t size)
{
    (void)bert;
    return qn_bytes_put(to, text, size);
}

bool qn_bert_word(const char *text, size_t size, size_t *begin, size_t *at)
{
    (void)text;
    *begin = *at = size;
    return false;
}
