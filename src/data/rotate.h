/* SPDX-License-Identifier: MIT
 *
 * Turning pictures of 8 bits a channel about their middle, counter-clockwise by degrees, in the
 * size that they have. What comes from outside is 0. `from` and `to` do not overlap; `size` is
 * height and width.
 * Thread-safety: Safe.
 */
#ifndef QN_DATA_ROTATE_H
#define QN_DATA_ROTATE_H

#include <stdint.h>

/* Bilinear: (planes, height, width), rounded to nearest. */
void qn_rotate(uint8_t *to, const uint8_t *from, int planes, const int size[2], double degrees);

/* The nearest pixel, of one plane: for numbers that have no mean. */
void qn_rotate_nearest(uint8_t *to, const uint8_t *from, const int size[2], double degrees);

#endif
