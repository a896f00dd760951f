/* SPDX-License-Identifier: MIT */
#include "plan/search/option.h"

#include "base/log.h"
#include "base/shape.h"

#include <stdlib.h>

static const struct qn_policy keep_all = {0};

static int batch_count(const struct qn_plan_params *params)
{
    int count = 0;
    while (count < QN_MAX_BATCH_SIZES && params->batch[count])
        count++;
    return count;
}

static qn_status out_of_memory(const struct qn_option *o)
{
    return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
}

/* --- lowering --- */

static int find_part(const struct qn_option *o, int run, int64_t batch)
{
    for (int p = 0; p < o->n_parts; p++)
        if (o->parts[p].run == run && o->parts[p].batch == batch)
            return p;
    return -1;
}

static qn_status open_part(struct qn_option *o, int run, int64_t batch, bool remainder)
{
    if (!batch || find_part(o, run, batch) >= 0)
        return QN_OK;
    struct qn_part *part = &o->parts[o->n_parts++];
    part->run = run;
    part->batch = batch;
    part->remainder = remainder;
    return qn_lower_run(&o->how, o->persist, run, batch, &part->problem);
}

/* Opens the parts of a run: of a whole run every effective batch, the largest first; else the
 * micro-batch and every remainder. */
static qn_status open_run(struct qn_option *o, int run)
{
    const struct qn_plan_params *params = o->how.params;
    const bool whole = o->persist->runs.run[run].whole;
    QN_TRY(open_part(o, run, whole ? qn_largest_batch(params) : o->choices->micro_batch, false));
    for (int i = 0; i < batch_count(params); i++)
        QN_TRY(open_part(
            o, run, whole ? params->batch[i] : params->batch[i] % o->choices->micro_batch, !whole));
    return QN_OK;
}

static qn_status open_steps(struct qn_option *o, const struct qn_problem *problem,
                            struct qn_steps *steps)
{
    return qn_steps_make(problem, &keep_all, o->how.arena, steps) ? QN_OK : out_of_memory(o);
}

static qn_status open_runs(struct qn_option *o)
{
    const struct qn_run_set *runs = &o->persist->runs;
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what != QN_RUN_EVALUATE)
            QN_TRY(open_run(o, r));
    if (runs->zeroed) {
        QN_TRY(qn_lower_start(&o->how, o->persist, &o->start));
        QN_TRY(open_steps(o, &o->start, &o->start_steps));
    }
    if (qn_runs_train(runs)) {
        QN_TRY(qn_lower_update(&o->how, o->persist, &o->update));
        QN_TRY(open_steps(o, &o->update, &o->update_steps));
    }
    if (qn_runs_train(runs) && o->persist->shard.members) {
        QN_TRY(qn_lower_norms(&o->how, o->persist, &o->norms));
        QN_TRY(open_steps(o, &o->norms, &o->norms_steps));
    }
    for (int r = 0; r < runs->n_runs; r++)
        if (runs->run[r].what == QN_RUN_EVALUATE) {
            const int64_t samples = qn_run_samples(&runs->run[r], o->choices->micro_batch);
            QN_TRY(qn_lower_run(&o->how, o->persist, r, samples, &o->evaluation[r]));
            QN_TRY(open_steps(o, &o->evaluation[r], &o->evaluation_steps[r]));
        }
    return QN_OK;
}

qn_status qn_option_open(const struct qn_lowering *how, const struct qn_persist *persist,
                         const struct qn_choices *choices, struct qn_option *o)
{
    *o = (struct qn_option){.how = *how, .persist = persist, .choices = choices};
    o->parts = qn_arena_new(how->arena, struct qn_part, QN_MOST_PARTS);
    return o->parts ? open_runs(o) : out_of_memory(o);
}

/* --- choices --- */

static int downwards(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static qn_status list_limits(const struct qn_option *o, struct qn_arena *arena,
                             struct qn_choices *choices)
{
    size_t most = 0;
    for (int p = 0; p < o->n_parts; p++)
        most += (size_t)choices->parts[p].count;
    choices->limits = qn_arena_new(arena, int64_t, most + 1);
    choices->n_limits = 0;
    if (!choices->limits)
        return out_of_memory(o);
    for (int p = 0; p < o->n_parts; p++)
        for (int i = 0; i < choices->parts[p].count && !o->parts[p].remainder; i++)
            choices->limits[choices->n_limits++] = choices->parts[p].items[i].peak;
    qsort(choices->limits, (size_t)choices->n_limits, sizeof *choices->limits, downwards);
    int count = 0;
    for (int i = 0; i < choices->n_limits; i++)
        if (!count || choices->limits[i] < choices->limits[count - 1])
            choices->limits[count++] = choices->limits[i];
    choices->n_limits = o->n_parts ? count : 1;
    return QN_OK;
}

qn_status qn_option_choose(const struct qn_option *o, struct qn_arena *arena,
                           struct qn_choices *choices)
{
    struct qn_lowering how = o->how;
    how.arena = arena;
    choices->n_parts = o->n_parts;
    choices->parts = qn_arena_new(arena, struct qn_candidates, (size_t)o->n_parts + 1);
    if (!choices->parts)
        return out_of_memory(o);
    for (int p = 0; p < o->n_parts; p++)
        QN_TRY(qn_candidates_make(&how, &o->parts[p].problem, &choices->parts[p]));
    return list_limits(o, arena, choices);
}

const struct qn_candidate *qn_choices_pick(const struct qn_choices *choices, int part, int limit)
{
    const struct qn_candidates *all = &choices->parts[part];
    for (int i = 0; i < all->count; i++)
        if (all->items[i].peak <= choices->limits[limit])
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

qn_status qn_option_check(const struct qn_option *o, int limit)
{
    if (o->choices->n_parts != o->n_parts)
        return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: lists of steps for another program");
    for (int p = 0; p < o->n_parts; p++) {
        if (!o->choices->parts[p].count)
            return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: no list of steps for a part");
        QN_TRY(check_steps(o, &o->parts[p].problem, &qn_choices_pick(o->choices, p, limit)->steps));
    }
    return QN_OK;
}

/* --- building a program --- */

struct build {
    const struct qn_option *option;
    int limit;
    struct qn_arena *arena;
    struct qn_program *program;
    bool failed;
    int (*phase)[2]; /* by part: phase of later micro-steps [0], of the first of a cycle [1]; -1 */
};

static int add_phase(struct build *b, const char *name, enum qn_phase_kind kind,
                     const struct qn_problem *problem, bool first, const struct qn_steps *steps)
{
    int phase = qn_program_add(b->program, b->arena, name, kind, problem, first, steps);
    b->failed |= phase < 0;
    return phase;
}

/* The name of a phase: that of its run if the cycle has several runs. */
static const char *phase_name(const struct build *b, const struct qn_part *part, bool first)
{
    const struct qn_run_set *runs = &b->option->persist->runs;
    int cycle = 0;
    for (int r = 0; r < runs->n_runs; r++)
        cycle += runs->run[r].what != QN_RUN_EVALUATE;
    if (cycle > 1 || runs->run[part->run].whole)
        return runs->run[part->run].name;
    if (part->remainder)
        return first ? "small batch" : "remainder";
    return first ? "first micro-step" : "later micro-steps";
}

/* The phase of a run over `batch` samples, added when first asked for. */
static int part_phase(struct build *b, int run, int64_t batch, bool first)
{
    const int number = find_part(b->option, run, batch);
    const struct qn_part *part = &b->option->parts[number];
    first &= !b->option->persist->runs.zeroed;
    int *phase = &b->phase[number][first];
    if (*phase < 0) {
        *phase = add_phase(b, phase_name(b, part, first), QN_MICRO_PHASE, &part->problem, first,
                           &qn_choices_pick(b->option->choices, number, b->limit)->steps);
        if (!b->failed && b->option->persist->runs.run[run].whole)
            b->program->phases[*phase].repeats = false;
    }
    return *phase;
}

static void add_run(struct build *b, int run, struct qn_cycle_plan *cycle)
{
    struct qn_run_phases *phases = &cycle->runs[run];
    if (b->option->persist->runs.run[run].whole) {
        phases->first = part_phase(b, run, cycle->batch, true);
        return;
    }
    const int64_t size = b->option->choices->micro_batch;
    if (cycle->micro_steps > 0)
        phases->first = part_phase(b, run, size, true);
    if (cycle->micro_steps > 1)
        phases->later = part_phase(b, run, size, false);
    if (cycle->remainder)
        phases->rest = part_phase(b, run, cycle->remainder, cycle->micro_steps == 0);
}

static double phase_seconds(const struct qn_program *program, int phase)
{
    return phase < 0 ? 0 : program->phases[phase].seconds;
}

static double run_seconds(const struct qn_program *program, const struct qn_cycle_plan *cycle,
                          int run)
{
    const struct qn_run_phases *phases = &cycle->runs[run];
    return phase_seconds(program, phases->first) +
           (double)(cycle->micro_steps - 1) * phase_seconds(program, phases->later) +
           phase_seconds(program, phases->rest);
}

/* Seconds of a cycle; of alternatives the slowest counts. */
static double cycle_seconds(const struct build *b, const struct qn_cycle_plan *cycle)
{
    const struct qn_run_set *runs = &b->option->persist->runs;
    double seconds = 0;
    for (int r = 0; r < runs->n_runs;) {
        double slowest = run_seconds(b->program, cycle, r);
        int next = r + 1;
        for (; next < runs->n_runs && runs->run[r].pass >= 0 &&
               runs->run[next].pass == runs->run[r].pass;
             next++) {
            const double other = run_seconds(b->program, cycle, next);
            slowest = other > slowest ? other : slowest;
        }
        seconds += slowest;
        r = next;
    }
    return seconds + b->option->update_steps.seconds + b->option->norms_steps.seconds +
           b->option->start_steps.seconds;
}

/* Seconds of every evaluation over `samples` samples, for a program without a cycle. */
static double evaluation_seconds(const struct build *b, int64_t samples)
{
    const struct qn_option *o = b->option;
    const struct qn_run_set *runs = &o->persist->runs;
    double seconds = 0;
    for (int r = 0; r < runs->n_runs; r++) {
        const int64_t each = qn_run_samples(&runs->run[r], o->choices->micro_batch);
        seconds +=
            (double)qn_div_up(samples, each) * phase_seconds(b->program, b->program->evaluation[r]);
    }
    return seconds;
}

static struct qn_cycle_plan *add_cycle(struct build *b, int64_t batch)
{
    struct qn_cycle_plan *cycle = &b->program->cycles[b->program->n_cycles++];
    const int64_t size = b->option->choices->micro_batch;
    *cycle = (struct qn_cycle_plan){
        .batch = batch, .micro_steps = batch / size, .remainder = batch % size};
    for (int r = 0; r < QN_MAX_RUNS; r++)
        cycle->runs[r] = (struct qn_run_phases){-1, -1, -1};
    return cycle;
}

/* Adds the cycle of the largest batch first: its first micro-step is the first phase of a pass. */
static void add_cycles(struct build *b)
{
    const struct qn_plan_params *params = b->option->how.params;
    const int64_t largest = qn_largest_batch(params);
    add_cycle(b, largest);
    for (int i = 0; i < batch_count(params); i++)
        if (params->batch[i] != largest)
            add_cycle(b, params->batch[i]);
}

/* Adds phases in the order of the timeline: run by run, for each the phases of all cycles; cycles
 * share phases of equal batch. */
static void add_passes(struct build *b)
{
    const struct qn_run_set *runs = &b->option->persist->runs;
    for (int r = 0; r < runs->n_runs; r++)
        for (int c = 0; runs->run[r].what != QN_RUN_EVALUATE && c < b->program->n_cycles; c++)
            add_run(b, r, &b->program->cycles[c]);
}

static void add_evaluations(struct build *b)
{
    const struct qn_option *o = b->option;
    for (int r = 0; r < o->persist->runs.n_runs; r++)
        if (o->persist->runs.run[r].what == QN_RUN_EVALUATE)
            b->program->evaluation[r] =
                add_phase(b, o->persist->runs.run[r].name, QN_EVALUATION_PHASE, &o->evaluation[r],
                          false, &o->evaluation_steps[r]);
}

/* The first phase of the first run that goes backward, else phase 0. */
static int main_phase(const struct build *b)
{
    const struct qn_run_set *runs = &b->option->persist->runs;
    for (int r = 0; r < runs->n_runs; r++) {
        const struct qn_run_phases *phases = &b->program->cycles[0].runs[r];
        if (qn_run_trains(&runs->run[r]))
            return phases->first >= 0 ? phases->first : phases->rest;
    }
    return 0;
}

static bool open_build(struct build *b)
{
    b->phase =
        (int(*)[2])qn_arena_alloc(b->arena, (size_t)b->option->n_parts + 1, sizeof *b->phase);
    for (int p = 0; b->phase && p < b->option->n_parts; p++)
        b->phase[p][0] = b->phase[p][1] = -1;
    *b->program = (struct qn_program){.start = -1, .norms = -1, .update = -1};
    for (int r = 0; r < QN_MAX_RUNS; r++)
        b->program->evaluation[r] = -1;
    return b->phase;
}

qn_status qn_option_program(const struct qn_option *o, int limit, struct qn_arena *arena,
                            struct qn_program *program)
{
    const struct qn_run_set *runs = &o->persist->runs;
    struct build b = {.option = o, .limit = limit, .arena = arena, .program = program};
    if (!open_build(&b))
        return out_of_memory(o);
    if (runs->zeroed)
        program->start = add_phase(&b, "start", QN_START_PHASE, &o->start, false, &o->start_steps);
    add_cycles(&b);
    add_passes(&b);
    if (qn_runs_train(runs) && o->persist->shard.members)
        program->norms =
            add_phase(&b, "norms", QN_UPDATE_PHASE, &o->norms, false, &o->norms_steps);
    if (qn_runs_train(runs))
        program->update =
            add_phase(&b, "update", QN_UPDATE_PHASE, &o->update, false, &o->update_steps);
    add_evaluations(&b);
    if (b.failed)
        return out_of_memory(o);
    for (int c = 0; c < program->n_cycles; c++)
        program->cycles[c].seconds = o->n_parts ? cycle_seconds(&b, &program->cycles[c])
                                                : evaluation_seconds(&b, program->cycles[c].batch);
    program->main = main_phase(&b);
    struct qn_lowering how = o->how;
    how.arena = arena;
    return qn_program_simulate(program, o->persist, false, &how);
}

/* --- compared with keeping all --- */

/* Adds to *more the seconds that `times` repetitions of a phase spend on recomputation. */
static qn_status recomputing(const struct qn_option *o, const struct qn_program *program,
                             int64_t times, int phase, double *more)
{
    struct qn_steps steps;
    if (phase < 0 || !times)
        return QN_OK;
    if (!qn_steps_make(program->phases[phase].problem, &keep_all, o->how.arena, &steps))
        return out_of_memory(o);
    *more += (double)times * (program->phases[phase].seconds - steps.seconds);
    return QN_OK;
}

qn_status qn_option_keep_all_seconds(const struct qn_option *o, const struct qn_program *program,
                                     double *seconds)
{
    const struct qn_cycle_plan *cycle = &program->cycles[0];
    double more = 0;
    for (int r = 0; r < o->persist->runs.n_runs; r++) {
        const struct qn_run_phases *phases = &cycle->runs[r];
        QN_TRY(recomputing(o, program, 1, phases->first, &more));
        QN_TRY(recomputing(o, program, cycle->micro_steps - 1, phases->later, &more));
        QN_TRY(recomputing(o, program, 1, phases->rest, &more));
    }
    *seconds = cycle->seconds - more;
    return QN_OK;
}
