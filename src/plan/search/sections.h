/* SPDX-License-Identifier: MIT
 *
 * The forward pass cut where a single value crosses, each section with its backward tasks, and what
 * may be kept between the two.
 */
#ifndef QN_SEARCH_SECTIONS_H
#define QN_SEARCH_SECTIONS_H

#include "plan/search/boundaries.h"
#include "plan/program/schedule.h"

enum { QN_MOST_SECTIONS = 48, QN_MOST_SAVINGS = 16 };

/* One way through a section: its forward tasks in order, then its backward tasks in order, each
 * after the recomputations that it needs. Bytes are counted over the values that tasks of the
 * section make and the value qn_section.in; of each pair of counts, [1] is for the case that `in`
 * is still read after this section's backward tasks, [0] for the case that it is not. */
struct qn_saving {
    int *task;            /* steps: numbers of tasks in the problem */
    int count, n_forward; /* steps; the first n_forward run before the sections that follow */
    double seconds;       /* of forward tasks, recomputations included */
    int64_t forward[2];   /* the most bytes alive during the first n_forward steps */
    int64_t held[2]; /* bytes alive while the sections that follow run, without qn_section.out */
    int64_t backward[2]; /* the most bytes alive during the rest, gradients included */
    bool holds_end;      /* the rest reads qn_section.out */
};

struct qn_section {
    int first, last;   /* forward tasks, both inclusive */
    int backward, end; /* backward tasks, without `end` */
    int in, out;       /* the one value that crosses its beginning, its end; -1: the pass begins or
                          ends there */
    int64_t in_bytes;
    double seconds;    /* of its forward tasks that may run again */
    int64_t pass[2];   /* the most bytes alive while its forward tasks run and nothing is kept */
    int64_t gradients; /* bytes alive before its first backward task, and what is always kept */
    struct qn_saving saving[QN_MOST_SAVINGS]; /* from the beginning of the forward pass */
    struct qn_saving again[QN_MOST_SAVINGS];  /* where its forward tasks have run before: n_forward
                                                 is 0 */
    int n_savings, n_again;
};

struct qn_sections {
    struct qn_section *items;
    int count;
};

/* Cuts the forward pass at boundaries (boundaries.h). Left out are boundaries that the backward
 * tasks of both sides cross, and some of those beyond QN_MOST_SECTIONS. Allocated from `arena`.
 * False when out of memory. */
bool qn_sections_find(const struct qn_problem *problem, const struct qn_boundaries *boundaries,
                      struct qn_arena *arena, struct qn_sections *sections);

#endif
