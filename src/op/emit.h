/* SPDX-License-Identifier: MIT
 *
 * How an operator launches kernels: it describes each launch to a qn_emit, which belongs to cl/ and
 * is opaque here. The same emit() of an operator serves training, the harness and the benchmarks.
 */
#ifndef QN_OP_EMIT_H
#define QN_OP_EMIT_H

#include <quern/status.h>
#include <stdbool.h>
#include <stdint.h>

struct qn_emit;
struct qn_operand;

enum { QN_MAX_ARGS = 40 };

enum qn_arg_kind { QN_ARG_END, QN_ARG_BUFFER, QN_ARG_INT, QN_ARG_LONG, QN_ARG_FLOAT };

/* One kernel argument. A buffer takes two places in the kernel: `__global TYPE(X) *x, ulong x_at`,
 * the buffer and the offset in elements. An absent operand passes some buffer and offset 0: the
 * kernel must know by an option or an integer that it is not to be touched. */
struct qn_arg {
    enum qn_arg_kind kind;
    const struct qn_operand *operand;
    int64_t integer; /* INT: 32 bits, LONG: 64 bits */
    float real;
};

#define QN_BUF(operand_)                                                                           \
    {                                                                                              \
        .kind = QN_ARG_BUFFER, .operand = (operand_)                                               \
    }
#define QN_INT(value_)                                                                             \
    {                                                                                              \
        .kind = QN_ARG_INT, .integer = (value_)                                                    \
    }
#define QN_LONG(value_)                                                                            \
    {                                                                                              \
        .kind = QN_ARG_LONG, .integer = (value_)                                                   \
    }
#define QN_FLOAT(value_)                                                                           \
    {                                                                                              \
        .kind = QN_ARG_FLOAT, .real = (value_)                                                     \
    }

/* One kernel launch. Everything is copied. */
struct qn_launch {
    const char *program; /* stem of the file under cl_kernels/ */
    const char *kernel;
    char options[1024]; /* "-DX_TYPE=f32 -DQN_WG=1"; see qn_launch_option, qn_launch_type */
    struct qn_arg args[QN_MAX_ARGS];
    int64_t global[3]; /* work-items; 0 counts as 1; rounded up to a multiple of local */
    int64_t local[3];  /* 0 counts as 1; what the kernel's reqd_work_group_size says */
};

/* Appends " -DNAME=value" to the options. */
void qn_launch_option(struct qn_launch *launch, const char *name, int64_t value);
/* Appends " -DNAME=word". */
void qn_launch_word(struct qn_launch *launch, const char *name, const char *word);
/* Appends " -DNAME_TYPE=f32" for the operand's type; an absent operand counts as f32. */
void qn_launch_type(struct qn_launch *launch, const char *name, const struct qn_operand *operand);

/* Adds a launch to the recording: builds the program on first use, clones the kernel, binds every
 * argument. QN_ERR_BUILD: it does not build, and the log has kernel, options and the compiler's
 * text; or what was built needs more local memory or a smaller work-group than there is. */
qn_status qn_emit_launch(struct qn_emit *emit, const struct qn_launch *launch);

/* C = A * B (+ beta * C) through CLBlast, f32 only, row-major: a is m x k (or k x m if trans_a), b
 * is k x n (or n x k if trans_b), c is m x n, all dense. */
struct qn_gemm {
    int64_t m, n, k;
    bool trans_a, trans_b;
    const struct qn_operand *a, *b, *c;
    float beta;
};
qn_status qn_emit_gemm(struct qn_emit *emit, const struct qn_gemm *gemm);

#endif
