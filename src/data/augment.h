/* SPDX-License-Identifier: MIT
 *
 * Which part of an image a sample is, in which size, and whether it is mirrored. Random numbers are
 * a function of (seed, epoch, sample): no cycle, micro-batch or thread has a part in them.
 * Thread-safety: Safe.
 */
#ifndef QN_DATA_AUGMENT_H
#define QN_DATA_AUGMENT_H

#include "data/resample.h"

#include <quern/data.h>

/* As in qn_image_params. */
struct qn_fit {
    int channels, size[2], crop[2];
    bool random_crop, flip;
};

/* What becomes of an image of this height and width. False: it is smaller than the crop. */
bool qn_augment(struct qn_window *window, const struct qn_fit *fit, const int size[2],
                const struct qn_draw *draw);

#endif
