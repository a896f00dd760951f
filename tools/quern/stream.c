/* SPDX-License-Identifier: MIT */
#include "stream.h"
#include "line.h"

#include <inttypes.h>
#include <quern/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of all tokens; a token may be a part of a character. */
static int decode(struct stream *s, struct failure *failure)
{
    char *text;
    size_t size = (size_t)s->count;
    if (s->tokenizer) {
        TRY_LIBRARY(failure, NULL,
                    qn_tokenizer_decode(s->tokenizer, s->ids, s->count, &text, &size));
    } else {
        text = malloc(size + 1);
        for (size_t i = 0; text && i < size; i++)
            text[i] = (char)s->ids[i];
    }
    if (!text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    text[size] = 0;
    qn_free(s->text);
    s->text = text;
    s->size = size;
    return CODE_DONE;
}

/* Bytes of a UTF-8 character by its first one; 1 of what is none. */
static size_t length_of(unsigned char first)
{
    return first >= 0xf0 && first < 0xf8   ? 4
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xc2 && first < 0xe0 ? 2
                                           : 1;
}

/* Bytes at the end that begin a character. */
static size_t unfinished(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const unsigned char byte = (unsigned char)text[size - back];
        if ((byte & 0xc0) != 0x80)
            return length_of(byte) > back ? back : 0;
    }
    return 0;
}

/* Where the first stop text begins; `size` if there is none. */
static size_t find_stop(const struct stream *s)
{
    for (size_t at = 0; at < s->size; at++)
        for (int i = 0; i < s->n_stops; i++) {
            const size_t length = strlen(s->stops[i]);
            if (length <= s->size - at && memcmp(s->text + at, s->stops[i], length) == 0)
                return at;
        }
    return s->size;
}

/* Bytes at the end that a stop text begins with. */
static size_t beginnings(const struct stream *s)
{
    size_t longest = 0;
    for (int i = 0; i < s->n_stops; i++)
        for (size_t n = strlen(s->stops[i]) - 1; n > longest; n--)
            if (n <= s->size && memcmp(s->text + s->size - n, s->stops[i], n) == 0)
                longest = n;
    return longest;
}

static int show(struct stream *s, size_t until, struct failure *failure)
{
    bool whole = true;
    if (s->silent || until <= s->shown)
        return CODE_DONE;
    if (isatty(STDOUT_FILENO))
        whole = line_show(s->text + s->shown, until - s->shown);
    else
        fwrite(s->text + s->shown, 1, until - s->shown, stdout);
    s->shown = until;
    fflush(stdout);
    return whole ? CODE_DONE : failure_set(failure, CODE_FAILED, "out of memory");
}

int stream_take(struct stream *s, const int32_t *ids, int64_t count, struct failure *failure)
{
    s->ids = ids;
    s->count = count;
    if (s->numbers) {
        if (!s->silent)
            printf("%s%" PRId32, count > 1 ? " " : "", ids[count - 1]);
        fflush(stdout);
        return CODE_DONE;
    }
    TRY(decode(s, failure));
    const size_t stop = find_stop(s), held = beginnings(s), part = unfinished(s->text, s->size);
    s->stopped = stop < s->size;
    s->size = stop;
    s->text[stop] = 0;
    return show(s, s->stopped ? stop : s->size - (held > part ? held : part), failure);
}

/* Bytes of the character at `text`; 0: what stands there is none, or a NUL. */
static size_t character(const unsigned char *text, size_t size)
{
    const size_t length = length_of(text[0]);
    if (length > size || (length == 1 && (text[0] == 0 || text[0] >= 0x80)))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    const bool odd = length > 1 &&
                     ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0) ||
                      (text[0] == 0xf0 && text[1] < 0x90) || text[0] > 0xf4 ||
                      (text[0] == 0xf4 && text[1] >= 0x90));
    return odd ? 0 : length;
}

char *stream_text(const struct stream *s)
{
    char *text = malloc(3 * s->size + 1);
    size_t end = 0;
    for (size_t at = 0, length; text && at < s->size; at += length ? length : 1) {
        length = character((const unsigned char *)s->text + at, s->size - at);
        memcpy(text + end, length ? s->text + at : "\xef\xbf\xbd", length ? length : 3);
        end += length ? length : 3;
    }
    if (text)
        text[end] = 0;
    return text;
}

int stream_end(struct stream *s, struct failure *failure)
{
    TRY(s->text ? show(s, s->size, failure) : CODE_DONE);
    if (!s->silent && (s->numbers || isatty(STDOUT_FILENO)))
        printf("\n");
    return CODE_DONE;
}

void stream_free(struct stream *s)
{
    qn_free(s->text);
    s->text = NULL;
}
