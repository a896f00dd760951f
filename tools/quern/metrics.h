/* SPDX-License-Identifier: MIT
 *
 * The file of figures: one JSON object a line, each written at once. What a kill or a full disk
 * left of a last line is removed by the run that goes on, so that every line can be read.
 */
#ifndef QUERN_TOOL_METRICS_H
#define QUERN_TOOL_METRICS_H

#include "evaluate.h"
#include "norms.h"
#include "profile.h"

#include <cjson/cJSON.h>
#include <quern/drift.h>

enum { MAX_METRICS = 2 };

/* Zeroed: nothing is written. */
struct metrics {
    struct metrics_file {
        const char *path;
        int descriptor;
    } files[MAX_METRICS]; /* all get the same lines */
    int count;
    char kept[4096]; /* path of the file in a folder */
};

/* One more file; NULL: none. `append` goes on with the file of an earlier run. */
int metrics_open(struct metrics *metrics, const char *path, bool append, struct failure *failure);
/* The file that a training keeps in its folder; NULL: it has none. */
int metrics_keep(struct metrics *metrics, const char *folder, bool append, struct failure *failure);
void metrics_close(struct metrics *metrics);

/* {"plan": {...}} */
int metrics_plan(const struct metrics *metrics, const struct session *session);
/* {"environment": {...}}: what a run began with: recipe, device, versions, time. */
int metrics_environment(const struct metrics *metrics, const struct session *session);
/* {"profile": {...}}: seconds of the steps of an update by their kind, of the first member and,
 * if there are several, of each (profile.h). */
int metrics_profile(const struct metrics *metrics, int64_t update, const cJSON *profiles,
                    struct failure *failure);
/* What else is told of an update; numbers that are not finite are left out. */
struct figures {
    const struct norms *norms;
    double seconds;
    double noise_scale; /* by which its batch was chosen */
    double local_loss;  /* of a bank: the loss of the micro-steps' own queries */
};
int metrics_update(const struct metrics *metrics, const qn_metrics *update,
                   const struct figures *figures, struct failure *failure);
/* {"drift": {...}}: of banks, by age. */
int metrics_drift(const struct metrics *metrics, int64_t updates, const qn_drift *drift,
                  struct failure *failure);
/* {"evaluation": {...}}: each one of a training. */
int metrics_evaluation(const struct metrics *metrics, const struct moment *moment,
                       const struct evaluation *evaluation, struct failure *failure);
/* {"changed": {...}}: what the command line says otherwise than the checkpoint's recipe. */
int metrics_changes(const struct metrics *metrics, const struct arguments *arguments,
                    struct failure *failure);
/* How a training came to its end. */
enum ending { ENDING_WHOLE, ENDING_EARLY, ENDING_INTERRUPTED };
/* {"summary": {...}} */
int metrics_summary(const struct metrics *metrics, const struct session *session,
                    const struct evaluation *evaluation, enum ending ending);
/* What a summary says of the device of a session, which may be one of several, and of its plan;
 * NULL when out of memory. */
cJSON *device_json(const struct session *session);

/* {"summary": {...}} of a run for which no plan fits. */
int metrics_refusal(const struct metrics *metrics, const struct session *session);

/* The object that says so; NULL when out of memory. */
cJSON *refusal_json(const struct session *session);
/* What both a training and an evaluation say about their plan and what came out. */
cJSON *summary_json(const struct session *session, const struct evaluation *evaluation);

#endif
