/* SPDX-License-Identifier: MIT
 *
 * Pictures out of what a network says: masks, samples for people.
 */
#ifndef QUERN_IMAGE_H
#define QUERN_IMAGE_H

#include <quern/log.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An image in host memory. */
typedef struct qn_png_params {
    qn_log log;
    const uint8_t *pixels;  /* (height, width, channels) */
    int height, width;      /* at least 1, at most 2^27 pixels together */
    int channels;           /* 1: grey; 3: red, green, blue */
    const uint8_t *palette; /* (colours, 3): with one channel pixels are indices into it, all
                               below `colours`; NULL: they are values */
    int colours;            /* 1 to 256 */
} qn_png_params;

/* Writes the image as a PNG file into memory of *size bytes, freed by the caller with qn_free.
 * QN_ERR_IO: the library was built without libpng. Thread-safety: Safe. */
QN_API qn_status qn_png_encode(void **bytes, size_t *size, const qn_png_params *params);

/* Colours that tell classes apart: of class 0 black, then bright ones, of which those of near
 * numbers differ most (the bits of the number, three at a time, are the highest bits of the three
 * channels, as in PASCAL VOC's masks). */
QN_API void qn_class_colour(uint8_t rgb[3], int label);

#ifdef __cplusplus
}
#endif
#endif
