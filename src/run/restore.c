/* SPDX-License-Identifier: MIT
 *
 * Opening a checkpoint and going on from it.
 */
#include "base/log.h"
#include "io/file.h"
#include "io/names.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *folder, const char *name)
{
    char path[PATH_MAX + 80];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The folder of the checkpoint itself, links followed, into `real`. */
static qn_status find_folder(const struct qn_log *log, const char *path, char real[PATH_MAX])
{
    char last[PATH_MAX + 8];
    snprintf(last, sizeof last, "%s/last", path);
    const char *folder = is_file(path, QN_CHECKSUM_FILE) ? path : last;
    if (!qn_is_folder(path))
        return qn_fail(log, QN_ERR_IO, "%s: no such folder", path);
    if (!is_file(folder, QN_CHECKSUM_FILE) || !realpath(folder, real))
        return qn_fail(log, QN_ERR_IO, "%s: holds no checkpoint (%s is missing)", path,
                       QN_CHECKSUM_FILE);
    return QN_OK;
}

/* --- checksums --- */

static qn_status check_line(const struct qn_log *log, const char *folder, const char *line,
                            const char *name)
{
    char path[PATH_MAX + 80];
    struct qn_checksum want;
    if (!qn_checksum_parse(line, &want))
        return qn_fail(log, QN_ERR_FORMAT, "%s/%s: a line is corrupt", folder, QN_CHECKSUM_FILE);
    if (strcmp(want.name, name) != 0)
        return qn_fail(log, QN_ERR_FORMAT, "%s/%s: names %s, not %s", folder, QN_CHECKSUM_FILE,
                       want.name, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return qn_checksum_check(log, path, &want);
}

static qn_status check_lines(const struct qn_log *log, const char *folder, char *text)
{
    static const char *const files[] = {QN_WEIGHTS_FILE, QN_OPTIMIZER_FILE, QN_TRAIN_FILE};
    char *rest = text;
    for (int i = 0; i < 3; i++) {
        const char *line = strsep(&rest, "\n");
        if (!line)
            return qn_fail(log, QN_ERR_FORMAT, "%s/%s: ends early", folder, QN_CHECKSUM_FILE);
        QN_TRY(check_line(log, folder, line, files[i]));
    }
    return QN_OK;
}

static qn_status check_files(const struct qn_log *log, const char *folder)
{
    char *text;
    QN_TRY(qn_checksum_read(log, folder, &text));
    qn_status status = check_lines(log, folder, text);
    free(text);
    return status;
}

/* --- opening --- */

static qn_status read_json(struct qn_checkpoint *checkpoint, const char *folder)
{
    char path[PATH_MAX + 80], *text;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, QN_TRAIN_FILE);
    QN_TRY(qn_file_read(path, QN_TRAIN_BYTES, &text, &size, &checkpoint->log));
    qn_status status = qn_train_parse(checkpoint, path, text);
    free(text);
    return status;
}

/* What members have in common with the first. */
static void complete_members(struct qn_checkpoint *checkpoint)
{
    for (int m = 0; m < checkpoint->n_members; m++) {
        struct qn_checkpoint_info *info = &checkpoint->members[m].info, own = *info;
        *info = checkpoint->info;
        info->plan = own.plan;
        info->facts = own.facts;
        info->plan_hash = own.plan_hash;
        checkpoint->members[m].log = checkpoint->log;
        checkpoint->members[m].counters = checkpoint->counters;
    }
}

static qn_status open_checkpoint(struct qn_checkpoint *checkpoint, const char *path)
{
    char folder[PATH_MAX], weights[PATH_MAX + 80];
    QN_TRY(find_folder(&checkpoint->log, path, folder));
    QN_TRY(check_files(&checkpoint->log, folder));
    QN_TRY(read_json(checkpoint, folder));
    snprintf(weights, sizeof weights, "%s/%s", folder, QN_WEIGHTS_FILE);
    checkpoint->info.path = qn_arena_strdup(&checkpoint->arena, folder);
    checkpoint->info.weights = qn_arena_strdup(&checkpoint->arena, weights);
    if (!checkpoint->info.path || !checkpoint->info.weights)
        return qn_fail(&checkpoint->log, QN_ERR_MEMORY, "%s: out of host memory", path);
    complete_members(checkpoint);
    return QN_OK;
}

qn_status qn_checkpoint_open(qn_checkpoint **out, const char *path, const qn_log *log)
{
    QN_REQUIRE(log, out && path);
    *out = NULL;
    QN_REQUIRE(log, strlen(path) < PATH_MAX - 8);
    struct qn_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return qn_fail(log, QN_ERR_MEMORY, "%s: out of host memory", path);
    if (log)
        checkpoint->log = *log;
    qn_status status = open_checkpoint(checkpoint, path);
    if (status != QN_OK)
        qn_checkpoint_close(&checkpoint);
    *out = checkpoint;
    return status;
}

void qn_checkpoint_close(qn_checkpoint **checkpoint)
{
    if (!checkpoint || !*checkpoint)
        return;
    qn_arena_free(&(*checkpoint)->arena);
    free(*checkpoint);
    *checkpoint = NULL;
}

const qn_checkpoint_info *qn_checkpoint_describe(const qn_checkpoint *checkpoint)
{
    return checkpoint ? &checkpoint->info : NULL;
}

const qn_checkpoint *qn_checkpoint_member(const qn_checkpoint *checkpoint, int member)
{
    return !checkpoint || member < 0 || member > checkpoint->n_members ? NULL
           : member ? &checkpoint->members[member - 1]
                    : checkpoint;
}

/* --- going on --- */

/* Whether kernels chosen for one device are right for another. */
static bool kernels_fit(const struct qn_facts *made, const struct qn_facts *here)
{
    return made->cpu == here->cpu && made->max_work_group <= here->max_work_group &&
           made->local_bytes <= here->local_bytes && made->blas <= here->blas;
}

/* The largest allocation is asked by what the plan allocates: drivers report what is free at the
 * moment. */
static bool pools_fit(const struct qn_plan *plan, const struct qn_facts *here)
{
    for (int i = 0; i < plan->placement.n_pools; i++)
        if (plan->placement.pool_bytes[i] > here->max_alloc_bytes)
            return false;
    return true;
}

static qn_status refuse_device(const qn_checkpoint *checkpoint, const struct qn_facts *here)
{
    return qn_fail(&checkpoint->log, QN_ERR_FORMAT,
                   "%s: made on %s, this is %s: a new plan must be made", checkpoint->info.path,
                   checkpoint->info.facts.name, here->name);
}

/* Of a list, or of a graph alone. */
static qn_status make_plan(const qn_checkpoint *checkpoint, const qn_run_list *list,
                           const qn_graph *graph, const struct qn_facts *here, qn_plan **plan)
{
    const qn_checkpoint_info *info = &checkpoint->info;
    struct qn_facts facts = info->facts;
    if (!kernels_fit(&facts, here))
        return refuse_device(checkpoint, here);
    facts.blas_rows = here->blas_rows;
    facts.blas_columns = here->blas_columns;
    facts.blas_terms = here->blas_terms;
    facts.blas_side = here->blas_side;
    QN_TRY(list ? qn_plan_create_runs(plan, list, &facts, &info->plan, NULL)
                : qn_plan_create(plan, graph, &facts, &info->plan, NULL));
    uint64_t hash = qn_plan_facts(*plan)->hash;
    if (hash != info->plan_hash)
        return qn_fail(&checkpoint->log, QN_ERR_FORMAT,
                       "%s: its plan %016" PRIx64 " cannot be made again (%016" PRIx64
                       "): another graph, another version or other kernels",
                       info->path, info->plan_hash, hash);
    if (!pools_fit(*plan, here))
        return refuse_device(checkpoint, here);
    if (strcmp(facts.name, here->name) != 0)
        qn_log_write(&checkpoint->log, QN_LOG_WARNING, "%s: made on %s, this is %s", info->path,
                     facts.name, here->name);
    return QN_OK;
}

qn_status qn_checkpoint_plan(const qn_checkpoint *checkpoint, const qn_graph *graph,
                             const qn_device *device, qn_plan **plan)
{
    QN_REQUIRE(NULL, checkpoint && plan);
    *plan = NULL;
    QN_REQUIRE(&checkpoint->log, graph && device);
    qn_status status = make_plan(checkpoint, NULL, graph, qn_device_facts(device), plan);
    if (status != QN_OK)
        qn_plan_destroy(plan);
    return status;
}

qn_status qn_checkpoint_plan_runs(const qn_checkpoint *checkpoint, const qn_run_list *list,
                                  const qn_device *device, qn_plan **plan)
{
    QN_REQUIRE(NULL, checkpoint && plan);
    *plan = NULL;
    QN_REQUIRE(&checkpoint->log, list && device);
    qn_status status = make_plan(checkpoint, list, NULL, qn_device_facts(device), plan);
    if (status != QN_OK)
        qn_plan_destroy(plan);
    return status;
}

static qn_status restore_counters(const qn_checkpoint *checkpoint, struct qn_trainer *trainer)
{
    const struct qn_control control = {.loss_scale = checkpoint->counters.loss_scale,
                                       .good_updates = checkpoint->counters.good_updates,
                                       .applied = checkpoint->counters.applied};
    trainer->updates = checkpoint->info.update;
    memcpy(trainer->cell_rows, checkpoint->counters.ring_rows, sizeof trainer->cell_rows);
    memcpy(trainer->cell_limits, checkpoint->counters.ring_limits, sizeof trainer->cell_limits);
    return qn_trainer_write_value(trainer, trainer->plan->persist.control, 0, &control,
                                  sizeof control);
}

/* Both files are open and checked before anything is written. Averages come after the parameters,
 * with which they would begin anew. */
static qn_status restore_lists(const qn_checkpoint *checkpoint, struct qn_trainer *trainer,
                               struct qn_arena *arena)
{
    char path[PATH_MAX + 80];
    struct qn_tensor_list weights, slots;
    qn_tensors *weights_file = NULL, *slots_file = NULL;
    QN_TRY(qn_list_averages(trainer, arena, &weights));
    QN_TRY(qn_list_slots(trainer, arena, &slots));
    snprintf(path, sizeof path, "%s/%s", checkpoint->info.path, QN_OPTIMIZER_FILE);
    QN_TRY(qn_open_tensors(&weights, checkpoint->info.weights, NULL, arena, &checkpoint->log,
                           &weights_file));
    qn_status status = qn_open_tensors(&slots, path, NULL, arena, &checkpoint->log, &slots_file);
    if (status == QN_OK)
        status = qn_trainer_finish(trainer, NULL);
    if (status == QN_OK)
        status = qn_restore_tensors(trainer, &slots, slots_file);
    if (status == QN_OK)
        status = qn_restore_tensors(trainer, &weights, weights_file);
    qn_tensors_close(&weights_file);
    qn_tensors_close(&slots_file);
    return status;
}

qn_status qn_checkpoint_restore(const qn_checkpoint *checkpoint, qn_trainer *trainer)
{
    QN_REQUIRE(NULL, checkpoint && trainer);
    QN_TRY(qn_trainer_failure(trainer));
    struct qn_arena arena = {0};
    qn_status status = restore_lists(checkpoint, trainer, &arena);
    qn_arena_free(&arena);
    return status == QN_OK ? restore_counters(checkpoint, trainer) : status;
}
