/* SPDX-License-Identifier: MIT
 *
 * Samples as banks take them: as they are, or zeros with the id -1 where a number of them is not
 * finite.
 */
#include "lib/reduce.clh"

#ifndef Q_TYPE
#define Q_TYPE f32
#endif
#ifndef P_TYPE
#define P_TYPE f32
#endif

static inline float strange(float v)
{
    return (as_uint(v) & 0x7f800000u) == 0x7f800000u ? 1.0f : 0.0f;
}

/* A work-group per sample: d numbers of its query, p of its passages. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
enter(__global const TYPE(Q) *query, ulong query_at, __global const TYPE(P) *passage,
      ulong passage_at, __global const int *id, ulong id_at, __global TYPE(Q) *to_query,
      ulong to_query_at, __global TYPE(P) *to_passage, ulong to_passage_at, __global int *to_id,
      ulong to_id_at, ulong d, ulong p)
{
    __local float part[QN_WG];
    const ulong sample = get_group_id(0), lane = get_local_id(0);
    query += query_at + sample * d;
    passage += passage_at + sample * p;
    to_query += to_query_at + sample * d;
    to_passage += to_passage_at + sample * p;
    float count = 0.0f;
    for (ulong i = lane; i < d; i += QN_WG)
        count += strange(LD(Q, query, i));
    for (ulong i = lane; i < p; i += QN_WG)
        count += strange(LD(P, passage, i));
    const bool whole = qn_group_sum(count, part) == 0.0f;
    for (ulong i = lane; i < d; i += QN_WG)
        ST(Q, to_query, i, whole ? LD(Q, query, i) : 0.0f);
    for (ulong i = lane; i < p; i += QN_WG)
        ST(P, to_passage, i, whole ? LD(P, passage, i) : 0.0f);
    if (lane == 0)
        to_id[to_id_at + sample] = whole ? id[id_at + sample] : -1;
}
