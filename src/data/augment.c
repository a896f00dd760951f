/* SPDX-License-Identifier: MIT */
#include "data/augment.h"
#include "data/draw.h"

#include <limits.h>
#include <math.h>

enum number { TOP, LEFT, FLIP, NUMBERS };
static const struct qn_stream places = {UINT64_C(0x6175676d00000000), NUMBERS};

static const struct qn_stream angles = {UINT64_C(0x7475726e00000000), 1};

/* Of a random part: two numbers for each try, and where the one that fits is. */
enum { TRIES = 10, PART_TOP = 2 * TRIES, PART_LEFT, PART_NUMBERS };
static const struct qn_stream parts = {UINT64_C(0x7061727400000000), PART_NUMBERS};

/* --- the whole image --- */

/* What `side` becomes when the shorter side becomes `to`. */
static int in_proportion(int to, int side, int shorter)
{
    int64_t size = (int64_t)to * side / shorter;
    return size > INT_MAX ? INT_MAX : (int)size;
}

static void resize(int full[2], const struct qn_fit *fit, const int size[2])
{
    int shorter = size[1] < size[0];
    bool whole = fit->size[0] && fit->size[1];
    for (int axis = 0; axis < 2; axis++)
        full[axis] = whole          ? fit->size[axis]
                     : fit->size[0] ? in_proportion(fit->size[0], size[axis], size[shorter])
                                    : size[axis];
}

/* Half of what is left, a half pixel to the even side: torchvision's middle. */
static int middle(int left)
{
    return left / 2 + (left % 4 == 3);
}

static bool cut(struct qn_window *window, const struct qn_fit *fit, const int size[2],
                const struct qn_draw *draw)
{
    resize(window->full, fit, size);
    for (int axis = 0; axis < 2; axis++) {
        window->size[axis] = fit->crop[axis] ? fit->crop[axis] : window->full[axis];
        int left = window->full[axis] - window->size[axis];
        if (left < 0)
            return false;
        window->at[axis] =
            fit->random_crop ? qn_draw_upto(draw, &places, axis ? LEFT : TOP, left) : middle(left);
    }
    return true;
}

/* --- a part of random size: torchvision's RandomResizedCrop --- */

/* Whether the part of this try lies within the image. */
static bool try_part(int part[2], const struct qn_fit *fit, const int size[2],
                     const struct qn_draw *draw, int try)
{
    const double pixels = (double)size[0] * size[1] *
                          qn_draw_within(draw, &parts, 2 * try, fit->scale[0], fit->scale[1]);
    const double ratio =
        exp(qn_draw_within(draw, &parts, 2 * try + 1, log(fit->ratio[0]), log(fit->ratio[1])));
    const double height = rint(sqrt(pixels / ratio)), width = rint(sqrt(pixels * ratio));
    if (height < 1 || width < 1 || height > size[0] || width > size[1])
        return false;
    part[0] = (int)height;
    part[1] = (int)width;
    return true;
}

static int at_least_one(double side)
{
    return side < 1 ? 1 : (int)side;
}

/* The largest part in the middle whose ratio is within the range. */
static void middle_part(struct qn_view *view, const struct qn_fit *fit, const int size[2])
{
    const double ratio = (double)size[1] / size[0];
    for (int axis = 0; axis < 2; axis++)
        view->part[axis] = size[axis];
    if (ratio < fit->ratio[0])
        view->part[0] = at_least_one(rint(size[1] / fit->ratio[0]));
    else if (ratio > fit->ratio[1])
        view->part[1] = at_least_one(rint(size[0] * fit->ratio[1]));
    for (int axis = 0; axis < 2; axis++)
        view->at[axis] = (size[axis] - view->part[axis]) / 2;
}

static void find_part(struct qn_view *view, const struct qn_fit *fit, const int size[2],
                      const struct qn_draw *draw)
{
    int try = 0;
    while (try < TRIES && !try_part(view->part, fit, size, draw, try))
        try++;
    if (try == TRIES) {
        middle_part(view, fit, size);
        return;
    }
    for (int axis = 0; axis < 2; axis++)
        view->at[axis] =
            qn_draw_upto(draw, &parts, axis ? PART_LEFT : PART_TOP, size[axis] - view->part[axis]);
}

/* The part becomes as large as the crop. */
static void cut_part(struct qn_view *view, const struct qn_fit *fit, const int size[2],
                     const struct qn_draw *draw)
{
    find_part(view, fit, size, draw);
    for (int axis = 0; axis < 2; axis++)
        view->window.full[axis] = view->window.size[axis] = fit->crop[axis];
}

bool qn_augment(struct qn_view *view, const struct qn_fit *fit, const int size[2],
                const struct qn_draw *draw)
{
    *view = (struct qn_view){.part = {size[0], size[1]}};
    if (fit->random_resized_crop)
        cut_part(view, fit, size, draw);
    else if (!cut(&view->window, fit, size, draw))
        return false;
    view->window.mirror = fit->flip && qn_draw_bits(draw, &places, FLIP) % 2;
    if (fit->degrees > 0)
        view->angle = qn_draw_within(draw, &angles, 0, -fit->degrees, fit->degrees);
    return true;
}
