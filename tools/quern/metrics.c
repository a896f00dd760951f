/* SPDX-License-Identifier: MIT */
#include "metrics.h"
#include "members.h"
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const struct metrics_file *file, struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s: metrics: %s", file->path, strerror(errno));
}

/* Ends a file behind its last whole line. What cannot be sought in (a pipe) stays as it is. */
static int cut_line(const struct metrics_file *file, struct failure *failure)
{
    const off_t end = lseek(file->descriptor, 0, SEEK_END);
    off_t whole = end;
    char last = '\n';
    while (whole > 0 && pread(file->descriptor, &last, 1, whole - 1) == 1 && last != '\n')
        whole--;
    return whole < end && ftruncate(file->descriptor, whole) ? fail(file, failure) : CODE_DONE;
}

static int write_all(const struct metrics_file *file, const char *bytes, size_t size,
                     struct failure *failure)
{
    while (size) {
        ssize_t n = write(file->descriptor, bytes, size);
        if (n < 0 && errno != EINTR)
            return fail(file, failure);
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return CODE_DONE;
}

static bool is_open(const struct metrics *metrics, int descriptor)
{
    struct stat status, other;
    for (int i = 0; i < metrics->count; i++)
        if (fstat(descriptor, &status) == 0 && fstat(metrics->files[i].descriptor, &other) == 0 &&
            status.st_dev == other.st_dev && status.st_ino == other.st_ino)
            return true;
    return false;
}

int metrics_open(struct metrics *metrics, const char *path, bool append, struct failure *failure)
{
    if (!path)
        return CODE_DONE;
    const int mode = append ? O_RDWR | O_APPEND : O_WRONLY | O_APPEND | O_TRUNC;
    const struct metrics_file file = {path, open(path, mode | O_CREAT | O_CLOEXEC, 0666)};
    if (file.descriptor < 0)
        return fail(&file, failure);
    if (is_open(metrics, file.descriptor)) { /* under another name */
        close(file.descriptor);
        return CODE_DONE;
    }
    metrics->files[metrics->count++] = file;
    return append ? cut_line(&file, failure) : CODE_DONE;
}

int metrics_keep(struct metrics *metrics, const char *folder, bool append, struct failure *failure)
{
    if (!folder)
        return CODE_DONE;
    if (snprintf(metrics->kept, sizeof metrics->kept, "%s/" HISTORY_FILE, folder) >=
        (int)sizeof metrics->kept)
        return failure_set(failure, CODE_FAILED, "%s: the path is too long", folder);
    return metrics_open(metrics, metrics->kept, append, failure);
}

void metrics_close(struct metrics *metrics)
{
    while (metrics->count)
        close(metrics->files[--metrics->count].descriptor);
}

/* Takes `object`. */
static int write_object(const struct metrics *metrics, cJSON *object, struct failure *failure)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    cJSON_Delete(object);
    if (!line) {
        free(text);
        return failure_set(failure, CODE_FAILED, "%s: metrics: out of memory",
                           metrics->files[0].path);
    }
    memcpy(line + length, "\n", 2);
    int code = CODE_DONE;
    for (int i = 0; !code && i < metrics->count; i++)
        code = write_all(&metrics->files[i], line, length + 1, failure);
    free(line);
    return code;
}

/* Takes `object`. */
static cJSON *wrap(const char *name, cJSON *object)
{
    cJSON *outer = cJSON_CreateObject();
    if (object && cJSON_AddItemToObject(outer, name, object))
        return outer;
    cJSON_Delete(object);
    cJSON_Delete(outer);
    return NULL;
}

int metrics_plan(const struct metrics *metrics, const struct session *s)
{
    if (!metrics->count)
        return CODE_DONE;
    char *text = qn_plan_json(session_running(s));
    cJSON *line = wrap("plan", text ? cJSON_CreateRaw(text) : NULL);
    free(text);
    if (line && s->members)
        cJSON_AddItemToObject(line, "members", members_plans(s));
    return write_object(metrics, line, s->failure);
}

int metrics_environment(const struct metrics *metrics, const struct session *s)
{
    if (!metrics->count)
        return CODE_DONE;
    const qn_device_info *device = qn_device_describe(s->device);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "quern", QN_VERSION);
    cJSON_AddStringToObject(object, "recipe", s->recipe.name);
    cJSON_AddStringToObject(object, "platform", device->platform);
    cJSON_AddStringToObject(object, "device", device->device);
    cJSON_AddStringToObject(object, "driver", device->driver);
    cJSON_AddNumberToObject(object, "time", (double)time(NULL));
    return write_object(metrics, wrap("environment", object), s->failure);
}

static cJSON *seconds_of(const cJSON *profile)
{
    return cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(profile, "seconds"), true);
}

int metrics_profile(const struct metrics *metrics, int64_t update, const cJSON *profiles,
                    struct failure *failure)
{
    if (!metrics->count)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "updates", (double)update);
    cJSON_AddItemToObject(object, "seconds", seconds_of(profiles->child));
    cJSON *members = profiles->child->next ? cJSON_AddArrayToObject(object, "members") : NULL;
    for (const cJSON *one = members ? profiles->child : NULL; one; one = one->next)
        cJSON_AddItemToArray(members, seconds_of(one));
    return write_object(metrics, wrap("profile", object), failure);
}

static void add_norms(cJSON *object, const struct norms *norms)
{
    cJSON *list = norms->count ? cJSON_AddObjectToObject(object, "grad_norms") : NULL;
    for (int g = 0; g < norms->count; g++)
        cJSON_AddNumberToObject(list, norms->name[g], norms->norm[g]);
    if (norms->paired)
        cJSON_AddNumberToObject(object, "grad_norm_ratio", norms->ratio);
}

static void add_finite(cJSON *object, const char *name, double number)
{
    if (isfinite(number))
        cJSON_AddNumberToObject(object, name, number);
}

int metrics_update(const struct metrics *metrics, const qn_metrics *update,
                   const struct figures *figures, struct failure *failure)
{
    if (!metrics->count)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "step", (double)update->update);
    cJSON_AddNumberToObject(object, "loss", update->loss);
    add_finite(object, "local_loss", figures->local_loss);
    cJSON_AddNumberToObject(object, "lr", update->lr);
    cJSON_AddNumberToObject(object, "grad_norm", update->grad_norm);
    cJSON_AddNumberToObject(object, "samples", (double)update->samples);
    cJSON_AddNumberToObject(object, "seconds", figures->seconds);
    add_finite(object, "noise_scale", figures->noise_scale);
    add_norms(object, figures->norms);
    if (update->skipped)
        cJSON_AddTrueToObject(object, "skipped");
    return write_object(metrics, object, failure);
}

static cJSON *ages_json(const qn_drift *drift)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < drift->ages; i++) {
        const qn_drift_age *age = &drift->age[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "age", (double)age->first);
        add_finite(object, "queries", age->queries);
        add_finite(object, "passages", age->passages);
        cJSON_AddNumberToObject(object, "entries", (double)age->entries);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

int metrics_drift(const struct metrics *metrics, int64_t updates, const qn_drift *drift,
                  struct failure *failure)
{
    if (!metrics->count)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "update", (double)updates);
    add_finite(object, "oldest", drift->oldest);
    if (drift->limit)
        cJSON_AddNumberToObject(object, "limit", (double)drift->limit);
    cJSON_AddItemToObject(object, "ages", ages_json(drift));
    return write_object(metrics, wrap("drift", object), failure);
}

static void add_evaluation(cJSON *object, const struct evaluation *evaluation)
{
    for (int i = 0; i < FIGURES; i++)
        if (evaluation->figure[i].there)
            cJSON_AddNumberToObject(object, evaluation_key((enum figure)i),
                                    evaluation->figure[i].value);
    cJSON_AddNumberToObject(object, "test_samples", (double)evaluation->samples);
    if (evaluation->validation)
        cJSON_AddTrueToObject(object, "validation");
}

int metrics_evaluation(const struct metrics *metrics, const struct moment *moment,
                       const struct evaluation *evaluation, struct failure *failure)
{
    if (!metrics->count)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "updates", (double)moment->update);
    cJSON_AddNumberToObject(object, "epoch", moment->epoch);
    add_evaluation(object, evaluation);
    cJSON_AddNumberToObject(object, "seconds", moment->seconds);
    return write_object(metrics, wrap("evaluation", object), failure);
}

int metrics_changes(const struct metrics *metrics, const struct arguments *a,
                    struct failure *failure)
{
    if (!metrics->count || !a->n_overrides)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < a->n_overrides; i++)
        cJSON_AddStringToObject(object, a->overrides[i].name, a->overrides[i].value);
    return write_object(metrics, wrap("changed", object), failure);
}

cJSON *device_json(const struct session *s)
{
    const qn_plan_info *plan = qn_plan_facts(session_running(s));
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->hash);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "device", qn_device_facts(s->device)->name);
    cJSON_AddNumberToObject(object, "peak_bytes_planned", (double)plan->peak_bytes);
    cJSON_AddNumberToObject(object, "peak_bytes_allocated", (double)qn_trainer_bytes(s->trainer));
    cJSON_AddNumberToObject(object, "budget_bytes", (double)plan->budget_bytes);
    cJSON_AddNumberToObject(object, "micro_batch", (double)plan->micro_batch);
    cJSON_AddNumberToObject(object, "micro_steps", (double)plan->micro_steps);
    cJSON_AddNumberToObject(object, "recomputed_steps", plan->recomputed_steps);
    cJSON_AddStringToObject(object, "plan_hash", hash);
    return object;
}

static void replace_number(cJSON *object, const char *key, int64_t number)
{
    cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key), (double)number);
}

/* Bytes and budgets of all, and then what is said of each. */
static void add_members(cJSON *object, const struct session *s)
{
    const struct members_bytes bytes = members_bytes(s);
    replace_number(object, "peak_bytes_planned", bytes.peak);
    replace_number(object, "peak_bytes_allocated", bytes.allocated);
    replace_number(object, "budget_bytes", bytes.budget);
    cJSON_AddItemToObject(object, "members", members_summaries(s));
}

cJSON *summary_json(const struct session *s, const struct evaluation *evaluation)
{
    cJSON *object = device_json(s);
    if (s->members)
        add_members(object, s);
    if (evaluation->samples)
        add_evaluation(object, evaluation);
    return object;
}

int metrics_summary(const struct metrics *metrics, const struct session *s,
                    const struct evaluation *evaluation, enum ending ending)
{
    if (!metrics->count)
        return CODE_DONE;
    cJSON *object = summary_json(s, evaluation);
    cJSON_AddNumberToObject(object, "updates", (double)qn_trainer_updates(s->trainer));
    cJSON_AddBoolToObject(object, "interrupted", ending == ENDING_INTERRUPTED);
    if (ending == ENDING_EARLY)
        cJSON_AddTrueToObject(object, "ended_early");
    return write_object(metrics, wrap("summary", object), s->failure);
}

cJSON *refusal_json(const struct session *session)
{
    const struct session *s = members_refused(session);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "error", s->failure->text);
    if (s->settings.memory.budget)
        cJSON_AddNumberToObject(object, "budget_bytes", (double)s->settings.memory.budget);
    cJSON_AddNumberToObject(object, "smallest_budget_bytes", (double)s->smallest_budget);
    return object;
}

int metrics_refusal(const struct metrics *metrics, const struct session *s)
{
    return metrics->count ? write_object(metrics, wrap("summary", refusal_json(s)), s->failure)
                          : CODE_DONE;
}
