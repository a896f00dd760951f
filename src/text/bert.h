/* SPDX-License-Identifier: MIT
 *
 * BERT's normalisation of text and its split into words, over the tables of utf8proc.
 */
#ifndef QN_TEXT_BERT_H
#define QN_TEXT_BERT_H

#include "text/bytes.h"

#include <quern/log.h>

/* What is done to a text, in this order. */
struct qn_bert {
    bool clean;   /* controls go, every blank becomes U+0020 */
    bool chinese; /* ideographs become words of their own */
    bool strip;   /* accents go: canonical decomposition (NFD) without the marks Mn */
    bool lower;   /* lower case */
};

/* QN_OK where there is utf8proc; else a line that `path` needs it. */
qn_status qn_bert_check(const char *path, const struct qn_log *log);
/* Adds the normalised text. What is not UTF-8 counts as U+FFFD. False: out of memory. */
bool qn_bert_normalize(const struct qn_bert *bert, struct qn_bytes *to, const char *text,
                       size_t size);
/* The next word of a normalised text from `*at` on, [*begin, *at): a punctuation mark, or all up to
 * a blank or the next mark. False: there is none. */
bool qn_bert_word(const char *text, size_t size, size_t *begin, size_t *at);

#endif
