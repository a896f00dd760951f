/* SPDX-License-Identifier: MIT
 *
 * One micro-batch: its problems, what they may run, and the programs that come of it.
 */
#ifndef QN_SEARCH_OPTION_H
#define QN_SEARCH_OPTION_H

#include "plan/program/program.h"
#include "plan/search/seeds.h"

enum { QN_MOST_PARTS = QN_MAX_RUNS * (QN_MAX_BATCH_SIZES + 1) };

/* A run at one number of samples: the micro-batch, a remainder, or a whole cycle. */
struct qn_part {
    int run; /* of persist->runs */
    int64_t batch;
    bool remainder;
    struct qn_problem problem;
};

/* What one micro-batch may run: the candidates of every part. A choice of one for each part is
 * named by a limit of bytes: of each part the fastest candidate that needs no more. */
struct qn_choices {
    int64_t micro_batch;
    struct qn_candidates *parts;
    int n_parts;
    int64_t *limits; /* downwards: the peaks of all candidates of parts that are no remainders */
    int n_limits;
};

/* A micro-batch with everything that any of its candidates needs. */
struct qn_option {
    struct qn_lowering how; /* with the option's own arena */
    const struct qn_persist *persist;
    const struct qn_choices *choices;
    struct qn_part *parts; /* by run, of each the largest first */
    int n_parts;
    struct qn_problem start, update, evaluation[QN_MAX_RUNS];
    struct qn_steps start_steps, update_steps, evaluation_steps[QN_MAX_RUNS];
};

/* Lowers all problems of choices->micro_batch into how->arena. */
qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *option);

/* Fills in what it may run, allocated from `arena`: `choices` are those it was opened with. */
qn_status qn_option_choose(const struct qn_option *option, struct qn_arena *arena,
                           struct qn_choices *choices);

/* The program of a choice, the one named by that limit, simulated, not placed. Allocated from
 * `arena`.
 */
qn_status qn_option_program(const struct qn_option *option, int limit, struct qn_arena *arena,
                            struct qn_program *program);

/* The candidate of a part in the choice of that name. */
const struct qn_candidate *qn_choices_pick(const struct qn_choices *choices, int part, int limit);

/* Whether the step lists of the choice can run: choices may come from a file. QN_ERR_FORMAT: they
 * cannot. */
qn_status qn_option_check(const struct qn_option *option, int limit);

/* What cycle 0 of the program would take if no repetition of a run recomputed anything. */
qn_status qn_option_keep_all_seconds(const struct qn_option *option,
                                     const struct qn_program *program, double *seconds);

#endif
