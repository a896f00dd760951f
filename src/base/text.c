/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include <quern/status.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct qn_text *text, size_t more)
{
    if (text->failed)
        return false;
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = needed * 2 < 256 ? 256 : needed * 2;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void qn_text_add(struct qn_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void qn_text_json(struct qn_text *text, const char *string)
{
    qn_text_add(text, "\"");
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\')
            qn_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            qn_text_add(text, "\\u%04x", *c);
        else
            qn_text_add(text, "%c", *c);
    }
    qn_text_add(text, "\"");
}

void qn_text_xml(struct qn_text *text, const char *string)
{
    for (const char *c = string; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&')
            qn_text_add(text, "&#%d;", *c);
        else
            qn_text_add(text, "%c", (unsigned char)*c < 0x20 ? '?' : *c);
    }
}

/* printf writes the decimal point of the locale, in one byte or several; here it becomes '.'. */
static char *use_point(char *number)
{
    char *to = number;
    for (const char *from = number; *from; from++)
        if (strchr("0123456789+-e", *from))
            *to++ = *from;
        else if (to == number || to[-1] != '.')
            *to++ = '.';
    *to = 0;
    return number;
}

/* JSON knows no infinity, but every reader makes one of a number that is too large. */
void qn_text_number(struct qn_text *text, int digits, double value)
{
    char number[64];
    snprintf(number, sizeof number, "%.*g", digits, value);
    if (isfinite(value))
        qn_text_add(text, "%s", use_point(number));
    else
        qn_text_add(text, "%s", isnan(value) ? "null" : value > 0 ? "1e999" : "-1e999");
}

static const char *skip_sign(const char *text)
{
    return text + (*text == '+' || *text == '-');
}

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

static bool is_number(const char *text)
{
    const char *begin = skip_sign(text), *at = skip_digits(begin);
    bool digits = at > begin;
    if (*at == '.') {
        begin = at + 1;
        at = skip_digits(begin);
        digits |= at > begin;
    }
    if (digits && (*at == 'e' || *at == 'E')) {
        begin = skip_sign(at + 1);
        at = skip_digits(begin);
        digits = at > begin;
    }
    return digits && !*at;
}

/* Where the locale's point is another one: with that in the place of the point. */
static bool read_in_locale(const char *text, double *value)
{
    char sample[32], changed[512], *end;
    const int point = snprintf(sample, sizeof sample, "%.1f", 0.5) - 2;
    const char *at = strchr(text, '.');
    const int before = at && at - text < (int)sizeof changed ? (int)(at - text) : -1;
    if (before < 0 || point < 1 ||
        snprintf(changed, sizeof changed, "%.*s%.*s%s", before, text, point, sample + 1, at + 1) >=
            (int)sizeof changed)
        return false;
    *value = strtod(changed, &end);
    return !*end;
}

bool qn_text_read_number(const char *text, double *value)
{
    char *end;
    if (!is_number(text))
        return false;
    *value = strtod(text, &end);
    return !*end || read_in_locale(text, value);
}

char *qn_text_take(struct qn_text *text)
{
    char *bytes = text->failed || !reserve(text, 0) ? NULL : text->bytes;
    if (bytes)
        bytes[text->length] = 0;
    else
        free(text->bytes);
    *text = (struct qn_text){0};
    return bytes;
}

void qn_free(void *text)
{
    free(text);
}

void qn_text_free(struct qn_text *text)
{
    free(text->bytes);
    *text = (struct qn_text){0};
}

uint64_t qn_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const char *qn_size_text(int64_t bytes, char *text, size_t capacity)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    char number[32];
    snprintf(number, sizeof number, "%.*f", size < 10 ? 2 : size < 100 ? 1 : 0, size);
    if (unit == 0)
        snprintf(text, capacity, "%" PRId64 " bytes", bytes);
    else
        snprintf(text, capacity, "%s %s", use_point(number), units[unit]);
    return text;
}
