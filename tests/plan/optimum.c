/* SPDX-License-Identifier: MIT
 *
 * A* (Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost
 * paths", 1968). A state is how many fixed tasks have run and which forward values are there. What
 * is left takes at least the time of the fixed tasks to come and of one run of each task whose
 * result is missing: because a fixed task reads it, or because another missing one is made of it.
 * Nothing is dropped before there is no room for what comes next: a state with more values leads
 * wherever one with fewer does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "optimum.h"
#include "sets.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_STATES = 3 << 20, SLOTS = 8 << 20, NOBODY = -1 };

struct state {
    uint64_t live;
    double seconds; /* so far */
    double least;   /* of the whole list */
    int place, task, parent;
    int heap; /* where it waits; NOBODY: it was looked at */
};

struct search {
    struct test_sets sets;
    double *rest; /* by place: seconds from there on that no list comes below; 0: a later
                     place says more */
    int64_t most;
    double slowest;
    struct state *states;
    int n_states, total;
    double again; /* the most that has to be made again behind one of the places so far */
    int *slots;   /* a hash table of states; NOBODY */
    int *heap;    /* states that wait, the least first */
    int n_heap;
    bool full;
};

/* --- states that wait --- */

/* Of equals the one that is further on. */
static bool is_before(const struct search *s, int a, int b)
{
    const struct state *x = &s->states[a], *y = &s->states[b];
    return x->least != y->least ? x->least < y->least : x->place > y->place;
}

static void put(struct search *s, int at, int state)
{
    s->heap[at] = state;
    s->states[state].heap = at;
}

static void rise(struct search *s, int at)
{
    const int state = s->heap[at];
    for (; at > 0 && is_before(s, state, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(s, at, s->heap[(at - 1) / 2]);
    put(s, at, state);
}

static int take_first(struct search *s)
{
    const int first = s->heap[0], state = s->heap[--s->n_heap];
    int at = 0;
    for (int child; (child = 2 * at + 1) < s->n_heap; at = child) {
        child += child + 1 < s->n_heap && is_before(s, s->heap[child + 1], s->heap[child]);
        if (!is_before(s, s->heap[child], state))
            break;
        put(s, at, s->heap[child]);
    }
    if (s->n_heap)
        put(s, at, state);
    s->states[first].heap = NOBODY;
    return first;
}

/* --- meeting states --- */

/* One run of each movable task that makes something missing: a value that is read, or that another
 * missing one is made of. INFINITY: it cannot be made. */
static double seconds_to_make(const struct test_sets *sets, uint64_t reads, uint64_t there)
{
    uint64_t missing = reads & ~there;
    double seconds = 0;
    for (int t = sets->n_movable - 1; t >= 0 && missing; t--)
        if (sets->movable[t].writes & missing) {
            seconds += sets->movable[t].seconds;
            missing = (missing | sets->movable[t].reads) & ~there & ~sets->movable[t].writes;
        }
    return missing ? INFINITY : seconds;
}

/* What is left takes at least that: everything that is missing is made once; or what is missing up
 * to a later place, and from there on what it takes whatever lives there. */
static double least_rest(const struct search *s, int place, uint64_t live)
{
    const struct test_place *places = s->sets.places;
    const uint64_t there = live | places[place].ahead;
    double least = places[place].seconds + seconds_to_make(&s->sets, places[place].direct, there);
    uint64_t reads = 0;
    for (int i = place; i < s->sets.n_fixed; i++) {
        reads |= s->sets.fixed[i].reads;
        if (s->rest[i] > 0)
            least = fmax(least, places[place].seconds - places[i].seconds + s->rest[i] +
                                    seconds_to_make(&s->sets, reads, there));
    }
    return least;
}

static uint64_t hash_of(const struct state *state)
{
    return (state->live + (uint64_t)state->place) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static int *find_slot(const struct search *s, const struct state *like)
{
    for (uint64_t at = hash_of(like);; at++) {
        int *slot = &s->slots[at % SLOTS];
        if (*slot == NOBODY ||
            (s->states[*slot].place == like->place && s->states[*slot].live == like->live))
            return slot;
    }
}

/* A state to be looked at, unless it was reached as fast before or leads to nothing. */
static void meet(struct search *s, const struct state *met)
{
    int *slot = find_slot(s, met);
    if (*slot != NOBODY && s->states[*slot].seconds <= met->seconds)
        return;
    const double least = met->seconds + least_rest(s, met->place, met->live);
    s->full |= s->n_states == MOST_STATES;
    if (!(least <= s->slowest) || s->full)
        return;
    if (*slot == NOBODY) {
        *slot = s->n_states++;
        s->states[*slot].heap = NOBODY;
    }
    int at = s->states[*slot].heap;
    if (at == NOBODY)
        at = s->n_heap++;
    s->states[*slot] = *met;
    s->states[*slot].least = least;
    s->heap[at] = *slot;
    rise(s, at);
}

/* --- steps --- */

/* One task after a state. There is too little room by `lack` bytes unless some of the candidates
 * are dropped. */
struct step {
    struct search *search;
    int parent, place;
    const struct test_action *action;
    uint64_t live; /* after it, if nothing is dropped */
    int64_t lack;
    struct {
        uint64_t value;
        int64_t gain;
        int64_t left; /* gains of this one and all later ones */
    } candidate[TEST_MOST_VALUES + QN_MAX_WRITES];
    int n_candidates;
};

/* Whether one of the dropped could have stayed. */
static bool is_wasteful(const struct step *step, uint64_t dropped, int64_t lack)
{
    for (int i = 0; i < step->n_candidates; i++)
        if (dropped & step->candidate[i].value && step->candidate[i].gain <= -lack)
            return true;
    return false;
}

static void arrive(const struct step *step, uint64_t dropped)
{
    struct search *s = step->search;
    const struct state met = {.live = step->live & ~dropped & s->sets.places[step->place].useful,
                              .seconds = s->states[step->parent].seconds + step->action->seconds,
                              .place = step->place,
                              .task = step->action->task,
                              .parent = step->parent};
    meet(s, &met);
}

/* Every set of candidates from `first` on that makes room and of which none could stay. */
static void drop(const struct step *step, int first, uint64_t dropped, int64_t lack)
{
    if (lack <= 0) {
        if (!is_wasteful(step, dropped, lack))
            arrive(step, dropped);
        return;
    }
    for (int i = first; i < step->n_candidates && step->candidate[i].left >= lack; i++)
        drop(step, i + 1, dropped | step->candidate[i].value, lack - step->candidate[i].gain);
}

static void add_candidate(struct step *step, uint64_t value, int64_t gain)
{
    step->candidate[step->n_candidates].value = value;
    step->candidate[step->n_candidates++].gain = gain;
}

/* `others`: bytes of gradients meanwhile. */
static void take_step(struct search *s, int parent, const struct test_action *action, int place,
                      int64_t others)
{
    const uint64_t useful = s->sets.places[place].useful;
    const uint64_t before = s->states[parent].live & (useful | action->reads);
    struct step step = {s, parent, place, action, before | action->writes, 0, {{0}}, 0};
    step.lack = test_bytes_of(&s->sets, step.live) + action->scratch + others - s->most;
    for (int i = 0; i < action->n_in_place; i++) {
        if (action->in_place[i].over & useful)
            add_candidate(&step, action->in_place[i].over, action->in_place[i].bytes);
        else
            step.lack -= action->in_place[i].bytes;
    }
    const uint64_t idle = before & ~action->reads & ~action->writes;
    for (int bit = 0; bit < TEST_MOST_VALUES; bit++)
        if (idle >> bit & 1)
            add_candidate(&step, UINT64_C(1) << bit, s->sets.bytes[bit]);
    int64_t left = 0;
    for (int i = step.n_candidates - 1; i >= 0; i--)
        step.candidate[i].left = left += step.candidate[i].gain;
    drop(&step, 0, 0, step.lack);
}

static void look_at(struct search *s, int number)
{
    const struct state state = s->states[number];
    const struct test_place *place = &s->sets.places[state.place];
    const struct test_action *fixed = &s->sets.fixed[state.place];
    if (!(fixed->reads & ~state.live))
        take_step(s, number, fixed, state.place + 1, place->during);
    for (int t = 0; t < s->sets.n_movable; t++) {
        const struct test_action *movable = &s->sets.movable[t];
        if (!(movable->reads & ~state.live) && movable->writes & ~state.live & place->useful)
            take_step(s, number, movable, state.place, place->before);
    }
}

/* The state at the end of the fastest list; NOBODY: there is none. */
static int run(struct search *s)
{
    while (s->n_heap && !s->full) {
        const int state = take_first(s);
        if (s->states[state].place == s->sets.n_fixed)
            return state;
        look_at(s, state);
    }
    return NOBODY;
}

static void forget_states(struct search *s)
{
    for (int i = 0; i < s->n_states; i++)
        for (uint64_t at = hash_of(&s->states[i]); s->slots[at % SLOTS] != NOBODY; at++)
            s->slots[at % SLOTS] = NOBODY;
    s->n_states = s->n_heap = 0;
}

static void begin(struct search *s, int place, uint64_t live)
{
    const struct state first = {.live = live, .place = place, .task = NOBODY, .parent = NOBODY};
    meet(s, &first);
}

/* What a list takes at least before that fixed task. */
static double least_before(const struct search *s, int fixed)
{
    const struct test_place *places = s->sets.places;
    uint64_t reads = 0;
    for (int i = 0; i <= fixed; i++)
        reads |= s->sets.fixed[i].reads;
    return places[0].seconds - places[fixed].seconds +
           seconds_to_make(&s->sets, reads, places[0].ahead);
}

/* From a place on, if everything were there that has room beside its fixed task. */
static void find_rest(struct search *s, int place)
{
    const struct test_place *at = &s->sets.places[place];
    const double slowest = s->slowest;
    s->slowest -= least_before(s, place);
    begin(s, place, at->useful & ~at->ahead);
    if (s->n_heap)
        take_step(s, take_first(s), &s->sets.fixed[place], place + 1, at->during);
    const int end = run(s);
    const double rest = end == NOBODY ? INFINITY : s->states[end].seconds;
    if (rest - at->seconds > s->again) {
        s->again = rest - at->seconds;
        s->rest[place] = rest;
    }
    s->slowest = slowest;
    s->total += s->n_states;
    forget_states(s);
}

/* --- before and after --- */

static void list_steps(const struct search *s, const struct qn_problem *problem, int end,
                       struct qn_arena *arena, struct qn_steps *steps)
{
    for (int i = end; s->states[i].parent != NOBODY; i = s->states[i].parent)
        steps->count++;
    steps->task = qn_arena_new(arena, int, (size_t)steps->count);
    bool *ran = qn_arena_new(arena, bool, (size_t)problem->n_tasks);
    assert_true(steps->task && ran);
    steps->seconds = s->states[end].seconds;
    for (int i = end, at = steps->count; s->states[i].parent != NOBODY; i = s->states[i].parent) {
        steps->task[--at] = s->states[i].task;
        steps->recomputed += ran[s->states[i].task];
        ran[s->states[i].task] = true;
    }
}

struct test_optimum test_find_optimum(const struct qn_problem *problem, int64_t most,
                                      double slowest, struct qn_arena *arena)
{
    struct search s = {.most = most, .slowest = slowest};
    struct test_optimum found = {.verdict = TEST_NONE};
    test_sets_make(problem, arena, &s.sets);
    s.rest = qn_arena_new(arena, double, (size_t)s.sets.n_fixed + 1);
    s.states = malloc(MOST_STATES * sizeof *s.states);
    s.slots = malloc(SLOTS * sizeof *s.slots);
    s.heap = malloc(MOST_STATES * sizeof *s.heap);
    assert_true(s.rest && s.states && s.slots && s.heap);
    for (int i = 0; i < SLOTS; i++)
        s.slots[i] = NOBODY;
    for (int i = s.sets.n_fixed - 1; i >= 0 && !s.full; i--)
        find_rest(&s, i);
    begin(&s, 0, 0);
    const int end = run(&s);
    if (end != NOBODY) {
        found.verdict = TEST_FOUND;
        list_steps(&s, problem, end, arena, &found.steps);
    } else if (s.full) {
        found.verdict = TEST_GAVE_UP;
    }
    found.states = s.total + s.n_states;
    free(s.states);
    free(s.slots);
    free(s.heap);
    return found;
}
