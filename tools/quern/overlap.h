/* SPDX-License-Identifier: MIT
 *
 * How well predicted classes of pixels cover the true ones.
 */
#ifndef QUERN_TOOL_OVERLAP_H
#define QUERN_TOOL_OVERLAP_H

#include <stdint.h>

enum { OVERLAP_CLASSES = 256 };

/* Pixels of each class: by their labels, as predicted, and where both agree. Zeroed is empty. */
struct overlap {
    int64_t labelled[OVERLAP_CLASSES], predicted[OVERLAP_CLASSES], both[OVERLAP_CLASSES];
};

void overlap_add(struct overlap *overlap, uint8_t label, uint8_t predicted);
/* Intersection over union, the mean over all classes that occur; 0: nothing was added. */
double overlap_mean(const struct overlap *overlap);

#endif
