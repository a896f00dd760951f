/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <string.h>

static const char BLANKS[] = " \t";

/* Copies a quoted name to `*to`; gives what is behind it, NULL: its quote does not end. */
static const char *take_quoted(const char *from, char **to)
{
    for (from++; *from; from++) {
        if (*from == '"' && *++from != '"')
            return from;
        *(*to)++ = *from;
    }
    return NULL;
}

static const char *take_plain(const char *from, char **to)
{
    const char *begin = *to;
    while (*from && *from != ',')
        *(*to)++ = *from++;
    while (*to > begin && strchr(BLANKS, (*to)[-1]))
        --*to;
    return from;
}

const char *names_read(struct names *names, const char *text)
{
    char *to = names->text;
    names->count = 0;
    for (const char *from = text;; from++) {
        const char *begin = to;
        from += strspn(from, BLANKS);
        from = *from == '"' ? take_quoted(from, &to) : take_plain(from, &to);
        if (!from)
            return "has a quote that does not end";
        from += strspn(from, BLANKS);
        if (to == begin)
            return "has an empty name; names are separated by commas";
        if (*from && *from != ',')
            return "has no comma behind a closing quote";
        names->name[names->count++] = begin;
        *to++ = 0;
        if (!*from)
            return NULL;
    }
}
