/* SPDX-License-Identifier: MIT */
#include "data/rotate.h"

#include <math.h>
#include <stddef.h>

static const double RADIANS = 0.017453292519943295769;

/* Where pixels of the result come from. */
struct turn {
    double cosine, sine;
    double middle[2]; /* between the first and the last pixel of each axis */
};

static struct turn turn_of(const int size[2], double degrees)
{
    return (struct turn){
        cos(degrees * RADIANS), sin(degrees * RADIANS), {(size[0] - 1) / 2.0, (size[1] - 1) / 2.0}};
}

/* The point that pixel (y, x) comes from. Rows count downwards. */
static void origin(const struct turn *turn, int y, int x, double at[2])
{
    const double down = y - turn->middle[0], right = x - turn->middle[1];
    at[0] = turn->middle[0] + turn->sine * right + turn->cosine * down;
    at[1] = turn->middle[1] + turn->cosine * right - turn->sine * down;
}

static double pixel(const uint8_t *plane, const int size[2], int y, int x)
{
    return y < 0 || x < 0 || y >= size[0] || x >= size[1]
               ? 0
               : plane[(size_t)y * (size_t)size[1] + (size_t)x];
}

/* The mean of the four pixels around a point, by their distances. */
static uint8_t blend(const uint8_t *plane, const int size[2], const double at[2])
{
    const double top = floor(at[0]), left = floor(at[1]);
    const double down = at[0] - top, right = at[1] - left;
    const int y = (int)top, x = (int)left;
    const double upper =
        (1 - right) * pixel(plane, size, y, x) + right * pixel(plane, size, y, x + 1);
    const double lower =
        (1 - right) * pixel(plane, size, y + 1, x) + right * pixel(plane, size, y + 1, x + 1);
    return (uint8_t)((1 - down) * upper + down * lower + 0.5);
}

void qn_rotate(uint8_t *to, const uint8_t *from, int planes, const int size[2], double degrees)
{
    const struct turn turn = turn_of(size, degrees);
    const size_t plane = (size_t)size[0] * (size_t)size[1];
    double at[2];
    for (int y = 0; y < size[0]; y++)
        for (int x = 0; x < size[1]; x++, to++) {
            origin(&turn, y, x, at);
            for (int p = 0; p < planes; p++)
                to[(size_t)p * plane] = blend(from + (size_t)p * plane, size, at);
        }
}

void qn_rotate_nearest(uint8_t *to, const uint8_t *from, const int size[2], double degrees)
{
    const struct turn turn = turn_of(size, degrees);
    double at[2];
    for (int y = 0; y < size[0]; y++)
        for (int x = 0; x < size[1]; x++) {
            origin(&turn, y, x, at);
            *to++ = (uint8_t)pixel(from, size, (int)floor(at[0] + 0.5), (int)floor(at[1] + 0.5));
        }
}
