/* SPDX-License-Identifier: MIT
 *
 * The GPU shape of convolutions: tiles as in cl_kernels/lib/tiled.clh.
 */
#include "ops/conv2d_product.h"

#include "base/shape.h"

/* Work-items along the edges of a work-group, terms of a strip, columns of a run, most rows or
 * columns of a work-item; bytes for where a term or a column lies. */
enum { SIDE = 16, DEPTH = 16, RUN = 4, MOST_EACH = 8, OFFSET_BYTES = 16 };

/* Windows that are constants of a program, those of most networks: so many taps, steps and gaps at
 * most, the same both ways. Others are arguments. */
enum { MOST_TAPS = 3, MOST_STRIDE = 2, MOST_DILATION = 1 };

/* Rows and columns of a work-item: up to MOST_EACH, or up to half of it. */
const char *const qn_conv2d_gpu_settings[] = {"large", "small", NULL};

static int64_t most_each(const struct qn_call *call)
{
    return MOST_EACH >> call->setting;
}

bool qn_conv2d_fits_gpu(const struct qn_call *call, const char **why)
{
    const struct qn_facts *facts = call->facts;
    const int64_t tile = SIDE * most_each(call);
    const int64_t strips = 2 * DEPTH * (tile + RUN) * (int64_t)sizeof(float);
    *why = facts->max_work_group < SIDE * SIDE ? "the device's work-groups are too small"
                                               : "the device has too little local memory";
    return facts->max_work_group >= SIDE * SIDE &&
           facts->local_bytes >= strips + tile * OFFSET_BYTES;
}

/* So many of a work-item that the tile covers `size`, `least` or more. */
static int64_t each_of(const struct qn_call *call, int64_t size, int64_t least)
{
    int64_t each = least;
    while (each < most_each(call) && SIDE * each < size)
        each *= 2;
    return each;
}

struct qn_conv2d_grid qn_conv2d_gpu_grid(const struct qn_call *call, int64_t rows, int64_t columns)
{
    struct qn_conv2d_grid grid = {each_of(call, rows, 1), each_of(call, columns, RUN), 0, 0};
    grid.tall = qn_div_up(rows, SIDE * grid.rows);
    grid.wide = qn_div_up(columns, SIDE * grid.columns);
    return grid;
}

void qn_conv2d_gpu_shape(struct qn_launch *launch, const struct qn_conv2d_grid *grid)
{
    launch->global[0] = grid->wide * SIDE;
    launch->global[1] = grid->tall * SIDE;
    launch->local[0] = launch->local[1] = SIDE;
    qn_launch_option(launch, "QN_ROWS", grid->rows);
    qn_launch_option(launch, "QN_COLUMNS", grid->columns);
}

void qn_conv2d_gpu_window(struct qn_launch *launch, const struct qn_conv2d_product *p)
{
    const struct qn_conv2d_attr *a = p->attr;
    const bool square = p->kernel[0] == p->kernel[1] && a->stride[0] == a->stride[1] &&
                        a->dilation[0] == a->dilation[1];
    if (!square || p->kernel[0] > MOST_TAPS || a->stride[0] > MOST_STRIDE ||
        a->dilation[0] > MOST_DILATION)
        return;
    qn_launch_option(launch, "QN_TAPS", p->kernel[0]);
    qn_launch_option(launch, "QN_STRIDE", a->stride[0]);
    qn_launch_option(launch, "QN_DILATION", a->dilation[0]);
}
