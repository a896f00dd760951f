/* SPDX-License-Identifier: MIT
 *
 * Networks that ship, in small, and made-up data for them.
 */
#ifndef QN_TESTS_RUN_SHIPPED_H
#define QN_TESTS_RUN_SHIPPED_H

#include "counted.h"
#include "support.h"

enum { SHIPPED_OPTIONS = 5, SHIPPED_CLASSES = 10, SHIPPED_SIDE = 32, SHIPPED_TOKENS = 32 };

struct shipped {
    const char *name, *model;
    qn_model_option options[SHIPPED_OPTIONS];
    enum { IMAGES, MASKS, TEXT } data;
};

/* Ended by one without a name. */
extern const struct shipped shipped[];

/* The graph of one, to train or to predict alone; aborts the test on failure. */
qn_graph *shipped_build(const struct shipped *network, bool predict);
/* A qn_fetch_fn, whose `user` is the network. */
qn_status shipped_fetch(void *user, const char *input, int64_t first, int64_t count, void *rows);

#endif
