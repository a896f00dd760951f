/* SPDX-License-Identifier: MIT
 *
 * What conv2d and conv_transpose2d share, and the ways of a convolution: the products that it is
 * made of, the register tiles of the CPU shape, and launches with their geometry. No operator.
 */
#ifndef QN_OPS_CONV2D_PRODUCT_H
#define QN_OPS_CONV2D_PRODUCT_H

#include "op/conv2d.h"
#include "ops/common.h"

/* Groups of conv2d and conv_transpose2d; the last is conv2d's alone. */
enum { QN_CONV2D_FORWARD, QN_CONV2D_INPUT, QN_CONV2D_WEIGHT, QN_CONV2D_BIAS, QN_CONV2D_SECOND };

/* Attributes and dimensions of images are at most this: the geometry is counted in 32 bits. */
enum { QN_CONV2D_LARGEST_ATTRIBUTE = 1 << 14, QN_CONV2D_LARGEST_IMAGE = 1 << 29 };

/* One product: what a kernel reads patches of, and the plane that it makes or, for the gradient of
 * the weights, walks along. Channels are those of one of the `groups`. A convolution makes a result
 * of an image; the gradient of its image, and what a transposed convolution makes, is an image made
 * of a result. Operands have the kernels' names.
 *
 * The image of a convolution may be two, whose channels follow one another. What is made of them is
 * one product with two sources; each has a product of its own for what is made for it, with some
 * columns of the weights. */
struct qn_conv2d_product {
    const struct qn_conv2d_attr *attr;
    bool gradient; /* makes an image of a result */
    int64_t batch, groups, depth, channels;
    int64_t front;          /* channels of the first source; the rest of `depth` is the second's */
    int64_t inputs, input0; /* input channels of the weights; which is the first that takes part */
    int64_t source[2], plane[2], kernel[2];
    const struct qn_operand *s, *t, *w; /* sources (the second may be absent), weight */
    const struct qn_operand *b, *d;     /* bias (may be absent), plane */
    float beta;                         /* of what is made */
};

/* Rows or columns of the result: along `axis`, of so many elements and taps; 0: there are none. */
int64_t qn_conv2d_size(const struct qn_conv2d_attr *attr, int axis, int64_t size, int64_t taps);
/* A product from the shapes of what it is about; its bias and its second source are absent, other
 * operands are NULL. */
struct qn_conv2d_product qn_conv2d_geometry(const struct qn_conv2d_attr *attr,
                                            const struct qn_shape *image,
                                            const struct qn_shape *weight,
                                            const struct qn_shape *result, bool gradient);
/* The products of a call of conv2d: they make the result, the gradient of an image (the second's,
 * or the first's) and that of the weights. */
struct qn_conv2d_product qn_conv2d_forward(const struct qn_call *call);
struct qn_conv2d_product qn_conv2d_gradient(const struct qn_call *call, bool second);
struct qn_conv2d_product qn_conv2d_weights(const struct qn_call *call);
/* How many images a product for the gradient of the weights is about, and that of one of them. */
int qn_conv2d_images(const struct qn_conv2d_product *product);
struct qn_conv2d_product qn_conv2d_image_weights(const struct qn_conv2d_product *product,
                                                 int image);
int64_t qn_conv2d_terms(const struct qn_conv2d_product *product);
int64_t qn_conv2d_pixels(const struct qn_conv2d_product *product);
/* Whether no tap ever meets the padding. */
bool qn_conv2d_is_inside(const struct qn_conv2d_product *product);
/* Whether pixels whose elements of the source are neighbours fill two vectors at most: those of a
 * row, or of a plane that the source's columns fill. */
bool qn_conv2d_is_short(const struct qn_conv2d_product *product, int64_t vector);

/* Register tiles of the CPU shape for each width of vectors: rows x vectors of the image kernel,
 * and of the weight kernel by how many vectors the output channels fill (one, more). Sums and a
 * line of operands fit the registers that such devices have. */
struct qn_register_tile {
    int rows, vectors;
};
struct qn_conv2d_tile {
    int vector;
    struct qn_register_tile image, narrow, wide, winograd;
};
const struct qn_conv2d_tile *qn_conv2d_tile_of(const struct qn_facts *facts);

/* Flops and bytes of a group that is this product, in one launch. */
void qn_conv2d_cost(const struct qn_call *call, const struct qn_conv2d_product *product, int group,
                    struct qn_cost *cost);
/* NAME_cost and NAME: the functions of a variant of `group` for the product that is the expression
 * `product_` of `call`, by the functions cost_ and emit_ of products. */
#define QN_CONV2D_VARIANT(name, group, product_, cost_, emit_)                                     \
    static void name##_cost(const struct qn_call *call, struct qn_cost *cost)                      \
    {                                                                                              \
        const struct qn_conv2d_product product = (product_);                                       \
        cost_(call, &product, group, cost);                                                        \
    }                                                                                              \
    static qn_status name(struct qn_emit *emit, const struct qn_call *call)                        \
    {                                                                                              \
        const struct qn_conv2d_product product = (product_);                                       \
        return emit_(emit, call, &product);                                                        \
    }
/* The same and NAME_fits, by functions of products alone: units_, units__cost and units__fit. */
#define QN_CONV2D_UNITS_VARIANT(name, group, product_, units_)                                     \
    QN_CONV2D_VARIANT(name, group, product_, units_##_cost, units_)                                \
    static bool name##_fits(const struct qn_call *call, const char **why)                          \
    {                                                                                              \
        const struct qn_conv2d_product product = (product_);                                       \
        return units_##_fit(call, &product, why);                                                  \
    }
/* Launches with operands, types and the sixteen numbers of the geometry: of what makes a result or
 * an image; and of what makes the gradient of the weights, into `made`. */
struct qn_launch qn_conv2d_image_launch(const struct qn_conv2d_product *product);
struct qn_launch qn_conv2d_weight_launch(const struct qn_conv2d_product *product,
                                         const struct qn_operand *made, float beta);
/* Appends an argument; the two that say which input channels of the weights take part. */
void qn_conv2d_argument(struct qn_launch *launch, struct qn_arg arg);
void qn_conv2d_inputs(struct qn_launch *launch, const struct qn_conv2d_product *product);

/* The gradient of the weights is a long sum with few results. Where those would not keep the device
 * busy the sum is split into parts, each with its own copy of the gradient in scratch, and a second
 * launch adds the copies in order. Part of the numeric identity: from shapes and facts alone. */
struct qn_conv2d_sum {
    int64_t length;       /* terms: pixels, or tiles of them */
    int64_t groups;       /* work-groups of one part */
    int64_t least, block; /* terms that a part has at least, and a multiple of */
    int64_t scratch;      /* most bytes of copies */
};
struct qn_conv2d_split {
    int64_t parts, terms; /* terms of a part */
};
struct qn_conv2d_split qn_conv2d_split(const struct qn_call *call, const struct qn_conv2d_sum *sum);
void qn_conv2d_split_cost(const struct qn_call *call, const struct qn_conv2d_product *product,
                          int group, const struct qn_conv2d_split *split, struct qn_cost *cost);
/* qn_conv2d_weight_launch for the parts of one image, with three arguments more: the terms, and
 * those of qn_conv2d_inputs; and the launch that adds the copies. */
struct qn_launch qn_conv2d_split_launch(const struct qn_call *call,
                                        const struct qn_conv2d_product *product,
                                        const struct qn_conv2d_split *split);
qn_status qn_conv2d_split_add(struct qn_emit *emit, const struct qn_call *call,
                              const struct qn_conv2d_split *split);

/* conv2d_shape.c: what shape rules of both operators ask of attributes, float operands of rank 4
 * and the sizes that kernels count in 32 bits; of the bias, which has so many channels. */
qn_status qn_conv2d_check(struct qn_shape_call *call, const struct qn_conv2d_attr *attr);
qn_status qn_conv2d_check_bias(struct qn_shape_call *call, int64_t channels);

/* conv2d_image.c: a result or an image, with the settings of the CPU shape. */
extern const char *const qn_conv2d_image_settings[];
bool qn_conv2d_fits_cpu(const struct qn_call *call, const char **why);
qn_status qn_conv2d_image(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_conv2d_product *product);

/* conv2d_gpu.c: tiles of the GPU shape. Rows and columns of a work-item, and how many tiles are
 * tall and wide enough for a product of so many rows and columns; what a launch has of that, and of
 * the window: constants, where it is a usual one. */
struct qn_conv2d_grid {
    int64_t rows, columns, tall, wide;
};
extern const char *const qn_conv2d_gpu_settings[];
bool qn_conv2d_fits_gpu(const struct qn_call *call, const char **why);
struct qn_conv2d_grid qn_conv2d_gpu_grid(const struct qn_call *call, int64_t rows, int64_t columns);
void qn_conv2d_gpu_shape(struct qn_launch *launch, const struct qn_conv2d_grid *grid);
void qn_conv2d_gpu_window(struct qn_launch *launch, const struct qn_conv2d_product *product);

/* conv2d_units.c: a result or an image by the device's matrix units. */
extern const char *const qn_conv2d_units_settings[];
bool qn_conv2d_units_fit(const struct qn_call *call, const struct qn_conv2d_product *product,
                         const char **why);
void qn_conv2d_units_cost(const struct qn_call *call, const struct qn_conv2d_product *product,
                          int group, struct qn_cost *cost);
qn_status qn_conv2d_units(struct qn_emit *emit, const struct qn_call *call,
                          const struct qn_conv2d_product *product);

/* conv2d_weight_units.c: the gradient of the weights by these. */
extern const char *const qn_conv2d_weight_units_settings[];
bool qn_conv2d_weight_units_fit(const struct qn_call *call, const struct qn_conv2d_product *product,
                                const char **why);
void qn_conv2d_weight_units_cost(const struct qn_call *call,
                                 const struct qn_conv2d_product *product, int group,
                                 struct qn_cost *cost);
qn_status qn_conv2d_weight_units(struct qn_emit *emit, const struct qn_call *call,
                                 const struct qn_conv2d_product *product);

/* conv2d_depthwise.c: by groups of one input channel. */
bool qn_conv2d_depthwise_fits_cpu(const struct qn_call *call, const char **why);
bool qn_conv2d_depthwise_fits_gpu(const struct qn_call *call, const char **why);
qn_status qn_conv2d_depthwise_forward(struct qn_emit *emit, const struct qn_call *call);
qn_status qn_conv2d_depthwise_input(struct qn_emit *emit, const struct qn_call *call);
qn_status qn_conv2d_depthwise_weight(struct qn_emit *emit, const struct qn_call *call);

/* conv2d_winograd.c: by Winograd's F(2x2, 3x3), on CPUs. Whether the window and the channels are
 * such that Winograd's way is worth it, on any device; whether it fits. */
bool qn_conv2d_winograd_is_for(const struct qn_call *call, const char **why);
bool qn_conv2d_winograd_fits(const struct qn_call *call, const char **why);
void qn_conv2d_winograd_cost(const struct qn_call *call, const struct qn_conv2d_product *product,
                             int group, struct qn_cost *cost);
qn_status qn_conv2d_winograd(struct qn_emit *emit, const struct qn_call *call,
                             const struct qn_conv2d_product *product);
/* Tiles of 2 x 2 pixels of all planes. */
int64_t qn_conv2d_winograd_tiles(const struct qn_conv2d_product *product);
/* QN_NARROW of lib/winograd_narrow.clh: pixels that are staged for so many tiles at a time; 0 where
 * planes are not narrow, or local memory has no room beside `used` bytes. */
int64_t qn_conv2d_winograd_narrow(const struct qn_facts *facts,
                                  const struct qn_conv2d_product *product, int64_t tiles,
                                  int64_t used);

/* conv2d_winograd_gpu.c: the same on GPUs. */
bool qn_conv2d_winograd_fits_gpu(const struct qn_call *call, const char **why);
void qn_conv2d_winograd_gpu_cost(const struct qn_call *call,
                                 const struct qn_conv2d_product *product, int group,
                                 struct qn_cost *cost);
qn_status qn_conv2d_winograd_gpu(struct qn_emit *emit, const struct qn_call *call,
                                 const struct qn_conv2d_product *product);

/* conv2d_winograd_weight.c: the gradient of the weights by F(3x3, 2x2): on CPUs where it fits, on
 * GPUs where qn_conv2d_winograd_fits_gpu. */
bool qn_conv2d_winograd_weight_fits(const struct qn_call *call, const char **why);
void qn_conv2d_winograd_weight_cost(const struct qn_call *call, struct qn_cost *cost);
qn_status qn_conv2d_winograd_weight(struct qn_emit *emit, const struct qn_call *call);

/* conv2d_weight.c: the gradient of the weights. */
void qn_conv2d_weight_cost(const struct qn_call *call, const struct qn_conv2d_product *product,
                           int group, struct qn_cost *cost);
qn_status qn_conv2d_weight(struct qn_emit *emit, const struct qn_call *call,
                           const struct qn_conv2d_product *product);

/* conv2d_bias.c: the gradient of the bias, by channels of the gradient of output 0. */
void qn_conv2d_bias_cost(const struct qn_call *call, struct qn_cost *cost);
qn_status qn_conv2d_bias(struct qn_emit *emit, const struct qn_call *call);

#endif
