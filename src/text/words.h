/* SPDX-License-Identifier: MIT
 *
 * Text as the words of byte-level BPE.
 */
#ifndef QN_TEXT_WORDS_H
#define QN_TEXT_WORDS_H

#include "text/pattern.h"

/* The pattern of GPT-2. */
extern const char qn_pattern_gpt2[];

typedef qn_status (*qn_word_fn)(void *user, const char *word, size_t size);

/* Gives every word, never an empty one: in stretches of well-formed UTF-8 the matches of the
 * pattern and what lies between them, or without a pattern all of it; what is not UTF-8 is a word
 * as long as it goes. Whatever `fn` returns but QN_OK ends it. The search has begun. */
qn_status qn_words_each(struct qn_search *search, const char *text, size_t size, qn_word_fn fn,
                        void *user);

#endif
