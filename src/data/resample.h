/* SPDX-License-Identifier: MIT
 *
 * Resizing images of 8 bits a channel, or a window of the resized image.
 * Thread-safety: Safe, with a room for each thread.
 */
#ifndef QN_DATA_RESAMPLE_H
#define QN_DATA_RESAMPLE_H

#include "data/room.h"

#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

/* Pairs are height and width. */
struct qn_window {
    int full[2]; /* the image is resized to this */
    int at[2];   /* of which this much from the top and from the left is cut off */
    int size[2]; /* and this is kept */
    bool mirror; /* left and right change places, last of all */
};

struct qn_picture {
    const uint8_t *pixels; /* (height, width, channels) */
    int size[2], channels;
    int row; /* pixels from one row to the next; 0: the width */
};

/* Bilinear, over as many pixels as one of the result covers where the image shrinks (a triangle
 * filter: no aliasing): bit for bit Pillow's BILINEAR, which torchvision's resize with antialias
 * follows, with 22-bit weights and 8 bits between the passes. `out` is (channels, size[0],
 * size[1]). QN_ERR_MEMORY, in which case nothing is logged. */
qn_status qn_resample(uint8_t *out, const struct qn_picture *picture,
                      const struct qn_window *window, struct qn_room *room);

/* The pixel nearest to the middle of each of the result's, of one channel: for numbers that have no
 * mean. As Pillow's NEAREST. */
void qn_resample_nearest(uint8_t *out, const struct qn_picture *picture,
                         const struct qn_window *window);
/* The way back, from a window that is not mirrored to a picture of this height and width: 0 outside
 * of the window. */
void qn_resample_back(uint8_t *out, const int size[2], const uint8_t *in,
                      const struct qn_window *window);

#endif
