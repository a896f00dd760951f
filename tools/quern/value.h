/* SPDX-License-Identifier: MIT
 *
 * Values written as text in recipes and options. Every function gives NULL and writes the value, or
 * gives the reason why the text is none and writes nothing.
 */
#ifndef QUERN_TOOL_VALUE_H
#define QUERN_TOOL_VALUE_H

#include <quern/data.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number within [least, most]. */
const char *value_count(const char *text, int64_t least, int64_t most, int64_t *value);
/* A finite number. */
const char *value_real(const char *text, double *value);
/* The same, which is 0 or keeps its magnitude as an f32 of full precision. */
const char *value_single(const char *text, double *value);
/* Bytes: a number above 0, alone or with KiB, MiB or GiB, of which K, M and G are short forms, in
 * any case and behind blanks or none ("1.5GiB", "16 mib", "16M"); parts of a byte are cut off. */
#define VALUE_SIZE_FORM "bytes, or a number with KiB, MiB, GiB, K, M or G"
const char *value_size(const char *text, int64_t *value);
/* Bytes per second, above 0, by a number and its unit: B/s, kB/s, MB/s, GB/s, TB/s, or bit/s,
 * kbit/s, Mbit/s, Gbit/s, Tbit/s, of 1000 each. Seconds from 0 on: s, ms, us, ns. */
const char *value_rate(const char *text, double *value);
const char *value_seconds(const char *text, double *value);
/* yes, true, on, 1; no, false, off, 0. */
const char *value_switch(const char *text, bool *value);
/* One of `words`, a list ended by NULL; gives its index. */
const char *value_word(const char *text, const char *const *words, int *value);
/* Words for value_word: types of numbers from QN_F32 on. */
extern const char *const value_floats[];
/* Numbers separated by commas, at most `capacity`, each as of value_single. */
const char *value_reals(const char *text, float *values, int capacity, int *count);

/* Tokens of samples, rising from 1 to 2^24, separated by commas. */
struct lengths {
    int64_t length[QN_MAX_LENGTHS];
    int count;
};
const char *value_lengths(const char *text, struct lengths *lengths);

/* The first of a list "PATTERN:FACTOR, PATTERN:FACTOR", whose factors are from 0 to 1e6; *list
 * moves behind it. */
struct factor {
    char pattern[128];
    double factor;
};
const char *value_factor(const char **list, struct factor *factor);

/* Bytes for people, such as "31.5 MiB". */
enum { SIZE_TEXT_BYTES = 32 };
const char *size_text(int64_t bytes, char text[SIZE_TEXT_BYTES]);

#endif
