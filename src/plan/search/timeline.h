/* SPDX-License-Identifier: MIT
 *
 * The exact simulator for local search: a step list that changes by one step at a time, and its
 * peak. The peak of a list is the one that qn_program_simulate gives.
 */
#ifndef QN_SEARCH_TIMELINE_H
#define QN_SEARCH_TIMELINE_H

#include "plan/program/schedule.h"
#include "plan/program/uses.h"

enum { QN_MOST_RUNS = 16 }; /* steps of one task, or of all tasks that make a value, at most */

/* Slots in which bytes are alive, start and end included; none where start > end. */
struct qn_span {
    int start, end;
};

struct qn_timeline {
    const struct qn_problem *problem;
    int64_t alignment;
    int places; /* a power of two */
    int *task;  /* by place: the task that runs there; -1: the place is empty */
    double seconds;
    struct qn_runs {
        int count;
        int place[QN_MOST_RUNS]; /* ascending */
    } * runs;                    /* by task: the places in which it runs */
    struct qn_lives {
        int count;
        struct qn_span life[QN_MOST_RUNS]; /* from a write to the last use before the next write */
        struct qn_span held[QN_MOST_RUNS]; /* life without its first place if the write takes over
                                              the bytes of another value in place */
    } * lives;                             /* by value */
    struct qn_brief {
        int64_t bytes;    /* rounded up to the alignment */
        bool micro, heir; /* life is QN_LIFE_MICRO; may take over the bytes of another value */
    } * briefs;           /* by value: the fields of struct qn_value that every move needs */
    struct qn_uses uses;
    struct qn_event {
        int place;
        bool write;
    } * events; /* uses of the value that find_lives() works on */
    struct qn_branch {
        int64_t sum, largest; /* added to the whole subtree; the largest bytes of a place in it */
    } * tree;                 /* node n has children 2n and 2n + 1; place s is leaf places + s */
};

/* *often: whether a value is made more than QN_MOST_RUNS times, which a timeline cannot hold. False
 * when out of memory. */
bool qn_runs_often(const struct qn_problem *problem, const struct qn_steps *steps,
                   struct qn_arena *arena, bool *often);

/* The list with its steps spread evenly over the places. Allocated from `arena`. False when out of
 * memory, or when a task runs more often than QN_MOST_RUNS. */
bool qn_timeline_open(struct qn_timeline *timeline, const struct qn_problem *problem,
                      int64_t alignment, const struct qn_steps *steps, struct qn_arena *arena);

/* Whether the task can also run in this empty place: every value that it reads is made before. */
bool qn_timeline_may_add(const struct qn_timeline *timeline, int task, int place);
/* Whether the step may be removed: each value that it makes is made by an earlier step too, or is
 * not read. */
bool qn_timeline_may_remove(const struct qn_timeline *timeline, int task, int place);
void qn_timeline_add(struct qn_timeline *timeline, int task, int place);
void qn_timeline_remove(struct qn_timeline *timeline, int task, int place);

static inline int64_t qn_timeline_peak(const struct qn_timeline *timeline)
{
    return timeline->tree[1].largest;
}

/* The first place at which the peak is reached. */
int qn_timeline_peak_place(const struct qn_timeline *timeline);

/* The present step list. False when out of memory. */
bool qn_timeline_steps(const struct qn_timeline *timeline, struct qn_arena *arena,
                       struct qn_steps *steps);

#endif
