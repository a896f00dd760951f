/* SPDX-License-Identifier: MIT
 *
 * Images enlarged by repeating pixels or by bilinear interpolation. Where an output pixel lies
 * among the input pixels is told in whole numbers (cl_kernels/upsample2d.cl).
 */
#include "base/log.h"
#include "base/shape.h"
#include "op/upsample2d.h"
#include "ops/common.h"

#include <limits.h>
#include <quern/ops.h>

/* Most columns that a CPU does at a time, in cl_kernels/upsample2d.cl too; pixels of a work-item.
 */
enum { BLOCK = 256, ENOUGH = 16384, PIXEL_GROUP = 64 };
/* Of the products of a side and a denominator, so that places stay inside 32 bits. */
enum { LARGEST = 1 << 30 };

/* --- shapes --- */

/* Pixel d of a side lies at (d * step + shift) / den among those of the argument. */
struct side {
    int64_t in, out, step, shift, den;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The whole images lie on each other, edge to edge or, with corners aligned, between the centres of
 * their first and last pixels. A blend asks where the centre of a pixel lies, nearest where its
 * upper left corner does. One pixel, which has no distance between corners, is the first. */
static struct side side_of(const struct qn_upsample2d_attr *attr, int64_t in, int64_t out)
{
    struct side side = {.in = in, .out = out};
    const bool corners = attr->align_corners && in > 1 && out > 1;
    const int64_t from = corners ? in - 1 : in, to = corners ? out - 1 : out;
    const int64_t divisor = common_divisor(from, to);
    const bool centres = attr->mode == QN_UPSAMPLE_BILINEAR && !attr->align_corners;
    side.step = (centres ? 2 : 1) * from / divisor;
    side.den = (centres ? 2 : 1) * to / divisor;
    side.shift = centres ? (from - to) / divisor : 0;
    return side;
}

static qn_status check_attributes(struct qn_shape_call *call)
{
    const struct qn_upsample2d_attr *attr = call->attr;
    if (attr->mode != QN_UPSAMPLE_NEAREST && attr->mode != QN_UPSAMPLE_BILINEAR)
        return qn_shape_error(call, "there is no mode %d", attr->mode);
    if (attr->align_corners && attr->mode != QN_UPSAMPLE_BILINEAR)
        return qn_shape_error(call, "corners are aligned by the bilinear mode alone");
    for (int i = 0; i < 2; i++)
        if (attr->factor[i] < 0 || attr->size[i] < 0 || !attr->factor[i] == !attr->size[i])
            return qn_shape_error(call, "wants a factor or a size above 0, not %d and %d",
                                  attr->factor[i], attr->size[i]);
    return QN_OK;
}

static qn_status check_side(struct qn_shape_call *call, int64_t in, int64_t out)
{
    if (in > LARGEST || out > LARGEST)
        return qn_shape_error(call, "a side of %lld or %lld pixels is too long", (long long)in,
                              (long long)out);
    const struct side side = side_of(call->attr, in, out);
    if (in * side.den > LARGEST || out * side.step > LARGEST)
        return qn_shape_error(call, "%lld pixels become %lld: their places are beyond 32 bits",
                              (long long)in, (long long)out);
    return QN_OK;
}

static qn_status shape(struct qn_shape_call *call)
{
    const struct qn_upsample2d_attr *attr = call->attr;
    const struct qn_operand *x = &call->in[0];
    if (!qn_is_float(x) || x->shape.rank != 4)
        return qn_shape_error(call, "upsample2d takes (b, c, h, w) of a float type");
    QN_TRY(check_attributes(call));
    int64_t dim[4] = {x->shape.dim[0], x->shape.dim[1]};
    for (int i = 2; i < 4; i++) {
        const int factor = attr->factor[i - 2];
        dim[i] = factor ? qn_mul(x->shape.dim[i], factor) : attr->size[i - 2];
        QN_TRY(check_side(call, x->shape.dim[i], dim[i]));
    }
    if (dim[2] * dim[3] > INT_MAX || x->shape.dim[2] * x->shape.dim[3] > INT_MAX)
        return qn_shape_error(call, "an image has more than 2^31 pixels");
    qn_shape_set(&call->out[0], call->storage, 4, dim);
    return QN_OK;
}

/* --- costs --- */

static void cost_of(const struct qn_call *call, int group, const struct qn_operand *small,
                    const struct qn_operand *large, struct qn_cost *cost)
{
    const struct qn_upsample2d_attr *attr = call->attr;
    const int each = attr->mode == QN_UPSAMPLE_BILINEAR ? 8 : 1;
    cost->flops = (double)qn_operand_count(small) + each * (double)qn_operand_count(large);
    cost->bytes = qn_group_bytes(call, group);
    cost->launches = 1;
}

static void forward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 0, &call->in[0], &call->out[0], cost);
}

static void backward_cost(const struct qn_call *call, struct qn_cost *cost)
{
    cost_of(call, 1, &call->din[0], &call->dout[0], cost);
}

/* --- launches --- */

/* The images of a launch: x or its gradient, y or its gradient. */
struct images {
    const struct qn_operand *x, *y;
    int64_t planes;
    struct side side[2]; /* height, width */
};

static struct images images_of(const struct qn_call *call, const struct qn_operand *x,
                               const struct qn_operand *y)
{
    struct images images = {x, y, qn_shape_span(&x->shape, 0, 2), {{0}}};
    for (int i = 0; i < 2; i++)
        images.side[i] = side_of(call->attr, x->shape.dim[2 + i], y->shape.dim[2 + i]);
    return images;
}

/* Columns of a block between whose places there are at most so many input pixels, too. */
static int64_t columns_of(const struct side *width)
{
    return width->step <= width->den ? BLOCK : 1 + (BLOCK - 1) * width->den / width->step;
}

static int64_t rows_each(int64_t columns)
{
    return columns < ENOUGH ? ENOUGH / columns : 1;
}

/* Appends planes and sides behind the first `count` arguments; gives the number of all. */
static int add_sides(struct qn_launch *launch, int count, const struct images *images)
{
    launch->args[count++] = (struct qn_arg)QN_LONG(images->planes);
    for (int i = 0; i < 2; i++) {
        const struct side *side = &images->side[i];
        const int64_t numbers[] = {side->in, side->out, side->step, side->shift, side->den};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            launch->args[count++] = (struct qn_arg)QN_INT(numbers[k]);
    }
    return count;
}

static qn_status emit_launch(struct qn_emit *emit, const struct qn_call *call,
                             struct qn_launch *launch, const struct images *images)
{
    const struct qn_upsample2d_attr *attr = call->attr;
    launch->program = "upsample2d";
    qn_launch_option(launch, "QN_BILINEAR", attr->mode == QN_UPSAMPLE_BILINEAR);
    qn_launch_option(launch, "QN_V", qn_vector_width(call->facts));
    qn_launch_type(launch, "X", images->x);
    qn_launch_type(launch, "Y", images->y);
    return qn_emit_launch(emit, launch);
}

static qn_status forward_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct images images = images_of(call, &call->in[0], &call->out[0]);
    const int64_t rows = images.planes * images.side[0].out, span = rows_each(images.side[1].out);
    struct qn_launch launch = {.kernel = "forward_cpu",
                               .args = {QN_BUF(images.x), QN_BUF(images.y)},
                               .global = {qn_div_up(rows, span)},
                               .local = {1}};
    const int count = add_sides(&launch, 2, &images);
    launch.args[count] = (struct qn_arg)QN_INT(columns_of(&images.side[1]));
    launch.args[count + 1] = (struct qn_arg)QN_INT(span);
    return emit_launch(emit, call, &launch, &images);
}

static qn_status forward_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct images images = images_of(call, &call->in[0], &call->out[0]);
    struct qn_launch launch = {.kernel = "forward_gpu",
                               .args = {QN_BUF(images.x), QN_BUF(images.y)},
                               .global = {qn_operand_count(images.y)},
                               .local = {PIXEL_GROUP}};
    add_sides(&launch, 2, &images);
    return emit_launch(emit, call, &launch, &images);
}

static qn_status backward_cpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct images images = images_of(call, &call->din[0], &call->dout[0]);
    const int64_t rows = images.planes * images.side[0].in, span = rows_each(images.side[1].out);
    struct qn_launch launch = {.kernel = "backward_cpu",
                               .args = {QN_BUF(images.y), QN_BUF(images.x)},
                               .global = {qn_div_up(rows, span)},
                               .local = {1}};
    const int count = add_sides(&launch, 2, &images);
    launch.args[count] = (struct qn_arg)QN_INT(span);
    launch.args[count + 1] = (struct qn_arg)QN_FLOAT(call->beta_in[0]);
    return emit_launch(emit, call, &launch, &images);
}

static qn_status backward_gpu(struct qn_emit *emit, const struct qn_call *call)
{
    const struct images images = images_of(call, &call->din[0], &call->dout[0]);
    struct qn_launch launch = {.kernel = "backward_gpu",
                               .args = {QN_BUF(images.y), QN_BUF(images.x)},
                               .global = {qn_operand_count(images.x)},
                               .local = {PIXEL_GROUP}};
    const int count = add_sides(&launch, 2, &images);
    launch.args[count] = (struct qn_arg)QN_FLOAT(call->beta_in[0]);
    return emit_launch(emit, call, &launch, &images);
}

const struct qn_op qn_op_upsample2d = {
    .name = "upsample2d",
    .attr_size = sizeof(struct qn_upsample2d_attr),
    .n_in = 1,
    .n_required = 1,
    .n_out = 1,
    .batch = {QN_BATCH_MAY},
    .shape = shape,
    .groups = {{.name = "forward",
                .phase = QN_PHASE_TRAIN | QN_PHASE_EVAL,
                .read = {{QN_IN(0)}},
                .write = {{QN_OUT(0)}},
                .variant = {{"cpu", qn_fits_cpu, forward_cost, forward_cpu, .cpu = true},
                            {"gpu", NULL, forward_cost, forward_gpu}}},
               {.name = "input gradient",
                .phase = QN_PHASE_BACKWARD,
                .read = {{QN_DOUT(0)}},
                .write = {{QN_DIN(0)}},
                .variant = {{"cpu", qn_fits_cpu, backward_cost, backward_cpu, .cpu = true},
                            {"gpu", NULL, backward_cost, backward_gpu}}}}};

qn_tensor qn_upsample2d(qn_graph *graph, qn_tensor x, const qn_upsample2d_params *params)
{
    const qn_upsample2d_params none = {0};
    params = params ? params : &none;
    struct qn_upsample2d_attr attr = {.mode = (int)params->mode,
                                      .align_corners = params->align_corners};
    for (int i = 0; i < 2; i++) {
        attr.size[i] = params->size[i];
        attr.factor[i] = params->factor[i] || params->size[i] ? params->factor[i] : 2;
    }
    return qn_op_apply(graph, &qn_op_upsample2d, &x, &attr);
}
