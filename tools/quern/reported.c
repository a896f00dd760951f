/* SPDX-License-Identifier: MIT */
#include "reported.h"
#include "file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- reading --- */

/* Where the figures are, and the picture of the plan, which only a folder of a training has. */
static int find_files(const char *name, char metrics[PATH_MAX], char picture[PATH_MAX],
                      struct failure *failure)
{
    const bool folder = file_is_folder(name);
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    const int before = folder ? (int)strlen(name) : slash ? (int)(slash - name) : 0;
    const char *between = folder || slash ? "/" : "";
    if (before + 32 >= PATH_MAX)
        return failure_set(failure, CODE_USAGE, "%s: the path is too long", name);
    snprintf(metrics, PATH_MAX, "%s%s", name, folder ? "/" HISTORY_FILE : "");
    *picture = 0;
    if (folder || strcmp(last, HISTORY_FILE) == 0)
        snprintf(picture, PATH_MAX, "%.*s%s" HISTORY_PICTURE, before, name, between);
    if (folder && access(metrics, F_OK) != 0)
        return failure_set(failure, CODE_FAILED,
                           "%s: holds no " HISTORY_FILE "; name the folder of a training, or the "
                           "file of --metrics",
                           name);
    return CODE_DONE;
}

/* A training without it is reported all the same. */
static void open_picture(struct reported *t, const char *path)
{
    struct failure ignored = FAILURE_NONE;
    if (*path && access(path, R_OK) == 0)
        file_map(&t->picture, &t->picture_size, path, &ignored);
}

static bool find_speed(struct reported *t)
{
    const struct series *samples = history_find(&t->history, FIGURE_UPDATE, "samples");
    const struct series *seconds = history_find(&t->history, FIGURE_UPDATE, "seconds");
    for (int64_t i = 0; samples && seconds && i < samples->count; i++)
        if (!series_add(&t->speed, samples->x[i], samples->y[i] / seconds->y[i]))
            return false;
    return true;
}

int reported_read(struct reported *t, const char *name, const char *path, struct failure *failure)
{
    char metrics[PATH_MAX], picture[PATH_MAX];
    t->name = name;
    TRY(find_files(path, metrics, picture, failure));
    TRY(history_read(&t->history, metrics, failure));
    open_picture(t, picture);
    return find_speed(t) ? CODE_DONE
                         : failure_set(failure, CODE_FAILED, "%s: out of memory", metrics);
}

void reported_free(struct reported *t)
{
    history_free(&t->history);
    series_free(&t->speed);
    if (t->picture)
        file_unmap(t->picture, t->picture_size);
    *t = (struct reported){0};
}

/* --- what is told of it --- */

const char *reported_text(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

double reported_number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

double reported_sum(const struct reported *t, enum figure_kind kind, const char *name)
{
    const struct series *series = history_find(&t->history, kind, name);
    return series ? series_sum(series) : NAN;
}

double reported_last(const struct reported *t, enum figure_kind kind, const char *name)
{
    const struct series *series = history_find(&t->history, kind, name);
    return series ? series_at(series, INFINITY) : NAN;
}

double reported_speed(const struct reported *t)
{
    return reported_sum(t, FIGURE_UPDATE, "samples") / reported_sum(t, FIGURE_UPDATE, "seconds");
}

const cJSON *reported_environment(const struct reported *t)
{
    return t->history.environment ? t->history.environment : t->history.beginning;
}

const char *reported_state(const struct reported *t)
{
    const cJSON *summary = t->history.summary;
    const char *error = reported_text(summary, "error");
    return !summary ? "under way, or was killed"
           : *error ? error
           : cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(summary, "interrupted"))
               ? "stopped by a signal"
           : cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(summary, "ended_early")) ? "ended early"
                                                                                    : "done";
}
