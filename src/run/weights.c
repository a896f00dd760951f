/* SPDX-License-Identifier: MIT
 *
 * Weights on their way from files to a trainer and back.
 */
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"
#include "io/layout.h"
#include "run/checkpoint.h"

#include <string.h>

static const struct qn_weights_params everything;

enum { CONVERTED = 1 << 12 }; /* numbers at a time */

/* --- loading --- */

static const qn_tensors_entry *entry_of(const struct qn_tensor_list *list, int i,
                                        const qn_tensors *file)
{
    return qn_layout_find(list->layout, list->bare, file, list->items[i].name);
}

static bool is_transposed(const struct qn_tensor_list *list, int i)
{
    return list->items[i].shape.rank == 2 &&
           qn_layout_says(list->layout, list->items[i].name, QN_LAYOUT_TRANSPOSED);
}

/* Host memory for one tensor at a time, and for another of the same where one is changed on its
 * way. */
static qn_status make_room(struct qn_tensor_list *list, const qn_tensors *file,
                           struct qn_arena *arena, const char *path, const struct qn_log *log)
{
    int64_t most = 1;
    bool changed = false;
    for (int i = 0; i < list->count; i++) {
        const qn_dtype have = entry_of(list, i, file)->dtype, want = list->items[i].dtype;
        const int64_t size =
            qn_dtype_size(have) > qn_dtype_size(want) ? qn_dtype_size(have) : qn_dtype_size(want);
        const int64_t bytes = qn_shape_count(&list->items[i].shape) * size;
        most = bytes > most ? bytes : most;
        changed |= have != want || is_transposed(list, i);
    }
    list->room[0] = qn_arena_alloc(arena, (size_t)most, 1);
    list->room[1] = changed ? qn_arena_alloc(arena, (size_t)most, 1) : list->room[0];
    return list->room[0] && list->room[1]
               ? QN_OK
               : qn_fail(log, QN_ERR_MEMORY, "%s: out of host memory", path);
}

qn_status qn_open_tensors(struct qn_tensor_list *list, const char *path,
                          const struct qn_weights_params *params, struct qn_arena *arena,
                          const struct qn_log *log, qn_tensors **file)
{
    QN_TRY(qn_tensors_open(file, path, log));
    qn_status status = qn_match_tensors(list, params, *file, path, log);
    if (status == QN_OK)
        status = make_room(list, *file, arena, path, log);
    if (status != QN_OK)
        qn_tensors_close(file);
    return status;
}

static void convert(qn_dtype have, const char *from, qn_dtype want, char *to, int64_t count)
{
    double numbers[CONVERTED];
    for (int64_t done = 0; done < count; done += CONVERTED) {
        const int64_t size = count - done < CONVERTED ? count - done : CONVERTED;
        qn_number_decode(have, from + done * qn_dtype_size(have), size, numbers);
        qn_number_encode(want, numbers, size, to + done * qn_dtype_size(want));
    }
}

/* The tensor as the trainer has it, in one of the list's rooms. */
static qn_status read_item(const struct qn_tensor_list *list, int i, const qn_tensors *file,
                           const void **bytes)
{
    const struct qn_named *item = &list->items[i];
    const qn_tensors_entry *entry = entry_of(list, i, file);
    const int64_t count = qn_shape_count(&item->shape), size = qn_dtype_size(entry->dtype);
    int in = 0;
    QN_TRY(qn_tensors_read(file, entry, 0, list->room[0], count * size));
    if (is_transposed(list, i)) {
        qn_layout_transpose(list->room[0], list->room[1], item->shape.dim[1], item->shape.dim[0],
                            size);
        in = 1;
    }
    if (entry->dtype != item->dtype) {
        convert(entry->dtype, list->room[in], item->dtype, list->room[!in], count);
        in = !in;
    }
    *bytes = list->room[in];
    return QN_OK;
}

static int64_t bytes_of(const struct qn_named *item)
{
    return qn_shape_count(&item->shape) * qn_dtype_size(item->dtype);
}

qn_status qn_restore_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                             const qn_tensors *file)
{
    const void *bytes;
    for (int i = 0; i < list->count; i++) {
        QN_TRY(read_item(list, i, file, &bytes));
        QN_TRY(qn_trainer_write_tensor(trainer, list->items[i].value, list->offsets[i], bytes,
                                       bytes_of(&list->items[i])));
    }
    return QN_OK;
}

/* Leaves those that are in the scope, by their names there. */
static void enter_scope(struct qn_tensor_list *list, const char *scope)
{
    const size_t length = scope ? strlen(scope) : 0;
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (length && strncmp(list->items[i].name, scope, length) != 0)
            continue;
        list->items[kept] = list->items[i];
        list->items[kept].name += length;
        list->offsets[kept++] = list->offsets[i];
    }
    list->count = kept;
}

/* Nothing is written before everything could be read once. */
static qn_status load(struct qn_trainer *trainer, const char *path,
                      const struct qn_weights_params *params, struct qn_arena *arena)
{
    struct qn_tensor_list list;
    qn_tensors *file;
    const void *bytes;
    QN_TRY(qn_list_weights(trainer, arena, &list));
    enter_scope(&list, params->scope);
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
    qn_status status = load(trainer, path, params ? params : &everything, &arena);
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
    return qn_trainer_read_tensor(s->trainer, s->list->items[index].value,
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
    const qn_tensors_params params = {trainer->log, items, list->count, &format, 1, list->layout};
    struct source source = {trainer, list};
    return qn_tensors_save(path, &params, give_bytes, &source, crc, bytes);
}

static qn_status save(struct qn_trainer *trainer, const char *path,
                      const struct qn_weights_params *params, struct qn_arena *arena)
{
    struct qn_tensor_list list;
    QN_TRY(qn_trainer_check(trainer, qn_device_finish(trainer->device)));
    QN_TRY(qn_list_averages(trainer, arena, &list));
    QN_TRY(qn_match_tensors(&list, params, NULL, path, &trainer->log));
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
