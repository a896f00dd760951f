/* SPDX-License-Identifier: MIT
 *
 * Patterns that split text into words: those of tokenizer files, which are written for Oniguruma,
 * matched by PCRE2.
 */
#ifndef QN_TEXT_PATTERN_H
#define QN_TEXT_PATTERN_H

#include <quern/log.h>
#include <stddef.h>

/* Thread-safety: Safe; nothing changes after qn_pattern_open. */
struct qn_pattern;

/* `path` and `field` are for messages; `text` has `size` bytes. \s and \S are the characters that
 * Unicode calls White_Space and the others. QN_ERR_FORMAT: it does not compile, can match nothing
 * at all, uses what Oniguruma and PCRE2 mean differently (\h, \H, \w, \W, \b, \B), or there is no
 * PCRE2. */
qn_status qn_pattern_open(struct qn_pattern **pattern, const char *text, size_t size,
                          const char *path, const char *field, const struct qn_log *log);
void qn_pattern_close(struct qn_pattern **pattern);

/* A search through one text. Zeroed but for the pattern it has not begun. */
struct qn_search {
    const struct qn_pattern *pattern;
    void *match, *limits; /* of PCRE2 */
    const struct qn_log *log;
    const char *path; /* for messages */
};

qn_status qn_search_begin(struct qn_search *search);
/* The next match in `text`, well-formed UTF-8 of `size` bytes, from `*from` on: bytes *from to
 * *to - 1, at least one; *from is `size` where there is none. QN_ERR_FORMAT: the search takes more
 * steps or memory than the limits allow. */
qn_status qn_search_next(struct qn_search *search, const char *text, size_t size, size_t *from,
                         size_t *to);
void qn_search_end(struct qn_search *search);

#endif
