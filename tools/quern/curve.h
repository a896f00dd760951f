/* SPDX-License-Identifier: MIT
 *
 * The picture of a range test: losses over learning rates.
 */
#ifndef QUERN_TOOL_CURVE_H
#define QUERN_TOOL_CURVE_H

#include "failure.h"

#include <quern/schedule.h>

struct curve {
    qn_lr_range range;
    qn_lr_found found;
    const double *losses, *smoothed; /* (count) */
    int64_t count;
};

/* Writes the SVG file; the file of that name is replaced whole or not at all. */
int curve_draw(const struct curve *curve, const char *path, struct failure *failure);

#endif
