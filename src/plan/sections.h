/* SPDX-License-Identifier: MIT
 *
 * The forward pass cut where a single value crosses, each section with its backward tasks, and what
 * may be kept between the two.
 */
#ifndef QN_PLAN_SECTIONS_H
#define QN_PLAN_SECTIONS_H

#include "plan/boundaries.h"
#include "plan/schedule.h"

enum { QN_MOST_SECTIONS = 48, QN_MOST_SAVINGS = 16 };

/* One way through a section: its forward tasks in order, then its backward tasks in order, and
 * before each what has to be made again of what was kept. Bytes are of values that tasks of the
 * section make and of the value that it begins with; by whether somebody needs that one after the
 * section's backward tasks, too. */
struct qn_saving {
    int *task;            /* numbers in the problem */
    int count, n_forward; /* steps; of them before what other sections do */
    double seconds;       /* of forward tasks */
    int64_t forward[2];   /* the most alive during the first n_forward steps */
    int64_t held[2];      /* meanwhile, without the value that it ends with */
    int64_t backward[2];  /* the most alive during the rest, gradients included */
    bool holds_end;       /* the rest needs the value that it ends with */
};

struct qn_section {
    int first, last, backward, end; /* forward tasks, both inclusive; backward tasks, without end */
    int in, out; /* the values that it begins and ends with; -1: those of the whole pass */
    int64_t in_bytes;
    double seconds;    /* of its forward tasks that may run again */
    int64_t pass[2];   /* the most alive while they run and nothing is kept */
    int64_t gradients; /* alive before its first backward task, and what is always kept */
    struct qn_saving saving[QN_MOST_SAVINGS], again[QN_MOST_SAVINGS]; /* without forward steps */
    int n_savings, n_again;
};

struct qn_sections {
    struct qn_section *items;
    int count;
};

/* Where there are too many boundaries some are left out, and those that backward tasks do not keep
 * to. Allocated from `arena`. False when out of memory. */
bool qn_sections_find(const struct qn_problem *problem, const struct qn_boundaries *boundaries,
                      struct qn_arena *arena, struct qn_sections *sections);

#endif
