/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/cross_entropy.h"

#include <math.h>

extern const struct qn_op qn_op_softmax_cross_entropy;
extern const struct qn_check_op qn_check_softmax_cross_entropy;

/* Of n logits, `step` elements apart. */
static double row_loss(const struct qn_reference *r, const double *x, int64_t n, int64_t step,
                       double label)
{
    const struct qn_cross_entropy_attr *attr = r->call->attr;
    const double *weight = r->in[2];
    if (label < 0 || label >= (double)n || (attr->ignore && label == attr->ignored_label))
        return 0;
    double top = x[0], sum = 0, even = 0;
    for (int64_t i = 1; i < n; i++)
        top = fmax(top, x[i * step]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * step] - top);
    for (int64_t i = 0; i < n; i++)
        even += (weight ? weight[i] : 1) * (log(sum) - (x[i * step] - top)) / (double)n;
    const int64_t own = (int64_t)label;
    const double smoothing = (double)attr->smoothing;
    return (1 - smoothing) * (weight ? weight[own] : 1) * (log(sum) - (x[own * step] - top)) +
           smoothing * even;
}

static int class_dim(const struct qn_call *call)
{
    const struct qn_cross_entropy_attr *attr = call->attr;
    return attr->class_dim > 0 ? attr->class_dim : call->in[0].shape.rank - 1;
}

static void reference(const struct qn_reference *r)
{
    const struct qn_shape *x = &r->call->in[0].shape;
    const int64_t n = x->dim[class_dim(r->call)], labels = qn_operand_count(&r->call->out[0]);
    int64_t step = 1;
    for (int i = x->rank - 1; i > class_dim(r->call); i--)
        step *= x->dim[i];
    for (int64_t i = 0; i < labels; i++)
        r->out[0][i] = row_loss(r, r->in[0] + i / step * n * step + i % step, n, step, r->in[1][i]);
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = call->in[1].shape};
}

#define LABELS(type, from, to, ...)                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_##type,                                                 \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__},          \
        .fill = QN_FILL_INTEGER, .a = (from), .b = (to)                                            \
    }
#define LOGITS(...)                                                                                \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}, .a = 2   \
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
/* The same, and the dimension of the classes. */
#define PLANES(dim_, smoothing_, ignore_, label_)                                                  \
    &(const struct qn_cross_entropy_attr)                                                          \
    {                                                                                              \
        .smoothing = (smoothing_), .ignore = (ignore_), .ignored_label = (label_),                 \
        .class_dim = (dim_)                                                                        \
    }

/* Without that one in the maximum the exponentials overflow. */
static const double first_is_far[1024] = {200, 1, 2}, last_is_far[1024] = {1, 2, [1023] = 200};
/* Twenty planes of two pixels: one's largest is in the first, the other's in the last. */
static const double both_are_far[40] = {200, 1, 2, [39] = 200};

static const struct qn_check_case cases[] = {
    {"the first is far above",
     {{.rank = 2, .dim = {1, 1024}, .values = first_is_far}, LABELS(I32, 1, 9, 1), NONE},
     ATTR(0, 0, 0)},
    {"the last is far above",
     {{.rank = 2, .dim = {1, 1024}, .values = last_is_far}, LABELS(I32, 0, 9, 1), NONE},
     ATTR(0, 0, 0)},
    {"ten classes", {LOGITS(7, 10), LABELS(U8, 0, 10, 7), NONE}, ATTR(0, 0, 0), .small = true},
    {"i32 labels", {LOGITS(5, 37), LABELS(I32, 0, 37, 5), NONE}, ATTR(0, 0, 0)},
    {"smoothing", {LOGITS(5, 19), LABELS(U8, 0, 19, 5), NONE}, ATTR(0.125f, 0, 0), .small = true},
    {"class weights", {LOGITS(6, 17), LABELS(I32, 0, 17, 6), WEIGHTS(17)}, ATTR(0, 0, 0)},
    {"weights and smoothing",
     {LOGITS(6, 35), LABELS(U8, 0, 35, 6), WEIGHTS(35)},
     ATTR(0.25f, 0, 0),
     .small = true},
    {"ignored label", {LOGITS(9, 3), LABELS(U8, 0, 3, 9), NONE}, ATTR(0, 1, 2)},
    {"class 0 ignored", {LOGITS(9, 3), LABELS(U8, 0, 3, 9), WEIGHTS(3)}, ATTR(0.125f, 1, 0)},
    {"negative ignored label", {LOGITS(9, 3), LABELS(I32, -2, 3, 9), NONE}, ATTR(0.125f, 1, -1)},
    {"labels that are no class", {LOGITS(11, 4), LABELS(I32, -3, 9, 11), NONE}, ATTR(0, 0, 0)},
    {"all ignored", {LOGITS(3, 5), LABELS(U8, 1, 2, 3), WEIGHTS(5)}, ATTR(0, 1, 1)},
    {"tokens", {LOGITS(2, 5, 131), LABELS(I32, 0, 131, 2, 5), NONE}, ATTR(0, 1, 7)},
    {"one class", {LOGITS(3, 1), LABELS(U8, 0, 1, 3), NONE}, ATTR(0, 0, 0)},
    {"many classes",
     {LOGITS(3, 1031), LABELS(I32, 0, 1031, 3), WEIGHTS(1031)},
     ATTR(0.0625f, 0, 0)},
    {"pixels",
     {LOGITS(2, 3, 3, 6), LABELS(U8, 0, 3, 2, 3, 6), NONE},
     PLANES(1, 0, 0, 0),
     .small = true},
    {"pixels with weights and smoothing",
     {LOGITS(1, 10, 3, 7), LABELS(I32, -2, 11, 1, 3, 7), WEIGHTS(10)},
     PLANES(1, 0.25f, 1, 3),
     .small = true,
     .f32_only = true},
    {"pixels with smoothing",
     {LOGITS(3, 8, 5, 7), LABELS(U8, 0, 8, 3, 5, 7), NONE},
     PLANES(1, 0.125f, 0, 0)},
    {"pixels with weights",
     {LOGITS(3, 17, 4, 9), LABELS(I32, 0, 17, 3, 4, 9), WEIGHTS(17)},
     PLANES(1, 0, 0, 0)},
    {"pixels ignored",
     {LOGITS(2, 9, 6, 6), LABELS(U8, 0, 9, 2, 6, 6), WEIGHTS(9)},
     PLANES(1, 0.125f, 1, 8)},
    {"pixels with a negative ignored label",
     {LOGITS(2, 4, 4, 5), LABELS(I32, -2, 6, 2, 4, 5), NONE},
     PLANES(1, 0.125f, 1, -1)},
    {"pixels all ignored",
     {LOGITS(1, 5, 4, 4), LABELS(U8, 1, 2, 1, 4, 4), WEIGHTS(5)},
     PLANES(1, 0, 1, 1)},
    {"pixels far above",
     {{.rank = 4, .dim = {1, 20, 1, 2}, .values = both_are_far}, LABELS(I32, 1, 9, 1, 1, 2), NONE},
     PLANES(1, 0, 0, 0)},
    {"pixels of one class",
     {LOGITS(2, 1, 3, 3), LABELS(U8, 0, 1, 2, 3, 3), NONE},
     PLANES(1, 0, 0, 0)},
    {"more pixels than one takes",
     {LOGITS(1, 2, 33, 33), LABELS(I32, 0, 2, 1, 33, 33), NONE},
     PLANES(1, 0, 0, 0)},
    {"one pixel", {LOGITS(7, 10, 1, 1), LABELS(U8, 0, 10, 7, 1, 1), NONE}, PLANES(1, 0, 0, 0)},
    {"tokens in columns", {LOGITS(2, 131, 5), LABELS(I32, 0, 131, 2, 5), NONE}, PLANES(1, 0, 1, 7)},
    {"classes in the middle",
     {LOGITS(2, 3, 6, 2, 9), LABELS(I32, 0, 6, 2, 3, 2, 9), NONE},
     PLANES(2, 0, 0, 0)},
    {"the last dimension by its number",
     {LOGITS(2, 5, 7), LABELS(I32, 0, 7, 2, 5), NONE},
     PLANES(2, 0, 0, 0)},
    {0},
};

static const struct qn_check_case refused[] = {
    {"labels of another size", {LOGITS(7, 10), LABELS(U8, 0, 10, 6), NONE}, ATTR(0, 0, 0)},
    {"labels of the same rank", {LOGITS(7, 10), LABELS(U8, 0, 10, 7, 10), NONE}, ATTR(0, 0, 0)},
    {"labels of a float type", {LOGITS(7, 10), LOGITS(7), NONE}, ATTR(0, 0, 0)},
    {"one weight too many", {LOGITS(7, 10), LABELS(U8, 0, 10, 7), WEIGHTS(11)}, ATTR(0, 0, 0)},
    {"smoothing of 1", {LOGITS(7, 10), LABELS(U8, 0, 10, 7), NONE}, ATTR(1, 0, 0)},
    {"negative smoothing", {LOGITS(7, 10), LABELS(U8, 0, 10, 7), NONE}, ATTR(-0.5f, 0, 0)},
    {"logits of rank 1", {LOGITS(7), LABELS(U8, 0, 7, 7), NONE}, ATTR(0, 0, 0)},
    {"labels of rows for pixels",
     {LOGITS(2, 3, 4, 5), LABELS(U8, 0, 3, 2, 3, 4), NONE},
     PLANES(1, 0, 0, 0)},
    {"a weight a column",
     {LOGITS(2, 3, 4, 5), LABELS(U8, 0, 3, 2, 4, 5), WEIGHTS(5)},
     PLANES(1, 0, 0, 0)},
    {"a negative dimension", {LOGITS(2, 3, 4), LABELS(U8, 0, 3, 2, 3), NONE}, PLANES(-1, 0, 0, 0)},
    {"a dimension that is not there",
     {LOGITS(2, 3, 4), LABELS(U8, 0, 3, 2, 3), NONE},
     PLANES(3, 0, 0, 0)},
    {0},
};

const struct qn_check_op qn_check_softmax_cross_entropy = {.op = &qn_op_softmax_cross_entropy,
                                                           .cases = cases,
                                                           .reference = reference,
                                                           .refused = refused,
                                                           .outputs = outputs};
