/* SPDX-License-Identifier: MIT
 *
 * Low-rank adapters in a file of tensors, merged into the weights beside them: W + scale * B A.
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"
#include "io/path.h"
#include "io/tensors_file.h"

#include <stdio.h>
#include <string.h>

static const char weight[] = ".weight", half_a[] = ".lora_A.weight", half_b[] = ".lora_B.weight";

enum { NAME_BYTES = 256 };

/* An item of the new file. */
struct merged {
    const qn_tensors_entry *weight;
    const qn_tensors_entry *a, *b; /* of its adapter; NULL: it has none */
};

struct merging {
    const qn_tensors *file;
    const struct qn_log *log;
    double scale;
    struct merged *merged; /* by item */
    qn_tensors_item *items;
    int64_t count;
    char *bytes;         /* of the item `held`, merged */
    double *a, *b, *row; /* numbers of its adapter, and of a row of it */
    int64_t held;        /* below 0: none */
};

/* --- which belong together --- */

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), wanted = strlen(end);
    return length > wanted && strcmp(name + length - wanted, end) == 0;
}

/* The tensor that is called like this one but for its end. */
static const qn_tensors_entry *find_sibling(const struct merging *m, const char *name,
                                            const char *end, const char *other)
{
    char wanted[NAME_BYTES];
    const int length =
        snprintf(wanted, sizeof wanted, "%.*s%s", (int)(strlen(name) - strlen(end)), name, other);
    return length < NAME_BYTES ? qn_tensors_find(m->file, wanted) : NULL;
}

/* Of the half of an adapter with the end `own`: the other half and the weight are there and fit. */
static qn_status check_half(const struct merging *m, const qn_tensors_entry *half, const char *own)
{
    const qn_tensors_entry *a = find_sibling(m, half->name, own, half_a);
    const qn_tensors_entry *b = find_sibling(m, half->name, own, half_b);
    const qn_tensors_entry *w = find_sibling(m, half->name, own, weight);
    if (!a || !b || !w)
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: its %s is missing", m->file->path,
                       half->name, !w ? "layer's weight" : "other half");
    if (w->shape.rank != 2 || a->shape.rank != 2 || b->shape.rank != 2 ||
        a->shape.dim[0] != b->shape.dim[1] || a->shape.dim[1] != w->shape.dim[1] ||
        b->shape.dim[0] != w->shape.dim[0])
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: does not fit its layer's weight",
                       m->file->path, half->name);
    if (!qn_number_is_float(w->dtype) || !qn_number_is_float(a->dtype) ||
        !qn_number_is_float(b->dtype))
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: is %s, not of floating point",
                       m->file->path, half->name, half->type);
    return QN_OK;
}

static qn_status list_items(struct merging *m)
{
    for (int64_t i = 0; i < qn_tensors_count(m->file); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(m->file, i);
        const char *half = ends_in(entry->name, half_a)   ? half_a
                           : ends_in(entry->name, half_b) ? half_b
                                                          : NULL;
        if (half) {
            QN_TRY(check_half(m, entry, half));
            continue;
        }
        struct merged merged = {.weight = entry};
        if (ends_in(entry->name, weight)) {
            merged.a = find_sibling(m, entry->name, weight, half_a);
            merged.b = find_sibling(m, entry->name, weight, half_b);
        }
        m->merged[m->count] = merged;
        m->items[m->count++] = (qn_tensors_item){entry->name, entry->dtype, entry->shape};
    }
    return QN_OK;
}

/* --- the numbers --- */

/* All numbers of a tensor as doubles, by way of m->bytes. */
static qn_status read_numbers(const struct merging *m, const qn_tensors_entry *entry, double *to)
{
    QN_TRY(qn_tensors_read(m->file, entry, 0, m->bytes, entry->bytes));
    qn_number_decode(entry->dtype, m->bytes, qn_shape_count(&entry->shape), to);
    return QN_OK;
}

static void merge_row(const struct merging *m, const struct merged *merged, int64_t row)
{
    const int64_t in = merged->weight->shape.dim[1], rank = merged->a->shape.dim[0];
    char *bytes = m->bytes + row * in * qn_dtype_size(merged->weight->dtype);
    qn_number_decode(merged->weight->dtype, bytes, in, m->row);
    for (int64_t k = 0; k < rank; k++) {
        const double factor = m->scale * m->b[row * rank + k];
        for (int64_t i = 0; i < in; i++)
            m->row[i] += factor * m->a[k * in + i];
    }
    qn_number_encode(merged->weight->dtype, m->row, in, bytes);
}

static qn_status merge(struct merging *m, int64_t index)
{
    const struct merged *merged = &m->merged[index];
    QN_TRY(read_numbers(m, merged->a, m->a));
    QN_TRY(read_numbers(m, merged->b, m->b));
    QN_TRY(qn_tensors_read(m->file, merged->weight, 0, m->bytes, merged->weight->bytes));
    for (int64_t row = 0; row < merged->weight->shape.dim[0]; row++)
        merge_row(m, merged, row);
    m->held = index;
    return QN_OK;
}

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    struct merging *m = user;
    if (!m->merged[index].a)
        return qn_tensors_read(m->file, m->merged[index].weight, at, bytes, size);
    if (m->held != index)
        QN_TRY(merge(m, index));
    memcpy(bytes, m->bytes + at, (size_t)size);
    return QN_OK;
}

/* --- the file --- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Room for the largest weight that has an adapter, and for the largest halves. */
static bool make_room(struct merging *m, struct qn_arena *arena)
{
    int64_t bytes = 1, a = 1, b = 1, row = 1;
    for (int64_t i = 0; i < m->count; i++) {
        const struct merged *merged = &m->merged[i];
        if (!merged->a)
            continue;
        bytes = larger(bytes,
                       larger(merged->weight->bytes, larger(merged->a->bytes, merged->b->bytes)));
        a = larger(a, qn_shape_count(&merged->a->shape));
        b = larger(b, qn_shape_count(&merged->b->shape));
        row = larger(row, merged->weight->shape.dim[1]);
    }
    m->bytes = qn_arena_alloc(arena, (size_t)bytes, 1);
    m->a = qn_arena_new(arena, double, (size_t)a);
    m->b = qn_arena_new(arena, double, (size_t)b);
    m->row = qn_arena_new(arena, double, (size_t)row);
    return m->bytes && m->a && m->b && m->row;
}

static qn_status save(struct merging *m, const char *path, const qn_tensors_params *params,
                      struct qn_arena *arena)
{
    const size_t most = (size_t)qn_tensors_count(m->file) + 1;
    qn_tensors_params all = *params;
    m->merged = qn_arena_new(arena, struct merged, most);
    m->items = qn_arena_new(arena, qn_tensors_item, most);
    if (!m->merged || !m->items)
        return qn_fail_memory(m->log, path);
    QN_TRY(list_items(m));
    if (!make_room(m, arena))
        return qn_fail_memory(m->log, path);
    all.items = m->items;
    all.count = m->count;
    return qn_tensors_save(path, &all, give, m, NULL, NULL);
}

qn_status qn_tensors_merge(const char *path, const qn_tensors_params *params,
                           const qn_tensors *file, double scale)
{
    static const qn_tensors_params defaults;
    struct qn_arena arena = {0};
    params = params ? params : &defaults;
    if (!path || !file)
        return qn_fail(&params->log, QN_ERR_ARGUMENT, "qn_tensors_merge: path or file is missing");
    struct merging merging = {.file = file, .log = &params->log, .scale = scale, .held = -1};
    qn_status status = save(&merging, path, params, &arena);
    qn_arena_free(&arena);
    return status;
}
