/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <quern/log.h>
#include <string.h>

/* After a mismatch the last '*' takes one character more; those before it need not, since it takes
 * whatever they could. */
bool qn_glob(const char *pattern, size_t length, const char *name)
{
    const char *const end = pattern + length;
    const char *star = NULL, *taken = NULL;
    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            taken = name;
        } else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++taken;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

const char *qn_glob_next(const char **at, size_t *length)
{
    const char *pattern = *at;
    if (!pattern || !*pattern)
        return NULL;
    pattern += strspn(pattern, " ");
    *length = strcspn(pattern, ",");
    *at = pattern + *length + (pattern[*length] == ',');
    while (*length && pattern[*length - 1] == ' ')
        --*length;
    return pattern;
}

bool qn_matches(const char *patterns, const char *name)
{
    size_t length;
    for (const char *pattern; name && (pattern = qn_glob_next(&patterns, &length));)
        if (qn_glob(pattern, length, name))
            return true;
    return false;
}
