/* SPDX-License-Identifier: MIT
 *
 * A network at one micro-batch, and its graph.
 */
#ifndef QN_TESTS_PLAN_GRAPHS_NETWORK_H
#define QN_TESTS_PLAN_GRAPHS_NETWORK_H

#include <quern/model.h>
#include <quern/plan.h>

enum { MOST_SHARES = 3, MOST_OPTIONS = 5 };

struct network {
    const char *name, *title, *model;
    qn_model_option options[MOST_OPTIONS];
    int64_t batch;
    qn_model_data data;
    bool activations; /* shares are of the activation bytes alone */
    struct {
        double percent;  /* of the bytes; 0: no more shares */
        double gate;     /* slow-down in percent that a plan has to beat */
        double usual;    /* reached at the default effort: more is a fault */
        double thorough; /* the same with QN_EFFORT_THOROUGH */
    } share[MOST_SHARES];
};

/* Warnings are printed; ends the program where it cannot be built. */
qn_graph *network_graph(const struct network *network);

/* Of the peak: all but what is there whatever is recomputed. */
int64_t activation_bytes(const qn_plan_info *info);

#endif
