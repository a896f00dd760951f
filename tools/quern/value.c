/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *value_count(const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (!*text || *end)
        return "is not a whole number";
    if (errno == ERANGE || number > most)
        return "is too large";
    if (number < least)
        return "is too small";
    *value = number;
    return NULL;
}

const char *value_real(const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (!*text || *end || !isfinite(number))
        return "is not a number";
    *value = number;
    return NULL;
}

const char *value_size(const char *text, int64_t *value)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    char *end;
    double number = strtod(text, &end), bytes = NAN;
    end += end != text && *end == ' ';
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0)
            bytes = number * units[i].bytes;
    if (!isfinite(bytes))
        return "is not a size: bytes, or a number with KiB, MiB or GiB";
    if (bytes < 1)
        return "is no size above nothing";
    if (bytes >= 0x1p62)
        return "is too large";
    *value = (int64_t)bytes;
    return NULL;
}

const char *value_switch(const char *text, bool *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1", NULL};
    int word;
    if (value_word(text, words, &word))
        return "is neither yes nor no";
    *value = word % 2;
    return NULL;
}

const char *value_word(const char *text, const char *const *words, int *value)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return NULL;
        }
    }
    return "is not one of them";
}

const char *value_reals(const char *text, float *values, int capacity, int *count)
{
    float read[64];
    int n = 0;
    for (const char *at = text;; at++) {
        char *end;
        double number = strtod(at, &end);
        if (end == at || !isfinite(number))
            return "is not a list of numbers separated by commas";
        if (n == capacity || n == (int)(sizeof read / sizeof *read))
            return "has too many numbers";
        read[n++] = (float)number;
        at = end + strspn(end, " ");
        if (!*at)
            break;
        if (*at != ',')
            return "is not a list of numbers separated by commas";
    }
    memcpy(values, read, (size_t)n * sizeof *values);
    *count = n;
    return NULL;
}

const char *size_text(int64_t bytes, char text[SIZE_TEXT_BYTES])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes;
    int unit = 0;
    for (; unit < 4 && number >= 1024; unit++)
        number /= 1024;
    snprintf(text, SIZE_TEXT_BYTES, number == floor(number) ? "%.0f %s" : "%.2f %s", number,
             units[unit]);
    return text;
}
