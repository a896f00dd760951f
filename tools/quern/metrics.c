/* SPDX-License-Identifier: MIT */
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const struct metrics *metrics, struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s: metrics: %s", metrics->path, strerror(errno));
}

/* Ends a file behind its last whole line. What cannot be sought in (a pipe) stays as it is. */
static int cut_line(const struct metrics *metrics, struct failure *failure)
{
    const off_t end = lseek(metrics->descriptor, 0, SEEK_END);
    off_t whole = end;
    char last = '\n';
    while (whole > 0 && pread(metrics->descriptor, &last, 1, whole - 1) == 1 && last != '\n')
        whole--;
    return whole < end && ftruncate(metrics->descriptor, whole) ? fail(metrics, failure)
                                                                : CODE_DONE;
}

static int write_all(const struct metrics *metrics, const char *bytes, size_t size,
                     struct failure *failure)
{
    while (size) {
        ssize_t n = write(metrics->descriptor, bytes, size);
        if (n < 0 && errno != EINTR)
            return fail(metrics, failure);
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return CODE_DONE;
}

int metrics_open(struct metrics *metrics, const char *path, bool append, struct failure *failure)
{
    *metrics = (struct metrics){.path = path, .descriptor = -1};
    if (!path)
        return CODE_DONE;
    int mode = append ? O_RDWR | O_APPEND : O_WRONLY | O_APPEND | O_TRUNC;
    metrics->descriptor = open(path, mode | O_CREAT | O_CLOEXEC, 0666);
    if (metrics->descriptor < 0)
        return fail(metrics, failure);
    return append ? cut_line(metrics, failure) : CODE_DONE;
}

void metrics_close(struct metrics *metrics)
{
    if (metrics->path && metrics->descriptor >= 0)
        close(metrics->descriptor);
    metrics->descriptor = -1;
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
        return failure_set(failure, CODE_FAILED, "%s: metrics: out of memory", metrics->path);
    }
    memcpy(line + length, "\n", 2);
    int code = write_all(metrics, line, length + 1, failure);
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
    if (!metrics->path)
        return CODE_DONE;
    char *text = qn_plan_json(session_running(s));
    cJSON *plan = text ? cJSON_CreateRaw(text) : NULL;
    free(text);
    return write_object(metrics, wrap("plan", plan), s->failure);
}

int metrics_update(const struct metrics *metrics, const qn_metrics *update, double seconds,
                   double noise_scale, struct failure *failure)
{
    if (!metrics->path)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "step", (double)update->update);
    cJSON_AddNumberToObject(object, "loss", update->loss);
    cJSON_AddNumberToObject(object, "lr", update->lr);
    cJSON_AddNumberToObject(object, "grad_norm", update->grad_norm);
    cJSON_AddNumberToObject(object, "samples", (double)update->samples);
    cJSON_AddNumberToObject(object, "seconds", seconds);
    if (isfinite(noise_scale))
        cJSON_AddNumberToObject(object, "noise_scale", noise_scale);
    if (update->skipped)
        cJSON_AddTrueToObject(object, "skipped");
    return write_object(metrics, object, failure);
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
    if (!metrics->path)
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
    if (!metrics->path || !a->n_overrides)
        return CODE_DONE;
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < a->n_overrides; i++)
        cJSON_AddStringToObject(object, a->overrides[i].name, a->overrides[i].value);
    return write_object(metrics, wrap("changed", object), failure);
}

cJSON *summary_json(const struct session *s, const struct evaluation *evaluation)
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
    if (evaluation->samples)
        add_evaluation(object, evaluation);
    return object;
}

int metrics_summary(const struct metrics *metrics, const struct session *s,
                    const struct evaluation *evaluation, enum ending ending)
{
    if (!metrics->path)
        return CODE_DONE;
    cJSON *object = summary_json(s, evaluation);
    cJSON_AddNumberToObject(object, "updates", (double)qn_trainer_updates(s->trainer));
    cJSON_AddBoolToObject(object, "interrupted", ending == ENDING_INTERRUPTED);
    if (ending == ENDING_EARLY)
        cJSON_AddTrueToObject(object, "ended_early");
    return write_object(metrics, wrap("summary", object), s->failure);
}

cJSON *refusal_json(const struct session *s)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "error", s->failure->text);
    if (s->settings.memory.budget)
        cJSON_AddNumberToObject(object, "budget_bytes", (double)s->settings.memory.budget);
    cJSON_AddNumberToObject(object, "smallest_budget_bytes", (double)s->smallest_budget);
    return object;
}

int metrics_refusal(const struct metrics *metrics, const struct session *s)
{
    return metrics->path ? write_object(metrics, wrap("summary", refusal_json(s)), s->failure)
                         : CODE_DONE;
}
