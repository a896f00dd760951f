/* SPDX-License-Identifier: MIT */
#include "plan/option.h"

#include "base/log.h"

static const struct qn_policy keep_all = {0};

static int batch_count(const struct qn_plan_params *params)
{
    int count = 0;
    while (count < QN_MAX_BATCH_SIZES && params->batch[count])
        count++;
    return count;
}

static qn_status open_rests(struct qn_option *o)
{
    for (int i = 0; i < batch_count(o->how.params); i++) {
        int64_t rest = o->how.params->batch[i] % o->choices->micro_batch;
        bool known = rest == 0;
        for (int r = 0; r < o->n_rests; r++)
            known |= o->rest[r] == rest;
        if (known)
            continue;
        o->rest[o->n_rests] = rest;
        QN_TRY(qn_lower_training(&o->how, o->persist, rest, &o->rest_problem[o->n_rests++]));
    }
    return QN_OK;
}

qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *o)
{
    *o = (struct qn_option){.how = *how, .persist = persist, .choices = choices};
    QN_TRY(qn_lower_training(&o->how, persist, choices->micro_batch, &o->micro));
    QN_TRY(open_rests(o));
    QN_TRY(qn_lower_update(&o->how, persist, &o->update));
    QN_TRY(qn_lower_evaluation(&o->how, persist, choices->micro_batch, &o->evaluation));
    if (!qn_steps_make(&o->update, &keep_all, o->how.arena, &o->update_steps) ||
        !qn_steps_make(&o->evaluation, &keep_all, o->how.arena, &o->evaluation_steps))
        return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
    return QN_OK;
}

qn_status qn_option_choose(const struct qn_option *o, struct qn_arena *arena,
                           struct qn_choices *choices)
{
    struct qn_lowering how = o->how;
    how.arena = arena;
    QN_TRY(qn_candidates_make(&how, &o->micro, &choices->micro));
    for (int r = 0; r < o->n_rests; r++)
        QN_TRY(qn_candidates_make(&how, &o->rest_problem[r], &choices->rest[r]));
    return QN_OK;
}

/* The remainder runs the fastest candidate that is no larger than the micro-step's. */
const struct qn_candidate *qn_choices_rest(const struct qn_choices *choices, int rest, int64_t peak)
{
    const struct qn_candidates *all = &choices->rest[rest];
    for (int i = 0; i < all->count; i++)
        if (all->items[i].peak <= peak)
            return &all->items[i];
    return &all->items[all->count - 1];
}

static qn_status check_steps(const struct qn_option *o, const struct qn_problem *problem,
                             const struct qn_steps *steps)
{
    const qn_status status = qn_steps_check(problem, steps);
    return status == QN_OK ? QN_OK
                           : qn_fail(o->how.log, status, "plan: %s",
                                     status == QN_ERR_MEMORY ? "out of host memory"
                                                             : "a list of steps that cannot run");
}

qn_status qn_option_check(const struct qn_option *o, int candidate)
{
    const struct qn_candidate *micro = &o->choices->micro.items[candidate];
    QN_TRY(check_steps(o, &o->micro, &micro->steps));
    for (int r = 0; r < o->n_rests; r++) {
        if (!o->choices->rest[r].count)
            return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: no list of steps for a remainder");
        QN_TRY(check_steps(o, &o->rest_problem[r],
                           &qn_choices_rest(o->choices, r, micro->peak)->steps));
    }
    return QN_OK;
}

static int rest_index(const struct qn_option *o, int64_t rest)
{
    for (int r = 0; r < o->n_rests; r++)
        if (o->rest[r] == rest)
            return r;
    return -1;
}

/* --- building a program --- */

struct build {
    const struct qn_option *option;
    const struct qn_candidate *candidate;
    struct qn_arena *arena;
    struct qn_program *program;
    bool failed;
    int first, later, rest[QN_MOST_RESTS], rest_first[QN_MOST_RESTS];
};

static int add_phase(struct build *b, const char *name, enum qn_phase_kind kind,
                     const struct qn_problem *problem, bool first, const struct qn_steps *steps)
{
    int phase = qn_program_add(b->program, b->arena, name, kind, problem, first, steps);
    b->failed |= phase < 0;
    return phase;
}

static int micro_phase(struct build *b, int *phase, const char *name, bool first)
{
    if (*phase < 0)
        *phase = add_phase(b, name, QN_RUN_MICRO, &b->option->micro, first, &b->candidate->steps);
    return *phase;
}

static int rest_phase(struct build *b, int rest, bool first)
{
    int *phase = first ? &b->rest_first[rest] : &b->rest[rest];
    if (*phase < 0)
        *phase = add_phase(b, first ? "small batch" : "remainder", QN_RUN_MICRO,
                           &b->option->rest_problem[rest], first,
                           &qn_choices_rest(b->option->choices, rest, b->candidate->peak)->steps);
    return *phase;
}

static double phase_seconds(const struct qn_program *program, int phase)
{
    return phase < 0 ? 0 : program->phases[phase].seconds;
}

static void add_cycle(struct build *b, int64_t batch)
{
    struct qn_cycle_plan *cycle = &b->program->cycles[b->program->n_cycles++];
    int64_t rest = batch % b->option->choices->micro_batch;
    *cycle = (struct qn_cycle_plan){.batch = batch,
                                    .micro_steps = batch / b->option->choices->micro_batch,
                                    .remainder = rest,
                                    .first = -1,
                                    .later = -1,
                                    .rest = -1};
    if (cycle->micro_steps > 0)
        cycle->first = micro_phase(b, &b->first, "first micro-step", true);
    if (cycle->micro_steps > 1)
        cycle->later = micro_phase(b, &b->later, "later micro-steps", false);
    if (rest)
        cycle->rest = rest_phase(b, rest_index(b->option, rest), cycle->micro_steps == 0);
    cycle->seconds = phase_seconds(b->program, cycle->first) +
                     (double)(cycle->micro_steps - 1) * phase_seconds(b->program, cycle->later) +
                     phase_seconds(b->program, cycle->rest) + b->option->update_steps.seconds;
}

/* Phases in the order of the timeline: cycles share those of equal size. The largest batch comes
 * first, so that phase 0 is the first micro-step of a cycle. */
qn_status qn_option_program(const struct qn_option *o, int candidate, struct qn_arena *arena,
                            struct qn_program *program)
{
    struct build b = {.option = o,
                      .candidate = &o->choices->micro.items[candidate],
                      .arena = arena,
                      .program = program,
                      .first = -1,
                      .later = -1};
    for (int r = 0; r < QN_MOST_RESTS; r++)
        b.rest[r] = b.rest_first[r] = -1;
    *program = (struct qn_program){.evaluation = -1};
    int64_t largest = qn_largest_batch(o->how.params);
    add_cycle(&b, largest);
    for (int i = 0; i < batch_count(o->how.params); i++)
        if (o->how.params->batch[i] != largest)
            add_cycle(&b, o->how.params->batch[i]);
    program->update = add_phase(&b, "update", QN_RUN_UPDATE, &o->update, false, &o->update_steps);
    if (o->persist->graph->n_outputs)
        program->evaluation = add_phase(&b, "evaluation", QN_RUN_EVALUATION, &o->evaluation, false,
                                        &o->evaluation_steps);
    if (b.failed)
        return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
    struct qn_lowering how = o->how;
    how.arena = arena;
    return qn_program_simulate(program, o->persist, false, &how);
}

/* --- beside keeping all --- */

static qn_status keep_all_steps(const struct qn_option *o, const struct qn_problem *problem,
                                double *seconds)
{
    struct qn_steps steps;
    if (!qn_steps_make(problem, &keep_all, o->how.arena, &steps))
        return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
    *seconds = steps.seconds;
    return QN_OK;
}

qn_status qn_option_keep_all_seconds(const struct qn_option *o, const struct qn_program *program,
                                     double *seconds)
{
    const struct qn_cycle_plan *cycle = &program->cycles[0];
    const int rest = rest_index(o, cycle->remainder);
    double micro = 0, last = 0;
    QN_TRY(keep_all_steps(o, &o->micro, &micro));
    if (rest >= 0)
        QN_TRY(keep_all_steps(o, &o->rest_problem[rest], &last));
    *seconds = cycle->seconds +
               (double)cycle->micro_steps * (micro - phase_seconds(program, cycle->first)) +
               (last - phase_seconds(program, cycle->rest));
    return QN_OK;
}
