/* SPDX-License-Identifier: MIT */
#include "plan/search/improve.h"

#include "base/log.h"
#include "plan/search/anneal.h"
#include "plan/search/seeds.h"
#include "plan/search/timeline.h"

/* A pass searches `steps` targets from keeping all down to `least`, the peak of the smallest seed,
 * and `below` targets from there down to 3/4 of it, with `moves` moves for each task; then the
 * targets halfway between those, with `between` moves for each task. It is made `passes` times, as
 * each target begins with the lists found so far; then the smallest peaks are searched, to the
 * byte. A target has at most `most` moves. */
static const struct effort {
    int steps, below, passes;
    int64_t moves, between, most;
} efforts[] = {[QN_EFFORT_DEFAULT] = {8, 2, 1, 60, 100, 40000},
               [QN_EFFORT_THOROUGH] = {48, 6, 5, 10000, 1000, 300000}};
enum { LEAST_MOVES = 10000, MOST_BETWEEN = 100000, LEAST = 4, MOVES_LEAST = 40000 };

struct improving {
    struct qn_lowering how; /* with an arena of its own and no log */
    struct qn_arena *arena; /* for the lists found */
    struct qn_problem problem;
    struct qn_candidates seeds;
    const struct effort *effort;
    int pass, run;
    struct qn_lists *lists;
    int64_t peak[QN_MOST_LISTS]; /* by list */
};

/* Lowers the run at the largest batch at which no tensor is too large; *lowered false: none is. */
static qn_status lower(struct improving *s, const struct qn_persist *persist, bool *lowered)
{
    const int64_t group = qn_one_group(s->how.params, qn_run_graph(persist, s->run));
    int64_t batch = qn_largest_batch(s->how.params);
    bool too_large;
    s->how.too_large = &too_large;
    for (;;) {
        too_large = false;
        const qn_status status = qn_lower_run(&s->how, persist, s->run, batch, &s->problem);
        *lowered = status == QN_OK;
        if (status == QN_OK || (status == QN_ERR_MEMORY && !too_large))
            return status;
        if (!too_large || batch <= group)
            return QN_OK;
        batch = batch / 2 > group ? batch / 2 / group * group : group;
    }
}

/* The fastest of the seeds and the lists so far within the target; if none is, the smallest. */
static const struct qn_steps *best_for(const struct improving *s, int64_t target)
{
    const struct qn_candidate *seed = &s->seeds.items[0];
    while (seed->peak > target && seed + 1 < s->seeds.items + s->seeds.count)
        seed++;
    const struct qn_steps *best = &seed->steps;
    int64_t peak = seed->peak;
    for (int i = 0; i < s->lists->count; i++) {
        const struct qn_steps *list = &s->lists->items[i];
        const bool fits = s->peak[i] <= target;
        if (peak > target ? s->peak[i] < peak : fits && list->seconds < best->seconds) {
            best = list;
            peak = s->peak[i];
        }
    }
    return best;
}

/* The list with the smallest peak above the target; without one, the seed that keeps all. */
static const struct qn_steps *next_above(const struct improving *s, int64_t target)
{
    const struct qn_steps *best = &s->seeds.items[0].steps;
    int64_t peak = s->seeds.items[0].peak;
    for (int i = 0; i < s->lists->count; i++)
        if (s->peak[i] > target && s->peak[i] < peak) {
            best = &s->lists->items[i];
            peak = s->peak[i];
        }
    return best;
}

/* Whether a seed or another list is neither slower nor larger than `found`. */
static bool is_beaten(const struct improving *s, const struct qn_steps *found, int64_t peak)
{
    for (int i = 0; i < s->seeds.count; i++)
        if (s->seeds.items[i].peak <= peak && s->seeds.items[i].steps.seconds <= found->seconds)
            return true;
    for (int i = 0; i < s->lists->count; i++)
        if (s->peak[i] <= peak && s->lists->items[i].seconds <= found->seconds)
            return true;
    return false;
}

/* Adds a list unless it is beaten, and removes the lists that it beats. */
static bool keep_list(struct improving *s, const struct qn_steps *found, int64_t peak)
{
    struct qn_lists *lists = s->lists;
    int kept = 0;
    if (is_beaten(s, found, peak))
        return true;
    for (int i = 0; i < lists->count; i++)
        if (s->peak[i] < peak || lists->items[i].seconds < found->seconds) {
            s->peak[kept] = s->peak[i];
            lists->items[kept++] = lists->items[i];
        }
    s->peak[kept] = peak;
    lists->items[kept] = *found;
    lists->items[kept].task =
        qn_arena_copy(s->arena, found->task, (size_t)found->count * sizeof *found->task);
    lists->count = kept + 1;
    return lists->items[kept].task;
}

static bool improve_one(struct improving *s, const struct qn_steps *from,
                        const struct qn_anneal_params *params, struct qn_arena *arena)
{
    struct qn_steps found;
    int64_t peak;
    bool often;
    if (!qn_runs_often(&s->problem, from, arena, &often))
        return false;
    return often || (qn_anneal(&s->problem, from, params, arena, &found, &peak) &&
                     keep_list(s, &found, peak));
}

static qn_status search_from(struct improving *s, const struct qn_steps *from,
                             const struct qn_anneal_params *params)
{
    struct qn_arena arena = {0};
    const bool done = improve_one(s, from, params, &arena);
    qn_arena_free(&arena);
    return done ? QN_OK : QN_ERR_MEMORY;
}

/* Searches for a target from best_for() it and from next_above() it. */
static qn_status search_for(struct improving *s, int64_t target, int64_t moves)
{
    const struct qn_steps from[] = {*best_for(s, target), *next_above(s, target)};
    const int count = sizeof from / sizeof *from;
    for (int i = 0; i < count; i++) {
        const uint64_t seed = (uint64_t)(s->pass * count + i + 1);
        QN_TRY(search_from(s, &from[i], &(struct qn_anneal_params){target, moves, seed, false}));
    }
    return QN_OK;
}

/* Moves for a target: `each` for every task, between `least` and `most`. */
static int64_t moves_for(const struct improving *s, int64_t each, int64_t least, int64_t most)
{
    const int64_t moves = each * qn_tasks_required(&s->problem);
    most = most < s->effort->most ? most : s->effort->most;
    return moves > most ? most : moves < least ? least : moves;
}

/* The target so many quarters of a step above the smallest seed's peak. The last of several passes
 * looks a quarter higher: time falls in jumps as bytes are added, and the lists found for a target
 * below a jump do not show it. */
static int64_t target_at(const struct improving *s, int quarters)
{
    const int64_t most = s->seeds.items[0].peak, least = s->seeds.items[s->seeds.count - 1].peak;
    const bool higher = s->pass > 0 && s->pass == s->effort->passes - 1;
    return least + (most - least) * (quarters + higher) / (4 * s->effort->steps);
}

/* From many bytes to few: each target begins where the one above it ended. */
static qn_status search_all(struct improving *s)
{
    const int64_t least = s->seeds.items[s->seeds.count - 1].peak;
    const int below = s->effort->below;
    const int64_t moves = moves_for(s, s->effort->moves, LEAST_MOVES, INT64_MAX);
    for (int i = s->effort->steps - 1; i >= 0; i--)
        QN_TRY(search_for(s, target_at(s, 4 * i), moves));
    for (int i = 1; i <= below; i++)
        QN_TRY(search_for(s, least - least * i / (4 * below), moves));
    return QN_OK;
}

static qn_status search_between(struct improving *s)
{
    const int64_t moves = moves_for(s, s->effort->between, 0, MOST_BETWEEN);
    for (int i = s->effort->steps - 1; moves && i >= 0; i--)
        QN_TRY(search_for(s, target_at(s, 4 * i + 2), moves));
    return QN_OK;
}

/* The smallest peak of a seed or a list above `than`; 0: there is none. */
static int64_t next_peak(const struct improving *s, int64_t than)
{
    int64_t least = 0;
    for (int i = 0; i < s->seeds.count + s->lists->count; i++) {
        const int64_t peak =
            i < s->seeds.count ? s->seeds.items[i].peak : s->peak[i - s->seeds.count];
        if (peak > than && (!least || peak < least))
            least = peak;
    }
    return least;
}

/* Searches for faster lists at exactly each of the LEAST smallest peaks: from the list of that
 * peak, near which few moves fit, and from the one with the next larger peak. */
static qn_status search_least(struct improving *s)
{
    int64_t peak = next_peak(s, 0);
    for (uint64_t i = 0; peak && i < LEAST; i++, peak = next_peak(s, peak)) {
        QN_TRY(search_from(s, next_above(s, peak),
                           &(struct qn_anneal_params){peak, MOVES_LEAST, i + 1, false}));
        QN_TRY(search_from(s, best_for(s, peak),
                           &(struct qn_anneal_params){peak, MOVES_LEAST, i + 1, true}));
    }
    return QN_OK;
}

static qn_status search_with(struct improving *s, qn_plan_effort effort)
{
    s->effort = &efforts[effort];
    for (s->pass = 0; s->pass < s->effort->passes; s->pass++) {
        QN_TRY(search_all(s));
        QN_TRY(search_between(s));
    }
    return search_least(s);
}

/* A thorough search goes on from the lists of the default one, so that it is never worse. Without
 * lists if the graph cannot be lowered: making the plan then fails, with a log line. */
static qn_status find(struct improving *s, const struct qn_persist *persist)
{
    bool lowered;
    QN_TRY(lower(s, persist, &lowered));
    if (!lowered)
        return QN_OK;
    QN_TRY(qn_candidates_make(&s->how, &s->problem, &s->seeds));
    s->lists->n_tasks = s->problem.n_tasks;
    QN_TRY(search_with(s, QN_EFFORT_DEFAULT));
    return s->how.params->effort == QN_EFFORT_THOROUGH ? search_with(s, QN_EFFORT_THOROUGH) : QN_OK;
}

qn_status qn_lists_find(const struct qn_lowering *how, const struct qn_persist *persist, int run,
                        struct qn_lists *lists)
{
    struct qn_arena arena = {0};
    struct improving s = {.how = *how, .arena = how->arena, .run = run, .lists = lists};
    lists->count = 0;
    if (how->params->recompute != QN_RECOMPUTE_AUTO || how->params->effort == QN_EFFORT_INSTANT ||
        !qn_run_trains(&persist->runs.run[run]))
        return QN_OK;
    s.how.arena = &arena;
    s.how.log = NULL;
    const qn_status status = find(&s, persist);
    qn_arena_free(&arena);
    return status == QN_OK ? status : qn_fail(how->log, status, "plan: out of host memory");
}
