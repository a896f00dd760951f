/* SPDX-License-Identifier: MIT */
#include "text/bert.h"
#include "text/blanks.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { REPLACEMENT = 0xfffd, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };

/* The blocks that BERT calls Chinese. Its table begins one of them at U+2B920, where Unicode has
 * U+2B820. */
static const uint32_t ideographs[][2] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
    {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
};

qn_status qn_bert_check(const char *path, const struct qn_log *log)
{
    (void)path, (void)log;
    return QN_OK;
}

static bool is_ideograph(uint32_t point)
{
    for (size_t i = 0; i < sizeof ideographs / sizeof *ideographs; i++)
        if (point >= ideographs[i][0] && point <= ideographs[i][1])
            return true;
    return false;
}

/* Of the blanks these three are none. */
static bool is_control(uint32_t point)
{
    if (point == '\t' || point == '\n' || point == '\r')
        return false;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CO;
}

static bool is_mark(uint32_t point)
{
    return utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_MN;
}

static bool is_punctuation(uint32_t point)
{
    if (point < 0x80)
        return (point >= 33 && point <= 47) || (point >= 58 && point <= 64) ||
               (point >= 91 && point <= 96) || (point >= 123 && point <= 126);
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/* --- normalising: one character goes through the steps before the next comes --- */

static bool put_lower(const struct qn_bert *bert, struct qn_bytes *to, uint32_t point)
{
    if (bert->lower && point == DOTTED_I) /* the one whose lower case is two characters */
        return qn_bytes_put_point(to, 'i') && qn_bytes_put_point(to, DOT_ABOVE);
    return qn_bytes_put_point(to, bert->lower ? (uint32_t)utf8proc_tolower((utf8proc_int32_t)point)
                                              : point);
}

/* Without its marks the order of a decomposition does not matter. */
static bool put_stripped(const struct qn_bert *bert, struct qn_bytes *to, uint32_t point)
{
    utf8proc_int32_t parts[32];
    int boundary = 0;
    if (!bert->strip)
        return put_lower(bert, to, point);
    const utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)point, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    for (utf8proc_ssize_t i = 0; i < count && i < 32; i++)
        if (!is_mark((uint32_t)parts[i]) && !put_lower(bert, to, (uint32_t)parts[i]))
            return false;
    return true;
}

static bool put_spaced(const struct qn_bert *bert, struct qn_bytes *to, uint32_t point)
{
    if (!bert->chinese || !is_ideograph(point))
        return put_stripped(bert, to, point);
    return qn_bytes_put(to, " ", 1) && put_stripped(bert, to, point) && qn_bytes_put(to, " ", 1);
}

static bool put_clean(const struct qn_bert *bert, struct qn_bytes *to, uint32_t point)
{
    if (bert->clean && (!point || point == REPLACEMENT || is_control(point)))
        return true;
    if (bert->clean && qn_is_blank(point))
        point = ' ';
    return put_spaced(bert, to, point);
}

bool qn_bert_normalize(const struct qn_bert *bert, struct qn_bytes *to, const char *text,
                       size_t size)
{
    for (size_t at = 0; at < size;) {
        uint32_t point;
        at += qn_point_next(text + at, size - at, &point);
        if (!put_clean(bert, to, point == QN_NO_POINT ? REPLACEMENT : point))
            return false;
    }
    return true;
}

/* --- words --- */

bool qn_bert_word(const char *text, size_t size, size_t *begin, size_t *at)
{
    size_t end = *at, taken;
    uint32_t point;
    for (; end < size; end += taken) {
        taken = qn_point_next(text + end, size - end, &point);
        if (!qn_is_blank(point))
            break;
    }
    *begin = end;
    for (; end < size; end += taken) {
        taken = qn_point_next(text + end, size - end, &point);
        if (qn_is_blank(point))
            break;
        if (is_punctuation(point)) {
            end = end == *begin ? end + taken : end;
            break;
        }
    }
    *at = end;
    return *begin < end;
}
