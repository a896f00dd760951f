/* SPDX-License-Identifier: MIT
 *
 * The program of a choice: which phases there are, in the order of the timeline.
 */
#include "plan/search/option.h"

#include "base/log.h"
#include "base/shape.h"

#include <stdio.h>
#include <string.h>

static const struct qn_policy keep_all = {0};

static qn_status out_of_memory(const struct qn_option *o)
{
    return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
}

struct build {
    const struct qn_option *option;
    int choice;
    struct qn_arena *arena;
    struct qn_program *program;
    bool failed;
    int (*phase)[2]; /* by part: phase of later micro-steps [0], of the first of a cycle [1]; of a
                        kept part the forward phase [0], the backward one [1]; -1 */
};

static const struct qn_run_of *run_of(const struct build *b, int run)
{
    return &b->option->persist->runs.run[run];
}

static const struct qn_steps *steps_of(const struct build *b, int part)
{
    return &qn_choices_pick(b->option->choices, part, b->choice)->steps;
}

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
    const int number = qn_option_part(b->option, run, batch, false);
    const struct qn_part *part = &b->option->parts[number];
    first &= !b->option->persist->runs.zeroed;
    int *phase = &b->phase[number][first];
    if (*phase < 0) {
        *phase = add_phase(b, phase_name(b, part, first), QN_MICRO_PHASE, &part->problem, first,
                           steps_of(b, number));
        if (!b->failed && run_of(b, run)->whole)
            b->program->phases[*phase].repeats = false;
    }
    return *phase;
}

/* --- kept micro-steps --- */

/* Whether the last micro-steps of the run are kept. */
static bool keeps(const struct build *b, int run)
{
    return run_of(b, run)->partner >= 0 && b->option->choices->list[b->choice].kept;
}

static const char *kept_name(struct build *b, int run)
{
    const char *of = run_of(b, run)->name;
    const size_t bytes = strlen(of) + sizeof ", last micro-step";
    char *name = qn_arena_new(b->arena, char, bytes);
    b->failed |= !name;
    if (name)
        snprintf(name, bytes, "%s, last micro-step", of);
    return name;
}

/* The steps of a kept part that its forward phase has, or its backward phase. */
static struct qn_steps half_of(const struct qn_problem *problem, const struct qn_steps *all,
                               bool backward)
{
    struct qn_steps half = {.task = all->task, .count = problem->n_forward};
    if (backward)
        half = (struct qn_steps){.task = all->task + problem->n_forward,
                                 .count = all->count - problem->n_forward,
                                 .recomputed = all->recomputed};
    for (int i = 0; i < half.count; i++)
        half.seconds += problem->tasks[half.task[i]].seconds;
    return half;
}

/* The phase of a run in the kept micro-step of a cycle, added when first asked for: of the forward
 * run before that of the backward run, which goes on with it. */
static int kept_phase(struct build *b, int run, int64_t batch)
{
    const bool backward = run_of(b, run)->what == QN_RUN_BACKWARD;
    const int number = qn_option_part(b->option, backward ? run : run_of(b, run)->partner,
                                      qn_option_last(b->option, batch), true);
    const struct qn_problem *problem = &b->option->parts[number].problem;
    int *phase = b->phase[number];
    if (phase[backward] >= 0)
        return phase[backward];
    const struct qn_steps half = half_of(problem, steps_of(b, number), backward);
    phase[backward] = add_phase(b, kept_name(b, run), QN_MICRO_PHASE, problem, false, &half);
    if (backward && !b->failed)
        qn_program_join(b->program, phase[0], phase[1]);
    return phase[backward];
}

/* --- runs of a cycle --- */

static void add_run(struct build *b, int run, struct qn_cycle_plan *cycle)
{
    struct qn_run_phases *phases = &cycle->runs[run];
    if (run_of(b, run)->whole) {
        phases->first = part_phase(b, run, cycle->whole, true);
        return;
    }
    const int64_t size = b->option->choices->micro_batch;
    const bool rest = cycle->remainder && !keeps(b, run);
    const int64_t full = cycle->micro_steps - (keeps(b, run) && !cycle->remainder);
    if (full > 0)
        phases->first = part_phase(b, run, size, true);
    if (full > 1)
        phases->later = part_phase(b, run, size, false);
    phases->laters = full > 1 ? full - 1 : 0;
    if (rest)
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
           (double)phases->laters * phase_seconds(program, phases->later) +
           phase_seconds(program, phases->rest) + phase_seconds(program, phases->kept);
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

static struct qn_cycle_plan *add_cycle(struct build *b, int64_t batch, int64_t whole)
{
    struct qn_cycle_plan *cycle = &b->program->cycles[b->program->n_cycles++];
    const int64_t size = b->option->choices->micro_batch;
    *cycle = (struct qn_cycle_plan){
        .batch = batch, .whole = whole, .micro_steps = batch / size, .remainder = batch % size};
    for (int r = 0; r < QN_MAX_RUNS; r++)
        cycle->runs[r] = (struct qn_run_phases){-1, -1, -1, -1, 0};
    return cycle;
}

/* Adds the cycle of the largest batch first: its first micro-step is the first phase of a pass. */
static void add_cycles(struct build *b)
{
    const struct qn_plan_params *params = b->option->how.params;
    const int64_t largest = qn_largest_batch(params);
    int first = 0;
    while (params->batch[first] && params->batch[first] != largest)
        first++;
    const int64_t whole = qn_whole_cycle(params, first);
    add_cycle(b, largest, whole);
    for (int i = 0; i < qn_option_batches(params); i++)
        if (params->batch[i] != largest || qn_whole_cycle(params, i) != whole)
            add_cycle(b, params->batch[i], qn_whole_cycle(params, i));
}

static void add_kept(struct build *b, int run)
{
    for (int c = 0; keeps(b, run) && c < b->program->n_cycles; c++) {
        struct qn_cycle_plan *cycle = &b->program->cycles[c];
        cycle->runs[run].kept = kept_phase(b, run, cycle->batch);
    }
}

/* Adds phases in the order of the timeline: run by run, for each the phases of all cycles; cycles
 * share phases of equal batch. A kept micro-step is the last of its forward run and the first of
 * its backward run, so that what it keeps is alive during no other micro-step of these. */
static void add_passes(struct build *b)
{
    const struct qn_run_set *runs = &b->option->persist->runs;
    for (int r = 0; r < runs->n_runs; r++) {
        if (runs->run[r].what == QN_RUN_EVALUATE)
            continue;
        if (runs->run[r].what == QN_RUN_BACKWARD)
            add_kept(b, r);
        for (int c = 0; c < b->program->n_cycles; c++)
            add_run(b, r, &b->program->cycles[c]);
        if (runs->run[r].what != QN_RUN_BACKWARD)
            add_kept(b, r);
    }
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

/* The first run that goes backward, of those for each micro-step if there is one; -1: none does. */
static int main_run(const struct qn_run_set *runs)
{
    int found = -1;
    for (int r = 0; r < runs->n_runs; r++)
        if (qn_run_trains(&runs->run[r]) &&
            (found < 0 || (runs->run[found].whole && !runs->run[r].whole)))
            found = r;
    return found;
}

static int main_phase(const struct build *b)
{
    const int run = main_run(&b->option->persist->runs);
    if (run < 0)
        return 0;
    const struct qn_run_phases *phases = &b->program->cycles[0].runs[run];
    return phases->first >= 0 ? phases->first : phases->rest >= 0 ? phases->rest : phases->kept;
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

qn_status qn_option_program(const struct qn_option *o, int choice, struct qn_arena *arena,
                            struct qn_program *program)
{
    const struct qn_run_set *runs = &o->persist->runs;
    struct build b = {.option = o, .choice = choice, .arena = arena, .program = program};
    if (!open_build(&b))
        return out_of_memory(o);
    if (runs->zeroed)
        program->start = add_phase(&b, "start", QN_START_PHASE, &o->start, false, &o->start_steps);
    add_cycles(&b);
    add_passes(&b);
    if (qn_runs_train(runs) && o->persist->shard.members)
        program->norms = add_phase(&b, "norms", QN_UPDATE_PHASE, &o->norms, false, &o->norms_steps);
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

/* Adds to *more the seconds that `times` repetitions of a phase spend on recomputation; of a kept
 * micro-step all counts as its backward phase's. */
static qn_status recomputing(const struct qn_option *o, const struct qn_program *program,
                             int64_t times, int number, double *more)
{
    struct qn_steps steps;
    const struct qn_phase_run *phase = number < 0 ? NULL : &program->phases[number];
    if (!phase || !times || phase->next >= 0)
        return QN_OK;
    if (!qn_steps_make(phase->problem, &keep_all, o->how.arena, &steps))
        return out_of_memory(o);
    const double before = phase->before < 0 ? 0 : program->phases[phase->before].seconds;
    *more += (double)times * (before + phase->seconds - steps.seconds);
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
        QN_TRY(recomputing(o, program, phases->laters, phases->later, &more));
        QN_TRY(recomputing(o, program, 1, phases->rest, &more));
        QN_TRY(recomputing(o, program, 1, phases->kept, &more));
    }
    *seconds = cycle->seconds - more;
    return QN_OK;
}
