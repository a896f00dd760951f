/* SPDX-License-Identifier: MIT
 *
 * Convolution by groups of one input channel (depthwise, and images of one channel): memory bounds
 * it, so nothing is packed for a product. CPUs take bands of rows, GPUs an element a work-item.
 */
#include "ops/conv2d_product.h"

#include "base/log.h"
#include "base/shape.h"

/* CPU shape: floats of local memory for a band of the source, and for what is made of it. Windows
 * of more taps than this are for the other variants. */
enum { BAND = 4608, MADE = 3072, MOST_TAPS = 64 };
enum { GPU_GROUP = 64 };

/* Rows that are made of a band, 0 if none fits; floats from one row of it to the next. */
struct band {
    int64_t rows, pitch;
};

static int64_t reach(const struct qn_conv2d_product *p, int axis)
{
    return (p->kernel[axis] - 1) * p->attr->dilation[axis];
}

static struct band band_of(const struct qn_call *call, const struct qn_conv2d_product *p)
{
    const int64_t vector = qn_conv2d_tile_of(call->facts)->vector;
    const int64_t wide = qn_round_up(p->plane[1], vector);
    const int64_t step_y = p->gradient ? 1 : p->attr->stride[0];
    const int64_t step_x = p->gradient ? 1 : p->attr->stride[1];
    struct band band = {0, wide * step_x + reach(p, 1)};
    const int64_t source = (BAND - 2 * vector) / band.pitch - reach(p, 0);
    if (source < 1)
        return band;
    const int64_t most = (source - 1) / step_y + 1, made = MADE / wide;
    band.rows = most < made ? most : made;
    if (band.rows > 0)
        band.rows = qn_div_up(p->plane[0], qn_div_up(p->plane[0], band.rows));
    return band;
}

static bool is_depthwise(const struct qn_call *call, const char **why)
{
    *why = "made for one input channel a group";
    return call->in[1].shape.dim[1] == 1;
}

bool qn_conv2d_depthwise_fits_cpu(const struct qn_call *call, const char **why)
{
    const struct qn_conv2d_product forward = qn_conv2d_forward(call);
    const struct qn_conv2d_product gradient = qn_conv2d_gradient(call, false);
    if (!qn_fits_cpu(call, why) || !is_depthwise(call, why))
        return false;
    *why = "the kernel is too large";
    if (forward.kernel[0] * forward.kernel[1] > MOST_TAPS)
        return false;
    *why = "there is more padding than the kernel reaches";
    for (int i = 0; i < 2; i++)
        if (forward.attr->padding[i] > reach(&forward, i))
            return false;
    *why = "the rows of the image are too long";
    if (band_of(call, &forward).rows < 1 || band_of(call, &gradient).rows < 1)
        return false;
    *why = "the device has too little local memory";
    return call->facts->local_bytes >= (BAND + MADE) * (int64_t)sizeof(float);
}

bool qn_conv2d_depthwise_fits_gpu(const struct qn_call *call, const char **why)
{
    *why = "made for GPUs: a work-item an element";
    if (call->facts->cpu || !is_depthwise(call, why))
        return false;
    return qn_fits_row_group(call, why);
}

/* --- launches --- */

/* An option for a number that the kernels know as 1, 2 or any other. */
static int64_t known_step(int64_t step)
{
    return step <= 2 ? step : 0;
}

static void shape_band(struct qn_launch *launch, const struct qn_call *call,
                       const struct qn_conv2d_product *p)
{
    const struct band band = band_of(call, p);
    const int64_t step = known_step(p->attr->stride[1]);
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(band.rows));
    qn_conv2d_argument(launch, (struct qn_arg)QN_INT(band.pitch));
    qn_launch_option(launch, "QN_V", qn_conv2d_tile_of(call->facts)->vector);
    qn_launch_option(launch, "QN_KH", p->kernel[0]);
    qn_launch_option(launch, "QN_KW", p->kernel[1]);
    qn_launch_option(launch, "QN_STEP", p->gradient ? 1 : step);
    qn_launch_option(launch, "QN_SPREAD", p->gradient ? step : 1);
    qn_launch_option(launch, "QN_BAND", BAND);
}

static qn_status emit_image(struct qn_emit *emit, const struct qn_call *call,
                            const struct qn_conv2d_product *p)
{
    struct qn_launch launch = qn_conv2d_image_launch(p);
    launch.kernel = "conv2d_depthwise";
    if (call->cpu) {
        launch.program = "conv2d_depthwise_cpu";
        launch.global[0] = p->batch * p->groups;
        launch.global[1] = qn_div_up(p->plane[0], band_of(call, p).rows);
        shape_band(&launch, call, p);
        qn_launch_option(&launch, "QN_MADE", MADE);
    } else {
        launch.program = "conv2d_depthwise_gpu";
        launch.global[0] = p->groups * p->channels * qn_conv2d_pixels(p);
        launch.local[0] = GPU_GROUP;
    }
    return qn_emit_launch(emit, &launch);
}

qn_status qn_conv2d_depthwise_forward(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_forward(call);
    return emit_image(emit, call, &p);
}

qn_status qn_conv2d_depthwise_input(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_gradient(call, false);
    return emit_image(emit, call, &p);
}

qn_status qn_conv2d_depthwise_weight(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_conv2d_product p = qn_conv2d_weights(call);
    struct qn_launch launch = qn_conv2d_weight_launch(&p, p.w, p.beta);
    launch.kernel = "conv2d_depthwise_weight";
    if (call->cpu) {
        launch.program = "conv2d_depthwise_weight_cpu";
        launch.global[0] = p.groups * p.channels;
        shape_band(&launch, call, &p);
    } else {
        launch.program = "conv2d_depthwise_weight_gpu";
        launch.global[0] = p.groups * p.channels * QN_ROW_GROUP;
        launch.global[1] = p.kernel[0];
        launch.global[2] = p.kernel[1];
        launch.local[0] = QN_ROW_GROUP;
        qn_launch_option(&launch, "QN_WG", QN_ROW_GROUP);
    }
    return qn_emit_launch(emit, &launch);
}
