/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "file.h"
#include "line.h"
#include "report_page.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TRAININGS = 16 };

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

static int read_training(struct reported *t, const char *name, struct failure *failure)
{
    char metrics[PATH_MAX], picture[PATH_MAX];
    t->name = name;
    TRY(find_files(name, metrics, picture, failure));
    TRY(history_read(&t->history, metrics, failure));
    open_picture(t, picture);
    return find_speed(t) ? CODE_DONE
                         : failure_set(failure, CODE_FAILED, "%s: out of memory", metrics);
}

static int write_report(const struct report *r, const char *path, struct failure *failure)
{
    char title[64];
    struct page page;
    snprintf(title, sizeof title, "%d trainings", r->count);
    TRY(page_begin(&page, r->count > 1 ? title : r->trainings[0].name, failure));
    report_put(&page, r);
    return page_end(&page, path, CODE_DONE, failure);
}

static int report(struct report *r, const struct arguments *a, struct failure *failure)
{
    const char *path = a->value[OPTION_PAGE] ? a->value[OPTION_PAGE] : "report.html";
    if (a->n_operands > MOST_TRAININGS)
        return failure_set(failure, CODE_USAGE, "report: more than %d trainings", MOST_TRAININGS);
    r->trainings = calloc((size_t)a->n_operands, sizeof *r->trainings);
    if (!r->trainings)
        return failure_set(failure, CODE_FAILED, "out of memory");
    for (; r->count < a->n_operands; r->count++)
        TRY(read_training(&r->trainings[r->count], a->operands[r->count], failure));
    TRY(write_report(r, path, failure));
    line_print(stdout, "%s", path);
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct report r = {0};
    const int code = report(&r, a, failure);
    for (int i = 0; r.trainings && i < a->n_operands; i++) {
        history_free(&r.trainings[i].history);
        series_free(&r.trainings[i].speed);
        if (r.trainings[i].picture)
            file_unmap(r.trainings[i].picture, r.trainings[i].picture_size);
    }
    free(r.trainings);
    return code;
}

const struct command command_report = {
    "report",
    "DIR|FILE...",
    "a page with the curves, memory and time of trainings",
    "Writes one HTML file, which needs no network, about one training or several side by side:\n"
    "losses, evaluations, learning rates, gradient norms and samples per second over updates,\n"
    "bytes and picture of the plan, time, device and versions. DIR is what --out of quern train\n"
    "named, FILE a file of --metrics. A training that is under way can be reported.\n\n"
    "A curve of many updates is drawn by the least, the greatest and the mean of each stretch,\n"
    "so that no spike is lost. Time by kind of step is of a training with --profile.",
    false,
    run,
    {OPTION_PAGE, OPTION_COUNT},
};
