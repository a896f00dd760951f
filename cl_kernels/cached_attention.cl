/* SPDX-License-Identifier: MIT
 *
 * Attention of tokens to a cache that all of them share. q and y are (tokens, kv_heads * group,
 * HEAD), a row of the cache holds its keys (kv_heads, HEAD) and then its values. The token at
 * position p sees the rows 0 .. p. A score is scale * (q . k), where `scale` includes log2(e), so
 * that softmax takes powers of 2.
 *
 * Query i of a head of keys is that of token i / group and head i % group of those that share it.
 *
 * Options: X_TYPE, of q, cache and y; HEAD, a multiple of QN_V; QN_WG; and of the shape for CPUs
 * (QN_WG 1) ROWS, queries of a work-group, and TILE, keys of a tile, a multiple of QN_V.
 */
#include "lib/exp2.clh"
#include "lib/reduce.clh"

/* The score of a key that a query does not see, and where the search for the largest begins;
 * 2^(HIDDEN - LOWEST) is 0. */
#define HIDDEN (-3e38f)
#define LOWEST (-1e38f)

/* How many rows of the cache the token sees. */
static inline int seen_of(__global const int *positions, uint token, uint keys)
{
    return clamp(positions[token], -1, (int)keys - 1) + 1;
}

/* query (HEAD) . key (HEAD) */
static inline float score_of(__local const float *query, __global const TYPE(X) *key)
{
    floatv sum = (floatv)(0.0f);
    for (int d = 0; d < HEAD; d += QN_V)
        sum = FMA(QN_PASTE(vload, QN_V)(0, query + d), LDV(X, key, d), sum);
    return qn_hadd(sum);
}

#if QN_WG == 1
/* What is known of a query after some tiles: the largest score, the sum of 2^(score - top). */
typedef struct {
    float top, total;
} softmax;

/* Turns the scores of a tile into 2^(score - top), and gives what the sums so far shrink by. */
static inline float weigh(softmax *s, __local float *score)
{
    floatv most = (floatv)(s->top), sum = (floatv)(0.0f);
    for (int j = 0; j < TILE; j += QN_V)
        most = QN_LARGER(QN_PASTE(vload, QN_V)(0, score + j), most);
    const float top = qn_hmax(most);
    for (int j = 0; j < TILE; j += QN_V) {
        const floatv weight = qn_exp2(QN_PASTE(vload, QN_V)(0, score + j) - top);
        QN_PASTE(vstore, QN_V)(weight, 0, score + j);
        sum += weight;
    }
    const float shrink = exp2(s->top - top);
    s->total = FMA(s->total, shrink, qn_hadd(sum));
    s->top = top;
    return shrink;
}

/* sum (HEAD) = shrink * sum + weight (count) * values (count, HEAD), `pitch` elements apart */
static inline void fold(__local float *sum, float shrink, __local const float *weight,
                        __global const TYPE(X) *values, ulong pitch, int count)
{
    floatv acc[HEAD / QN_V];
#pragma unroll
    for (int d = 0; d < HEAD / QN_V; d++)
        acc[d] = shrink * QN_PASTE(vload, QN_V)(d, sum);
    for (int j = 0; j < count; j++)
#pragma unroll
        for (int d = 0; d < HEAD / QN_V; d++)
            acc[d] = FMA((floatv)(weight[j]), LDV(X, values, j * pitch + d * QN_V), acc[d]);
#pragma unroll
    for (int d = 0; d < HEAD / QN_V; d++)
        QN_PASTE(vstore, QN_V)(acc[d], d, sum);
}
#endif

__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
cached_attention(__global const TYPE(X) *q, ulong q_at, __global const TYPE(X) *cache,
                 ulong cache_at, __global const int *positions, ulong positions_at,
                 __global TYPE(X) *y, ulong y_at, uint queries, uint keys, uint kv_heads,
                 uint group, float scale)
{
    const ulong pitch = 2ul * kv_heads * HEAD;
    const uint blocks = (queries + ROWS - 1) / ROWS;
    const uint kv_head = get_group_id(0) / blocks, first = get_group_id(0) % blocks * ROWS;
    __global const TYPE(X) *k = cache + cache_at + kv_head * HEAD, *v = k + kv_heads * HEAD;
    positions += positions_at;
    q += q_at;
    y += y_at;
#define AT(i) (((ulong)((i) / group) * kv_heads * group + kv_head * group + (i) % group) * HEAD)
#if QN_WG == 1
    __local float query[ROWS * HEAD], sum[ROWS * HEAD], score[TILE];
    softmax state[ROWS];
    int seen[ROWS], most = 0;
    const int count = min((uint)ROWS, queries - first);
    for (int r = 0; r < count; r++) {
        seen[r] = seen_of(positions, (first + r) / group, keys);
        most = max(most, seen[r]);
        state[r].top = LOWEST;
        state[r].total = 0.0f;
        for (int d = 0; d < HEAD; d += QN_V) {
            QN_PASTE(vstore, QN_V)(scale * LDV(X, q, AT(first + r) + d), 0, query + r * HEAD + d);
            QN_PASTE(vstore, QN_V)((floatv)(0.0f), 0, sum + r * HEAD + d);
        }
    }
    for (int tile = 0; tile < most; tile += TILE)
        for (int r = 0; r < count; r++) {
            const int here = min(TILE, seen[r] - tile);
            if (here <= 0)
                continue;
            for (int j = 0; j < here; j++)
                score[j] = score_of(query + r * HEAD, k + (tile + j) * pitch);
            for (int j = here; j < TILE; j++)
                score[j] = HIDDEN;
            const float shrink = weigh(&state[r], score);
            fold(sum + r * HEAD, shrink, score, v + tile * pitch, pitch, here);
        }
    for (int r = 0; r < count; r++) {
        const float share = seen[r] ? 1.0f / state[r].total : 0.0f;
        for (int d = 0; d < HEAD; d += QN_V)
            STV(X, y, AT(first + r) + d, share * QN_PASTE(vload, QN_V)(0, sum + r * HEAD + d));
    }
#else
    /* A work-item takes one key of a tile of QN_WG, and then one element of the values, of every
     * `teams`-th key. */
    __local float query[HEAD], part[QN_WG], weight[QN_WG];
    const int lane = get_local_id(0), teams = QN_WG / HEAD, team = lane / HEAD;
    const int seen = seen_of(positions, first / group, keys);
    float top = LOWEST, total = 0.0f, sum = 0.0f;
    if (lane < HEAD)
        query[lane] = scale * LD(X, q, AT(first) + lane);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int tile = 0; tile < seen; tile += QN_WG) {
        const int here = min(QN_WG, seen - tile);
        const float score = lane < here ? score_of(query, k + (tile + lane) * pitch) : HIDDEN;
        const float most = fmax(top, qn_group_max(score, part));
        const float own = exp2(score - most), shrink = exp2(top - most);
        weight[lane] = own;
        total = FMA(total, shrink, qn_group_sum(own, part));
        sum *= shrink;
        for (int j = team; j < here && team < teams; j += teams)
            sum = FMA(weight[j], LD(X, v, (tile + j) * pitch + lane % HEAD), sum);
        top = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    part[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < HEAD) {
        for (int other = 1; other < teams; other++)
            sum += part[other * HEAD + lane];
        ST(X, y, AT(first) + lane, seen ? sum / total : 0.0f);
    }
#endif
}
