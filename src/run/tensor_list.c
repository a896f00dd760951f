/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "run/checkpoint.h"
#include <quern/io.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *qn_optimizer_slot_name(enum qn_optimizer_kind kind, int slot)
{
    return kind == QN_SGD ? "momentum_buffer" : slot ? "exp_avg_sq" : "exp_avg";
}

static bool new_list(struct qn_arena *arena, size_t most, struct qn_tensor_list *list)
{
    list->count = 0;
    list->items = qn_arena_new(arena, struct qn_named, most + 1);
    list->offsets = qn_arena_new(arena, int64_t, most + 1);
    return list->items && list->offsets;
}

static bool append(struct qn_arena *arena, struct qn_tensor_list *list, const struct qn_named *item,
                   int64_t offset)
{
    struct qn_named *added = &list->items[list->count];
    *added = *item;
    added->name = qn_arena_strdup(arena, item->name);
    list->offsets[list->count++] = offset;
    return added->name != NULL;
}

qn_status qn_list_weights(const struct qn_trainer *trainer, struct qn_arena *arena,
                          struct qn_tensor_list *list)
{
    char text[128];
    struct qn_named named;
    size_t most = (size_t)trainer->plan->persist.n_values;
    bool complete = new_list(arena, most, list);
    for (int i = 0; complete && qn_trainer_named(trainer, i, text, &named); i++)
        complete = append(arena, list, &named, 0);
    return complete ? QN_OK : qn_fail(&trainer->log, QN_ERR_MEMORY, "save: out of host memory");
}

static bool append_slots(const struct qn_trainer *trainer, struct qn_arena *arena, int n,
                         struct qn_tensor_list *list)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_node *node = &persist->graph->nodes[n];
    const struct qn_block *block = qn_block_of(persist, n);
    bool complete = true;
    for (int s = 0; s < QN_MAX_SLOTS && block->slots[s] >= 0; s++) {
        char text[160];
        snprintf(text, sizeof text, "%s.%s", node->name,
                 qn_optimizer_slot_name(trainer->plan->params.optimizer.kind, s));
        const struct qn_named named = {text, block->slots[s], node->leaf.shape};
        complete &= append(arena, list, &named, persist->values[persist->leaf[n]].block_offset);
    }
    return complete;
}

qn_status qn_list_slots(const struct qn_trainer *trainer, struct qn_arena *arena,
                        struct qn_tensor_list *list)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    bool complete = new_list(arena, (size_t)persist->n_values * QN_MAX_SLOTS, list);
    for (int n = 0; complete && n < persist->graph->n_nodes; n++)
        if (persist->gradient[n] >= 0)
            complete = append_slots(trainer, arena, n, list);
    return complete ? QN_OK : qn_fail(&trainer->log, QN_ERR_MEMORY, "save: out of host memory");
}

/* --- restoring --- */

static qn_status check_entry(const struct qn_log *log, const char *path,
                             const qn_tensors_entry *entry, const struct qn_named *item)
{
    char have[80], want[80];
    if (!entry)
        return qn_fail(log, QN_ERR_FORMAT, "%s: tensor %s: is missing", path, item->name);
    if (entry->dtype != QN_F32)
        return qn_fail(log, QN_ERR_FORMAT, "%s: tensor %s: is %s, not F32", path, item->name,
                       entry->type);
    if (!qn_shape_equal(&entry->shape, &item->shape))
        return qn_fail(log, QN_ERR_FORMAT, "%s: tensor %s: has shape %s, not %s", path, item->name,
                       qn_shape_text(&entry->shape, have, sizeof have),
                       qn_shape_text(&item->shape, want, sizeof want));
    return QN_OK;
}

static qn_status restore_one(struct qn_trainer *trainer, const qn_tensors *file,
                             const qn_tensors_entry *entry, int value, int64_t offset)
{
    void *bytes = malloc((size_t)entry->bytes + 1);
    if (!bytes)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "%s: out of host memory", entry->name);
    qn_status status = qn_tensors_read(file, entry, 0, bytes, entry->bytes);
    if (status == QN_OK)
        status = qn_trainer_write_value(trainer, value, offset, bytes, entry->bytes);
    free(bytes);
    return status;
}

static bool listed(const struct qn_tensor_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/* PyTorch's batch norm counts its batches in NAME.num_batches_tracked, beside NAME.running_mean. No
 * number of ours is made of it. */
static bool counts_batches(const struct qn_tensor_list *list, const char *name)
{
    char state[128];
    const char *last = strrchr(name, '.');
    if (!last || strcmp(last, ".num_batches_tracked") != 0)
        return false;
    int written = snprintf(state, sizeof state, "%.*s.running_mean", (int)(last - name), name);
    return written < (int)sizeof state && listed(list, state);
}

static qn_status check_file(const qn_tensors *file, const struct qn_tensor_list *list,
                            const char *path, const struct qn_log *log)
{
    for (int i = 0; i < list->count; i++)
        QN_TRY(check_entry(log, path, qn_tensors_find(file, list->items[i].name), &list->items[i]));
    for (int64_t i = 0; i < qn_tensors_count(file); i++) {
        const char *name = qn_tensors_at(file, i)->name;
        if (!listed(list, name) && !counts_batches(list, name))
            return qn_fail(log, QN_ERR_FORMAT, "%s: tensor %s: the model has none of that name",
                           path, name);
    }
    return QN_OK;
}

qn_status qn_open_tensors(const struct qn_tensor_list *list, const char *path,
                          const struct qn_log *log, qn_tensors **file)
{
    QN_TRY(qn_tensors_open(file, path, log));
    qn_status status = check_file(*file, list, path, log);
    if (status != QN_OK)
        qn_tensors_close(file);
    return status;
}

qn_status qn_restore_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                             const qn_tensors *file)
{
    for (int i = 0; i < list->count; i++)
        QN_TRY(restore_one(trainer, file, qn_tensors_find(file, list->items[i].name),
                           list->items[i].value, list->offsets[i]));
    return QN_OK;
}

static qn_status load(struct qn_trainer *trainer, const char *path, struct qn_arena *arena)
{
    struct qn_tensor_list list;
    qn_tensors *file;
    QN_TRY(qn_list_weights(trainer, arena, &list));
    QN_TRY(qn_open_tensors(&list, path, &trainer->log, &file));
    qn_status status = qn_restore_tensors(trainer, &list, file);
    qn_tensors_close(&file);
    return status;
}

qn_status qn_weights_load(qn_trainer *trainer, const char *path)
{
    if (!trainer || !path)
        return QN_ERR_ARGUMENT;
    if (trainer->failed)
        return trainer->failed;
    struct qn_arena arena = {0};
    qn_status status = load(trainer, path, &arena);
    qn_arena_free(&arena);
    return status;
}
