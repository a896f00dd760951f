/* SPDX-License-Identifier: MIT
 *
 * What `quern bench` measures: single operators at the sizes of networks that people know, each as
 * a graph of its own.
 */
#ifndef QUERN_TOOL_BENCH_WORKS_H
#define QUERN_TOOL_BENCH_WORKS_H

#include <quern/quern.h>

enum { WORK_SIZES = 8 };

struct work {
    const char *op;   /* the operator that is measured; other nodes only make it whole */
    const char *name; /* unique among the works of one operator */
    int64_t size[WORK_SIZES];
    void (*build)(qn_graph *graph, const struct work *work);
};

/* Ended by one without an operator. */
extern const struct work works[];

/* The micro-batch at which it is measured. */
int64_t work_batch(const struct work *work);

#endif
