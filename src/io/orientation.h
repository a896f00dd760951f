/* SPDX-License-Identifier: MIT
 *
 * The orientation of a photograph: how the rows of a file lie to the picture that was taken, as the
 * EXIF data of cameras says it. Values are EXIF's, 1 to 8; 1: as it is.
 * Thread-safety: Safe.
 */
#ifndef QN_IO_ORIENTATION_H
#define QN_IO_ORIENTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From EXIF data, which are a TIFF file of their own, in either byte order: the tag 0x0112 of the
 * first directory. 1 where it is missing, no orientation, or not within the `size` bytes: a picture
 * is not refused for it. */
int qn_orientation_of(const uint8_t *exif, size_t size);

/* Whether rows become columns. */
bool qn_orientation_turns(int orientation);

/* Writes the picture upright. `from` is (height, width, bytes); so is `to`, with height and width
 * changed where it turns. They do not overlap. */
void qn_orientation_apply(uint8_t *to, const uint8_t *from, int height, int width, int bytes,
                          int orientation);

#endif
