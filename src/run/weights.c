/* SPDX-License-Identifier: MIT
 *
 * Files of weights: which tensors of a file and of a trainer belong together, and their way from
 * one to the other.
 */
#include "base/glob.h"
#include "base/log.h"
#include "base/shape.h"
#include "io/tensors.h"
#include "run/checkpoint.h"

#include <stdio.h>
#include <string.h>

static const struct qn_weights_params everything;

/* A list of a trainer's tensors beside a file that they are to be loaded from. */
struct matching {
    const struct qn_weights_params *params;
    const struct qn_tensor_list *list;
    const qn_tensors *file; /* NULL: they are to be saved */
    const char *path;
    const struct qn_log *log;
    struct qn_weights_record
        refused; /* the first that `params` do not allow; without a name: none */
    int taken;
};

/* --- what becomes of a tensor --- */

static bool is_matched(const char *patterns, const char *name)
{
    size_t length;
    for (const char *pattern; (pattern = qn_glob_next(&patterns, &length));)
        if (qn_glob(pattern, length, name))
            return true;
    return false;
}

static bool is_chosen(const struct qn_weights_params *params, const char *name)
{
    const bool all = !params->include || !*params->include;
    return (all || is_matched(params->include, name)) && !is_matched(params->exclude, name);
}

static const struct qn_named *find_item(const struct qn_tensor_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
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
    return written < (int)sizeof state && find_item(list, state);
}

/* Of a tensor of the trainer. */
static qn_weights_fate fate_of_item(const struct matching *m, const struct qn_named *item)
{
    const qn_tensors_entry *entry = qn_tensors_find(m->file, item->name);
    if (!is_chosen(m->params, item->name))
        return QN_WEIGHTS_LEFT_OUT;
    if (!m->file)
        return QN_WEIGHTS_TAKEN;
    if (!entry)
        return QN_WEIGHTS_NOT_IN_FILE;
    if (entry->dtype != item->dtype)
        return QN_WEIGHTS_OTHER_TYPE;
    return qn_shape_equal(&entry->shape, &item->shape) ? QN_WEIGHTS_TAKEN : QN_WEIGHTS_OTHER_SHAPE;
}

/* Of a tensor that the file alone has. */
static qn_weights_fate fate_of_entry(const struct matching *m, const char *name)
{
    return is_chosen(m->params, name) && !counts_batches(m->list, name) ? QN_WEIGHTS_NOT_IN_MODEL
                                                                        : QN_WEIGHTS_LEFT_OUT;
}

static bool is_allowed(const struct qn_weights_params *params, qn_weights_fate fate)
{
    switch (fate) {
    case QN_WEIGHTS_TAKEN:
    case QN_WEIGHTS_LEFT_OUT:
        return true;
    case QN_WEIGHTS_NOT_IN_FILE:
    case QN_WEIGHTS_NOT_IN_MODEL:
        return params->partial;
    case QN_WEIGHTS_OTHER_SHAPE:
        return params->skip_other_shapes;
    case QN_WEIGHTS_OTHER_TYPE:
        break;
    }
    return false;
}

static qn_status refuse(const struct matching *m)
{
    char have[80], want[80];
    const struct qn_weights_record *r = &m->refused;
    switch (r->fate) {
    case QN_WEIGHTS_NOT_IN_FILE:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: is missing", m->path, r->name);
    case QN_WEIGHTS_NOT_IN_MODEL:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: the model has none of that name",
                       m->path, r->name);
    case QN_WEIGHTS_OTHER_TYPE:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: is %s, not %s", m->path, r->name,
                       qn_tensors_find(m->file, r->name)->type,
                       qn_tensors_type_of(find_item(m->list, r->name)->dtype)->name);
    default:
        return qn_fail(m->log, QN_ERR_FORMAT, "%s: tensor %s: has shape %s, not %s", m->path,
                       r->name, qn_shape_text(&r->file, have, sizeof have),
                       qn_shape_text(&r->model, want, sizeof want));
    }
}

/* --- all of them --- */

/* A pattern that matches nothing on either side is a slip of the pen. */
static qn_status check_patterns(const struct matching *m, const char *field, const char *patterns)
{
    size_t length;
    for (const char *pattern; (pattern = qn_glob_next(&patterns, &length));) {
        bool found = false;
        for (int i = 0; i < m->list->count && !found; i++)
            found = qn_glob(pattern, length, m->list->items[i].name);
        for (int64_t i = 0; i < qn_tensors_count(m->file) && !found; i++)
            found = qn_glob(pattern, length, qn_tensors_at(m->file, i)->name);
        if (!found)
            return qn_fail(m->log, QN_ERR_ARGUMENT, "%s: %s: no tensor is called '%.*s'", m->path,
                           field, (int)length, pattern);
    }
    return QN_OK;
}

static void tell(struct matching *m, const struct qn_weights_record *record)
{
    m->taken += record->fate == QN_WEIGHTS_TAKEN;
    if (!m->refused.name && !is_allowed(m->params, record->fate))
        m->refused = *record;
    if (m->params->fn)
        m->params->fn(m->params->user, record);
}

static qn_status match(struct matching *m)
{
    QN_TRY(check_patterns(m, "include", m->params->include));
    QN_TRY(check_patterns(m, "exclude", m->params->exclude));
    for (int i = 0; i < m->list->count; i++) {
        const struct qn_named *item = &m->list->items[i];
        const qn_tensors_entry *entry = qn_tensors_find(m->file, item->name);
        tell(m, &(struct qn_weights_record){.name = item->name,
                                            .fate = fate_of_item(m, item),
                                            .model = item->shape,
                                            .file = entry ? entry->shape : (qn_shape){0}});
    }
    for (int64_t i = 0; i < qn_tensors_count(m->file); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(m->file, i);
        if (!find_item(m->list, entry->name))
            tell(m, &(struct qn_weights_record){.name = entry->name,
                                                .fate = fate_of_entry(m, entry->name),
                                                .file = entry->shape});
    }
    if (m->refused.name)
        return refuse(m);
    if (!m->taken && m->list->count)
        return qn_fail(m->log, QN_ERR_ARGUMENT, "%s: no tensor at all is to be %s", m->path,
                       m->file ? "loaded" : "saved");
    return QN_OK;
}

/* Leaves in the list what is to be loaded or saved. */
static qn_status choose(struct qn_tensor_list *list, const struct qn_weights_params *params,
                        const qn_tensors *file, const char *path, const struct qn_log *log)
{
    struct matching m = {params, list, file, path, log, {0}, 0};
    int kept = 0;
    QN_TRY(match(&m));
    for (int i = 0; i < list->count; i++) {
        if (fate_of_item(&m, &list->items[i]) != QN_WEIGHTS_TAKEN)
            continue;
        list->items[kept] = list->items[i];
        list->offsets[kept++] = list->offsets[i];
    }
    list->count = kept;
    return QN_OK;
}

/* --- loading --- */

/* Host memory for one tensor at a time. */
static qn_status make_room(struct qn_tensor_list *list, struct qn_arena *arena, const char *path,
                           const struct qn_log *log)
{
    int64_t most = 1;
    for (int i = 0; i < list->count; i++) {
        const int64_t bytes =
            qn_shape_count(&list->items[i].shape) * qn_dtype_size(list->items[i].dtype);
        most = bytes > most ? bytes : most;
    }
    list->room = qn_arena_alloc(arena, (size_t)most, 1);
    return list->room ? QN_OK : qn_fail(log, QN_ERR_MEMORY, "%s: out of host memory", path);
}

qn_status qn_open_tensors(struct qn_tensor_list *list, const char *path,
                          const struct qn_weights_params *params, struct qn_arena *arena,
                          const struct qn_log *log, qn_tensors **file)
{
    QN_TRY(qn_tensors_open(file, path, log));
    qn_status status = choose(list, params ? params : &everything, *file, path, log);
    if (status == QN_OK)
        status = make_room(list, arena, path, log);
    if (status != QN_OK)
        qn_tensors_close(file);
    return status;
}

static qn_status read_item(const struct qn_tensor_list *list, int i, const qn_tensors *file,
                           int64_t *bytes)
{
    const qn_tensors_entry *entry = qn_tensors_find(file, list->items[i].name);
    *bytes = entry->bytes;
    return qn_tensors_read(file, entry, 0, list->room, entry->bytes);
}

qn_status qn_restore_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                             const qn_tensors *file)
{
    int64_t bytes;
    for (int i = 0; i < list->count; i++) {
        QN_TRY(read_item(list, i, file, &bytes));
        QN_TRY(qn_trainer_write_tensor(trainer, list->items[i].value, list->offsets[i], list->room,
                                       bytes));
    }
    return QN_OK;
}

/* Nothing is written before everything could be read once. */
static qn_status load(struct qn_trainer *trainer, const char *path,
                      const struct qn_weights_params *params, struct qn_arena *arena)
{
    struct qn_tensor_list list;
    qn_tensors *file;
    int64_t bytes;
    QN_TRY(qn_list_weights(trainer, arena, &list));
    const int all = list.count;
    QN_TRY(qn_checksum_check_listed(&trainer->log, path));
    QN_TRY(qn_open_tensors(&list, path, params, arena, &trainer->log, &file));
    qn_status status = QN_OK;
    for (int i = 0; i < list.count && status == QN_OK; i++)
        status = read_item(&list, i, file, &bytes);
    if (status == QN_OK)
        status = qn_restore_tensors(trainer, &list, file);
    qn_tensors_close(&file);
    if (status == QN_OK)
        qn_log_write(&trainer->log, QN_LOG_INFO, "%s: %d of the model's %d tensors loaded", path,
                     list.count, all);
    return status;
}

qn_status qn_trainer_load_weights(qn_trainer *trainer, const char *path,
                                  const qn_weights_params *params)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, path);
    struct qn_arena arena = {0};
    qn_status status = load(trainer, path, params, &arena);
    qn_arena_free(&arena);
    return status;
}

qn_status qn_weights_load(qn_trainer *trainer, const char *path)
{
    return qn_trainer_load_weights(trainer, path, NULL);
}

/* --- saving --- */

struct source {
    struct qn_trainer *trainer;
    const struct qn_tensor_list *list;
};

static qn_status give_bytes(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    const struct source *s = user;
    return qn_trainer_read_value(s->trainer, s->list->items[index].value,
                                 s->list->offsets[index] + at, bytes, size);
}

qn_status qn_save_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                          const char *path, struct qn_arena *arena, uint32_t *crc, int64_t *bytes)
{
    qn_tensors_item *items = qn_arena_new(arena, qn_tensors_item, (size_t)list->count + 1);
    if (!items)
        return qn_fail(&trainer->log, QN_ERR_MEMORY, "save: out of host memory");
    for (int i = 0; i < list->count; i++)
        items[i] =
            (qn_tensors_item){list->items[i].name, list->items[i].dtype, list->items[i].shape};
    const qn_tensors_pair format = {"format", "pt"};
    const qn_tensors_params params = {trainer->log, items, list->count, &format, 1};
    struct source source = {trainer, list};
    return qn_tensors_save(path, &params, give_bytes, &source, crc, bytes);
}

static qn_status save(struct qn_trainer *trainer, const char *path,
                      const struct qn_weights_params *params, struct qn_arena *arena)
{
    struct qn_tensor_list list;
    QN_TRY(qn_trainer_check(trainer, qn_device_finish(trainer->device)));
    QN_TRY(qn_list_weights(trainer, arena, &list));
    QN_TRY(choose(&list, params, NULL, path, &trainer->log));
    return qn_save_tensors(trainer, &list, path, arena, NULL, NULL);
}

qn_status qn_trainer_save_weights(qn_trainer *trainer, const char *path,
                                  const qn_weights_params *params)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, path);
    struct qn_arena arena = {0};
    qn_status status = save(trainer, path, params ? params : &everything, &arena);
    qn_arena_free(&arena);
    return status;
}
