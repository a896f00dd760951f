/* SPDX-License-Identifier: MIT
 *
 * Rotary position embedding. x is (rows, heads, 2, n): the two halves of a head hold the two
 * coordinates of n points, and point i is turned about 0 by position * rate[i] full turns.
 */
#include "lib/strip.clh"

#define RATE_TYPE f32
#ifndef POSITION_TYPE
#define POSITION_TYPE i32
#endif

/* turn() splits a product into what is rounded and what is lost: no contraction. */
#pragma OPENCL FP_CONTRACT OFF

/* Cosine and sine of position * (rate + rest) full turns, within 2e-7: whole turns are taken off
 * before they cost digits. The position is a whole number up to 2^24, rate + rest a number below
 * 1/4 of twice the digits. */
static inline floatv turn(float position, floatv rate, floatv rest, floatv *sine)
{
    const floatv p = (floatv)(position), product = p * rate, lost = fma(p, rate, -product);
    const floatv turns = (product - rint(product)) + FMA(p, rest, lost);
    const floatv quarters = rint(4.0f * turns), r = FMA(quarters, (floatv)(-0.25f), turns);
    const floatv square = r * r;
    floatv s = (floatv)(-75.4016113f), c = (floatv)(59.2201691f);
    s = FMA(s, square, (floatv)(81.5925446f));
    s = FMA(s, square, (floatv)(-41.3416634f));
    s = FMA(s, square, (floatv)(6.28318548f)) * r;
    c = FMA(c, square, (floatv)(-85.4428482f));
    c = FMA(c, square, (floatv)(64.9393158f));
    c = FMA(c, square, (floatv)(-19.7392082f));
    c = FMA(c, square, (floatv)(1.0f));
    const intv quarter = QN_PASTE(convert_int, QN_V)(quarters);
    const intv odd = (quarter & 1) != 0;
    const floatv along = odd ? -s : c, across = odd ? c : s;
    const intv back = (quarter & 2) != 0;
    *sine = back ? -across : across;
    return back ? -along : along;
}

/* y = beta * y + x with the points of the first `turned` heads turned, backwards where `way` is -1.
 * A work-item takes `span` neighbouring items of the rows: QN_V points of all heads of a row, or
 * one of the points that fill no vector. y may be x. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
rotary(__global const TYPE(X) *x, ulong x_at, __global const TYPE(RATE) *rate, ulong rate_at,
       __global const TYPE(POSITION) *positions, ulong positions_at, __global TYPE(Y) *y,
       ulong y_at, ulong rows, ulong n, ulong tokens, ulong heads, ulong turned, ulong span,
       int has_positions, float way, float beta)
{
    const ulong whole = n / QN_V, items = whole + n % QN_V;
    const ulong begin = get_global_id(0) * span, end = min(begin + span, rows * items);
    x += x_at;
    rate += rate_at;
    positions += positions_at;
    y += y_at;
    for (ulong item = begin; item < end; item++) {
        const ulong row = item / items, place = item % items;
        const bool vectors = place < whole;
        const ulong i = vectors ? place * QN_V : whole * QN_V + (place - whole);
        const int position = has_positions ? LDI(POSITION, positions, row) : (int)(row % tokens);
        floatv sine;
        const floatv cosine = turn(way * (float)position, QN_GET(RATE, rate, i),
                                   QN_GET(RATE, rate, n + i), &sine);
        for (ulong head = 0; head < heads; head++) {
            const ulong at = (row * heads + head) * 2 * n + i;
            const floatv a = QN_GET(X, x, at), b = QN_GET(X, x, at + n);
            const bool still = head >= turned;
            QN_ADD(Y, y, at, beta, still ? a : a * cosine - b * sine);
            QN_ADD(Y, y, at + n, beta, still ? b : b * cosine + a * sine);
        }
    }
}
