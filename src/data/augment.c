/* SPDX-License-Identifier: MIT */
#include "data/augment.h"
#include "base/random.h"

#include <limits.h>

/* Keeps these numbers apart from all others of the same seed. */
static const uint64_t STREAM = UINT64_C(0x6175676d00000000);
enum number { TOP, LEFT, FLIP, NUMBERS };

static uint64_t number(const struct qn_draw *draw, enum number which)
{
    return qn_random_bits(draw->seed, STREAM + (uint64_t)draw->epoch,
                          (uint64_t)draw->sample * NUMBERS + (uint64_t)which);
}

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

/* The remainder of 64 bits favours no place by more than 2^-32. */
static int anywhere(int left, uint64_t bits)
{
    return (int)(bits % ((uint64_t)left + 1));
}

bool qn_augment(struct qn_window *window, const struct qn_fit *fit, const int size[2],
                const struct qn_draw *draw)
{
    *window = (struct qn_window){0};
    resize(window->full, fit, size);
    for (int axis = 0; axis < 2; axis++) {
        window->size[axis] = fit->crop[axis] ? fit->crop[axis] : window->full[axis];
        int left = window->full[axis] - window->size[axis];
        if (left < 0)
            return false;
        window->at[axis] =
            fit->random_crop ? anywhere(left, number(draw, axis ? LEFT : TOP)) : middle(left);
    }
    window->mirror = fit->flip && number(draw, FLIP) % 2;
    return true;
}
