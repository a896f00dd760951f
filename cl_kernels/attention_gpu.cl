/* SPDX-License-Identifier: MIT
 *
 * Attention for GPUs, with the same two products as attention_cpu.cl. A work-group of WIDE x TALL
 * work-items takes BLOCK tokens and goes through the tokens of the other side, ROWS at a time.
 * Work-item (x, y) computes DEEP x EACH scores, those of rows y * DEEP .. and tokens x * EACH ..;
 * and, in registers, EACH elements at a time, quads y, y + TALL, ... of the sums over rows of the
 * same tokens. Tokens past the last one are zeros in tiles and repeat that token in panels; they
 * are never stored.
 *
 * Local memory has elements of the block's tokens side by side (a panel: rows of BLOCK) and of the
 * ROWS others (a tile). If WHOLE, both have all elements: panels stay, and the next tile comes to
 * registers while one is multiplied. Else local memory does not grow with HEAD: for scores panels
 * and tiles have PIECE elements; for sums tiles have whole tokens, PART at a time.
 *
 * Options beside those of lib/attention.clh: WIDE, 8 or 16; TALL; DEEP, 4, 2 or 1; PIECE, HEAD or
 * at least a quarter of it.
 */
#define QN_V 4
#include "lib/attention.clh"

#define EACH QN_V
#define BLOCK (WIDE * EACH)
#define ROWS (TALL * DEEP)
#define ITEMS (WIDE * TALL)
#define WHOLE (PIECE == HEAD)
#define PART (HEAD <= 2 * PIECE ? ROWS / 2 : ROWS / 4)
/* Vectors that neighbours store to all banks of local memory at once. */
#define NEAR 8
/* EACH neighbouring elements of a token; how many of them a token has, and a work-item's share. */
#define QUADS (HEAD / EACH)
#define SHARE ((QUADS + TALL - 1) / TALL)
/* How many quads of a tile of whole tokens a work-item loads. */
#define HELD ((ROWS * QUADS + ITEMS - 1) / ITEMS)
/* The work-item's quad number i; those past the last one are it once more, and are not stored. */
#define QUAD(i) ((i)*TALL + (int)get_local_id(1))
#define QUAD_READ(i) (QUADS % TALL ? min(QUAD(i), QUADS - 1) : QUAD(i))
#define GPU_KERNEL __kernel __attribute__((reqd_work_group_size(WIDE, TALL, 1))) void

/* Where the vector of EACH tokens of a panel's row d lies. Rows are an odd number of vectors apart,
 * so that a column of the panel is spread over the banks of local memory. */
#define PITCH (WIDE + 1)
#define PANEL_AT(d, vector) ((d)*PITCH + (vector))

/* `count` tokens of one head, `pitch` elements apart, and what they are multiplied by. */
typedef struct {
    __global const TYPE(X) * x;
    ulong pitch;
    int count;
    float factor;
} tokens;

/* The tokens `first`, ... of `of`. */
typedef struct {
    tokens of;
    int first;
} strip;

/* A block's panel, and its tokens. */
typedef struct {
    __local floatv *to;
    strip block;
} panel;

/* A tile, and what this work-item has loaded of the next one if WHOLE. */
typedef struct {
    __local floatv *tile;
    floatv next[HELD];
} stage;

/* A panel (PIECE, BLOCK) = the transpose of elements from .. of its tokens; those past the last
 * repeat that one. Neighbours take two quads of EACH tokens of four vectors. */
static inline void pack_panel(panel p, int from)
{
    const tokens t = p.block.of;
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
    for (int w = id; w < BLOCK * PIECE / EACH; w += ITEMS) {
        const int part = w / (NEAR * EACH), pairs = PIECE / EACH / 2;
        const int d = (part % pairs * 2 + w % 2) * EACH, token = w / 2 % EACH;
        const int vector = part / pairs * (NEAR / 2) + w / NEAR % (NEAR / 2);
        const int row = min(p.block.first + vector * EACH + token, t.count - 1);
        if (HEAD % PIECE && from + d >= HEAD)
            continue;
        const floatv v = t.factor * LDV(X, t.x, row * t.pitch + from + d);
        __local float *at = (__local float *)p.to + token;
        at[PANEL_AT(d, vector) * EACH] = v.s0;
        at[PANEL_AT(d + 1, vector) * EACH] = v.s1;
        at[PANEL_AT(d + 2, vector) * EACH] = v.s2;
        at[PANEL_AT(d + 3, vector) * EACH] = v.s3;
    }
}

/* Elements d .. of token `row` of a strip, not multiplied yet; zeros past the last token or
 * element. */
static inline floatv load_quad(strip s, int row, int d)
{
    row += s.first;
    return row < s.of.count && d < HEAD ? LDV(X, s.of.x, row * s.of.pitch + d) : (floatv)(0.0f);
}

/* to (rows, width) = elements from .. of a strip's tokens `first`, ...; `rows` and `width` are
 * constants. */
static inline void load_tile(__local floatv *to, int rows, int width, strip s, int first, int from)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0)), quads = width / EACH;
    for (int w = id; w < rows * quads; w += ITEMS) {
        const int row = w / quads, d = from + (w - row * quads) * EACH;
        to[w] = s.of.factor * load_quad(s, first + row, d);
    }
}

/* Loads the tile of whole tokens that `turn` takes next. Where a work-item has the same elements of
 * all its tokens it steps from one to the next, since as many places would take many registers. */
static inline void fetch(stage *at, strip s)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
    const int step = ITEMS / QUADS, row = s.first + id / QUADS;
    __global const TYPE(X) *x = s.of.x + row * s.of.pitch + id % QUADS * EACH;
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        const int w = id + i * ITEMS;
        if (ITEMS % QUADS != 0)
            at->next[i] = load_quad(s, w / QUADS, w % QUADS * EACH);
        else
            at->next[i] = row + i * step < s.of.count ? LDV(X, x, 0) : (floatv)(0.0f);
        x += step * s.of.pitch;
    }
}

/* Puts it in the place of the tile that nobody reads any more; it may be read after a barrier. It
 * is multiplied only here, since that waits for what `fetch` loads. */
static inline void turn(stage *at, strip s)
{
    const int id = (int)(get_local_id(1) * WIDE + get_local_id(0));
#pragma unroll
    for (int i = 0; i < HELD; i++)
        if (ROWS * QUADS % ITEMS == 0 || id + i * ITEMS < ROWS * QUADS)
            at->tile[id + i * ITEMS] = s.of.factor * at->next[i];
}

/* A work-item's share of a sum over tiles: of each of its quads EACH vectors of tokens. */
typedef struct {
    floatv s0, s1, s2, s3;
} quad_sum;

static inline void clear(quad_sum *sum)
{
#pragma unroll
    for (int i = 0; i < SHARE; i++)
        sum[i].s0 = sum[i].s1 = sum[i].s2 = sum[i].s3 = (floatv)(0.0f);
}

/* sum *= factor, which is that of its tokens. */
static inline void weaken(quad_sum *sum, floatv factor)
{
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        sum[i].s0 *= factor;
        sum[i].s1 *= factor;
        sum[i].s2 *= factor;
        sum[i].s3 *= factor;
    }
}

/* score += DEEP x EACH elements of tile * panel, elements from .. of the head: rows y * DEEP .. of
 * the tile, tokens x * EACH .. of the panel, with (x, y) the work-item. */
static inline void multiply(floatv *score, __local const floatv *tile, __local const floatv *panel,
                            int from)
{
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
    const int end = HEAD % PIECE ? min(PIECE, HEAD - from) : PIECE;
#pragma unroll 1
    for (int d = 0; d < end; d += EACH) {
        const floatv tokens0 = panel[PANEL_AT(d, x)], tokens1 = panel[PANEL_AT(d + 1, x)];
        const floatv tokens2 = panel[PANEL_AT(d + 2, x)], tokens3 = panel[PANEL_AT(d + 3, x)];
#pragma unroll
        for (int r = 0; r < DEEP; r++) {
            const floatv quad = tile[((y * DEEP + r) * PIECE + d) / EACH];
            score[r] = FMA((floatv)(quad.s0), tokens0, score[r]);
            score[r] = FMA((floatv)(quad.s1), tokens1, score[r]);
            score[r] = FMA((floatv)(quad.s2), tokens2, score[r]);
            score[r] = FMA((floatv)(quad.s3), tokens3, score[r]);
        }
    }
}

/* Writes this work-item's scores to local memory, for `fold`. */
static inline void share_scores(__local floatv *to, const floatv *score)
{
    const int x = (int)get_local_id(0), y = (int)get_local_id(1);
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        to[(y * DEEP + r) * WIDE + x] = score[r];
}

/* sum += this work-item's elements of the product transpose(tile) * scores, of `rows` rows. */
static inline void accumulate(quad_sum *sum, __local const floatv *scores,
                              __local const floatv *tile, int rows)
{
    const int x = (int)get_local_id(0);
#pragma unroll 4
    for (int row = 0; row < rows; row++) {
        const floatv weights = scores[row * WIDE + x];
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const floatv quad = tile[row * QUADS + QUAD_READ(i)];
            sum[i].s0 = FMA((floatv)(quad.s0), weights, sum[i].s0);
            sum[i].s1 = FMA((floatv)(quad.s1), weights, sum[i].s1);
            sum[i].s2 = FMA((floatv)(quad.s2), weights, sum[i].s2);
            sum[i].s3 = FMA((floatv)(quad.s3), weights, sum[i].s3);
        }
    }
}

/* A step is made of the functions that follow. If WHOLE, keep_panel and fetch_ahead begin it all;
 * then `take` and its like make a strip that has been fetched the tile of the next dots and fold.
 * Else these do nothing, and dots and fold load what they multiply. */
static inline void keep_panel(panel p)
{
    if (WHOLE)
        pack_panel(p, 0);
}

static inline void fetch_ahead(stage *at, strip s)
{
    if (WHOLE)
        fetch(at, s);
}

static inline void take(stage *at, strip s)
{
    if (!WHOLE)
        return;
    barrier(CLK_LOCAL_MEM_FENCE);
    turn(at, s);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The same, and scores are shared. */
static inline void take_and_share(stage *at, strip s, __local floatv *scores, const floatv *score)
{
    if (!WHOLE)
        return;
    barrier(CLK_LOCAL_MEM_FENCE);
    turn(at, s);
    share_scores(scores, score);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Shares scores where the tile stays, and nobody has read `scores` since the last barrier. */
static inline void share(__local floatv *scores, const floatv *score)
{
    if (!WHOLE)
        return;
    share_scores(scores, score);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* score = those of the panel's tokens and a strip. */
static inline void dots(floatv *score, panel p, stage *at, strip others)
{
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        score[r] = (floatv)(0.0f);
    if (WHOLE) {
        multiply(score, at->tile, p.to, 0);
        return;
    }
#pragma unroll 1
    for (int from = 0; from < HEAD; from += PIECE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        pack_panel(p, from);
        load_tile(at->tile, ROWS, PIECE, others, 0, from);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(score, at->tile, p.to, from);
    }
}

/* sum += this work-item's elements of the product transpose(others) * score. */
static inline void fold(quad_sum *sum, __local floatv *scores, const floatv *score, stage *at,
                        strip others)
{
    if (WHOLE) {
        accumulate(sum, scores, at->tile, ROWS);
        return;
    }
#pragma unroll 1
    for (int part = 0; part < ROWS; part += PART) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part == 0)
            share_scores(scores, score);
        load_tile(at->tile, PART, HEAD, others, part, 0);
        barrier(CLK_LOCAL_MEM_FENCE);
        accumulate(sum, scores + part * WIDE, at->tile, PART);
    }
}

/* Writes this work-item's `value` where `largest` and `total_of` read those of its tokens. */
static inline void exchange(__local floatv *to, floatv value)
{
    to[get_local_id(1) * WIDE + get_local_id(0)] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
}

static inline floatv largest(__local const floatv *value, floatv most)
{
#pragma unroll 4
    for (int y = 0; y < TALL; y++)
        most = fmax(most, value[y * WIDE + get_local_id(0)]);
    return most;
}

static inline floatv total_of(__local const floatv *value)
{
    floatv total = (floatv)(0.0f);
#pragma unroll 4
    for (int y = 0; y < TALL; y++)
        total += value[y * WIDE + get_local_id(0)];
    return total;
}

/* x = beta * x + factor * sum, for this work-item's elements of `sum`. */
#define UNPACK_TOKEN(e)                                                                            \
    if (token + e < count)                                                                         \
        ACCV(X, x, (token + e) * pitch + d, beta,                                                  \
             (floatv)(factor.s##e) *                                                               \
                 (floatv)(sum[i].s0.s##e, sum[i].s1.s##e, sum[i].s2.s##e, sum[i].s3.s##e));
static inline void unpack(__global TYPE(X) * x, const quad_sum *sum, ulong pitch, int first,
                          int count, floatv factor, float beta)
{
    const int token = first + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const int d = QUAD(i) * EACH;
        if (d >= HEAD)
            break;
        UNPACK_TOKEN(0)
        UNPACK_TOKEN(1)
        UNPACK_TOKEN(2)
        UNPACK_TOKEN(3)
    }
}

/* x[token] for each of this work-item's EACH tokens; x[count - 1] past the end. */
static inline floatv load_lanes(__global const float *x, int first, int count)
{
    const int token = first + (int)get_local_id(0) * EACH, last = count - 1;
    return (floatv)(LD(STATISTIC, x, min(token, last)), LD(STATISTIC, x, min(token + 1, last)),
                    LD(STATISTIC, x, min(token + 2, last)), LD(STATISTIC, x, min(token + 3, last)));
}

/* to = x[row] for each of this work-item's DEEP rows from `first` on; x[count - 1] past the end. */
static inline void load_rows(float *to, __global const float *x, int first, int count)
{
    const int row = first + (int)get_local_id(1) * DEEP;
#pragma unroll
    for (int r = 0; r < DEEP; r++)
        to[r] = LD(STATISTIC, x, min(row + r, count - 1));
}

/* Hides the scores of keys (rows) from `end` on, or behind their query (lanes). */
static inline void hide_rows(floatv *score, int key, int end, int query, bool causal)
{
    const int row = key + (int)get_local_id(1) * DEEP, lane = query + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int r = 0; r < DEEP; r++) {
        const uintv from = (uint)lane + QN_LANES;
        const intv hidden = row + r >= end ? (intv)(-1) : from < (uintv)((uint)(row + r));
        score[r] =
            select(score[r], (floatv)(HIDDEN), causal || row + r >= end ? hidden : (intv)(0));
    }
}

/* Hides the scores of keys (lanes) from `end` on, or behind their query (rows), and of queries from
 * `queries` on. */
static inline void hide_lanes(floatv *score, int query, int queries, int key, int end, bool causal)
{
    const int row = query + (int)get_local_id(1) * DEEP, lane = key + (int)get_local_id(0) * EACH;
#pragma unroll
    for (int r = 0; r < DEEP; r++) {
        const uint seen = row + r >= queries ? 0 : causal ? min(end, row + r + 1) : end;
        score[r] = select(score[r], (floatv)(HIDDEN), (uint)lane + QN_LANES >= (uintv)(seen));
    }
}

#if DROPOUT
/* keep = the dropout factors (attention_draw) of this work-item's scores, where rows are keys and
 * lanes are queries: DEEP of the four keys of a draw. */
static inline void keep_rows(floatv *keep, attention_draws draws, int key, int query)
{
    const int row = (int)get_local_id(1) * DEEP;
    floatv all[EACH];
    attention_draw(all, draws, query + (int)get_local_id(0) * EACH, key + row / EACH * EACH);
#if DEEP == 4
    keep[0] = all[0];
    keep[1] = all[1];
    keep[2] = all[2];
    keep[3] = all[3];
#elif DEEP == 2
    keep[0] = row & 2 ? all[2] : all[0];
    keep[1] = row & 2 ? all[3] : all[1];
#else
    const floatv even = row & 2 ? all[2] : all[0], odd = row & 2 ? all[3] : all[1];
    keep[0] = row & 1 ? odd : even;
#endif
}

/* The same where rows are queries and lanes are keys. */
static inline void keep_lanes(floatv *keep, attention_draws draws, int query, int key)
{
    floatv row[EACH];
    attention_draw(row, draws, query + (int)get_local_id(1) * DEEP,
                   key + (int)get_local_id(0) * EACH);
    keep[0] = (floatv)(row[0].s0, row[1].s0, row[2].s0, row[3].s0);
#if DEEP > 1
    keep[1] = (floatv)(row[0].s1, row[1].s1, row[2].s1, row[3].s1);
#endif
#if DEEP > 2
    keep[2] = (floatv)(row[0].s2, row[1].s2, row[2].s2, row[3].s2);
    keep[3] = (floatv)(row[0].s3, row[1].s3, row[2].s3, row[3].s3);
#endif
}
#endif

/* As attention_at, but where blocks differ in work the longest of all heads of a row come first,
 * so that no head's long blocks begin last. */
static inline attention_place place_of(uint blocks, uint heads, bool causal, bool reverse)
{
    const ulong id = get_group_id(0), row = id / ((ulong)blocks * heads);
    const uint rest = (uint)(id - row * blocks * heads);
    const int block = (int)(rest / heads);
    const attention_place place = {reverse ? (int)blocks - 1 - block : block, (int)(rest % heads),
                                   row};
    return causal ? place : attention_at(id, blocks, heads, false);
}

/* Panels of both operands share one place unless they stay. */
#define LOCAL_ARRAYS(panels)                                                                       \
    __local floatv panel_first[(WHOLE ? (panels) : 1) * PIECE * PITCH];                            \
    __local floatv tile[WHOLE ? ROWS * QUADS : ROWS * PIECE / EACH], scores[ROWS * WIDE];          \
    stage tiles;                                                                                   \
    tiles.tile = tile
#define PANEL_SECOND (panel_first + (WHOLE ? PIECE * PITCH : 0))

GPU_KERNEL forward(ATTENTION_OPERANDS, __global TYPE(X) * o, ulong o_at, __global float *saved,
                   ulong saved_at, uint saves)
{
    LOCAL_ARRAYS(1);
    quad_sum sum[SHARE];
    floatv score[DEEP], top = (floatv)(LOWEST), total = (floatv)(0.0f);
    const attention_place at = place_of((queries + BLOCK - 1) / BLOCK, heads, causal, true);
    const int x = (int)get_local_id(0), first = at.block * BLOCK;
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);

    const tokens all_q = {q, q_row, queries, scale}, all_k = {k, k_row, end, 1.0f};
    const tokens all_v = {v, k_row, end, 1.0f};
    const panel queries_here = {panel_first, {all_q, first}};
    clear(sum);
    keep_panel(queries_here);
    fetch_ahead(&tiles, (strip){all_k, 0});
    for (int key = 0; key < end; key += ROWS) {
        const strip some_k = {all_k, key}, some_v = {all_v, key}, next_k = {all_k, key + ROWS};
        take(&tiles, some_k);
        fetch_ahead(&tiles, some_v);
        dots(score, queries_here, &tiles, some_k);
        hide_rows(score, key, end, first, causal);
        floatv most = score[0];
#pragma unroll
        for (int r = 1; r < DEEP; r++)
            most = fmax(most, score[r]);
        exchange(scores, most);
        most = largest(scores, top);
        const floatv shrink = exp2(top - most);
        top = most;
        total *= shrink;
#pragma unroll
        for (int r = 0; r < DEEP; r++) {
            score[r] = exp2(score[r] - most);
            total += score[r];
        }
#if DROPOUT
        floatv keep[DEEP];
        keep_rows(keep, draws, key, first);
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            score[r] *= keep[r];
#endif
        weaken(sum, shrink);
        take_and_share(&tiles, some_v, scores, score);
        fetch_ahead(&tiles, next_k);
        fold(sum, scores, score, &tiles, some_v);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    exchange(scores, total);
    total = total_of(scores);
    const floatv factor = select(1.0f / total, (floatv)(0.0f), total == (floatv)(0.0f));
    unpack(o + o_at + O_AT(at.row, at.head), sum, heads * HEAD, first, queries, factor, 0.0f);
    if (saves && get_local_id(1) == 0) {
        const floatv all = select(top + log2(total), (floatv)(0.0f), total == (floatv)(0.0f));
        const float lane[EACH] = {all.s0, all.s1, all.s2, all.s3};
        saved += saved_at + STATISTIC_AT(at.row, at.head);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (first + x * EACH + e < (int)queries)
                ST(STATISTIC, saved, first + x * EACH + e, lane[e]);
    }
}

GPU_KERNEL query_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                          __global const float *saved, ulong saved_at, __global const float *level,
                          ulong level_at, __global TYPE(X) * dq, ulong dq_at, float beta)
{
    LOCAL_ARRAYS(2);
    quad_sum sum[SHARE];
    floatv score[DEEP], product[DEEP];
    const attention_place at = place_of((queries + BLOCK - 1) / BLOCK, heads, causal, true);
    const int first = at.block * BLOCK;
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    const int end = causal ? min(here, first + BLOCK) : here;
    ATTENTION_DRAWS(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head);
    k += k_at + K_AT(at.row, at.head / group);
    v += v_at + K_AT(at.row, at.head / group);
    d_o += d_o_at + O_AT(at.row, at.head);
    const floatv top = load_lanes(saved + saved_at + STATISTIC_AT(at.row, at.head), first, queries);
    const floatv mean =
        load_lanes(level + level_at + STATISTIC_AT(at.row, at.head), first, queries);

    const tokens all_q = {q, q_row, queries, scale}, all_d_o = {d_o, heads * HEAD, queries, 1.0f};
    const tokens all_k = {k, k_row, end, 1.0f}, all_v = {v, k_row, end, 1.0f};
    const panel queries_here = {panel_first, {all_q, first}};
    const panel d_o_here = {PANEL_SECOND, {all_d_o, first}};
    clear(sum);
    keep_panel(queries_here);
    keep_panel(d_o_here);
    fetch_ahead(&tiles, (strip){all_v, 0});
    for (int key = 0; key < end; key += ROWS) {
        const strip some_v = {all_v, key}, some_k = {all_k, key}, next_v = {all_v, key + ROWS};
        take(&tiles, some_v);
        fetch_ahead(&tiles, some_k);
        dots(product, d_o_here, &tiles, some_v);
        take(&tiles, some_k);
        dots(score, queries_here, &tiles, some_k);
        hide_rows(score, key, end, first, causal);
#if DROPOUT
        floatv keep[DEEP];
        keep_rows(keep, draws, key, first);
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            product[r] *= keep[r];
#endif
#pragma unroll
        for (int r = 0; r < DEEP; r++)
            score[r] = POWERS_BELOW(score[r], top) * (product[r] - mean);
        share(scores, score);
        fetch_ahead(&tiles, next_v);
        fold(sum, scores, score, &tiles, some_k);
    }
    unpack(dq + dq_at + Q_AT(at.row, at.head), sum, q_row, first, queries, (floatv)(scale * LN2),
           beta);
}

GPU_KERNEL key_value_gradient(ATTENTION_OPERANDS, __global const TYPE(X) * d_o, ulong d_o_at,
                              __global const float *saved, ulong saved_at,
                              __global const float *level, ulong level_at, __global TYPE(X) * dk,
                              ulong dk_at, __global TYPE(X) * dv, ulong dv_at, uint has_dk,
                              uint has_dv, float beta_k, float beta_v)
{
    LOCAL_ARRAYS(2);
    quad_sum sum_k[SHARE], sum_v[SHARE];
    floatv score[DEEP], product[DEEP], part[DEEP];
    const attention_place at = place_of((keys + BLOCK - 1) / BLOCK, heads / group, causal, false);
    const int first = at.block * BLOCK;
    const int here = has_lengths ? attention_keys(lengths + lengths_at, at.row, keys) : (int)keys;
    k += k_at + K_AT(at.row, at.head);
    v += v_at + K_AT(at.row, at.head);
    q += q_at + Q_AT(at.row, at.head * group);
    d_o += d_o_at + O_AT(at.row, at.head * group);
    saved += saved_at + STATISTIC_AT(at.row, at.head * group);
    level += level_at + STATISTIC_AT(at.row, at.head * group);

    const tokens all_k = {k, k_row, keys, 1.0f}, all_v = {v, k_row, keys, 1.0f};
    const panel keys_here = {panel_first, {all_k, first}}, v_here = {PANEL_SECOND, {all_v, first}};
    keep_panel(keys_here);
    keep_panel(v_here);
    clear(sum_k);
    clear(sum_v);
    for (uint g = 0; g < group && first < here; g++) {
        ATTENTION_DRAWS(at.row, at.head * group + g);
        const tokens all_q = {q + g * HEAD, q_row, queries, scale};
        const tokens all_d_o = {d_o + g * HEAD, heads * HEAD, queries, 1.0f};
        const int begin = causal ? first : 0;
        fetch_ahead(&tiles, (strip){all_q, begin});
        for (int query = begin; query < (int)queries; query += ROWS) {
            const strip some_q = {all_q, query}, some_d_o = {all_d_o, query};
            const strip next_q = {all_q, query + ROWS};
            float top[DEEP], mean[DEEP];
            load_rows(top, saved + g * queries, query, queries);
            take(&tiles, some_q);
            fetch_ahead(&tiles, some_d_o);
            dots(score, keys_here, &tiles, some_q);
            hide_lanes(score, query, queries, first, here, causal);
            load_rows(mean, level + g * queries, query, queries);
#if DROPOUT
            floatv keep[DEEP];
            keep_lanes(keep, draws, query, first);
#endif
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
                score[r] = part[r] = POWERS_BELOW(score[r], top[r]);
#if DROPOUT
                part[r] *= keep[r];
#endif
            }
            take_and_share(&tiles, some_d_o, scores, part);
            fold(sum_v, scores, part, &tiles, some_d_o);
            fetch_ahead(&tiles, some_q);
            dots(product, v_here, &tiles, some_d_o);
#pragma unroll
            for (int r = 0; r < DEEP; r++) {
#if DROPOUT
                product[r] *= keep[r];
#endif
                score[r] *= product[r] - mean[r];
            }
            take_and_share(&tiles, some_q, scores, score);
            fetch_ahead(&tiles, next_q);
            fold(sum_k, scores, score, &tiles, some_q);
        }
    }
    if (has_dv)
        unpack(dv + dv_at + K_AT(at.row, at.head), sum_v, k_row, first, keys, (floatv)(1.0f),
               beta_v);
    if (has_dk)
        unpack(dk + dk_at + K_AT(at.row, at.head), sum_k, k_row, first, keys, (floatv)(LN2),
               beta_k);
}
