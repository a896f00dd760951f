/* SPDX-License-Identifier: MIT */
#include "io/layout.h"
#include "base/glob.h"

#include <stdio.h>
#include <string.h>

const qn_layout_rule *qn_layout_rule_of(const qn_layout *layout, const char *name)
{
    for (int i = 0; layout && i < layout->count; i++) {
        const qn_layout_rule *rule = &layout->rules[i];
        if (qn_glob(rule->pattern, strlen(rule->pattern), name))
            return rule;
    }
    return NULL;
}

bool qn_layout_says(const qn_layout *layout, const char *name, qn_layout_kind kind)
{
    const qn_layout_rule *rule = qn_layout_rule_of(layout, name);
    return rule && rule->kind == kind;
}

/* --- names --- */

enum { NAME_BYTES = 256 };

/* The name behind what the layout adds; NULL: it does not begin so. */
static const char *behind_added(const qn_layout *layout, const char *in_file)
{
    const size_t length = layout && layout->added ? strlen(layout->added) : 0;
    return length && strncmp(in_file, layout->added, length) != 0 ? NULL : in_file + length;
}

const char *qn_layout_name(const qn_layout *layout, const char *name, struct qn_arena *arena)
{
    if (!layout || !layout->added)
        return name;
    const size_t length = strlen(layout->added);
    char *joined = qn_arena_alloc(arena, 1, length + strlen(name) + 1);
    return joined ? strcat(strcpy(joined, layout->added), name) : NULL;
}

static size_t prefix_of(const qn_layout *layout, const char *name)
{
    const size_t length = layout && layout->prefix ? strlen(layout->prefix) : 0;
    return length && strncmp(name, layout->prefix, length) == 0 ? length : 0;
}

bool qn_layout_is_bare(const qn_layout *layout, const qn_tensors *file)
{
    for (int64_t i = 0; i < qn_tensors_count(file); i++) {
        const char *name = behind_added(layout, qn_tensors_at(file, i)->name);
        if (name && prefix_of(layout, name))
            return false;
    }
    return true;
}

bool qn_layout_means(const qn_layout *layout, bool bare, const char *in_file, const char *name)
{
    in_file = behind_added(layout, in_file);
    return in_file && (strcmp(in_file, name) == 0 ||
                       (bare && strcmp(in_file, name + prefix_of(layout, name)) == 0));
}

/* The file's tensor of that name behind what the layout adds. */
static const qn_tensors_entry *find_named(const qn_layout *layout, const qn_tensors *file,
                                          const char *name)
{
    char joined[NAME_BYTES];
    const char *added = layout && layout->added ? layout->added : "";
    const int length = snprintf(joined, sizeof joined, "%s%s", added, name);
    return length < NAME_BYTES ? qn_tensors_find(file, joined) : NULL;
}

const qn_tensors_entry *qn_layout_find(const qn_layout *layout, bool bare, const qn_tensors *file,
                                       const char *name)
{
    const qn_tensors_entry *entry = find_named(layout, file, name);
    if (!entry && bare)
        entry = find_named(layout, file, name + prefix_of(layout, name));
    for (int i = 0; !entry && layout && i < layout->count; i++)
        if (layout->rules[i].kind == QN_LAYOUT_TIED && strcmp(layout->rules[i].tied, name) == 0)
            entry = find_named(layout, file, layout->rules[i].pattern);
    return entry;
}

/* --- numbers --- */

qn_shape qn_layout_shape(const qn_layout *layout, const char *name, qn_shape shape)
{
    const int64_t rows = shape.dim[0];
    if (shape.rank == 2 && qn_layout_says(layout, name, QN_LAYOUT_TRANSPOSED)) {
        shape.dim[0] = shape.dim[1];
        shape.dim[1] = rows;
    }
    return shape;
}

/* Tile by tile: rows of both sides stay in the cache. */
void qn_layout_transpose(const void *from, void *to, int64_t rows, int64_t columns, int64_t size)
{
    enum { TILE = 32 };
    const char *source = from;
    char *target = to;
    for (int64_t row = 0; row < rows; row += TILE)
        for (int64_t column = 0; column < columns; column += TILE)
            for (int64_t r = row; r < rows && r < row + TILE; r++)
                for (int64_t c = column; c < columns && c < column + TILE; c++)
                    memcpy(target + (c * rows + r) * size, source + (r * columns + c) * size,
                           (size_t)size);
}
