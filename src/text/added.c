/* SPDX-License-Identifier: MIT */
#include "text/added.h"
#include "base/room.h"
#include "text/blanks.h"
#include "text/bytes.h"

#include <string.h>

bool qn_added_put(struct qn_added *added, const char *text, size_t size,
                  const struct qn_added_token *token)
{
    if (!QN_ROOM(added->token, added->room, added->count + 1))
        return false;
    char *copy = malloc(size);
    if (!copy)
        return false;
    memcpy(copy, text, size);
    struct qn_added_token *to = &added->token[added->count++];
    *to = *token;
    to->text = copy;
    to->size = size;
    added->first[(uint8_t)*text] = true;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct qn_added_token *a = left, *b = right;
    const int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

void qn_added_sort(struct qn_added *added)
{
    if (added->count)
        qsort(added->token, added->count, sizeof *added->token, compare);
}

/* The first token of [low, high), which agree in `depth` bytes, whose next byte is at least `byte`.
 */
static size_t bound(const struct qn_added *added, size_t low, size_t high, size_t depth, int byte)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct qn_added_token *token = &added->token[middle];
        if (token->size <= depth || (uint8_t)token->text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that stands at the beginning of a text; NULL: none. */
static const struct qn_added_token *longest(const struct qn_added *added, const char *text,
                                            size_t size)
{
    const struct qn_added_token *found = NULL;
    size_t low = 0, high = added->count;
    for (size_t depth = 0; depth < size && low < high; depth++) {
        const int byte = (uint8_t)text[depth];
        low = bound(added, low, high, depth, byte);
        high = bound(added, low, high, depth, byte + 1);
        if (low < high && added->token[low].size == depth + 1)
            found = &added->token[low];
    }
    return found;
}

/* Where the blanks before `end` begin. */
static size_t blanks_before(const char *text, size_t least, size_t end)
{
    while (end > least) {
        size_t at = end - 1;
        uint32_t point;
        while (at > least && end - at < 4 && ((uint8_t)text[at] & 0xc0) == 0x80)
            at--;
        if (at + qn_point_next(text + at, end - at, &point) != end || !qn_is_blank(point))
            break;
        end = at;
    }
    return end;
}

static size_t blanks_behind(const char *text, size_t size, size_t at)
{
    for (size_t taken; at < size; at += taken) {
        uint32_t point;
        taken = qn_point_next(text + at, size - at, &point);
        if (!qn_is_blank(point))
            break;
    }
    return at;
}

/* The next token from search->at on, with its blanks. */
static bool find(const struct qn_added_search *s, struct qn_added_piece *piece)
{
    for (size_t at = s->at; at < s->size; at++) {
        const struct qn_added_token *token = s->added->first[(uint8_t)s->text[at]]
                                                 ? longest(s->added, s->text + at, s->size - at)
                                                 : NULL;
        if (!token)
            continue;
        *piece = (struct qn_added_piece){at, at + token->size, token->id};
        if (token->blanks_left)
            piece->begin = blanks_before(s->text, s->at, piece->begin);
        if (token->blanks_right)
            piece->end = blanks_behind(s->text, s->size, piece->end);
        return true;
    }
    return false;
}

bool qn_added_next(struct qn_added_search *s, struct qn_added_piece *piece)
{
    if (s->waiting) {
        s->waiting = false;
        *piece = s->token;
        s->at = piece->end;
        return true;
    }
    if (s->at == s->size)
        return false;
    *piece = (struct qn_added_piece){s->at, s->size, -1};
    s->waiting = s->added->count && find(s, &s->token);
    if (s->waiting)
        piece->end = s->token.begin;
    if (piece->begin == piece->end)
        return qn_added_next(s, piece);
    s->at = piece->end;
    return true;
}

void qn_added_free(struct qn_added *added)
{
    for (size_t i = 0; i < added->count; i++)
        free(added->token[i].text);
    free(added->token);
    *added = (struct qn_added){0};
}
