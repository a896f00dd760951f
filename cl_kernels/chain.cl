/* SPDX-License-Identifier: MIT
 *
 * A chain of elementwise operators, its links, in one kernel: results between links stay in
 * registers, and the backward pass computes them again from the inputs.
 *
 * The chain is in the options: link k of 0 .. QN_LAST does operation QN_OPk (enum qn_chain_op) to
 * the operands number QN_Ak and QN_Bk, with the constant ck. Numbers 0 .. 4 mean the elements of
 * the inputs, 5 that of the bias, which has one element for each column, 8 + k the result of link
 * k. Bit i of QN_GIVEN: input i is there. Inputs that are not there are never read; no link names
 * one.
 *
 * Outputs may lie in the place of inputs of their type.
 */
#include "lib/activation.clh"
#include "lib/strip.clh"

/* Without contraction a chain gives the bits of its operators apart. */
#pragma OPENCL FP_CONTRACT OFF

#define VALUES 16
#define FIRST_STEP 8

/* The result y of a link from its operands a and b and its constant c. */
#define DO_RELU(a, b, c) RELU(floatv, a, c)
#define DO_LEAKY_RELU(a, b, c) LEAKY_RELU(floatv, a, c)
#define DO_SIGMOID(a, b, c) SIGMOID(floatv, a, c)
#define DO_TANH(a, b, c) TANH(floatv, a, c)
#define DO_GELU(a, b, c) GELU(floatv, a, c)
#define DO_GELU_TANH(a, b, c) GELU_TANH(floatv, a, c)
#define DO_SILU(a, b, c) SILU(floatv, a, c)
#define DO_SCALE(a, b, c) ((floatv)(c) * (a))
#define DO_ADD(a, b, c) ((a) + (b))
#define DO_MULTIPLY(a, b, c) ((a) * (b))
#define DO_HARDSWISH(a, b, c) HARDSWISH(floatv, a, c)

/* Adds to the gradients da and db of the operands what the gradient g of y gives them. */
#define UNDO_RELU(g, a, b, y, c, da, db) da += RELU_GRADIENT(floatv, g, y, c)
#define UNDO_LEAKY_RELU(g, a, b, y, c, da, db) da += LEAKY_RELU_GRADIENT(floatv, g, y, c)
#define UNDO_SIGMOID(g, a, b, y, c, da, db) da += SIGMOID_GRADIENT(floatv, g, y, c)
#define UNDO_TANH(g, a, b, y, c, da, db) da += TANH_GRADIENT(floatv, g, y, c)
#define UNDO_GELU(g, a, b, y, c, da, db) da += GELU_GRADIENT(floatv, g, a, c)
#define UNDO_GELU_TANH(g, a, b, y, c, da, db) da += GELU_TANH_GRADIENT(floatv, g, a, c)
#define UNDO_SILU(g, a, b, y, c, da, db) da += SILU_GRADIENT(floatv, g, a, c)
#define UNDO_SCALE(g, a, b, y, c, da, db) da += (floatv)(c) * (g)
#define UNDO_ADD(g, a, b, y, c, da, db) da += (g), db += (g)
#define UNDO_MULTIPLY(g, a, b, y, c, da, db) da += (g) * (b), db += (g) * (a)
#define UNDO_HARDSWISH(g, a, b, y, c, da, db) da += HARDSWISH_GRADIENT(floatv, g, a, c)

#define STEP(k) v[FIRST_STEP + k] = QN_PASTE(DO_, QN_OP##k)(v[QN_A##k], v[QN_B##k], c##k);
#define BACK(k)                                                                                    \
    QN_PASTE(UNDO_, QN_OP##k)                                                                      \
    (d[FIRST_STEP + k], v[QN_A##k], v[QN_B##k], v[FIRST_STEP + k], c##k, d[QN_A##k], d[QN_B##k]);

/* STEPS_k: links 0 to k forward. UNDO_STEPS_k: links k to 0 backward. */
#define STEPS_0 STEP(0)
#define UNDO_STEPS_0 BACK(0)
#define STEPS_1 STEPS_0 STEP(1)
#define UNDO_STEPS_1 BACK(1) UNDO_STEPS_0
#define STEPS_2 STEPS_1 STEP(2)
#define UNDO_STEPS_2 BACK(2) UNDO_STEPS_1
#define STEPS_3 STEPS_2 STEP(3)
#define UNDO_STEPS_3 BACK(3) UNDO_STEPS_2
#define STEPS_4 STEPS_3 STEP(4)
#define UNDO_STEPS_4 BACK(4) UNDO_STEPS_3
#define STEPS_5 STEPS_4 STEP(5)
#define UNDO_STEPS_5 BACK(5) UNDO_STEPS_4
#define STEPS_6 STEPS_5 STEP(6)
#define UNDO_STEPS_6 BACK(6) UNDO_STEPS_5
#define STEPS_7 STEPS_6 STEP(7)
#define UNDO_STEPS_7 BACK(7) UNDO_STEPS_6
/* Not QN_PASTE: a macro is not expanded again inside itself, and STEP and BACK contain it. */
#define UP_TO_(steps, k) steps##k
#define UP_TO(steps, k) UP_TO_(steps, k)

#define INPUTS                                                                                     \
    __global const TYPE(I0) * i0, ulong i0_at, __global const TYPE(I1) * i1, ulong i1_at,          \
        __global const TYPE(I2) * i2, ulong i2_at, __global const TYPE(I3) * i3, ulong i3_at,      \
        __global const TYPE(I4) * i4, ulong i4_at, __global const TYPE(BIAS) * bias, ulong bias_at
#define CONSTANTS float c0, float c1, float c2, float c3, float c4, float c5, float c6, float c7
#define GO_TO_INPUTS                                                                               \
    i0 += i0_at;                                                                                   \
    i1 += i1_at;                                                                                   \
    i2 += i2_at;                                                                                   \
    i3 += i3_at;                                                                                   \
    i4 += i4_at;                                                                                   \
    bias += bias_at

/* v = every input at element `at` (the bias at column k), then the result of every link. */
#define GIVEN(i, value) (QN_GIVEN & 1 << (i)) ? (value) : (floatv)(0.0f)
#define COMPUTE                                                                                    \
    floatv v[VALUES] = {GIVEN(0, QN_GET(I0, i0, at)), GIVEN(1, QN_GET(I1, i1, at)),                \
                        GIVEN(2, QN_GET(I2, i2, at)), GIVEN(3, QN_GET(I3, i3, at)),                \
                        GIVEN(4, QN_GET(I4, i4, at)), GIVEN(5, QN_GET(BIAS, bias, k))};            \
    UP_TO(STEPS_, QN_LAST)

#ifndef QN_GRADIENT
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
forward(INPUTS, __global TYPE(Y) * y, ulong y_at, ulong rows, ulong n, CONSTANTS)
{
    QN_STRIP;
    GO_TO_INPUTS;
    y += y_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1))
        for (ulong row = block * QN_BLOCK; row < min(rows, (block + 1) * QN_BLOCK); row++)
            for (ulong k = first; k < last; k += step) {
                const ulong at = row * n + k;
                COMPUTE
                QN_PUT(Y, y, at, v[FIRST_STEP + QN_LAST]);
            }
}

#else
/* Adding to -0 changes no bit. */
#define NOTHING ((floatv)(-0.0f))

/* dx of each input that has one; with QN_SUMS the sums of the bias's gradient over each block of
 * rows go to part (blocks, n). With QN_RESULT the result of the last link is read from y. */
__kernel __attribute__((reqd_work_group_size(QN_WG, 1, 1))) void
backward(INPUTS, __global const TYPE(Y) * y, ulong y_at, __global const TYPE(DY) * dy, ulong dy_at,
         __global TYPE(D0) * d0, ulong d0_at, __global TYPE(D1) * d1, ulong d1_at,
         __global TYPE(D2) * d2, ulong d2_at, __global TYPE(D3) * d3, ulong d3_at,
         __global TYPE(D4) * d4, ulong d4_at, __global float *part, ulong part_at, ulong rows,
         ulong n, CONSTANTS, float beta0, float beta1, float beta2, float beta3, float beta4)
{
    QN_STRIP;
    GO_TO_INPUTS;
    y += y_at;
    dy += dy_at;
    d0 += d0_at;
    d1 += d1_at;
    d2 += d2_at;
    d3 += d3_at;
    d4 += d4_at;
    part += part_at;
    for (ulong block = get_global_id(1); block < blocks; block += get_global_size(1)) {
        floatv sums[QN_SUMS ? QN_SPAN : 1];
        for (ulong k = first; QN_SUMS && k < last; k += step)
            sums[(k - first) / QN_V] = (floatv)(0.0f);
        for (ulong row = block * QN_BLOCK; row < min(rows, (block + 1) * QN_BLOCK); row++)
            for (ulong k = first; k < last; k += step) {
                const ulong at = row * n + k;
                COMPUTE
                if (QN_RESULT)
                    v[FIRST_STEP + QN_LAST] = QN_GET(Y, y, at);
                floatv d[VALUES];
#pragma unroll
                for (int i = 0; i < VALUES; i++)
                    d[i] = NOTHING;
                d[FIRST_STEP + QN_LAST] = QN_GET(DY, dy, at);
                UP_TO(UNDO_STEPS_, QN_LAST)
                if (QN_SUMS)
                    sums[(k - first) / QN_V] += d[5];
                if (QN_D0)
                    QN_ADD(D0, d0, at, beta0, d[0]);
                if (QN_D1)
                    QN_ADD(D1, d1, at, beta1, d[1]);
                if (QN_D2)
                    QN_ADD(D2, d2, at, beta2, d[2]);
                if (QN_D3)
                    QN_ADD(D3, d3, at, beta3, d[3]);
                if (QN_D4)
                    QN_ADD(D4, d4, at, beta4, d[4]);
            }
        for (ulong k = first; QN_SUMS && k < last; k += step)
            QN_PUT(PART, part, block * n + k, sums[(k - first) / QN_V]);
    }
}
#endif
