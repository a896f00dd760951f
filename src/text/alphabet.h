/* SPDX-License-Identifier: MIT
 *
 * The characters that stand for bytes in the files of byte-level tokenizers, as GPT-2 chose them:
 * bytes 33-126, 161-172 and 174-255 are the characters of these numbers, and the others in order
 * U+0100, U+0101, ... (a blank is U+0120). Thread-safety: Safe.
 */
#ifndef QN_TEXT_ALPHABET_H
#define QN_TEXT_ALPHABET_H

#include "text/bytes.h"

/* The code point for a byte. */
uint32_t qn_alphabet_point(uint8_t byte);
/* Adds the characters that stand for some bytes. False: out of memory. */
bool qn_alphabet_write(struct qn_bytes *to, const char *bytes, size_t size);
/* Adds the bytes that a token stands for; a token with any character that is not of the alphabet
 * stands for itself. False: out of memory. */
bool qn_alphabet_read(struct qn_bytes *to, const char *token, size_t size);

#endif
