/* SPDX-License-Identifier: MIT */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"
#include "base/log.h"
#include "io/path.h"
#include "text/blanks.h"
#include "text/bytes.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qn_pattern {
    pcre2_code *code;
};

/* Limits of one search: steps (and as many as STEPS_A_BYTE for each byte, since a long row of
 * blanks is walked back over), groups within groups, KiB of memory. */
enum { STEPS = 1000000, STEPS_A_BYTE = 8, DEPTH = 1000000, HEAP_KIB = 1 << 18 };
enum { LONGEST_PATTERN = 1 << 16 };

static const char no_memory[] = "out of memory";

/* --- from Oniguruma to PCRE2 --- */

static bool put_range(struct qn_bytes *to, uint32_t first, uint32_t last)
{
    char text[32];
    const int size =
        snprintf(text, sizeof text, "\\x{%x}-\\x{%x}", (unsigned)first, (unsigned)last);
    return qn_bytes_put(to, text, (size_t)size);
}

/* The ranges of the blanks, or of all other characters, as they stand inside of brackets. */
static bool put_blanks(struct qn_bytes *to, bool others)
{
    uint32_t next = 0;
    for (int i = 0; i < QN_BLANKS; i++) {
        const uint32_t *range = qn_blanks[i];
        const bool done =
            others ? put_range(to, next, range[0] - 1) : put_range(to, range[0], range[1]);
        if (!done)
            return false;
        next = range[1] + 1;
    }
    return !others || (put_range(to, next, 0xd7ff) && put_range(to, 0xe000, 0x10ffff));
}

static bool put_class(struct qn_bytes *to, bool others, bool inside)
{
    return (inside || qn_bytes_put(to, "[", 1)) && put_blanks(to, others) &&
           (inside || qn_bytes_put(to, "]", 1));
}

/* Writes the pattern with \s and \S as sets. Gives NULL or why it cannot be. */
static const char *translate(struct qn_bytes *to, const char *text, size_t size)
{
    bool inside = false;      /* of brackets */
    const char *first = NULL; /* what stands behind "[" or "[^", where "]" is a character */
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        const bool escaped = c == '\\' && i + 1 < size;
        bool done;
        if (escaped && strchr("hHwWbB", text[i + 1]))
            return "uses one of \\h \\w \\b, which are not supported";
        if (inside && (c == '[' || (c == '&' && i + 1 < size && text[i + 1] == '&')))
            return "uses a class within a class, which is not supported";
        if (escaped && (text[i + 1] == 's' || text[i + 1] == 'S'))
            done = put_class(to, text[i + 1] == 'S', inside);
        else
            done = qn_bytes_put(to, text + i, escaped ? 2 : 1);
        if (!done)
            return no_memory;
        if (!inside && c == '[') {
            inside = true;
            first = text + i + (i + 1 < size && text[i + 1] == '^' ? 2 : 1);
        } else if (c == ']' && text + i != first) {
            inside = false;
        }
        i += escaped;
    }
    return NULL;
}

/* --- compiling --- */

/* Gives NULL or why it cannot be, into `text` where it is PCRE2 who says so. */
static const char *compile(pcre2_code **code, const struct qn_bytes *pattern, char text[256])
{
    int error;
    PCRE2_SIZE place;
    uint32_t empty = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return no_memory;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    *code = pcre2_compile((PCRE2_SPTR)pattern->at, pattern->count,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                          &place, context);
    pcre2_compile_context_free(context);
    if (!*code) {
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, 256);
        return text;
    }
    pcre2_pattern_info(*code, PCRE2_INFO_MATCHEMPTY, &empty);
    return empty ? "can match nothing at all" : NULL;
}

qn_status qn_pattern_open(struct qn_pattern **pattern, const char *text, size_t size,
                          const char *path, const char *field, const struct qn_log *log)
{
    struct qn_bytes translated = {0};
    char said[256];
    *pattern = calloc(1, sizeof **pattern);
    if (!*pattern)
        return qn_fail_memory(log, path);
    const char *why = size > LONGEST_PATTERN ? "is too long" : translate(&translated, text, size);
    if (!why)
        why = compile(&(*pattern)->code, &translated, said);
    qn_bytes_free(&translated);
    if (!why) {
        pcre2_jit_compile((*pattern)->code, PCRE2_JIT_COMPLETE); /* or it is slower */
        return QN_OK;
    }
    qn_pattern_close(pattern);
    if (why == no_memory)
        return qn_fail_memory(log, path);
    return qn_fail(log, QN_ERR_FORMAT, "%s: %s: the pattern %s%s", path, field,
                   why == said ? "does not compile: " : "", why);
}

void qn_pattern_close(struct qn_pattern **pattern)
{
    if (*pattern)
        pcre2_code_free((*pattern)->code);
    free(*pattern);
    *pattern = NULL;
}

/* --- searching --- */

qn_status qn_search_begin(struct qn_search *search)
{
    if (!search->pattern)
        return QN_OK;
    search->match = pcre2_match_data_create(1, NULL);
    search->limits = pcre2_match_context_create(NULL);
    if (!search->match || !search->limits)
        return qn_fail_memory(search->log, search->path);
    pcre2_set_depth_limit(search->limits, DEPTH);
    pcre2_set_heap_limit(search->limits, HEAP_KIB);
    return QN_OK;
}

qn_status qn_search_next(struct qn_search *search, const char *text, size_t size, size_t *from,
                         size_t *to)
{
    const size_t steps = STEPS + STEPS_A_BYTE * (size - *from);
    pcre2_set_match_limit(search->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    for (int attempt = 0; attempt < 2 && found == PCRE2_ERROR_JIT_STACKLIMIT; attempt++)
        found = pcre2_match(search->pattern->code, (PCRE2_SPTR)text, size, *from,
                            PCRE2_NO_UTF_CHECK | (attempt ? PCRE2_NO_JIT : 0), search->match,
                            search->limits);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
        return qn_fail(search->log, QN_ERR_FORMAT,
                       "%s: pre_tokenizer: the pattern takes too many steps or too much memory",
                       search->path);
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(search->match);
    *from = found < 0 ? size : place[0];
    *to = found < 0 ? size : place[1];
    return QN_OK;
}

void qn_search_end(struct qn_search *search)
{
    pcre2_match_data_free(search->match);
    pcre2_match_context_free(search->limits);
}
