/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/draw.h"
#include "op/attention.h"

#include <math.h>
#include <string.h>

extern const struct qn_op qn_op_attention;
extern const struct qn_check_op qn_check_attention;

enum { MOST_KEYS = 512 };

/* One head of one row: where its queries, keys and values begin, and elements from one token to the
 * next. */
struct head {
    const double *q, *k, *v;
    double *out;
    int64_t queries, keys, seen, size, q_row, k_row, o_row, number; /* of all heads of a sample */
    int64_t sample;
};

static struct head head_of(const struct qn_reference *r, int64_t row, int64_t h)
{
    const struct qn_attention_attr *attr = r->call->attr;
    const int64_t *q = r->call->in[0].shape.dim, each = q[0] / r->call->batch;
    const int64_t kv = h / (attr->heads / attr->kv_heads);
    struct head head = {.queries = q[1],
                        .o_row = r->call->out[0].shape.dim[2],
                        .q_row = q[2],
                        .number = row % each * attr->heads + h,
                        .sample = row / each};
    head.size = head.o_row / attr->heads;
    head.q = r->in[0] + row * head.queries * head.q_row + h * head.size;
    head.out = r->out[0] + row * head.queries * head.o_row + h * head.size;
    head.keys = r->in[1] ? r->call->in[1].shape.dim[1] : q[1];
    head.k_row = r->in[1] ? r->call->in[1].shape.dim[2] : q[2];
    const int64_t token = row * head.keys * head.k_row + kv * head.size;
    head.k = r->in[1] ? r->in[1] + token : r->in[0] + token + attr->heads * head.size;
    head.v = r->in[2] ? r->in[2] + token : head.k + attr->kv_heads * head.size;
    head.seen = head.keys;
    if (r->in[3])
        head.seen = (int64_t)fmin(fmax(r->in[3][row], 0), (double)head.keys);
    return head;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* What dropout makes of the probability of one key: the queries of the heads of a sample follow one
 * another, each padded to whole draws of four keys. */
static double keep(const struct qn_reference *r, const struct head *head, int64_t query,
                   int64_t key)
{
    const struct qn_attention_attr *attr = r->call->attr;
    const int64_t row = head->number * head->queries + query;
    const int64_t element = row * qn_round_up(head->keys, 4) + key;
    if (r->eval || attr->dropout == 0)
        return 1;
    return qn_check_keeps(r, head->sample, element, attr->dropout) ? 1 / (1 - (double)attr->dropout)
                                                                   : 0;
}

static void attend(const struct qn_reference *r, const struct head *head, int64_t query)
{
    const struct qn_attention_attr *attr = r->call->attr;
    const double scale = attr->scale > 0 ? (double)attr->scale : 1 / sqrt((double)head->size);
    const double *q = head->q + query * head->q_row;
    double *out = head->out + query * head->o_row, score[MOST_KEYS], top = -INFINITY, sum = 0;
    int64_t seen = attr->causal && query + 1 < head->seen ? query + 1 : head->seen;
    for (int64_t j = 0; j < seen; j++) {
        score[j] = scale * dot(q, head->k + j * head->k_row, head->size);
        top = fmax(top, score[j]);
    }
    for (int64_t j = 0; j < seen; j++)
        sum += exp(score[j] - top);
    for (int64_t d = 0; d < head->size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < seen; j++) {
        const double share = exp(score[j] - top) / sum * keep(r, head, query, j);
        for (int64_t d = 0; d < head->size; d++)
            out[d] += share * head->v[j * head->k_row + d];
    }
}

static void reference(const struct qn_reference *r)
{
    const struct qn_attention_attr *attr = r->call->attr;
    for (int64_t row = 0; row < r->call->in[0].shape.dim[0]; row++)
        for (int64_t h = 0; h < attr->heads; h++) {
            const struct head head = head_of(r, row, h);
            for (int64_t query = 0; query < head.queries; query++)
                attend(r, &head, query);
        }
}

static int64_t head_size(const struct qn_call *call)
{
    const struct qn_attention_attr *attr = call->attr;
    const int64_t heads = call->in[1].dtype ? attr->heads : attr->heads + 2 * attr->kv_heads;
    return call->in[0].shape.dim[2] / heads;
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    const struct qn_attention_attr *attr = call->attr;
    out[0].shape.dim[2] = attr->heads * head_size(call);
}

static double flops(const struct qn_call *call, const char *group)
{
    const struct qn_attention_attr *attr = call->attr;
    const int64_t queries = call->in[0].shape.dim[1];
    const int64_t keys = call->in[1].dtype ? call->in[1].shape.dim[1] : queries;
    double scores = 0, products = 2;
    for (int64_t i = 0; i < queries; i++)
        scores += (double)(attr->causal && i + 1 < keys ? i + 1 : keys);
    if (strcmp(group, "row sums") == 0)
        return 2 * (double)qn_operand_count(&call->out[0]);
    if (strcmp(group, "query gradient") == 0)
        products = call->in[1].dtype ? 3 : 7;
    if (strcmp(group, "key and value gradients") == 0)
        products = 4;
    return 2 * products * scores * (double)(call->in[0].shape.dim[0] * attr->heads) *
           (double)head_size(call);
}

#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define TOKENS(b, t, n)                                                                            \
    {                                                                                              \
        .rank = 3, .dim = { b, t, n }                                                              \
    }
#define LENGTHS(b, list)                                                                           \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {b}, .values = (list)            \
    }
/* Queries, keys and values of b rows; packed ones. */
#define SEPARATE(b, t, n, s, m)                                                                    \
    {                                                                                              \
        TOKENS(b, t, n), TOKENS(b, s, m), TOKENS(b, s, m), NONE                                    \
    }
#define PACKED(b, t, n)                                                                            \
    {                                                                                              \
        TOKENS(b, t, n), NONE, NONE, NONE                                                          \
    }

static const struct qn_attention_attr one = {1, 1, 0, 0, 0}, two = {2, 2, 0, 0, 0},
                                      three = {3, 3, 0, 0, 0}, causal = {1, 1, 1, 0, 0},
                                      causal2 = {2, 2, 1, 0, 0}, grouped = {4, 2, 0, 0, 0},
                                      grouped_causal = {6, 2, 1, 0, 0}, steep = {2, 2, 0, 0.75f, 0},
                                      gentle = {1, 1, 0, 0.1732868f, 0},
                                      dropped = {2, 2, 0, 0, 0.25f},
                                      dropped_causal = {4, 2, 1, 0, 0.5f},
                                      dropped_wide = {1, 1, 1, 0, 0.25f},
                                      all_dropped = {1, 1, 0, 0, 1}, no_heads = {0, 0, 0, 0, 0},
                                      odd_groups = {4, 3, 0, 0, 0}, negative = {1, 1, 0, -1, 0};

/* No key, one, some, all, and numbers that are no lengths. */
static const double some[] = {5, 0, 1, 11, -3, 400}, few[] = {3, 0}, cross[] = {37, 64, 65, 2};

/* Without the largest one in the exponent, these scores are too large. The scale is ln(2) / 4, with
 * which they are exact to base 2. */
static const double far_q[] = {400, 1, 0.5, -0.25, 2, 0,   -1, 0.75, /**/
                               416, 2, -1,  0.5,   0, 0.5, 1,  -0.5};
static const double far_k[] = {1, 0.5, 1,  -1, 0.25, 1,   -0.5, 0.5,  /**/
                               1, -1,  2,  1,  0.5,  -1,  0.75, 0.25, /**/
                               1, 0,   -1, 2,  -0.5, 0.5, 1,    -1};

/* Queries and keys of norm 4e4: of such scores f32 has the last digits wrong by more than an
 * exponential can take, so that forward and backward must have the same. One key of each query
 * counts; a value of one number makes its gradient 0 exactly. */
#define VAST(b, t)                                                                                 \
    {                                                                                              \
        .rank = 3, .dim = {b, t, 16}, .fill = QN_FILL_NORMAL, .a = 1e4                             \
    }
static const double single[2 * 9 * 16] = {
    [0] = 1,     [17] = -1,   [34] = 0.5, [51] = 2,  [68] = -1,  [85] = 1,
    [102] = 0.5, [119] = -2,  [136] = 1,  [153] = 1, [170] = -1, [187] = 2,
    [204] = 1,   [221] = 0.5, [238] = -1, [255] = 1, [256] = 1,  [273] = -2};
static const double most[] = {9, 6};

/* Panels are 8 to 64 lanes wide, and work-groups take up to 128; tiles have 16 to 64 rows. */
static const struct qn_check_case cases[] = {
    {"one token", PACKED(2, 1, 24), .attr = &one},
    {"few tokens", SEPARATE(2, 3, 16, 5, 16), .attr = &two, .small = true},
    {"causal and packed", PACKED(1, 5, 48), .attr = &causal2, .small = true, .f32_only = true},
    {"padding",
     {TOKENS(6, 7, 8), TOKENS(6, 11, 8), TOKENS(6, 11, 8), LENGTHS(6, some)},
     .attr = &one},
    {"padding and causal",
     {TOKENS(2, 4, 24), NONE, NONE, LENGTHS(2, few)},
     .attr = &causal,
     .small = true,
     .f32_only = true},
    {"padding of whole tiles",
     {TOKENS(4, 34, 16), TOKENS(4, 67, 16), TOKENS(4, 67, 16), LENGTHS(4, cross)},
     .attr = &two},
    {"grouped heads", SEPARATE(1, 9, 32, 13, 16), .attr = &grouped, .small = true,
     .f32_only = true},
    {"grouped heads packed and causal", PACKED(1, 37, 80), .attr = &grouped_causal},
    {"head size 32", PACKED(2, 17, 192), .attr = &two},
    {"head size 40", SEPARATE(1, 33, 80, 31, 80), .attr = &two},
    {"head size 64", PACKED(1, 29, 192), .attr = &causal},
    {"head size 96", SEPARATE(1, 18, 96, 23, 96), .attr = &causal},
    {"head size 128", SEPARATE(1, 19, 128, 35, 128), .attr = &one},
    {"causal with fewer keys", SEPARATE(1, 67, 16, 33, 16), .attr = &causal},
    {"causal with more keys", SEPARATE(1, 33, 16, 67, 16), .attr = &causal},
    {"one query", SEPARATE(3, 1, 48, 131, 48), .attr = &three},
    {"one over a tile", PACKED(1, 65, 48), .attr = &two},
    {"one over a tile of GPUs", SEPARATE(1, 33, 8, 33, 8), .attr = &one, .small = true,
     .f32_only = true, .only = "gpu"},
    {"long heads, one over a block of GPUs", SEPARATE(1, 65, 72, 67, 72), .attr = &causal,
     .only = "gpu"},
    {"causal and one over a block", PACKED(1, 129, 24), .attr = &causal},
    {"one over a block", SEPARATE(1, 129, 8, 257, 8), .attr = &one},
    {"a scale", SEPARATE(1, 21, 32, 22, 32), .attr = &steep},
    {"scores far from 0",
     {{.rank = 3, .dim = {1, 2, 8}, .values = far_q},
      {.rank = 3, .dim = {1, 3, 8}, .values = far_k},
      TOKENS(1, 3, 8),
      NONE},
     .attr = &gentle},
    {"vast scores and lengths",
     {VAST(2, 7), VAST(2, 9), {.rank = 3, .dim = {2, 9, 16}, .values = single}, LENGTHS(2, most)},
     .attr = &one,
     .small = true,
     .f32_only = true},
    {"dropout", SEPARATE(2, 6, 16, 7, 16), .attr = &dropped, .small = true, .f32_only = true},
    {"dropout of several tiles", SEPARATE(1, 33, 16, 65, 16), .attr = &dropped},
    {"dropout of grouped causal heads", PACKED(2, 65, 64), .attr = &dropped_causal},
    {"dropout of a sample's rows", PACKED(6, 5, 48), .attr = &dropped, .rows_per_sample = 3},
    {"padding of steps of matrix units",
     {TOKENS(4, 34, 64), TOKENS(4, 67, 64), TOKENS(4, 67, 64), LENGTHS(4, cross)},
     .attr = &two},
    {"one over a block and a step of matrix units", SEPARATE(1, 65, 64, 65, 64), .attr = &two},
    {"dropout in matrix units", PACKED(2, 67, 256), .attr = &dropped_causal},
    {"dropout of wide heads in matrix units", SEPARATE(2, 33, 128, 35, 128), .attr = &dropped_wide,
     .rows_per_sample = 2},
    {0},
};

#define INTEGERS(b, t, n)                                                                          \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 3, .dim = { b, t, n }                      \
    }
static const struct qn_check_case refused[] = {
    {"rank 2", {{.rank = 2, .dim = {4, 24}}, NONE, NONE, NONE}, .attr = &one},
    {"integers", {INTEGERS(1, 4, 24), NONE, NONE, NONE}, .attr = &one},
    {"k without v", {TOKENS(1, 4, 8), TOKENS(1, 4, 8), NONE, NONE}, .attr = &one},
    {"v without k", {TOKENS(1, 4, 8), NONE, TOKENS(1, 4, 8), NONE}, .attr = &one},
    {"k of other rows", {TOKENS(2, 4, 8), TOKENS(1, 4, 8), TOKENS(1, 4, 8), NONE}, .attr = &one},
    {"v of other tokens", {TOKENS(1, 4, 8), TOKENS(1, 4, 8), TOKENS(1, 5, 8), NONE}, .attr = &one},
    {"v of another size", {TOKENS(1, 4, 8), TOKENS(1, 4, 8), TOKENS(1, 4, 16), NONE}, .attr = &one},
    {"keys of another head size", SEPARATE(1, 4, 16, 4, 16), .attr = &grouped},
    {"a head size of 12", SEPARATE(1, 4, 12, 4, 12), .attr = &one},
    {"a head size of 136", SEPARATE(1, 4, 136, 4, 136), .attr = &one},
    {"elements that are no heads", PACKED(1, 4, 25), .attr = &one},
    {"no heads", PACKED(1, 4, 24), .attr = &no_heads},
    {"heads that share unevenly", PACKED(1, 4, 80), .attr = &odd_groups},
    {"all dropped", PACKED(1, 4, 24), .attr = &all_dropped},
    {"a negative scale", PACKED(1, 4, 24), .attr = &negative},
    {"lengths of other rows", {TOKENS(1, 4, 24), NONE, NONE, LENGTHS(2, few)}, .attr = &one},
    {"lengths of a float type",
     {TOKENS(1, 4, 24), NONE, NONE, {.rank = 1, .dim = {1}}},
     .attr = &one},
    {"more draws than there are", SEPARATE(1, 70000, 16, 500000, 16), .attr = &dropped},
    {0},
};

const struct qn_check_op qn_check_attention = {.op = &qn_op_attention,
                                               .cases = cases,
                                               .reference = reference,
                                               .refused = refused,
                                               .outputs = outputs,
                                               .flops = flops};
