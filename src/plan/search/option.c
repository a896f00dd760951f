/* SPDX-License-Identifier: MIT */
#include "plan/search/option.h"

#include "base/log.h"
#include "base/shape.h"

#include <stdio.h>
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

static int find_part(const struct qn_option *o, int run, int64_t batch, bool kept)
{
    for (int p = 0; p < o->n_parts; p++)
        if (o->parts[p].run == run && o->parts[p].batch == batch && o->parts[p].kept == kept)
            return p;
    return -1;
}

static qn_status open_part(struct qn_option *o, const struct qn_part *like)
{
    if (!like->batch || find_part(o, like->run, like->batch, like->kept) >= 0)
        return QN_OK;
    struct qn_part *part = &o->parts[o->n_parts++];
    *part = *like;
    return (part->kept ? qn_lower_kept : qn_lower_run)(&o->how, o->persist, part->run, part->batch,
                                                       &part->problem);
}

/* Samples of the last micro-step of a cycle. */
static int64_t last_samples(const struct qn_option *o, int64_t batch)
{
    const int64_t size = o->choices->micro_batch;
    return batch % size ? batch % size : size;
}

/* Opens the parts of a run: of a whole run every effective batch, the largest first; else the
 * micro-batch and every remainder; of a backward run with a partner every last micro-step. */
static qn_status open_run(struct qn_option *o, int run)
{
    const struct qn_plan_params *params = o->how.params;
    const struct qn_run_of *of = &o->persist->runs.run[run];
    const int64_t size = o->choices->micro_batch;
    struct qn_part part = {.run = run, .batch = of->whole ? qn_largest_cycle(params) : size};
    QN_TRY(open_part(o, &part));
    for (int i = 0; i < batch_count(params); i++) {
        part.batch = of->whole ? qn_whole_cycle(params, i) : params->batch[i] % size;
        part.remainder = !of->whole;
        QN_TRY(open_part(o, &part));
    }
    part.kept = true;
    for (int i = 0; i < batch_count(params); i++) {
        part.batch = last_samples(o, params->batch[i]);
        if (of->what == QN_RUN_BACKWARD && of->partner >= 0)
            QN_TRY(open_part(o, &part));
    }
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

/* The peaks of all candidates of parts that are kept, or of those that are neither kept nor
 * remainders, each once, descending. */
static qn_status list_peaks(const struct qn_option *o, const struct qn_choices *choices, bool kept,
                            int64_t **peaks, int *count)
{
    size_t most = 0;
    int all = 0;
    for (int p = 0; p < o->n_parts; p++)
        most += (size_t)choices->parts[p].count;
    *peaks = qn_arena_new(o->how.arena, int64_t, most + 1);
    if (!*peaks)
        return out_of_memory(o);
    for (int p = 0; p < o->n_parts; p++)
        for (int i = 0; i < choices->parts[p].count; i++)
            if (o->parts[p].kept == kept && (kept || !o->parts[p].remainder))
                (*peaks)[all++] = choices->parts[p].items[i].peak;
    qsort(*peaks, (size_t)all, sizeof **peaks, downwards);
    *count = 0;
    for (int i = 0; i < all; i++)
        if (!*count || (*peaks)[i] < (*peaks)[*count - 1])
            (*peaks)[(*count)++] = (*peaks)[i];
    return QN_OK;
}

/* The number of the next kept peak beside one limit: closely at first, and the smallest in any
 * case.
 */
static int next_kept(int begin, int at, int count)
{
    const int stride = at > begin ? at - begin : 1;
    return at + stride < count || at == count - 1 ? at + stride : count - 1;
}

/* Kept micro-steps are no larger than the limit, unless it is the largest: what needs more than all
 * others is worth its bytes only where these have what they want. */
static void add_choices(struct qn_choices *choices, int64_t limit, const int64_t *kept, int n_kept)
{
    int begin = 0;
    while (choices->count && begin < n_kept - 1 && kept[begin] > limit)
        begin++;
    choices->list[choices->count++] = (struct qn_choice){.limit = limit};
    for (int i = begin; i < n_kept; i = next_kept(begin, i, n_kept))
        choices->list[choices->count++] = (struct qn_choice){limit, kept[i]};
}

/* Without any parts, as of programs that only evaluate, there is one choice of nothing. */
static qn_status list_choices(const struct qn_option *o, struct qn_arena *arena,
                              struct qn_choices *choices)
{
    enum { MOST_KEPT = 40 }; /* for a limit: strides double */
    int64_t *limits, *kept;
    int n_limits, n_kept;
    QN_TRY(list_peaks(o, choices, false, &limits, &n_limits));
    QN_TRY(list_peaks(o, choices, true, &kept, &n_kept));
    choices->list =
        qn_arena_new(arena, struct qn_choice, (size_t)n_limits * (n_kept ? MOST_KEPT : 1) + 1);
    choices->count = 0;
    if (!choices->list)
        return out_of_memory(o);
    for (int i = 0; i < n_limits; i++)
        add_choices(choices, limits[i], kept, n_kept);
    choices->count += !n_limits;
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
    return list_choices(o, arena, choices);
}

const struct qn_candidate *qn_choices_pick(const struct qn_choices *choices, int part, int choice)
{
    const struct qn_candidates *all = &choices->parts[part];
    const struct qn_choice *of = &choices->list[choice];
    if (all->kept && !of->kept)
        return NULL;
    for (int i = 0; i < all->count; i++)
        if (all->items[i].peak <= (all->kept ? of->kept : of->limit))
            return &all->items[i];
    return &all->items[all->count - 1];
}

static qn_status check_steps(const struct qn_option *o, const struct qn_problem *problem,
                             const struct qn_steps *steps)
{
    qn_status status = qn_steps_check(problem, steps);
    if (status == QN_OK && problem->kept && !qn_steps_part(problem, steps))
        status = QN_ERR_FORMAT;
    return status == QN_OK ? QN_OK
                           : qn_fail(o->how.log, status, "plan: %s",
                                     status == QN_ERR_MEMORY ? "out of host memory"
                                                             : "a list of steps that cannot run");
}

qn_status qn_option_check(const struct qn_option *o, int choice)
{
    const struct qn_choices *choices = o->choices;
    if (choices->n_parts != o->n_parts)
        return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: lists of steps for another program");
    for (int p = 0; p < o->n_parts; p++) {
        const bool wanted = !o->parts[p].kept || choices->list[choice].kept;
        if (choices->parts[p].kept != o->parts[p].kept || (wanted && !choices->parts[p].count))
            return qn_fail(o->how.log, QN_ERR_FORMAT, "plan: no list of steps for a part");
        if (wanted)
            QN_TRY(
                check_steps(o, &o->parts[p].problem, &qn_choices_pick(choices, p, choice)->steps));
    }
    return QN_OK;
}

/* --- building a program --- */

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
    const int number = find_part(b->option, run, batch, false);
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
    char name[128];
    snprintf(name, sizeof name, "%s, last micro-step", run_of(b, run)->name);
    const char *copy = qn_arena_strdup(b->arena, name);
    b->failed |= !copy;
    return copy;
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
    const int number = find_part(b->option, backward ? run : run_of(b, run)->partner,
                                 last_samples(b->option, batch), true);
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
    add_cycle(b, largest, qn_whole_cycle(params, first));
    for (int i = 0; i < batch_count(params); i++)
        if (params->batch[i] != largest ||
            qn_whole_cycle(params, i) != qn_whole_cycle(params, first))
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
