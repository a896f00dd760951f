/* SPDX-License-Identifier: MIT
 *
 * The harness: an operator has one reference, in double, and a list of cases; everything else is
 * derived. src/check/ops/NAME.c defines `const struct qn_check_op qn_check_NAME`.
 *
 * For each case, each storage type that qn_check_params.every_type leaves and each variant that
 * fits, the harness runs the groups of the operator on the device through emit(), as training does,
 * and checks: the outputs of the shape rule against `outputs` of the operator's file; forward
 * (train and eval); every gradient against central differences of the reference; beta 0 (never
 * reads), 1 and 0.5; alternatives and in-place writes (bit-identical); a second run
 * (bit-identical); guard words around every operand (NaN behind inputs, a number behind outputs);
 * the cost figures. For every two inputs that have one shape and type in some case, that case runs
 * once more with one tensor as both inputs.
 *
 * What a group is given: the operands that it declares, at odd offsets of two buffers. An operand
 * that it does not declare has its type and shape, but its elements are NaN. The alternative that
 * is not chosen, a gradient that is not wanted, and in evaluation operands for the backward pass
 * alone (SAVED that no group of the pass reads, GATHER) are absent: QN_DTYPE_NONE and no shape. The
 * control block lies at an offset in a buffer of its own. Gradients of parameters are f32, those of
 * activations have the activation's type.
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
    bool f32_only;       /* ... and there in f32 alone: other types have no code of their own, so
                            that one more of them is enough elsewhere */
    const char *only;    /* ... and there with this variant alone: the case is made for it */
    double difference;   /* step of the central differences; 0: 1e-5 */
    int rows_per_sample; /* dimension 0 of input 0 is so many times the batch; 0: 1 */
    /* Computes din, the gradient of input 0, from dout, that of output 0, where central differences
     * are wrong: at kinks, and where elements are not finite. NULL: they are right. */
    void (*gradient)(const struct qn_reference *, const double *dout, double *din);
    const struct qn_control *control; /* the control block before the run; NULL: the harness's, with
                                         samples = the batch and sample = 48 */
};

/* What a reference is given: the call (shapes, attributes, node) and every operand as doubles.
 * Inputs of f16 and bf16 are rounded to these types. */
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
    const struct qn_check_case *cases;              /* ended by a case without a name */
    void (*reference)(const struct qn_reference *); /* NULL: a view, of which only the shape rule is
                                                       checked */
    const struct qn_check_case *refused; /* NULL, or cases that the shape rule must refuse */
    /* Types and shapes of the outputs, from inputs and attributes alone. `out` starts as one output
     * with the shape of input 0, in the storage type; NULL: that is right. */
    void (*outputs)(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);
    /* Additions and multiplications of a group, exactly; NULL: from 0.5 to 64 times the elements of
     * its largest operand. */
    double (*flops)(const struct qn_call *call, const char *group);
    /* Bytes that a group moves, exactly, where it moves only parts of its operands; NULL: from 1 to
     * 4 times the bytes of all its operands. */
    double (*bytes)(const struct qn_call *call);
    /* The random word by which element i of output 0 is rounded to 16 bits; NULL: such an output is
     * rounded to nearest. */
    uint32_t (*word)(const struct qn_reference *, int64_t i);
};

/* Runs the checks of one operator, which need not be in qn_check_all(). Its records have no total.
 */
void qn_check_operator(qn_device *device, const struct qn_check_op *check,
                       const qn_check_params *params, qn_check_summary *summary);

/* The checks of all operators, in the order of op/list.h; NULL ends the list. */
const struct qn_check_op *const *qn_check_all(void);

#endif
