/* SPDX-License-Identifier: MIT */
#include "plan/search.h"

#include "base/log.h"
#include "base/shape.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_MICRO_BATCHES = 64, MOST_RESTS = QN_MAX_BATCH_SIZES };

static const struct qn_policy keep_all = {0};

/* One micro-batch with everything that any of its candidates needs. */
struct option {
    struct qn_lowering how; /* with the option's own arena */
    const struct qn_persist *persist;
    int64_t micro_batch;
    struct qn_problem micro, update, evaluation;
    struct qn_candidates candidates;
    int64_t rest[MOST_RESTS]; /* distinct remainders */
    struct qn_problem rest_problem[MOST_RESTS];
    struct qn_candidates rest_candidates[MOST_RESTS];
    int n_rests;
    struct qn_steps update_steps, evaluation_steps;
};

static int batch_count(const struct qn_plan_params *params)
{
    int count = 0;
    while (count < QN_MAX_BATCH_SIZES && params->batch[count])
        count++;
    return count;
}

static qn_status open_rests(struct option *o)
{
    for (int i = 0; i < batch_count(o->how.params); i++) {
        int64_t rest = o->how.params->batch[i] % o->micro_batch;
        bool known = rest == 0;
        for (int r = 0; r < o->n_rests; r++)
            known |= o->rest[r] == rest;
        if (known)
            continue;
        int r = o->n_rests++;
        o->rest[r] = rest;
        QN_TRY(qn_lower_training(&o->how, o->persist, rest, &o->rest_problem[r]));
        QN_TRY(qn_candidates_make(&o->how, &o->rest_problem[r], &o->rest_candidates[r]));
    }
    return QN_OK;
}

static qn_status open_option(struct option *o)
{
    QN_TRY(qn_lower_training(&o->how, o->persist, o->micro_batch, &o->micro));
    QN_TRY(qn_candidates_make(&o->how, &o->micro, &o->candidates));
    QN_TRY(open_rests(o));
    QN_TRY(qn_lower_update(&o->how, o->persist, &o->update));
    QN_TRY(qn_lower_evaluation(&o->how, o->persist, o->micro_batch, &o->evaluation));
    if (!qn_steps_make(&o->update, &keep_all, o->how.arena, &o->update_steps) ||
        !qn_steps_make(&o->evaluation, &keep_all, o->how.arena, &o->evaluation_steps))
        return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
    return QN_OK;
}

/* The remainder runs the fastest candidate that is no larger than the micro-step's. */
static const struct qn_candidate *rest_candidate(const struct option *o, int rest, int64_t peak)
{
    const struct qn_candidates *all = &o->rest_candidates[rest];
    for (int i = 0; i < all->count; i++)
        if (all->items[i].peak <= peak)
            return &all->items[i];
    return &all->items[all->count - 1];
}

static int rest_index(const struct option *o, int64_t rest)
{
    for (int r = 0; r < o->n_rests; r++)
        if (o->rest[r] == rest)
            return r;
    return -1;
}

/* --- building a program --- */

struct build {
    const struct option *option;
    const struct qn_candidate *candidate;
    struct qn_arena *arena;
    struct qn_program *program;
    bool failed;
    int first, later, rest[MOST_RESTS], rest_first[MOST_RESTS];
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
                           &rest_candidate(b->option, rest, b->candidate->peak)->steps);
    return *phase;
}

static double phase_seconds(const struct qn_program *program, int phase)
{
    return phase < 0 ? 0 : program->phases[phase].seconds;
}

static void add_cycle(struct build *b, int64_t batch)
{
    struct qn_cycle_plan *cycle = &b->program->cycles[b->program->n_cycles++];
    int64_t rest = batch % b->option->micro_batch;
    *cycle = (struct qn_cycle_plan){.batch = batch,
                                    .micro_steps = batch / b->option->micro_batch,
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
static qn_status build_program(const struct option *o, const struct qn_candidate *candidate,
                               struct qn_arena *arena, struct qn_program *program)
{
    struct build b = {.option = o,
                      .candidate = candidate,
                      .arena = arena,
                      .program = program,
                      .first = -1,
                      .later = -1};
    for (int r = 0; r < MOST_RESTS; r++)
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

/* QN_ERR_BUDGET: it cannot be placed. */
static qn_status place(const struct option *o, bool exactly, struct qn_program *program,
                       struct qn_arena *arena, struct qn_placement *placement)
{
    const qn_status status = (exactly ? qn_place_storages : qn_place_greedily)(
        program->storages, program->n_storages, o->how.facts->max_alloc_bytes, arena, placement);
    return status == QN_ERR_MEMORY ? qn_fail(o->how.log, status, "plan: out of host memory")
                                   : status;
}

/* --- choosing --- */

static double all_cycles(const struct qn_program *program)
{
    double seconds = 0;
    for (int i = 0; i < program->n_cycles; i++)
        seconds += program->cycles[i].seconds;
    return seconds;
}

/* The task that runs where most is alive. */
static const char *peak_step(const struct qn_program *program)
{
    for (int p = 0; p < program->n_phases; p++) {
        const struct qn_phase_run *phase = &program->phases[p];
        int step = program->peak_at - phase->start;
        if (step >= 0 && step < phase->n_steps)
            return phase->problem->tasks[phase->steps[step].task].name;
    }
    return "";
}

/* One look at candidates of all micro-batches. Placing takes the most time by far: the first look
 * places all greedily, the second what is left of them exactly. */
struct look {
    const struct qn_lowering *how;
    const struct qn_persist *persist;
    const struct qn_frontier *left; /* NULL: the first look */
    struct qn_frontier *frontier;   /* in how->arena */
};

static bool is_left(const struct look *l, int64_t micro_batch, int candidate)
{
    for (int i = 0; l->left && i < l->left->count; i++) {
        const struct qn_point *point = &l->left->points[i];
        if (point->micro_batch == micro_batch && (candidate < 0 || point->candidate == candidate))
            return true;
    }
    return !l->left;
}

/* What is beaten by its live bytes already is not placed. */
static qn_status try_candidate(const struct look *l, const struct option *o, int candidate,
                               struct qn_arena *arena)
{
    struct qn_program program;
    struct qn_placement placement;
    QN_TRY(build_program(o, &o->candidates.items[candidate], arena, &program));
    const double seconds = all_cycles(&program);
    if (qn_frontier_beats(l->frontier, program.live_peak + program.blas_temp, seconds))
        return QN_OK;
    const qn_status status = place(o, l->left, &program, arena, &placement);
    if (status != QN_OK)
        return status == QN_ERR_BUDGET ? QN_OK : status;
    const struct qn_point point = {.bytes = placement.total + program.blas_temp,
                                   .seconds = seconds,
                                   .micro_batch = o->micro_batch,
                                   .candidate = candidate,
                                   .recomputed = program.phases[0].recomputed,
                                   .early = l->persist->early,
                                   .largest_step = peak_step(&program)};
    return qn_frontier_add(l->frontier, &point, l->how->arena)
               ? QN_OK
               : qn_fail(l->how->log, QN_ERR_MEMORY, "plan: out of host memory");
}

static qn_status try_candidates(const struct look *l, const struct option *o)
{
    for (int c = 0; c < o->candidates.count; c++) {
        struct qn_arena arena = {0};
        const qn_status status =
            is_left(l, o->micro_batch, c) ? try_candidate(l, o, c, &arena) : QN_OK;
        qn_arena_free(&arena);
        QN_TRY(status);
    }
    return QN_OK;
}

static qn_status try_micro_batch(const struct look *l, int64_t micro_batch)
{
    struct qn_arena arena = {0};
    struct option o = {.how = *l->how, .persist = l->persist, .micro_batch = micro_batch};
    o.how.arena = &arena;
    qn_status status = open_option(&o);
    if (status == QN_OK)
        status = try_candidates(l, &o);
    qn_arena_free(&arena);
    return status;
}

/* Every micro-batch that splits the batch into another number of parts, whole groups each; thinned
 * out where there are many, but for the smallest, one group, which is always the last. */
static int useful_micro_batches(const struct qn_lowering *how, int64_t group, int64_t *sizes)
{
    int64_t batch = qn_largest_batch(how->params);
    if (how->early) {
        sizes[0] = batch;
        return 1;
    }
    if (how->params->micro_batch) {
        sizes[0] = how->params->micro_batch < batch ? how->params->micro_batch : batch;
        return 1;
    }
    int count = 0;
    for (int64_t parts = 1; count < MOST_MICRO_BATCHES - 1; parts += 1 + parts / 16) {
        int64_t size = qn_round_up(qn_div_up(batch, parts), group);
        size = size < 0 || size > batch ? batch : size;
        if (!count || size < sizes[count - 1])
            sizes[count++] = size;
        if (size <= group)
            return count;
    }
    sizes[count++] = group;
    return count;
}

/* A micro-batch with a tensor above the largest allocation is no option; when even the smallest is
 * none (and early updates are not all there is), and whenever anything else goes wrong, it is tried
 * again, aloud. */
static qn_status try_all(const struct look *l, const int64_t *sizes, int count)
{
    bool too_large, any = false;
    struct qn_lowering quiet = *l->how;
    struct look silent = *l;
    silent.how = &quiet;
    quiet.log = NULL;
    quiet.too_large = &too_large;
    for (int i = 0; i < count; i++) {
        too_large = false;
        qn_status status = try_micro_batch(&silent, sizes[i]);
        if (status != QN_OK && too_large && (any || i + 1 < count || l->how->early))
            continue;
        if (status != QN_OK)
            QN_TRY(try_micro_batch(l, sizes[i]));
        any = true;
    }
    return QN_OK;
}

qn_status qn_search(const struct qn_lowering *how, const struct qn_persist *persist,
                    struct qn_frontier *frontier)
{
    int64_t sizes[MOST_MICRO_BATCHES];
    int count = useful_micro_batches(how, qn_graph_batch_group(persist->graph), sizes);
    struct qn_frontier rough = {.count = 0};
    const struct look first = {how, persist, NULL, &rough},
                      second = {how, persist, &rough, frontier};
    QN_TRY(try_all(&first, sizes, count));
    for (int i = 0; i < count; i++)
        if (is_left(&second, sizes[i], -1))
            QN_TRY(try_micro_batch(&second, sizes[i]));
    return QN_OK;
}

/* What cycle 0 would take if neither its micro-steps nor its remainder recomputed anything. */
static qn_status time_keep_all(const struct option *o, const struct qn_program *program,
                               struct qn_arena *arena, double *seconds)
{
    const struct qn_cycle_plan *cycle = &program->cycles[0];
    int rest = rest_index(o, cycle->remainder);
    struct qn_steps micro, last = {.seconds = 0};
    if (!qn_steps_make(&o->micro, &keep_all, arena, &micro) ||
        (rest >= 0 && !qn_steps_make(&o->rest_problem[rest], &keep_all, arena, &last)))
        return qn_fail(o->how.log, QN_ERR_MEMORY, "plan: out of host memory");
    *seconds = cycle->seconds +
               (double)cycle->micro_steps * (micro.seconds - phase_seconds(program, cycle->first)) +
               (last.seconds - phase_seconds(program, cycle->rest));
    return QN_OK;
}

qn_status qn_search_build(const struct qn_lowering *how, const struct qn_persist *persist,
                          const struct qn_point *point, struct qn_program *program,
                          struct qn_placement *placement, double *keep_all_seconds)
{
    struct option o = {.how = *how, .persist = persist, .micro_batch = point->micro_batch};
    struct option *kept = qn_arena_new(how->arena, struct option, 1);
    if (!kept)
        return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
    *kept = o;
    QN_TRY(open_option(kept));
    QN_TRY(build_program(kept, &kept->candidates.items[point->candidate], how->arena, program));
    QN_TRY(place(kept, true, program, how->arena, placement));
    return time_keep_all(kept, program, how->arena, keep_all_seconds);
}
