/* SPDX-License-Identifier: MIT
 *
 * Files of tensors of which a layout transposes some.
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/shape.h"
#include "io/layout.h"
#include "io/path.h"

#include <string.h>

enum { PART_BYTES = 1 << 20 }; /* that a source is asked for at once */

/* A source of items as the model has them, which gives them as they stand in the file. */
struct turning {
    const qn_tensors_params *params;
    qn_tensors_source_fn source;
    void *user;
    char *given, *turned; /* room for the largest that is transposed */
    int64_t held;         /* the item that `turned` has; below 0: none */
};

static bool is_turned(const qn_tensors_params *params, int64_t index)
{
    const qn_tensors_item *item = &params->items[index];
    return item->shape.rank == 2 &&
           qn_layout_says(params->layout, item->name, QN_LAYOUT_TRANSPOSED);
}

static int64_t bytes_of(const qn_tensors_item *item)
{
    return qn_mul(qn_shape_count(&item->shape), qn_dtype_size(item->dtype));
}

static qn_status turn(struct turning *t, int64_t index)
{
    const qn_tensors_item *item = &t->params->items[index];
    const int64_t bytes = bytes_of(item);
    for (int64_t at = 0; at < bytes; at += PART_BYTES) {
        const int64_t size = bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
        QN_TRY(t->source(t->user, index, at, t->given + at, size));
    }
    qn_layout_transpose(t->given, t->turned, item->shape.dim[0], item->shape.dim[1],
                        qn_dtype_size(item->dtype));
    t->held = index;
    return QN_OK;
}

static qn_status give_turned(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    struct turning *t = user;
    if (!is_turned(t->params, index))
        return t->source(t->user, index, at, bytes, size);
    if (t->held != index)
        QN_TRY(turn(t, index));
    memcpy(bytes, t->turned + at, (size_t)size);
    return QN_OK;
}

/* Items of the file, and room for the largest of those that are transposed. */
static qn_tensors_item *turn_items(struct turning *t, struct qn_arena *arena)
{
    const qn_tensors_params *params = t->params;
    int64_t most = 1;
    qn_tensors_item *items = qn_arena_new(arena, qn_tensors_item, (size_t)params->count);
    for (int64_t i = 0; items && i < params->count; i++) {
        const char *name = params->items[i].name;
        items[i] = params->items[i];
        if (!name)
            continue;
        items[i].name = qn_layout_name(params->layout, name, arena);
        if (!items[i].name)
            return NULL;
        if (!is_turned(params, i))
            continue;
        items[i].shape = qn_layout_shape(params->layout, name, items[i].shape);
        most = bytes_of(&items[i]) > most ? bytes_of(&items[i]) : most;
    }
    t->given = qn_arena_alloc(arena, 2, (size_t)most);
    t->turned = t->given ? t->given + most : NULL;
    return t->given ? items : NULL;
}

qn_status qn_layout_save(const char *path, const qn_tensors_params *params,
                         qn_tensors_source_fn source, void *user, uint32_t *crc, int64_t *bytes)
{
    struct qn_arena arena = {0};
    struct turning turning = {.params = params, .source = source, .user = user, .held = -1};
    qn_tensors_params there = *params;
    there.items = turn_items(&turning, &arena);
    there.layout = NULL;
    qn_status status = there.items
                           ? qn_tensors_save(path, &there, give_turned, &turning, crc, bytes)
                           : qn_fail_memory(&params->log, path);
    qn_arena_free(&arena);
    return status;
}
