/* SPDX-License-Identifier: MIT
 *
 * Added tokens: those that are found in the text as they are, before it is split into words. At
 * each place the longest one counts.
 */
#ifndef QN_TEXT_ADDED_H
#define QN_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qn_added_token {
    char *text;
    size_t size;
    int32_t id;
    bool blanks_left, blanks_right; /* takes the blanks on that side, too */
};

/* A zeroed struct is empty. Thread-safety: Unsafe for adding, Safe for searching. */
struct qn_added {
    struct qn_added_token *token; /* sorted by qn_added_sort */
    size_t count, room;
    bool first[256]; /* some token begins with this byte */
};

/* A piece of a text: a token, or what lies before the next one. */
struct qn_added_piece {
    size_t begin, end;
    int32_t id; /* -1: text */
};

/* Copies `size` bytes of the token's text. False: out of memory. */
bool qn_added_put(struct qn_added *added, const char *text, size_t size,
                  const struct qn_added_token *token);
/* To be called before searching. */
void qn_added_sort(struct qn_added *added);

/* A search through one text. */
struct qn_added_search {
    const struct qn_added *added;
    const char *text;
    size_t size;
    size_t at;    /* what lies before was given */
    bool waiting; /* the token behind the piece that was given */
    struct qn_added_piece token;
};

/* The next piece, never an empty one. False: the end. */
bool qn_added_next(struct qn_added_search *search, struct qn_added_piece *piece);
void qn_added_free(struct qn_added *added);

#endif
