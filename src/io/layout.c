/* SPDX-License-Identifier: MIT */
#include "io/layout.h"
#include "base/glob.h"

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

static size_t prefix_of(const qn_layout *layout, const char *name)
{
    const size_t length = layout && layout->prefix ? strlen(layout->prefix) : 0;
    return length && strncmp(name, layout->prefix, length) == 0 ? length : 0;
}

bool qn_layout_is_bare(const qn_layout *layout, const qn_tensors *file)
{
    for (int64_t i = 0; i < qn_tensors_count(file); i++)
        if (prefix_of(layout, qn_tensors_at(file, i)->name))
            return false;
    return true;
}

bool qn_layout_means(const qn_layout *layout, bool bare, const char *in_file, const char *name)
{
    return strcmp(in_file, name) == 0 ||
           (bare && strcmp(in_file, name + prefix_of(layout, name)) == 0);
}

const qn_tensors_entry *qn_layout_find(const qn_layout *layout, bool bare, const qn_tensors *file,
                                       const char *name)
{
    const qn_tensors_entry *entry = qn_tensors_find(file, name);
    if (!entry && bare)
        entry = qn_tensors_find(file, name + prefix_of(layout, name));
    for (int i = 0; !entry && layout && i < layout->count; i++)
        if (layout->rules[i].kind == QN_LAYOUT_TIED && strcmp(layout->rules[i].tied, name) == 0)
            entry = qn_tensors_find(file, layout->rules[i].pattern);
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
