/* SPDX-License-Identifier: MIT
 *
 * One micro-batch: its problems, their candidates, and the programs made of these.
 */
#ifndef QN_SEARCH_OPTION_H
#define QN_SEARCH_OPTION_H

#include "plan/program/program.h"
#include "plan/search/seeds.h"

enum { QN_MOST_PARTS = QN_MAX_RUNS * (2 * QN_MAX_BATCH_SIZES + 1) };

/* A run at one number of samples: the micro-batch, a remainder, or a whole cycle. A kept part is
 * the last micro-step of a backward run together with that of its partner. */
struct qn_part {
    int run; /* of persist->runs */
    int64_t batch;
    bool remainder, kept;
    struct qn_problem problem;
};

/* One candidate for each part: the fastest with peak <= `limit`; of kept parts the fastest with
 * peak
 * <= `kept`. */
struct qn_choice {
    int64_t limit;
    int64_t kept; /* 0: none, no micro-step is kept */
};

/* The candidates of every part of one micro-batch, and the choices among them: every peak as a
 * limit, without kept micro-steps and with smaller and smaller ones. */
struct qn_choices {
    int64_t micro_batch;
    struct qn_candidates *parts;
    int n_parts;
    struct qn_choice *list; /* limits descend */
    int count;
};

/* A micro-batch with all problems that its programs run. */
struct qn_option {
    struct qn_lowering how; /* with the option's own arena */
    const struct qn_persist *persist;
    const struct qn_choices *choices;
    struct qn_part *parts; /* in the order of runs; of a run the largest batch first */
    int n_parts;
    struct qn_problem start, norms, update, evaluation[QN_MAX_RUNS];
    struct qn_steps start_steps, norms_steps, update_steps, evaluation_steps[QN_MAX_RUNS];
};

/* Lowers all problems of choices->micro_batch into how->arena. */
qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *option);

/* Fills in the candidates of `choices`, with which the option was opened, from `arena`. */
qn_status qn_option_choose(const struct qn_option *option, struct qn_arena *arena,
                           struct qn_choices *choices);

/* The program of choices->list[choice], simulated, not placed. Allocated from `arena`. */
qn_status qn_option_program(const struct qn_option *option, int choice, struct qn_arena *arena,
                            struct qn_program *program);

/* The candidate of a part in choices->list[choice]: the smallest if none is within the limit; NULL:
 * a kept part that the choice does without. */
const struct qn_candidate *qn_choices_pick(const struct qn_choices *choices, int part, int choice);

/* Checks the step lists of a choice, which may come from a file. QN_ERR_FORMAT: they cannot run. */
qn_status qn_option_check(const struct qn_option *option, int choice);

/* Effective batches of the params; samples of the last micro-step of one; the number of a part, -1:
 * there is none. */
int qn_option_batches(const struct qn_plan_params *params);
int64_t qn_option_last(const struct qn_option *option, int64_t batch);
int qn_option_part(const struct qn_option *option, int run, int64_t batch, bool kept);

/* Seconds that cycle 0 of the program would take if nothing were recomputed or parked. */
qn_status qn_option_keep_all_seconds(const struct qn_option *option,
                                     const struct qn_program *program, double *seconds);

#endif
