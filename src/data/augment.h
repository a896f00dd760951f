/* SPDX-License-Identifier: MIT
 *
 * Which part of an image a sample is, in which size, whether it is mirrored and how far it is
 * turned. Random numbers are those of draw.h.
 * Thread-safety: Safe.
 */
#ifndef QN_DATA_AUGMENT_H
#define QN_DATA_AUGMENT_H

#include "data/resample.h"

#include <quern/data.h>

/* As in qn_image_params, with the defaults in their places. */
struct qn_fit {
    int channels, size[2], crop[2];
    bool random_crop, flip, random_resized_crop;
    double scale[2], ratio[2];
    double degrees;
};

/* A part of an image becomes a window, which is then turned by an angle in degrees. */
struct qn_view {
    int at[2], part[2];
    struct qn_window window;
    double angle;
};

/* What becomes of an image of this height and width. False: it is smaller than the crop. */
bool qn_augment(struct qn_view *view, const struct qn_fit *fit, const int size[2],
                const struct qn_draw *draw);

#endif
