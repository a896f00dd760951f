/* SPDX-License-Identifier: MIT
 *
 * All that a command opens on the way from a recipe to a trainer, in the order in which it is
 * opened.
 */
#ifndef QUERN_TOOL_SESSION_H
#define QUERN_TOOL_SESSION_H

#include "adapters.h"
#include "budget_file.h"
#include "data.h"
#include "option.h"
#include "pretrained.h"
#include "settings.h"

#include <quern/quern.h>

struct session {
    struct failure *failure;
    struct recipe recipe;
    struct settings settings;
    struct pretrained pretrained;
    struct adapters adapters;
    struct data data;
    qn_graph *graph; /* of the longest samples */
    qn_graph *shorter[QN_MAX_LENGTHS - 1];
    int n_shorter;
    qn_contrastive *contrastive; /* of dual encoders, whose `graph` is that of the towers; NULL */
    qn_device *device;
    struct budget_file budget_file;
    char *tuning; /* what is known of the device's kernels; NULL: not looked for */
    bool quiet;   /* errors alone are printed */
    qn_plan *plan;
    qn_trainer *trainer;
    struct members *members; /* several devices train (members.h); NULL: one */
    int member;              /* number of the one that this session is of */
    const char *planned_for; /* a device of a team that is not here (team.h); NULL: none */
    int64_t smallest_budget; /* when no plan fits */
    int64_t large_budget;    /* that was warned of last; 0: none was */
};

/* Reads the recipe that `name` names and what the command line changes in it. */
int session_recipe(struct session *session, const char *name, const struct arguments *arguments);
/* The same from the note of a checkpoint. */
int session_note(struct session *session, const qn_checkpoint_info *info,
                 const struct arguments *arguments);
int session_graph(struct session *session);
/* The program of several lengths: a graph for each, alternatives, from the shortest on; then their
 * evaluations. Without shorter samples there are no runs: one graph says all. */
enum { SESSION_RUN_BYTES = 48 };
struct session_runs {
    qn_run runs[2 * QN_MAX_LENGTHS];
    char names[2 * QN_MAX_LENGTHS][SESSION_RUN_BYTES];
    qn_run_list list;
};
void session_runs(const struct session *session, struct session_runs *runs);
/* The name of a bucket's run in it. */
void session_run_name(const struct session *session, int bucket, bool evaluates,
                      char name[SESSION_RUN_BYTES]);
/* Refuses a model with what its graph said of it. */
int session_refuse_model(struct session *session, const char *text);
/* Whether the training split has a column for each input of the graphs. */
int session_fits(struct session *session);
int session_device(struct session *session, const struct arguments *arguments);
int session_plan(struct session *session, const qn_facts *facts, const qn_plan_params *params);
/* Says once that a budget is more than the device has. */
void session_warn_budget(struct session *session, int64_t budget, const qn_facts *facts);
qn_trainer_params session_trainer_params(const struct session *session);
int session_trainer(struct session *session);
/* Loads the weights and adapters that the recipe names, if it names any. */
int session_weights(struct session *session);
/* The plan that runs; before there is a trainer, the one that was made. */
const qn_plan *session_running(const struct session *session);
void session_close(struct session *session);

/* Where the budget comes from: "of the recipe". */
const char *session_budget_origin(const struct session *session);

#endif
