/* SPDX-License-Identifier: MIT
 *
 * In place of pattern.c where PCRE2 is missing.
 */
#include "base/log.h"
#include "text/pattern.h"

qn_status qn_pattern_open(struct qn_pattern **pattern, const char *text, size_t size,
                          const char *path, const char *field, const struct qn_log *log)
{
    (void)text, (void)size;
    *pattern = NULL;
    return qn_fail(log, QN_ERR_FORMAT, "%s: %s: a pattern, and this libquern has no PCRE2", path,
                   field);
}

void qn_pattern_close(struct qn_pattern **pattern)
{
    *pattern = NULL;
}

qn_status qn_search_begin(struct qn_search *search)
{
    (void)search;
    return QN_OK;
}

qn_status qn_search_next(struct qn_search *search, const char *text, size_t size, size_t *from,
                         size_t *to)
{
    (void)search, (void)text;
    *from = *to = size;
    return QN_OK;
}

void qn_search_end(struct qn_search *search)
{
    (void)search;
}
