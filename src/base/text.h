/* SPDX-License-Identifier: MIT
 *
 * Growing text, for what is printed: plans, JSON, reports. A failed allocation sticks.
 * Thread-safety: Unsafe.
 */
#ifndef QN_BASE_TEXT_H
#define QN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed is empty. `bytes` is NUL-terminated once anything was added. */
struct qn_text {
    char *bytes;
    size_t length, capacity;
    bool failed;
};

void qn_text_add(struct qn_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A JSON string, quoted and escaped. */
void qn_text_json(struct qn_text *text, const char *string);
/* Text for XML; what XML has no characters for becomes '?'. */
void qn_text_xml(struct qn_text *text, const char *string);
/* A number for JSON or SVG, with `digits` significant digits and a point, whatever the locale. */
void qn_text_number(struct qn_text *text, int digits, double value);
/* Reads the number that a text is, whole: digits with a point or none, a sign and an exponent or
 * none; neither blanks nor hexadecimal digits, infinities and the like. The point is a point,
 * whatever the locale. False: it is none. Thread-safety: Safe. */
bool qn_text_read_number(const char *text, double *value);
/* Gives the bytes to the caller, who frees them with free() or qn_free; NULL if anything failed. */
char *qn_text_take(struct qn_text *text);
void qn_text_free(struct qn_text *text);

/* FNV-1a, 64 bits: of `size` bytes, going on from `hash` (start with QN_HASH_START). */
#define QN_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t qn_hash(uint64_t hash, const void *bytes, size_t size);

/* "512 bytes", "8.00 MiB", "1.50 GiB": a size for people, into `text`. Gives `text`. */
const char *qn_size_text(int64_t bytes, char *text, size_t capacity);

#endif
