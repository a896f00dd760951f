/* SPDX-License-Identifier: MIT
 *
 * The norms of the gradients of groups of parameters (train.norm_groups), for the figures of an
 * update.
 */
#ifndef QUERN_TOOL_NORMS_H
#define QUERN_TOOL_NORMS_H

#include "settings.h"

struct norms {
    int count;                            /* 0: nobody asked for any */
    const char *name[QN_MAX_NORM_GROUPS]; /* borrowed from the trainer's plan */
    double norm[QN_MAX_NORM_GROUPS];
    /* Whether the recipe names two groups, such as the towers of a dual encoder; then the norm of
     * the second over that of the first. */
    bool paired;
    double ratio;
};

/* Those of the update whose metrics the trainer gave last. */
struct norms norms_of(const qn_trainer *trainer, const struct train_settings *train);

#endif
