/* SPDX-License-Identifier: MIT
 *
 * Writing a checkpoint: a folder that appears whole, then the links that name it (links.c).
 */
#include "base/log.h"
#include "base/text.h"
#include "io/file.h"
#include "io/folder.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct saving {
    struct qn_trainer *trainer;
    const struct qn_save_params *params;
    const char *folder; /* the temporary one */
    struct qn_text checksums;
};

static qn_status out_of_memory(const struct saving *s)
{
    return qn_fail(&s->trainer->log, QN_ERR_MEMORY, "save: out of host memory");
}

static void add_checksum(struct saving *s, const char *name, uint32_t crc, int64_t bytes)
{
    qn_text_add(&s->checksums, "%08" PRIx32 " %" PRId64 " %s\n", crc, bytes, name);
}

static qn_status write_tensors(struct saving *s, const char *name,
                               const struct qn_tensor_list *list, struct qn_arena *arena)
{
    char path[QN_PATH_BYTES];
    uint32_t crc;
    int64_t bytes;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    QN_TRY(qn_save_tensors(s->trainer, list, path, arena, &crc, &bytes));
    add_checksum(s, name, crc, bytes);
    return QN_OK;
}

static qn_status write_both(struct saving *s)
{
    struct qn_arena arena = {0};
    struct qn_tensor_list list;
    qn_status status = qn_list_averages(s->trainer, &arena, &list);
    if (status == QN_OK)
        status = write_tensors(s, QN_WEIGHTS_FILE, &list, &arena);
    if (status == QN_OK)
        status = qn_list_slots(s->trainer, &arena, &list);
    if (status == QN_OK)
        status = write_tensors(s, QN_OPTIMIZER_FILE, &list, &arena);
    qn_arena_free(&arena);
    return status;
}

static qn_status read_counters(const struct saving *s, struct qn_counters *counters)
{
    struct qn_control control;
    QN_TRY(qn_trainer_read_value(s->trainer, s->trainer->plan->persist.control, 0, &control,
                                 sizeof control));
    *counters = (struct qn_counters){.loss_scale = control.loss_scale,
                                     .good_updates = control.good_updates,
                                     .applied = control.applied};
    for (int c = 0; c < s->trainer->plan->runs.n_cells; c++)
        if (s->trainer->plan->runs.cell[c].kind == QN_CELL_RING)
            counters->ring_rows[c] = s->trainer->cell_rows[c];
    memcpy(counters->ring_limits, s->trainer->cell_limits, sizeof counters->ring_limits);
    return QN_OK;
}

static qn_status write_json(struct saving *s)
{
    char path[QN_PATH_BYTES];
    struct qn_counters counters;
    QN_TRY(read_counters(s, &counters));
    char *json = qn_train_json(s->trainer, s->params, &counters);
    if (!json)
        return out_of_memory(s);
    snprintf(path, sizeof path, "%s/%s", s->folder, QN_TRAIN_FILE);
    const size_t size = strlen(json);
    qn_status status = size > QN_TRAIN_BYTES
                           ? qn_fail(&s->trainer->log, QN_ERR_ARGUMENT,
                                     "%s: would be larger than %d bytes", path, QN_TRAIN_BYTES)
                           : qn_file_write(path, json, size, &s->trainer->log);
    free(json);
    uint32_t crc;
    int64_t bytes;
    if (status == QN_OK)
        status = qn_file_crc32(path, &crc, &bytes, &s->trainer->log);
    if (status == QN_OK)
        add_checksum(s, QN_TRAIN_FILE, crc, bytes);
    return status;
}

static qn_status write_checksums(struct saving *s)
{
    char path[QN_PATH_BYTES];
    char *text = qn_text_take(&s->checksums);
    if (!text)
        return out_of_memory(s);
    snprintf(path, sizeof path, "%s/%s", s->folder, QN_CHECKSUM_FILE);
    qn_status status = qn_file_write(path, text, strlen(text), &s->trainer->log);
    free(text);
    return status;
}

static qn_status write_folder(struct saving *s)
{
    QN_TRY(write_both(s));
    QN_TRY(write_json(s));
    return write_checksums(s);
}

static qn_status save(struct qn_trainer *trainer, const char *dir,
                      const struct qn_save_params *params)
{
    const struct qn_log *log = &trainer->log;
    struct qn_folder folder = {0};
    char name[QN_NAME_BYTES];
    QN_TRY(qn_trainer_check(trainer, qn_trainer_settle(trainer)));
    QN_TRY(qn_trainer_check(trainer, qn_device_finish(trainer->device)));
    QN_TRY(qn_folder_make(dir, log));
    qn_checkpoint_name(dir, trainer->updates, name);
    QN_TRY(qn_folder_create(&folder, dir, name, log));
    struct saving s = {.trainer = trainer, .params = params, .folder = folder.temp};
    qn_status status = write_folder(&s);
    qn_text_free(&s.checksums);
    if (status != QN_OK) {
        qn_folder_discard(&folder);
        return status;
    }
    QN_TRY(qn_folder_commit(&folder));
    return qn_checkpoint_link(dir, name, params, log);
}

qn_status qn_checkpoint_save(qn_trainer *trainer, const char *dir, const qn_save_params *params)
{
    const qn_save_params none = {0};
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, dir && *dir && strlen(dir) < QN_PATH_BYTES - 512);
    return save(trainer, dir, params ? params : &none);
}
