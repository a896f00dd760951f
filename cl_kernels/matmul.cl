/* SPDX-License-Identifier: MIT
 *
 * Kernels beside a matrix product: adding up the parts of a sum, the bias before a product that can
 * only add to c, and the gradient of the bias.
 *
 * Options: A_TYPE, C_TYPE; QN_V; WIDE and TALL (a power of two), the work-group of column_sums;
 *   those of lib/epilogue.clh, for add_parts.
 */
#include "lib/epilogue.clh"

/* c (count) = the sum of the `parts` copies in a, in their order; see lib/epilogue.clh. */
__attribute__((reqd_work_group_size(64, 1, 1))) __kernel void
add_parts(__global const TYPE(A) * a, ulong a_at, __global const TYPE(RESIDUAL) * residual,
          ulong residual_at, __global TYPE(C) * c, ulong c_at, ulong count, ulong parts, float beta,
          float slope)
{
    const ulong i = get_global_id(0) * QN_V;
    const epilogue how = {beta, slope};
    a += a_at;
    residual += residual_at;
    c += c_at;
    if (i + QN_V <= count) {
        floatv v = (floatv)(0.0f);
        for (ulong p = 0; p < parts; p++)
            v += LDV(A, a, p * count + i);
        finish_vector(c, residual, i, how, v);
        return;
    }
    for (ulong e = i; e < count; e++) {
        float v = 0.0f;
        for (ulong p = 0; p < parts; p++)
            v += LD(A, a, p * count + e);
        finish(c, residual, e, how, v);
    }
}

/* Every row of c (m, n) = a (n). */
__attribute__((reqd_work_group_size(64, 1, 1))) __kernel void
fill_rows(__global const TYPE(A) * a, ulong a_at, __global TYPE(C) * c, ulong c_at, ulong m,
          ulong n)
{
    const ulong j = get_global_id(0) * QN_V;
    a += a_at;
    c += c_at;
    for (ulong row = get_global_id(1); row < m; row += get_global_size(1)) {
        if (j + QN_V <= n)
            STV(C, c, row * n + j, LDV(A, a, j));
        else
            for (ulong e = j; e < n; e++)
                ST(C, c, row * n + e, LD(A, a, e));
    }
}

/* c (n) = beta * c + the sum of the rows of a (m, n); part p of the rows goes to copy p of c. Each
 * work-item takes one vector of columns and every TALL-th row; then the sums of a column are added
 * in a tree. */
__attribute__((reqd_work_group_size(WIDE, TALL, 1))) __kernel void
column_sums(__global const TYPE(A) * a, ulong a_at, __global TYPE(C) * c, ulong c_at, ulong m,
            ulong n, ulong part_m, float beta)
{
    __local floatv sum[TALL][WIDE];
    const int x = get_local_id(0), y = get_local_id(1);
    a += a_at;
    c += c_at + get_group_id(2) * n;

    const ulong j = get_global_id(0) * QN_V;
    const ulong begin = get_group_id(2) * part_m, end = min(begin + part_m, m);
    floatv v = (floatv)(0.0f);
    float tail[QN_V];
    if (j + QN_V <= n) {
        for (ulong row = begin + y; row < end; row += TALL)
            v += LDV(A, a, row * n + j);
    } else {
        QN_PASTE(vstore, QN_V)(v, 0, tail);
        for (ulong row = begin + y; row < end; row += TALL)
            for (ulong e = 0; j + e < n; e++)
                tail[e] += LD(A, a, row * n + j + e);
        v = QN_PASTE(vload, QN_V)(0, tail);
    }

    sum[y][x] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int rest = TALL / 2; rest > 0; rest /= 2) {
        if (y < rest)
            sum[y][x] += sum[y + rest][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (y > 0)
        return;
    if (j + QN_V <= n) {
        ACCV(C, c, j, beta, sum[0][x]);
        return;
    }
    QN_PASTE(vstore, QN_V)(sum[0][x], 0, tail);
    for (ulong e = 0; j + e < n; e++)
        ACC(C, c, j + e, beta, tail[e]);
}
