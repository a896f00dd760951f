/* SPDX-License-Identifier: MIT */
#include "io/tensors.h"
#include "base/escape.h"

#include <string.h>

static const struct qn_tensors_type types[] = {
#define ENTRY(name, size, dtype) {name, size, dtype},
    QN_TENSORS_TYPE_MAP(ENTRY)
#undef ENTRY
};
enum { TYPES = sizeof types / sizeof *types };

const struct qn_tensors_type *qn_tensors_type_named(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const struct qn_tensors_type *qn_tensors_type_of(qn_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (dtype != QN_DTYPE_NONE && types[i].dtype == dtype)
            return &types[i];
    return NULL;
}

struct qn_shown qn_show_name(const char *name)
{
    static const char more[] = "...";
    struct qn_shown shown;
    const size_t room = sizeof shown.text - strlen(more);
    if (qn_escape(shown.text, room, name) >= room)
        strcat(shown.text, more);
    return shown;
}

bool qn_utf8_valid(const char *text)
{
    uint32_t point;
    while (*text) {
        int bytes = qn_utf8_bytes(text, &point);
        if (!bytes)
            return false;
        text += bytes;
    }
    return true;
}
