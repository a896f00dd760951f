/* SPDX-License-Identifier: MIT */
#include "check/check.h"
#include "op/optimizer.h"

#include <math.h>

extern const struct qn_op qn_op_gradient_norm_partial;
extern const struct qn_check_op qn_check_gradient_norm_partial;

static void reference(const struct qn_reference *r)
{
    for (int64_t k = 0; k < r->call->in[1].shape.dim[0]; k++) {
        const double *row = r->in[1] + k * QN_CHUNK_NUMBERS;
        double sum = 0;
        for (int64_t i = 0; i < (int64_t)row[1]; i++)
            sum += r->in[0][(int64_t)row[0] + i] * r->in[0][(int64_t)row[0] + i];
        r->out[0][k] = sqrt(sum);
    }
}

static void outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT])
{
    out[0] = (struct qn_operand){.dtype = QN_F32, .shape = {1, {call->in[1].shape.dim[0]}}};
}

#define GRADIENTS(n, scale)                                                                        \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(n)}, .a = (scale)              \
    }
#define TABLE(chunks, rows)                                                                        \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {(chunks), QN_CHUNK_NUMBERS},    \
        .values = (rows)                                                                           \
    }

static const struct qn_optimizer_attr attr = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
static const double whole[] = {0, 37, 0, 0, 0};
static const double padded[] = {0,   37,   0, 0, 0, 128,  1,  0, 0, 0,
                                256, 4096, 0, 0, 0, 4352, 17, 0, 0, 0};

/* One element that alone decides by which power of two the others are scaled. */
static const double first_huge[37] = {1e25, 1, 2}, tail_huge[17] = {1, 2, [16] = 1e25},
                    last_huge[1024] = {1, 2, [1023] = 1e25};
static const double tail[] = {0, 17, 0, 0, 0}, last[] = {0, 1024, 0, 0, 0};
#define THESE(list)                                                                                \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {sizeof(list) / sizeof *(list)}, \
        .values = (list)                                                                           \
    }

static const struct qn_check_case cases[] = {
    {"one chunk", {GRADIENTS(37, 1), TABLE(1, whole)}, &attr, .small = true},
    {"chunks with padding", {GRADIENTS(4480, 1), TABLE(4, padded)}, &attr},
    {"squares beyond f32", {GRADIENTS(4480, 1e30), TABLE(4, padded)}, &attr},
    {"squares below f32", {GRADIENTS(4480, 1e-30), TABLE(4, padded)}, &attr},
    {"the first is huge", {THESE(first_huge), TABLE(1, whole)}, &attr},
    {"one in the tail is huge", {THESE(tail_huge), TABLE(1, tail)}, &attr},
    {"the last is huge", {THESE(last_huge), TABLE(1, last)}, &attr},
    {"zeros", {GRADIENTS(37, 1e-300), TABLE(1, whole)}, &attr},
    {0},
};

static const struct qn_check_case refused[] = {
    {"no table", {GRADIENTS(8, 1), GRADIENTS(4, 1)}, &attr},
    {"gradients of rank 2",
     {{.role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 2, .dim = {2, 4}}, TABLE(1, whole)},
     &attr},
    {0},
};

const struct qn_check_op qn_check_gradient_norm_partial = {.op = &qn_op_gradient_norm_partial,
                                                           .cases = cases,
                                                           .reference = reference,
                                                           .refused = refused,
                                                           .outputs = outputs};
