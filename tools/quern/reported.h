/* SPDX-License-Identifier: MIT
 *
 * Trainings that pages tell of: what is read of each, and the figures that stand in tables.
 */
#ifndef QUERN_TOOL_REPORTED_H
#define QUERN_TOOL_REPORTED_H

#include "history.h"

#include <stddef.h>

struct reported {
    const char *name; /* how it is called on the page; borrowed */
    struct history history;
    struct series speed; /* samples per second */
    const void *picture; /* SVG of the newest plan; NULL: there is none */
    size_t picture_size;
};

struct report {
    struct reported *trainings;
    int count;
};

/* `path`: the folder of a training, or a file of --metrics. Also after a failure it is freed by the
 * caller. */
int reported_read(struct reported *training, const char *name, const char *path,
                  struct failure *failure);
/* Zeroes it. */
void reported_free(struct reported *training);

/* "done", or why there is nothing more; "under way, or was killed". */
const char *reported_state(const struct reported *training);
/* Of all updates, or evaluations; not finite: there are none. */
double reported_sum(const struct reported *training, enum figure_kind kind, const char *name);
double reported_last(const struct reported *training, enum figure_kind kind, const char *name);
/* Samples per second of all updates together. */
double reported_speed(const struct reported *training);
/* Where it ran last; NULL: the metrics do not say. */
const cJSON *reported_environment(const struct reported *training);

/* Values of an object, which may be NULL: "" and not a finite number if there is none. */
const char *reported_text(const cJSON *object, const char *key);
double reported_number(const cJSON *object, const char *key);

#endif
