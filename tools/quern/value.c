/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char blank[] = " \t\r\n";

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
    errno = 0;
    double number = strtod(text, &end);
    if (!*text || *end || !isfinite(number))
        return "is not a number";
    *value = number;
    return NULL;
}

/* Whether `length` characters are the word, in any case. */
static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

const char *value_size(const char *text, int64_t *value)
{
    static const struct {
        const char *unit, *shorter;
        double bytes;
    } units[] = {{"", "", 1}, {"KiB", "K", 0x1p10}, {"MiB", "M", 0x1p20}, {"GiB", "G", 0x1p30}};
    char *end;
    double number = strtod(text, &end), bytes = NAN;
    const size_t blanks = strspn(end, blank), unit = strcspn(end + blanks, blank);
    const bool whole = end != text && !end[blanks + unit + strspn(end + blanks + unit, blank)];
    for (size_t i = 0; whole && i < sizeof units / sizeof *units; i++)
        if (is_word(end + blanks, unit, units[i].unit) ||
            is_word(end + blanks, unit, units[i].shorter))
            bytes = number * units[i].bytes;
    if (!isfinite(bytes))
        return "is not a size: " VALUE_SIZE_FORM;
    if (bytes < 1)
        return "is no size above nothing";
    if (bytes >= 0x1p62)
        return "is too large";
    *value = (int64_t)bytes;
    return NULL;
}

struct unit {
    const char *name; /* NULL: the last one was before */
    double factor;
};

/* Whether the text is a finite number with one of the units, in any case; gives their product. */
static bool read_quantity(const char *text, const struct unit *units, double *value)
{
    char *end;
    const double number = strtod(text, &end);
    const char *unit = end + strspn(end, blank);
    while (units->name && strcasecmp(units->name, unit) != 0)
        units++;
    *value = units->name && end != text ? number * units->factor : NAN;
    return isfinite(*value);
}

const char *value_rate(const char *text, double *value)
{
    static const struct unit units[] = {{"B/s", 1},
                                        {"kB/s", 1e3},
                                        {"MB/s", 1e6},
                                        {"GB/s", 1e9},
                                        {"TB/s", 1e12},
                                        {"bit/s", 1.0 / 8},
                                        {"kbit/s", 1e3 / 8},
                                        {"Mbit/s", 1e6 / 8},
                                        {"Gbit/s", 1e9 / 8},
                                        {"Tbit/s", 1e12 / 8},
                                        {NULL, 0}};
    double rate;
    if (!read_quantity(text, units, &rate))
        return "is not a rate, such as 12.5 GB/s or 100 Mbit/s";
    if (rate <= 0)
        return "is no rate above 0";
    *value = rate;
    return NULL;
}

const char *value_seconds(const char *text, double *value)
{
    static const struct unit units[] = {
        {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};
    double seconds;
    if (!read_quantity(text, units, &seconds))
        return "is not a time, such as 20 ms or 5 us";
    if (seconds < 0)
        return "is below 0";
    *value = seconds;
    return NULL;
}

/* The magnitudes that f32 has, besides 0: devices may take what is smaller for 0. */
#define SINGLES "outside the range of f32, 1.2e-38 to 3.4e38"

static bool is_single(double number)
{
    return number == 0 || (fabs(number) >= (double)FLT_MIN && fabs(number) <= (double)FLT_MAX);
}

const char *value_single(const char *text, double *value)
{
    double number;
    const char *reason = value_real(text, &number);
    if (reason)
        return reason;
    if (errno == ERANGE || !is_single(number))
        return "is " SINGLES;
    *value = number;
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

const char *const value_floats[] = {"f32", "f16", "bf16", NULL};

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
        errno = 0;
        double number = strtod(at, &end);
        if (end == at || !isfinite(number))
            return "is not a list of numbers separated by commas";
        if (errno == ERANGE || !is_single(number))
            return "has a number " SINGLES;
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

const char *value_lengths(const char *text, struct lengths *lengths)
{
    float read[QN_MAX_LENGTHS];
    int count;
    const char *reason = value_reals(text, read, QN_MAX_LENGTHS, &count);
    for (int i = 0; !reason && i < count; i++)
        if (read[i] < (i ? read[i - 1] + 1 : 1) || read[i] > 1 << 24 || read[i] != floorf(read[i]))
            reason = "is not a list of whole numbers that rise from 1 to 16777216";
    if (reason)
        return reason;
    for (int i = 0; i < count; i++)
        lengths->length[i] = (int64_t)read[i];
    lengths->count = count;
    return NULL;
}

const char *value_factor(const char **list, struct factor *factor)
{
    static const char *const form = "is not PATTERN:FACTOR, PATTERN:FACTOR, factors from 0 to 1e6";
    struct factor read = {.pattern = ""};
    const char *pattern = *list + strspn(*list, " ");
    const size_t length = strcspn(pattern, ":,");
    char *end;
    if (length == 0 || length >= sizeof read.pattern || pattern[length] != ':')
        return form;
    memcpy(read.pattern, pattern, length);
    read.factor = strtod(pattern + length + 1, &end);
    if (end == pattern + length + 1 || !(read.factor >= 0 && read.factor <= 1e6))
        return form;
    end += strspn(end, " ");
    if (*end && (*end != ',' || !end[1]))
        return form;
    *list = end + (*end == ',');
    *factor = read;
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
