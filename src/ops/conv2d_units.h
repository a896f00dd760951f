/* SPDX-License-Identifier: MIT
 *
 * What the convolutions by matrix units share: where pixels and what they meet lie, as lines of all
 * images; and sizes. No operator.
 */
#ifndef QN_OPS_CONV2D_UNITS_H
#define QN_OPS_CONV2D_UNITS_H

#include "op/tile.h"
#include "ops/conv2d_product.h"

/* Terms of a strip, two factors to a word; bytes of a word and words of a vector; neighbours that
 * are loaded at once where they are aligned; channels below which most of a strip is zeros. */
enum {
    QN_CONV2D_STRIP = 2 * QN_TILE_DEPTH,
    QN_CONV2D_WORD_BYTES = 4,
    QN_CONV2D_VECTOR_WORDS = 4,
    QN_CONV2D_RUN = 8,
    QN_CONV2D_LEAST_DEPTH = 24
};

/* Of one axis: what cl_kernels/lib/conv2d.clh says of positions, for the residue that has most of
 * them and of taps. Neighbours meet elements that are `step` apart, in `classes` classes, and taps
 * reach so many elements of a class further. All elements met are in lowest .. highest. */
struct qn_conv2d_axis {
    int64_t count, taps, step, classes, reach, lowest, highest;
};

struct qn_conv2d_axis qn_conv2d_axis_of(const struct qn_conv2d_product *product, int axis);
/* Lines from an image's first to the next one's. Rows of two images that are met may be the same
 * where they are elements of neither: above row 0 of one, and below the last of the other. */
int64_t qn_conv2d_period(const struct qn_conv2d_product *product);
/* Whether there are more lines or columns than kernels count in 32 bits. */
bool qn_conv2d_has_many_lines(const struct qn_conv2d_product *product);

/* Whether the window is one element, and results meet what has their place. The same product, of
 * images that are one line where that makes no difference: fewer pixels of tiles are none of an
 * image. */
bool qn_conv2d_is_pointwise(const struct qn_conv2d_product *product);
struct qn_conv2d_product qn_conv2d_lines(const struct qn_conv2d_product *product);

bool qn_conv2d_has_units(const struct qn_facts *facts, const struct qn_conv2d_product *product);

#endif
