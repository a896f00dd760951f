/* SPDX-License-Identifier: MIT
 *
 * What `quern bench` measures: single operators at the sizes of networks that people know, each as
 * a graph of its own, and updates of whole networks.
 */
#ifndef QUERN_TOOL_BENCH_WORKS_H
#define QUERN_TOOL_BENCH_WORKS_H

#include <quern/quern.h>
#include <stdbool.h>

enum { WORK_SIZES = 8 };

struct work {
    const char *op;   /* the operator that is measured; other nodes only make it whole. "update": a
                         whole update of a network */
    const char *name; /* unique among the works of one operator */
    int64_t size[WORK_SIZES];
    void (*build)(qn_graph *graph, const struct work *work);
    const qn_model_data *data; /* of updates; rows of tokens have height 1 */
};

/* Ended by one without an operator. */
extern const struct work works[];

/* The plan for which it is measured. */
qn_plan_params work_plan(const struct work *work);
bool work_is_update(const struct work *work);

#endif
