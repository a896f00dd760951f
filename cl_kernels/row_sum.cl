/* SPDX-License-Identifier: MIT
 *
 * Sums and means along rows: x is (rows, n), y is (rows). A factor of 1 / n makes it a mean.
 */
#ifndef X_TYPE
#define X_TYPE f32
#endif
#include "lib/row.clh"

#ifndef Y_TYPE
#define Y_TYPE f32
#endif

#define ROW_KERNEL __kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void

/* A work-group per `span` rows of each team. Teams without a row take part in the barriers. */
ROW_KERNEL forward(__global const TYPE(X) *x, ulong x_at, __global TYPE(Y) *y, ulong y_at,
                   ulong rows, ulong n, uint lanes, uint span, float factor)
{
    __local float part[QN_WG];
    x += x_at;
    y += y_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams;
        const float own = row < rows ? row_sum(x + row * n, n, lane, lanes) : 0.0f;
        const float sum = qn_team_sum(own, part, lanes);
        if (lane == 0 && row < rows)
            ST(Y, y, row, sum * factor);
    }
}

/* dx (X) from dy (Y). */
ROW_KERNEL backward(__global const TYPE(Y) *dy, ulong dy_at, __global TYPE(X) *dx, ulong dx_at,
                    ulong rows, ulong n, uint lanes, uint span, float factor, float beta)
{
    dy += dy_at;
    dx += dx_at;
    const uint teams = QN_WG / lanes, lane = qn_lane(lanes);
    const ulong first = get_group_id(0) * (ulong)(span * teams) + qn_team(lanes);
    for (uint k = 0; k < span; k++) {
        const ulong row = first + k * teams, at = row * n;
        if (row >= rows)
            return;
        const float g = LD(Y, dy, row) * factor;
        for (ulong i = lane * QN_V; i + QN_V <= n; i += lanes * QN_V)
            ACCV(X, dx, at + i, beta, (floatv)(g));
        for (ulong i = n - n % QN_V + lane; i < n; i += lanes)
            ACC(X, dx, at + i, beta, g);
    }
}
