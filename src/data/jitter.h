/* SPDX-License-Identifier: MIT
 *
 * Random changes of an image's colours: brightness, contrast, saturation and hue, in random order.
 * Random numbers are those of draw.h.
 * Thread-safety: Safe, with a room for each thread.
 */
#ifndef QN_DATA_JITTER_H
#define QN_DATA_JITTER_H

#include "data/room.h"

#include <quern/data.h>

enum qn_colour { QN_BRIGHTNESS, QN_CONTRAST, QN_SATURATION, QN_HUE, QN_COLOURS };

/* How far each may go: factors are uniform in [max(0, 1 - range), 1 + range), the hue's part of a
 * whole circle in [-range, range). 0: it stays. */
struct qn_jitter {
    double range[QN_COLOURS];
};

/* What one image gets, in this order. */
struct qn_tint {
    int count;
    struct {
        enum qn_colour what;
        double factor;
    } step[QN_COLOURS];
};

void qn_jitter_draw(struct qn_tint *tint, const struct qn_jitter *jitter,
                    const struct qn_draw *draw);

/* Changes an image in its place: `planes` are (channels, count), of 1 or 3 channels. The arithmetic
 * is that of torchvision's ColorJitter on images in [0, 1]; the result is rounded once. Grey images
 * have neither saturation nor hue. QN_ERR_MEMORY, in which case nothing is logged. */
qn_status qn_tint_apply(uint8_t *planes, int channels, int64_t count, const struct qn_tint *tint,
                        struct qn_room *room);

#endif
