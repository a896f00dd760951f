/* SPDX-License-Identifier: MIT
 *
 * What a file of metrics tells of a training: the reader of what metrics.h writes.
 */
#ifndef QUERN_TOOL_HISTORY_H
#define QUERN_TOOL_HISTORY_H

#include "failure.h"
#include "series.h"

#include <cjson/cJSON.h>

/* Files that a training keeps beside its checkpoints: its figures, and the picture of its plan. */
#define HISTORY_FILE "metrics.jsonl"
#define HISTORY_PICTURE "plan.svg"

/* Of updates: "loss"; of evaluations: "test_accuracy"; numbers under one name of an update, each
 * with a name of its own: "grad_norms" of "encoder"; of banks, over the age of what they hold: how
 * near that still is to what the towers would give now. */
enum figure_kind { FIGURE_UPDATE, FIGURE_EVALUATION, FIGURE_GROUP, FIGURE_DRIFT };
enum { FIGURE_NAME_BYTES = 128, MAX_FIGURES = 256 };
struct figure_series {
    enum figure_kind kind;
    char group[FIGURE_NAME_BYTES]; /* "" unless it is of a group */
    char name[FIGURE_NAME_BYTES];
    struct series series; /* over the updates done; FIGURE_DRIFT: the newest, over the age */
};

/* Zeroed is empty. Objects are NULL where the file has none; else the newest one. */
struct history {
    struct figure_series figures[MAX_FIGURES];
    int n_figures;
    cJSON *plan, *environment, *profile;
    cJSON *members;   /* plans of all devices, a list; NULL: there was one */
    cJSON *beginning; /* the first environment */
    cJSON *summary;   /* of a training that came to an end and was not resumed */
    cJSON *changed;   /* by the newest resumption */
    int64_t cut_line; /* the last line, if it is not whole; it is left out */
};

/* Reads a file. A training that went back to a checkpoint goes over its later updates again: the
 * newer ones count. Also after a failure, which names file, line and reason, the history is freed
 * by the caller. */
int history_read(struct history *history, const char *path, struct failure *failure);
void history_free(struct history *history);

/* NULL: the training has none. */
const struct series *history_find(const struct history *history, enum figure_kind kind,
                                  const char *name);
/* The same of a group. */
const struct series *history_group(const struct history *history, const char *group,
                                   const char *name);

#endif
