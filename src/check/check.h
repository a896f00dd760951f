/* SPDX-License-Identifier: MIT
 *
 * The harness: an operator has one reference, in double, and a list of cases; everything else is
 * derived. src/check/ops/NAME.c defines `const struct qn_check_op qn_check_NAME`.
 *
 * For each case, storage type and variant that fits, the harness runs the groups of the operator on
 * the device through emit(), as training does, and checks: what the shape rule says of the outputs
 * against what the operator's own file here says; forward (train and eval); every gradient against
 * central differences of the reference; beta 0 (never reads), 1 and 0.5; alternatives and in-place
 * writes (bit-identical); a second run (bit-identical); guard words around every operand (NaN
 * behind inputs, a number behind outputs); the cost figures. Every two inputs of one shape and type
 * in some case are one tensor there once more.
 *
 * What a group is given: the operands that it declares, at odd places of two buffers. An operand
 * that it does not declare has its type and shape, but lies in NaN. The alternative that is not
 * chosen, a gradient that nobody wants, and in evaluation what is saved for the backward pass alone
 * (SAVED that no group of the phase reads, GATHER) are absent: QN_DTYPE_NONE and no shape. The
 * control block lies at an offset in a buffer of its own. Gradients of parameters are f32, of
 * activations of their type.
 */
#ifndef QN_CHECK_CHECK_H
#define QN_CHECK_CHECK_H

#include "op/control.h"
#include "op/op.h"
#include <quern/check.h>

enum qn_fill {
    QN_FILL_NORMAL,   /* a * normal + b; a 0: 1 */
    QN_FILL_UNIFORM,  /* [a, b) */
    QN_FILL_KINKLESS, /* as normal, but at least 0.05 away from 0, where a derivative jumps */
    QN_FILL_DISTINCT, /* a shuffled grid of 509 values, exact in every type: two elements differ by
                         at least the step `a` (0: 1/64) unless their distance is a multiple of 509
                       */
    QN_FILL_INTEGER,  /* integers in [a, b), for labels and u8 images */
    QN_FILL_POSITIVE, /* [0.1, 1.1) */
};

enum qn_role {
    QN_ROLE_ACTIVATION, /* takes the storage type of the run */
    QN_ROLE_PARAMETER,  /* f32, and once also in the storage type */
    QN_ROLE_FIXED,      /* takes `dtype` */
};

struct qn_check_input {
    enum qn_role role;
    qn_dtype dtype; /* of QN_ROLE_FIXED */
    int rank;       /* -1: absent */
    int64_t dim[QN_MAX_DIMS];
    enum qn_fill fill;
    double a, b;
    const double *values; /* NULL, or every element, instead of a fill */
};

struct qn_reference;

struct qn_check_case {
    const char *name;
    struct qn_check_input in[QN_MAX_IN];
    const void *attr;    /* the operator's attribute struct */
    bool small;          /* also run where only tiny shapes are affordable (oclgrind) ... */
    bool f32_only;       /* ... and there in f32 alone: no other type has code of its own here */
    const char *only;    /* ... and there with this variant alone: the case is for its sake */
    double difference;   /* step of the central differences; 0: 1e-5 */
    int rows_per_sample; /* dimension 0 of input 0 is so many times the batch; 0: 1 */
    /* The gradient of input 0 from that of output 0, where central differences do not tell it: at
     * kinks, and where values are not finite. NULL: they do. */
    void (*gradient)(const struct qn_reference *, const double *dout, double *din);
    const struct qn_control *control; /* the control block before the run; NULL: the harness's, with
                                         samples = the batch and sample = 48 */
};

/* What a reference is given: the call (shapes, attributes, node) and every operand as doubles.
 * Values of f16 and bf16 inputs are the rounded ones. */
struct qn_reference {
    const struct qn_call *call;
    const double *in[QN_MAX_IN];
    const double *state[QN_MAX_STATE];
    double *out[QN_MAX_OUT];         /* to fill */
    double *new_state[QN_MAX_STATE]; /* to fill in an update: the state after one update */
    bool eval;
    const struct qn_control *control; /* as the kernels saw it before the run */
    struct qn_control *new_control;   /* to change where the operator writes to the control block
                                         (losses, gradient norm); starts as a copy */
};

struct qn_check_op {
    const struct qn_op *op;
    const struct qn_check_case *cases;              /* ended by the first without a name */
    void (*reference)(const struct qn_reference *); /* NULL: a view, of which only the shape rule is
                                                       checked */
    const struct qn_check_case *refused; /* NULL, or cases that the shape rule must refuse */
    /* Types and shapes of the outputs, from inputs and attributes alone. They start as one output
     * like input 0, in the storage type; NULL: that is right. */
    void (*outputs)(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);
    /* Additions and multiplications of a group, exactly; NULL: any number that is not far from
     * that of the elements. */
    double (*flops)(const struct qn_call *call, const char *group);
    /* Bytes that a group moves, exactly, where these are a part of its operands; NULL: at least
     * those of all of them, and not many times as many. */
    double (*bytes)(const struct qn_call *call);
};

/* Runs the checks of one operator, which need not be in the list. */
void qn_check_operator(qn_device *device, const struct qn_check_op *check,
                       const qn_check_params *params, qn_check_summary *summary);

/* All of them, in the order of op/list.h; NULL ends it. */
const struct qn_check_op *const *qn_check_all(void);

#endif
