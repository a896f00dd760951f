/* SPDX-License-Identifier: MIT
 *
 * `level`, the sums of o * do over each head, for the gradients of attention. A work-item takes one
 * head of one query. QN_V is 8, of which HEAD is a multiple.
 */
#define QN_V 8
#include "lib/reduce.clh"

#define LEVEL_TYPE f32

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
row_sums(__global const TYPE(X) * o, ulong o_at, __global const TYPE(X) * d_o, ulong d_o_at,
         __global float *level, ulong level_at, ulong rows, ulong queries, ulong heads)
{
    const ulong id = get_global_id(0), place = id / queries, row = place / heads;
    if (id >= rows * heads * queries)
        return;
    const ulong query = id - place * queries, head = place - row * heads;
    const ulong at = ((row * queries + query) * heads + head) * HEAD;
    floatv sum = (floatv)(0.0f);
    for (int d = 0; d < HEAD; d += QN_V)
        sum = FMA(LDV(X, o, o_at + at + d), LDV(X, d_o, d_o_at + at + d), sum);
    ST(LEVEL, level, level_at + id, qn_hadd(sum));
}
