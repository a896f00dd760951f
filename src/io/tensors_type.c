/* SPDX-License-Identifier: MIT */
#include "io/tensors.h"

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
    struct qn_shown shown = {0};
    size_t at = 0;
    for (; name[at] && at + 4 < sizeof shown.text; at++) {
        unsigned char byte = (unsigned char)name[at];
        shown.text[at] = byte < 0x20 || byte == 0x7f ? '?' : name[at];
    }
    if (name[at])
        memcpy(shown.text + at, "...", 3);
    return shown;
}

/* One character: its bytes, or 0 when it is not well-formed. */
static int utf8_bytes(const unsigned char *at)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (int more = 0; more < 4; more++) {
        if ((at[0] & forms[more].mask) != forms[more].lead)
            continue;
        uint32_t point = at[0] & (unsigned char)~forms[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (at[i] & 0x3f);
        }
        bool surrogate = point >= 0xd800 && point < 0xe000;
        return point < forms[more].least || point > 0x10ffff || surrogate ? 0 : more + 1;
    }
    return 0;
}

bool qn_utf8_valid(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        int bytes = utf8_bytes(at);
        if (!bytes)
            return false;
        at += bytes;
    }
    return true;
}
