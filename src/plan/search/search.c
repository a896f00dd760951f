/* SPDX-License-Identifier: MIT */
#include "plan/search/search.h"

#include "base/log.h"
#include "base/shape.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_MICRO_BATCHES = 64 };

/* Whether all runs of the cycle are whole runs, so that there is no micro-batch to choose. */
static bool is_whole(const struct qn_persist *persist)
{
    bool cycle = false, each = false;
    for (int r = 0; r < persist->runs.n_runs; r++) {
        cycle |= persist->runs.run[r].what != QN_RUN_EVALUATE;
        each |= persist->runs.run[r].what != QN_RUN_EVALUATE && !persist->runs.run[r].whole;
    }
    return cycle && !each;
}

/* Micro-batches, descending: ceil(batch / n) for n = 1, 2, .. micro-steps, rounded up to sample
 * groups, each once; large n are thinned out; the smallest, one sample group, is always the last.
 */
static int useful_micro_batches(const struct qn_lowering *how, const struct qn_persist *persist,
                                int64_t group, int64_t *sizes)
{
    int64_t batch = qn_largest_batch(how->params);
    if (how->early || is_whole(persist)) {
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

/* --- lower bounds of programs --- */

static double all_cycles(const struct qn_program *program)
{
    double seconds = 0;
    for (int i = 0; i < program->n_cycles; i++)
        seconds += program->cycles[i].seconds;
    return seconds;
}

static double counted_seconds(const struct qn_option *o, const struct qn_program *program)
{
    const bool stays = !o->how.kept || o->how.kept == o->choices->micro_batch;
    return (stays ? 1 : o->how.must_gain) * all_cycles(program);
}

/* Name of the task that runs at the peak. */
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

struct search {
    const struct qn_lowering *how;
    const struct qn_persist *persist;
    struct qn_choices *options[MOST_MICRO_BATCHES];
    int n_options;
    struct qn_point
        *bounds; /* every choice, with its bytes if placed without gaps: the live peak */
    int n_bounds, room;
    struct qn_frontier *frontier;
};

static qn_status out_of_memory(const struct qn_lowering *how)
{
    return qn_fail(how->log, QN_ERR_MEMORY, "plan: out of host memory");
}

/* Makes room for `more` bounds. False when out of memory: s->bounds stays valid, as explore_all()
 * tries again. */
static bool grow_bounds(struct search *s, int more)
{
    if (s->n_bounds + more <= s->room)
        return true;
    const int room = 2 * s->room + more;
    struct qn_point *bounds = qn_arena_new(s->how->arena, struct qn_point, (size_t)room);
    if (!bounds)
        return false;
    for (int i = 0; i < s->n_bounds; i++)
        bounds[i] = s->bounds[i];
    s->bounds = bounds;
    s->room = room;
    return true;
}

static qn_status find_bound(const struct qn_option *o, int choice, struct qn_point *bound)
{
    struct qn_arena arena = {0};
    struct qn_program program;
    const qn_status status = qn_option_program(o, choice, &arena, &program);
    if (status == QN_OK)
        *bound = (struct qn_point){.bytes = program.live_peak + program.blas_temp,
                                   .seconds = counted_seconds(o, &program),
                                   .micro_batch = o->choices->micro_batch,
                                   .choices = o->choices,
                                   .choice = choice,
                                   .recomputed = qn_program_main(&program)->recomputed,
                                   .early = o->persist->early,
                                   .park = o->how.park,
                                   .parked = program.host_bytes,
                                   .largest_step = peak_step(&program)};
    qn_arena_free(&arena);
    return status;
}

static qn_status find_bounds(struct search *s, const struct qn_option *o)
{
    const int count = o->choices->count;
    if (!grow_bounds(s, count))
        return out_of_memory(s->how);
    for (int c = 0; c < count; c++)
        QN_TRY(find_bound(o, c, &s->bounds[s->n_bounds + c]));
    s->n_bounds += count;
    return QN_OK;
}

static qn_status explore(struct search *s, const struct qn_lowering *how, int64_t micro_batch)
{
    struct qn_arena arena = {0};
    struct qn_choices *choices = qn_arena_new(how->arena, struct qn_choices, 1);
    struct qn_lowering own = *how;
    struct qn_option option;
    if (!choices)
        return out_of_memory(how);
    own.arena = &arena;
    choices->micro_batch = micro_batch;
    qn_status status = qn_option_open(&own, s->persist, choices, &option);
    if (status == QN_OK)
        status = qn_option_choose(&option, how->arena, choices);
    if (status == QN_OK)
        status = find_bounds(s, &option);
    qn_arena_free(&arena);
    if (status == QN_OK)
        s->options[s->n_options++] = choices;
    return status;
}

/* A micro-batch with a tensor above the largest allocation is no option. If that leaves no option
 * at all (except with early updates, which have one micro-batch), or after any other error, the
 * micro-batch is tried again with the log, which then says why. */
static qn_status explore_all(struct search *s)
{
    int64_t sizes[MOST_MICRO_BATCHES];
    const int64_t group = qn_persist_batch_group(s->persist);
    const int count = useful_micro_batches(s->how, s->persist, group, sizes);
    bool too_large;
    struct qn_lowering quiet = *s->how;
    quiet.log = NULL;
    quiet.too_large = &too_large;
    for (int i = 0; i < count; i++) {
        too_large = false;
        const qn_status status = explore(s, &quiet, sizes[i]);
        if (status != QN_OK && too_large && (s->n_options || i + 1 < count || s->how->early))
            continue;
        if (status != QN_OK)
            QN_TRY(explore(s, s->how, sizes[i]));
    }
    return QN_OK;
}

/* --- placing --- */

static bool has(const struct qn_frontier *frontier, const struct qn_point *point)
{
    for (int i = 0; i < frontier->count; i++)
        if (frontier->points[i].choices == point->choices &&
            frontier->points[i].choice == point->choice)
            return true;
    return false;
}

static qn_status place(const struct qn_lowering *how, struct qn_program *program,
                       struct qn_arena *arena, struct qn_placement *placement)
{
    const qn_status status =
        qn_program_place(program, how->facts->max_alloc_bytes, arena, placement);
    return status == QN_ERR_MEMORY ? out_of_memory(how) : status;
}

/* Places a bound's program and adds it to the frontier; a program that needs more pools than there
 * are (QN_ERR_BUDGET) adds no point. */
static qn_status add_point(struct search *s, const struct qn_option *o,
                           const struct qn_point *bound, struct qn_arena *arena)
{
    struct qn_program program;
    struct qn_placement placement;
    QN_TRY(qn_option_program(o, bound->choice, arena, &program));
    const qn_status status = place(s->how, &program, arena, &placement);
    s->frontier->placed++;
    if (status != QN_OK)
        return status == QN_ERR_BUDGET ? QN_OK : status;
    struct qn_point point = *bound;
    point.bytes = placement.total + program.blas_temp;
    return qn_frontier_add(s->frontier, &point, s->how->arena) ? QN_OK : out_of_memory(s->how);
}

/* Places the bounds of one micro-batch that are in `front`, or those that are not; a bound that a
 * point of the frontier beats is not placed. */
static qn_status place_option(struct search *s, const struct qn_choices *choices,
                              const struct qn_frontier *front, bool in_front)
{
    struct qn_arena arena = {0};
    struct qn_lowering own = *s->how;
    struct qn_option option = {.choices = NULL};
    qn_status status = QN_OK;
    own.arena = &arena;
    for (int i = 0; status == QN_OK && i < s->n_bounds; i++) {
        const struct qn_point *bound = &s->bounds[i];
        struct qn_arena once = {0};
        if (bound->choices != choices || has(front, bound) != in_front ||
            qn_frontier_beats(s->frontier, bound->bytes, bound->seconds))
            continue;
        if (!option.choices)
            status = qn_option_open(&own, s->persist, choices, &option);
        if (status == QN_OK)
            status = add_point(s, &option, bound, &once);
        qn_arena_free(&once);
    }
    qn_arena_free(&arena);
    return status;
}

/* Placing takes the most time: bounds that no other bound beats go first, since their points beat
 * most of the others before these are placed. */
static qn_status place_all(struct search *s)
{
    struct qn_frontier front = {.count = 0};
    for (int i = 0; i < s->n_bounds; i++)
        if (!qn_frontier_add(&front, &s->bounds[i], s->how->arena))
            return out_of_memory(s->how);
    for (int look = 0; look < 2; look++)
        for (int i = 0; i < s->n_options; i++)
            QN_TRY(place_option(s, s->options[i], &front, !look));
    return QN_OK;
}

qn_status qn_search(const struct qn_lowering *how, const struct qn_persist *persist,
                    struct qn_frontier *frontier)
{
    struct search s = {.how = how, .persist = persist, .frontier = frontier};
    QN_TRY(explore_all(&s));
    return place_all(&s);
}

qn_status qn_search_build(const struct qn_lowering *how, const struct qn_persist *persist,
                          const struct qn_point *point, struct qn_program *program,
                          struct qn_placement *placement, double *keep_all_seconds)
{
    struct qn_option *option = qn_arena_new(how->arena, struct qn_option, 1);
    if (!option)
        return out_of_memory(how);
    QN_TRY(qn_option_open(how, persist, point->choices, option));
    QN_TRY(qn_option_check(option, point->choice));
    QN_TRY(qn_option_program(option, point->choice, how->arena, program));
    QN_TRY(place(how, program, how->arena, placement));
    return qn_option_keep_all_seconds(option, program, keep_all_seconds);
}
