/* SPDX-License-Identifier: MIT
 *
 * One micro-batch: its problems, what it may run, and the programs that come of it.
 */
#ifndef QN_PLAN_OPTION_H
#define QN_PLAN_OPTION_H

#include "plan/program.h"
#include "plan/seeds.h"

enum { QN_MOST_RESTS = QN_MAX_BATCH_SIZES };

/* What one micro-batch may run, of its micro-steps and of each remainder. */
struct qn_choices {
    int64_t micro_batch;
    struct qn_candidates micro, rest[QN_MOST_RESTS];
};

/* A micro-batch with everything that any of its candidates needs. */
struct qn_option {
    struct qn_lowering how; /* with the option's own arena */
    const struct qn_persist *persist;
    const struct qn_choices *choices;
    struct qn_problem micro, update, evaluation;
    int64_t rest[QN_MOST_RESTS]; /* distinct remainders */
    struct qn_problem rest_problem[QN_MOST_RESTS];
    int n_rests;
    struct qn_steps update_steps, evaluation_steps;
};

/* Lowers all problems of choices->micro_batch into how->arena. */
qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *option);

/* Fills in what it may run, allocated from `arena`: `choices` are those it was opened with. */
qn_status qn_option_choose(const struct qn_option *option, struct qn_arena *arena,
                           struct qn_choices *choices);

/* The program of a candidate of its micro-steps, simulated, not placed. Allocated from `arena`. */
qn_status qn_option_program(const struct qn_option *option, int candidate, struct qn_arena *arena,
                            struct qn_program *program);

/* The one of a remainder's candidates that goes with micro-steps of this peak. */
const struct qn_candidate *qn_choices_rest(const struct qn_choices *choices, int rest,
                                           int64_t peak);

/* Whether the step lists of the candidate can run: choices may come from a file. QN_ERR_FORMAT:
 * they cannot. */
qn_status qn_option_check(const struct qn_option *option, int candidate);

/* What cycle 0 of the program would take if neither its micro-steps nor its remainder recomputed
 * anything. */
qn_status qn_option_keep_all_seconds(const struct qn_option *option,
                                     const struct qn_program *program, double *seconds);

#endif
