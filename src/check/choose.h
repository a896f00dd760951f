/* SPDX-License-Identifier: MIT
 *
 * Which variant, at which setting, each group of an operator runs in a check.
 */
#ifndef QN_CHECK_CHOOSE_H
#define QN_CHECK_CHOOSE_H

#include "check/subject.h"

struct qn_pick {
    const struct qn_variant *variant; /* NULL: none fits */
    int setting;
};

struct qn_picks {
    const struct qn_facts *facts;
    struct qn_pick group[QN_MAX_GROUPS];
};

/* Picks the variant `name` at that setting for every group that has it and where it fits, and for
 * the other groups the first variant that fits, at its first setting that does; fits() gets
 * picks->facts. False: it fits no group, and *why is the reason. */
bool qn_pick_all(struct qn_picks *picks, const struct qn_subject *subject, const char *name,
                 int setting, const char **why);

bool qn_picks_equal(const struct qn_picks *a, const struct qn_picks *b);

/* Names of all variants of the operator, each once; gives how many. */
enum { QN_MAX_NAMES = QN_MAX_GROUPS * QN_MAX_VARIANTS };
int qn_variant_names(const struct qn_op *op, const char *names[QN_MAX_NAMES]);
/* The most settings that a variant of that name has; at least 1. */
int qn_variant_settings(const struct qn_op *op, const char *name);

#endif
