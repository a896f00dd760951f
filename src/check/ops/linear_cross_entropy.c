/* SPDX-License-Identifier: MIT */
#include "base/shape.h"
#include "check/check.h"
#include "op/cross_entropy.h"

#include <math.h>
#include <string.h>

extern const struct qn_op qn_op_linear_cross_entropy;
extern const struct qn_check_op qn_check_linear_cross_entropy;

enum { X, WEIGHT, LABELS, CLASS_WEIGHTS, BIAS };

static double product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The largest logit so far, the sum of exp(logit - largest), and sums of weights and of weighted
 * logits. */
struct row {
    double top, sum, weights, weighted;
};

static void add(struct row *row, double logit, double weight)
{
    if (logit > row->top) {
        row->sum *= exp(row->top - logit);
        row->top = logit;
    }
    row->sum += exp(logit - row->top);
    row->weights += weight;
    row->weighted += weight * logit;
}

static double logit_of(const struct qn_reference *r, const double *x, int64_t class)
{
    const int64_t features = r->call->in[WEIGHT].shape.dim[1];
    return product(x, r->in[WEIGHT] + class * features, features) +
           (r->in[BIAS] ? r->in[BIAS][class] : 0);
}

static double row_loss(const struct qn_reference *r, const double *x, double label)
{
    const struct qn_cross_entropy_attr *attr = r->call->attr;
    const int64_t classes = r->call->in[WEIGHT].shape.dim[0], own = (int64_t)label;
    const double *of_class = r->in[CLASS_WEIGHTS], smoothing = (double)attr->smoothing;
    if (label < 0 || label >= (double)classes || (attr->ignore && own == attr->ignored_label))
        return 0;
    struct row row = {.top = -INFINITY};
    for (int64_t c = 0; c < classes; c++)
        add(&row, logit_of(r, x, c), of_class ? of_class[c] : 1);
    const double all = row.top + log(row.sum), logit = logit_of(r, x, own);
    return (1 - smoothing) * (of_class ? of_class[own] : 1) * (all - logit) +
           smoothing / (double)classes * (row.weights * all - row.weighted);
}

static void reference(const struct qn_reference *r)
{
    const int64_t rows = qn_operand_count(&r->call->out[0]), k = r->call->in[WEIGHT].shape.dim[1];
    for (int64_t i = 0; i < rows; i++)
        r->out[0][i] = row_loss(r, r->in[X] + i * k, r->in[LABELS][i]);
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = call->in[LABELS].shape};
}

/* In units of rows x classes x features: one product forward; backward one for each gradient of a
 * matrix, and one that makes the logits again. The gradient of the bias is a sum of the logits'. */
static double flops(const struct qn_call *call, const char *group)
{
    const int64_t *weight = call->in[WEIGHT].shape.dim;
    const bool forward = strcmp(group, "forward") == 0;
    const int products =
        forward ? 1 : 1 + qn_present(&call->din[X]) + qn_present(&call->din[WEIGHT]);
    const double logits = (double)qn_operand_count(&call->in[LABELS]) * (double)weight[0];
    return logits * (2.0 * products * (double)weight[1] +
                     (forward ? 12 : 14 + qn_present(&call->din[BIAS])));
}

#define SHAPED(...) .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}
#define ROWS(...)                                                                                  \
    {                                                                                              \
        SHAPED(__VA_ARGS__)                                                                        \
    }
#define WEIGHT_OF(classes, features)                                                               \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, SHAPED(classes, features), .a = 0.25                            \
    }
#define BIAS_OF(classes)                                                                           \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, SHAPED(classes)                                                 \
    }
#define LABELS_OF(type, from, to, ...)                                                             \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_##type, SHAPED(__VA_ARGS__), .fill = QN_FILL_INTEGER,   \
        .a = (from), .b = (to)                                                                     \
    }
#define WEIGHTS(count)                                                                             \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(count)},                       \
        .fill = QN_FILL_POSITIVE                                                                   \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
#define ATTR(smoothing_, ignore_, label_)                                                          \
    &(const struct qn_cross_entropy_attr)                                                          \
    {                                                                                              \
        .smoothing = (smoothing_), .ignore = (ignore_), .ignored_label = (label_)                  \
    }
/* All labels are classes. */
#define PLAIN(rows, classes, features)                                                             \
    {                                                                                              \
        ROWS(rows, features), WEIGHT_OF(classes, features), LABELS_OF(I32, 0, classes, rows),      \
            NONE, NONE                                                                             \
    }

/* Without that one in the maximum the exponentials overflow. */
static const double one[] = {1};
static const double first_is_far[100] = {200, 1, 2}, last_is_far[100] = {1, 2, [99] = 200};
#define FAR(values_)                                                                               \
    {                                                                                              \
        {.rank = 2, .dim = {1, 1}, .values = one},                                                 \
            {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {100, 1}, .values = (values_)},          \
            LABELS_OF(I32, 1, 90, 1), NONE, NONE                                                   \
    }

/* Parts are of four times as many classes as there are features, rounded up to 16. Tiles of the
 * kernels are 64 to 256 wide, blocks of k 256 long; sums over more than 1024 elements with few
 * results are split. */
static const struct qn_check_case cases[] = {
    {"one part", PLAIN(7, 10, 5), ATTR(0, 0, 0)},
    {"three parts", PLAIN(19, 37, 4), ATTR(0, 0, 0)},
    {"two parts, weights and smoothing",
     {ROWS(3, 1), WEIGHT_OF(17, 1), LABELS_OF(I32, 0, 17, 3), WEIGHTS(17), NONE},
     ATTR(0.25f, 0, 0),
     .small = true,
     .f32_only = true},
    {"full parts", PLAIN(40, 48, 3), ATTR(0, 0, 0)},
    {"a last part of one class", PLAIN(33, 33, 4), ATTR(0, 0, 0)},
    {"one element", PLAIN(1, 1, 1), ATTR(0, 0, 0)},
    {"one row", PLAIN(1, 500, 50), ATTR(0, 0, 0)},
    {"few rows", PLAIN(13, 400, 20), ATTR(0, 0, 0)},
    {"one feature", PLAIN(35, 70, 1), ATTR(0, 0, 0)},
    {"full tiles", PLAIN(64, 256, 32), ATTR(0, 0, 0)},
    {"one over a tile", PLAIN(65, 289, 33), ATTR(0, 0, 0)},
    {"primes", PLAIN(131, 601, 67), ATTR(0, 0, 0)},
    {"the first is far above", FAR(first_is_far), ATTR(0, 0, 0)},
    {"the last is far above", FAR(last_is_far), ATTR(0, 0, 0)},
    {"bytes as labels",
     {ROWS(21, 6), WEIGHT_OF(77, 6), LABELS_OF(U8, 0, 77, 21), NONE, NONE},
     ATTR(0, 0, 0)},
    {"tokens",
     {ROWS(2, 5, 9), WEIGHT_OF(131, 9), LABELS_OF(I32, 0, 131, 2, 5), NONE, NONE},
     ATTR(0, 1, 7)},
    {"smoothing", PLAIN(9, 53, 4), ATTR(0.125f, 0, 0)},
    {"class weights",
     {ROWS(12, 4), WEIGHT_OF(43, 4), LABELS_OF(I32, 0, 43, 12), WEIGHTS(43), NONE},
     ATTR(0, 0, 0)},
    {"weights and smoothing",
     {ROWS(12, 2), WEIGHT_OF(37, 2), LABELS_OF(I32, -2, 39, 12), WEIGHTS(37), NONE},
     ATTR(0.25f, 1, 3)},
    {"labels that are no class",
     {ROWS(11, 3), WEIGHT_OF(18, 3), LABELS_OF(I32, -9, 27, 11), NONE, NONE},
     ATTR(0, 0, 0)},
    {"negative ignored label",
     {ROWS(11, 3), WEIGHT_OF(18, 3), LABELS_OF(I32, -2, 18, 11), NONE, NONE},
     ATTR(0.125f, 1, -1)},
    {"all ignored",
     {ROWS(3, 5), WEIGHT_OF(40, 5), LABELS_OF(U8, 1, 2, 3), WEIGHTS(40), NONE},
     ATTR(0, 1, 1)},
    {"bias",
     {ROWS(19, 4), WEIGHT_OF(37, 4), LABELS_OF(I32, -1, 37, 19), NONE, BIAS_OF(37)},
     ATTR(0, 0, 0)},
    {"bias, weights and smoothing",
     {ROWS(3, 1), WEIGHT_OF(17, 1), LABELS_OF(I32, 0, 17, 3), WEIGHTS(17), BIAS_OF(17)},
     ATTR(0.25f, 0, 0),
     .small = true,
     .f32_only = true},
    {"bias, one over a tile",
     {ROWS(65, 33), WEIGHT_OF(289, 33), LABELS_OF(I32, 0, 289, 65), NONE, BIAS_OF(289)},
     ATTR(0, 0, 0)},
    {"bias, a long sum of rows",
     {ROWS(2111, 3), WEIGHT_OF(19, 3), LABELS_OF(I32, 0, 19, 2111), NONE, BIAS_OF(19)},
     ATTR(0, 0, 0)},
    {"a long sum of rows", PLAIN(2111, 19, 3), ATTR(0, 0, 0)},
    {"a long sum of features", PLAIN(5, 18, 2070), ATTR(0, 0, 0)},
    {"a long sum of classes", PLAIN(5, 1100, 260), ATTR(0, 0, 0)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"rows of another length",
     {ROWS(4, 5), WEIGHT_OF(7, 6), LABELS_OF(I32, 0, 7, 4), NONE, NONE},
     ATTR(0, 0, 0)},
    {"a row that is none",
     {ROWS(5), WEIGHT_OF(7, 5), LABELS_OF(I32, 0, 7, 5), NONE, NONE},
     ATTR(0, 0, 0)},
    {"a weight of rank 3",
     {ROWS(4, 5),
      {.role = QN_ROLE_PARAMETER, SHAPED(7, 5, 1)},
      LABELS_OF(I32, 0, 7, 4),
      NONE,
      NONE},
     ATTR(0, 0, 0)},
    {"labels of another size",
     {ROWS(4, 5), WEIGHT_OF(7, 5), LABELS_OF(I32, 0, 7, 5), NONE, NONE},
     ATTR(0, 0, 0)},
    {"labels of a float type", {ROWS(4, 5), WEIGHT_OF(7, 5), ROWS(4), NONE, NONE}, ATTR(0, 0, 0)},
    {"one class weight too many",
     {ROWS(4, 5), WEIGHT_OF(7, 5), LABELS_OF(I32, 0, 7, 4), WEIGHTS(8), NONE},
     ATTR(0, 0, 0)},
    {"one bias too many",
     {ROWS(4, 5), WEIGHT_OF(7, 5), LABELS_OF(I32, 0, 7, 4), NONE, BIAS_OF(8)},
     ATTR(0, 0, 0)},
    {"smoothing of 1", PLAIN(4, 7, 5), ATTR(1, 0, 0)},
    {"a dimension of classes", PLAIN(4, 7, 5),
     &(const struct qn_cross_entropy_attr){.class_dim = 1}},
    {0},
};

const struct qn_check_op qn_check_linear_cross_entropy = {.op = &qn_op_linear_cross_entropy,
                                                          .cases = cases,
                                                          .reference = reference,
                                                          .refused = refused,
                                                          .outputs = outputs,
                                                          .flops = flops};
