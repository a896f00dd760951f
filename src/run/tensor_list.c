/* SPDX-License-Identifier: MIT
 *
 * What of a trainer is saved, by name.
 */
#include "base/log.h"
#include "run/checkpoint.h"

#include <stdio.h>

static bool new_list(struct qn_arena *arena, size_t most, struct qn_tensor_list *list)
{
    *list = (struct qn_tensor_list){.items = qn_arena_new(arena, struct qn_named, most + 1),
                                    .offsets = qn_arena_new(arena, int64_t, most + 1)};
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

qn_status qn_list_averages(const struct qn_trainer *trainer, struct qn_arena *arena,
                           struct qn_tensor_list *list)
{
    QN_TRY(qn_list_weights(trainer, arena, list));
    for (int i = 0; i < list->count; i++) {
        const struct qn_parameter *parameter = qn_trainer_parameter(trainer, list->items[i].value);
        if (!parameter || parameter->average < 0)
            continue;
        list->items[i].value = parameter->average;
        list->items[i].dtype = QN_F32;
    }
    return QN_OK;
}

/* The parameter itself, where files of weights hold its average. */
static bool append_own(const struct qn_trainer *trainer, struct qn_arena *arena,
                       const struct qn_parameter *parameter, struct qn_tensor_list *list)
{
    char text[160];
    if (parameter->average < 0)
        return true;
    snprintf(text, sizeof text, "%s.parameter", parameter->node->name);
    const struct qn_named named = {text, parameter->value,
                                   qn_trainer_tensor_type(trainer, parameter->value),
                                   parameter->node->leaf.shape};
    return append(arena, list, &named, 0);
}

/* The optimizer's states of one parameter: of its shape, or an array. What corrects it is saved
 * with the parameter. */
static bool append_states(const struct qn_trainer *trainer, struct qn_arena *arena,
                          const struct qn_parameter *parameter, struct qn_tensor_list *list)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_block *block = &persist->blocks[parameter->block];
    bool complete = true;
    for (int s = 0; s < QN_MAX_STATE; s++) {
        const struct qn_state_info *info = &block->optimizer->state[s];
        const struct qn_state_part part = parameter->part[s];
        char text[160];
        if (!part.count || s == qn_correction_of(persist, parameter))
            continue;
        snprintf(text, sizeof text, "%s.%s", parameter->node->name, info->name);
        const qn_dtype dtype = persist->values[block->state[s]].operand.dtype;
        const struct qn_named named = {text, block->state[s], dtype,
                                       info->per_chunk || block->optimizer->whole
                                           ? (struct qn_shape){1, {part.count}}
                                           : parameter->node->leaf.shape};
        complete &= append(arena, list, &named, part.first * qn_dtype_size(dtype));
    }
    return complete;
}

/* Caches are empty when a training goes on; rings and tables are as they were. */
static bool append_kept(const struct qn_trainer *trainer, struct qn_arena *arena,
                        struct qn_tensor_list *list)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    bool complete = true;
    for (int c = 0; c < runs->n_cells; c++) {
        const struct qn_cell_of *cell = &runs->cell[c];
        char text[160];
        if (!qn_cell_is_kept(cell))
            continue;
        snprintf(text, sizeof text, "cell.%s", cell->name);
        const struct qn_named named = {text, cell->value, cell->operand.dtype, cell->operand.shape};
        complete &= append(arena, list, &named, 0);
    }
    return complete;
}

qn_status qn_list_slots(const struct qn_trainer *trainer, struct qn_arena *arena,
                        struct qn_tensor_list *list)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    bool complete =
        new_list(arena, (size_t)persist->n_parameters * (QN_MAX_STATE + 1) + QN_MAX_CELLS, list);
    for (int p = 0; complete && p < persist->n_parameters; p++)
        if (persist->parameters[p].trainable)
            complete = append_own(trainer, arena, &persist->parameters[p], list) &&
                       append_states(trainer, arena, &persist->parameters[p], list);
    complete = complete && append_kept(trainer, arena, list);
    return complete ? QN_OK : qn_fail(&trainer->log, QN_ERR_MEMORY, "save: out of host memory");
}
