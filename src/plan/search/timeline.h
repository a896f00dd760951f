/* SPDX-License-Identifier: MIT
 *
 * The exact simulator for search: a step list that changes by one step at a time, and its peak at
 * each moment. What it says of a list is what qn_program_simulate says.
 */
#ifndef QN_SEARCH_TIMELINE_H
#define QN_SEARCH_TIMELINE_H

#include "plan/program/schedule.h"
#include "plan/program/uses.h"

enum { QN_MOST_RUNS = 16 }; /* of one task, or of all tasks that make a value */

/* When bytes are alive: slots, both inclusive; empty when start is above end. */
struct qn_span {
    int start, end;
};

struct qn_timeline {
    const struct qn_problem *problem;
    int64_t alignment;
    int slots; /* a power of two */
    int *task; /* by slot: what runs there; -1: nothing */
    double seconds;
    struct qn_runs {
        int count;
        int slot[QN_MOST_RUNS]; /* in order */
    } * runs;                   /* by task */
    struct qn_lives {
        int count;
        struct qn_span life[QN_MOST_RUNS]; /* from a write to the last use before the next */
        struct qn_span held[QN_MOST_RUNS]; /* the same without the part that lies in the bytes of an
                                              heir, which takes them over in place */
    } * lives;                             /* by value */
    struct qn_brief {
        int64_t bytes;    /* of whole units of the alignment */
        bool micro, heir; /* lives between steps; may take over bytes */
    } * briefs;           /* by value: what every move asks, side by side */
    struct qn_uses uses;
    struct qn_event {
        int slot;
        bool write;
    } * events; /* of one value at a time */
    struct qn_branch {
        int64_t sum, largest; /* added to the whole subtree; the largest sum under it */
    } * tree;
};

/* Whether something is made more often than QN_MOST_RUNS, which a timeline does not take. False
 * when out of memory. */
bool qn_runs_often(const struct qn_problem *problem, const struct qn_steps *steps,
                   struct qn_arena *arena, bool *often);

/* The list with its steps spread evenly. Allocated from `arena`. False when out of memory, or when
 * a task runs more often than QN_MOST_RUNS. */
bool qn_timeline_open(struct qn_timeline *timeline, const struct qn_problem *problem,
                      int64_t alignment, const struct qn_steps *steps, struct qn_arena *arena);

/* Whether the task can run in this empty slot too: all that it reads has been made. */
bool qn_timeline_may_add(const struct qn_timeline *timeline, int task, int slot);
/* Whether the run may go: each value that it makes is made by an earlier run too, or read by none.
 */
bool qn_timeline_may_remove(const struct qn_timeline *timeline, int task, int slot);
void qn_timeline_add(struct qn_timeline *timeline, int task, int slot);
void qn_timeline_remove(struct qn_timeline *timeline, int task, int slot);

static inline int64_t qn_timeline_peak(const struct qn_timeline *timeline)
{
    return timeline->tree[1].largest;
}

/* The first slot of those where it is reached. */
int qn_timeline_peak_slot(const struct qn_timeline *timeline);

/* The list as it stands. False when out of memory. */
bool qn_timeline_steps(const struct qn_timeline *timeline, struct qn_arena *arena,
                       struct qn_steps *steps);

#endif
