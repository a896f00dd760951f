/* SPDX-License-Identifier: MIT
 *
 * A file is the count of points and the points, each with the step lists that its program needs, in
 * the byte order of the machine. The functions pass_*() both read and write their item.
 */
#include "plan/stored.h"

#include "base/cache.h"
#include "identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 64 };

/* Bytes that are read or written from the front. Reading beyond the end gives zeros. */
struct tape {
    unsigned char *bytes;
    size_t at, size;
    struct qn_arena *arena; /* for the items read; NULL: the tape is written */
    bool failed;
};

static bool grow(struct tape *tape, size_t more)
{
    if (more <= tape->size - tape->at)
        return true;
    const size_t size = 2 * tape->size + more;
    unsigned char *bytes = realloc(tape->bytes, size);
    if (!bytes)
        return false;
    tape->bytes = bytes;
    tape->size = size;
    return true;
}

static void pass(struct tape *tape, void *what, size_t size)
{
    if (tape->arena && (tape->failed |= size > tape->size - tape->at)) {
        memset(what, 0, size);
    } else if (tape->arena) {
        memcpy(what, tape->bytes + tape->at, size);
        tape->at += size;
    } else if (!(tape->failed |= !grow(tape, size))) {
        memcpy(tape->bytes + tape->at, what, size);
        tape->at += size;
    }
}

#define PASS(tape, field) pass(tape, &(field), sizeof(field))

/* The array of `count` items that follows on the tape: when reading a new one from the arena, when
 * writing `there`. */
static void *room(struct tape *tape, void *there, int count, size_t size)
{
    if (!tape->arena)
        return there;
    void *items = NULL;
    if (count >= 0 && (size_t)count <= tape->size - tape->at)
        items = qn_arena_alloc(tape->arena, (size_t)count + 1, size);
    tape->failed |= !items;
    return items;
}

static void pass_name(struct tape *tape, const char **name)
{
    int length = tape->arena ? 0 : (int)strlen(*name);
    PASS(tape, length);
    char *text = room(tape, (char *)*name, length, 1);
    if (text)
        pass(tape, text, (size_t)length);
    *name = text;
}

static void pass_steps(struct tape *tape, struct qn_steps *steps)
{
    PASS(tape, steps->seconds);
    PASS(tape, steps->recomputed);
    PASS(tape, steps->count);
    steps->task = room(tape, steps->task, steps->count, sizeof *steps->task);
    if (steps->task)
        pass(tape, steps->task, (size_t)steps->count * sizeof *steps->task);
}

static void pass_candidates(struct tape *tape, struct qn_candidates *all)
{
    int kept = all->kept;
    PASS(tape, all->count);
    PASS(tape, kept);
    all->kept = kept;
    all->items = room(tape, all->items, all->count, sizeof *all->items);
    for (int i = 0; !tape->failed && i < all->count; i++) {
        PASS(tape, all->items[i].seed);
        PASS(tape, all->items[i].peak);
        pass_steps(tape, &all->items[i].steps);
    }
}

/* `choices` stands for point->choices, with the candidates that the point's program runs alone. */
static void pass_point(struct tape *tape, struct qn_point *point, struct qn_choices *choices)
{
    int early = point->early, park = point->park;
    PASS(tape, point->bytes);
    PASS(tape, point->seconds);
    PASS(tape, point->micro_batch);
    PASS(tape, point->recomputed);
    PASS(tape, early);
    PASS(tape, park);
    PASS(tape, point->parked);
    pass_name(tape, &point->largest_step);
    PASS(tape, choices->n_parts);
    choices->parts = room(tape, choices->parts, choices->n_parts, sizeof *choices->parts);
    for (int p = 0; !tape->failed && p < choices->n_parts; p++)
        pass_candidates(tape, &choices->parts[p]);
    point->early = early;
    point->park = park;
    choices->micro_batch = point->micro_batch;
}

/* --- reading --- */

/* Names the one choice that there is: any limit does, and one for kept parts where it has such. */
static bool name_choice(struct tape *tape, struct qn_choices *choices)
{
    choices->list = qn_arena_new(tape->arena, struct qn_choice, 1);
    choices->count = 1;
    for (int p = 0; choices->list && !tape->failed && p < choices->n_parts; p++)
        if (choices->parts[p].kept && choices->parts[p].count)
            choices->list[0].kept = 1;
    return choices->list;
}

static bool read_point(struct tape *tape, const struct qn_plan_params *params,
                       struct qn_point *point)
{
    struct qn_choices *choices = qn_arena_new(tape->arena, struct qn_choices, 1);
    if (!choices)
        return false;
    pass_point(tape, point, choices);
    point->choices = choices;
    return name_choice(tape, choices) && !tape->failed && point->micro_batch > 0 &&
           point->micro_batch <= qn_largest_batch(params);
}

static bool read_frontier(struct tape *tape, const struct qn_plan_params *params,
                          struct qn_frontier *frontier)
{
    PASS(tape, frontier->count);
    frontier->points = room(tape, NULL, frontier->count, sizeof *frontier->points);
    bool good = frontier->points;
    for (int i = 0; good && i < frontier->count; i++)
        good = read_point(tape, params, &frontier->points[i]);
    return good && tape->at == tape->size;
}

/* --- writing --- */

/* Writes the point with only the candidates that its program runs. */
static void write_point(struct tape *tape, struct qn_point point)
{
    const struct qn_choices *all = point.choices;
    struct qn_candidate own[QN_MOST_PARTS];
    struct qn_candidates parts[QN_MOST_PARTS];
    struct qn_choices few = {.parts = parts, .n_parts = all->n_parts};
    for (int p = 0; p < all->n_parts; p++) {
        const struct qn_candidate *picked = qn_choices_pick(all, p, point.choice);
        if (picked)
            own[p] = *picked;
        parts[p] = (struct qn_candidates){&own[p], picked != NULL, all->parts[p].kept};
    }
    pass_point(tape, &point, &few);
}

static void write_frontier(struct tape *tape, const struct qn_frontier *frontier)
{
    int count = frontier->count;
    PASS(tape, count);
    for (int i = 0; i < count; i++)
        write_point(tape, frontier->points[i]);
}

/* --- files --- */

static void make_key(const struct qn_plan *plan, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "plan %016" PRIx64 " by %016" PRIx64, qn_plan_question(plan),
             (uint64_t)QN_IDENTITY);
}

bool qn_stored_load(struct qn_plan *plan, struct qn_frontier *frontier)
{
    char key[KEY_BYTES];
    struct qn_binary binary = {0};
    const int cache = qn_cache_open(plan->params.cache_dir, &plan->log);
    make_key(plan, key);
    *frontier = (struct qn_frontier){.count = 0};
    bool good = qn_cache_load(cache, key, strlen(key), &binary);
    struct tape tape = {.bytes = binary.bytes, .size = binary.size, .arena = &plan->arena};
    good = good && read_frontier(&tape, &plan->params, frontier);
    free(binary.bytes);
    qn_cache_close(cache);
    return good;
}

void qn_stored_save(const struct qn_plan *plan)
{
    char key[KEY_BYTES];
    struct tape tape = {.arena = NULL};
    const int cache = qn_cache_open(plan->params.cache_dir, &plan->log);
    make_key(plan, key);
    if (cache >= 0)
        write_frontier(&tape, &plan->frontier);
    if (tape.at && !tape.failed)
        qn_cache_store(cache, key, strlen(key), &(struct qn_binary){tape.bytes, tape.at});
    free(tape.bytes);
    qn_cache_close(cache);
}
