/* SPDX-License-Identifier: MIT */
#include "vocabulary.h"
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

static char *copy(const void *text, size_t size)
{
    char *made = malloc(size + 1);
    if (made) {
        memcpy(made, text, size);
        made[size] = 0;
    }
    return made;
}

/* What has no text of its own. */
static char *name_mark(const struct vocabulary *v, int32_t id, size_t *size)
{
    char number[24];
    snprintf(number, sizeof number, "<%" PRId32 ">", id);
    const char *text = id == v->mask ? v->mark : number;
    *size = strlen(text);
    return copy(text, *size);
}

/* The token's bytes, with a NUL behind them. NULL: out of memory. */
static char *text_of(const struct vocabulary *v, int32_t id, size_t *size)
{
    char *text = NULL;
    const bool known = v->tokenizer ? qn_tokenizer_text(v->tokenizer, id) != NULL : id < BYTES;
    if (!known)
        return name_mark(v, id, size);
    *size = 1;
    if (!v->tokenizer)
        return copy(&(char){(char)id}, 1);
    return qn_tokenizer_decode(v->tokenizer, &id, 1, &text, size) == QN_OK ? text : NULL;
}

/* With NUL escaped, too, between `quote` and `quote`. */
static char *escape(const char *text, size_t size, const char *quote)
{
    char *shown = calloc(4 * size + 3, 1), *to = shown;
    for (size_t at = 0; shown && at <= size; at += strlen(text + at) + 1) {
        to += sprintf(to, "%s", at ? "\\x00" : quote);
        to += qn_escape(to, 4 * size + 1, text + at);
    }
    if (shown)
        strcpy(to, quote);
    return shown;
}

static char *show(const struct vocabulary *v, char *text, size_t size)
{
    const struct stream stream = {.text = text, .size = size};
    switch (v->form) {
    case VOCABULARY_UTF8:
        return stream_text(&stream);
    case VOCABULARY_QUOTED:
        return escape(text, size, "\"");
    default:
        return escape(text, size, "");
    }
}

int vocabulary_names(const struct vocabulary *v, struct class_names *names, struct failure *failure)
{
    *names = (struct class_names){.name = calloc((size_t)v->tokens, sizeof *names->name)};
    for (int32_t id = 0; names->name && id < v->tokens; id++) {
        size_t size;
        char *text = text_of(v, id, &size);
        char *shown = text ? show(v, text, size) : NULL;
        qn_free(text);
        if (!shown)
            break;
        names->name[names->count++] = shown;
    }
    return names->count == v->tokens ? CODE_DONE
                                     : failure_set(failure, CODE_FAILED, "out of memory");
}
