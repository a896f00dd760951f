/* SPDX-License-Identifier: MIT
 *
 * One case of an operator in one storage type: the shapes, random contents of every operand that a
 * caller would provide, and the results of the reference.
 */
#ifndef QN_CHECK_SUBJECT_H
#define QN_CHECK_SUBJECT_H

#include "base/arena.h"
#include "check/check.h"
#include "check/operand.h"
#include "check/verdict.h"

/* Large: more than QN_FULL_LIMIT elements. Where inputs times outputs, or the operations
 * of the first group, exceed QN_COSTLY the reference takes so long that fewer single elements are
 * tried. */
enum { QN_PROBES = 8, QN_SINGLES = 40, QN_FEW_SINGLES = 10, QN_FULL_LIMIT = 300 };
enum { QN_COSTLY = 20000000 };

/* dL/din of one input, with L = sum of dout * out: every element, or for large inputs the
 * derivative along random directions and some single elements. */
struct qn_gradient {
    double *full; /* every element; NULL: use the following */
    struct qn_probe {
        double *direction; /* as many normal numbers as the input has elements */
        double slope;      /* the derivative along it */
    } probe[QN_PROBES];
    int singles;
    int64_t *index; /* the `singles` elements that were tried */
    double *single; /* their derivatives */
};

struct qn_truth {
    double *out[QN_MAX_OUT], *eval_out[QN_MAX_OUT], *new_state[QN_MAX_STATE];
    uint32_t *word; /* by which each element of output 0 is rounded; NULL: to nearest */
    struct qn_control control, eval_control;
    struct qn_gradient gradient[QN_MAX_IN];
};

struct qn_subject {
    const struct qn_check_op *check;
    const struct qn_check_case *item;
    qn_dtype storage;
    bool store_parameters; /* parameters are in the storage type too */
    bool brief;            /* leave out passes that launch only what another pass launches */
    int twin, twin_of;     /* input `twin` is the same tensor as input twin_of < twin; 0: none is */
    uint64_t seed;
    int64_t far;                /* bytes before the first operand in device memory */
    struct qn_call call;        /* types and shapes; absent: the case has no such operand */
    double *value[QN_OPERANDS]; /* contents of in, dout and state; of din and gather, those that a
                                pass adds to; NULL for the others */
    struct qn_control control;
    struct qn_truth truth;
    struct qn_arena arena;
};

/* The seed of a case's values. Errors in 16 bits depend on what they are, so that whoever judges
 * kernels takes the same ones. */
uint64_t qn_subject_seed(uint64_t seed, const struct qn_check_op *check,
                         const struct qn_check_case *item);
/* Fills in `call` from the fields before it: types and shapes, no values. False: the verdict says
 * why. */
bool qn_subject_describe(struct qn_subject *subject, struct qn_verdict *verdict);
/* The same, and values and results of the reference. The subject must be closed in either case. */
bool qn_subject_open(struct qn_subject *subject, struct qn_verdict *verdict);
void qn_subject_close(struct qn_subject *subject);

/* Whether any group of the operator runs in one of the phases. */
bool qn_subject_has(const struct qn_subject *subject, unsigned phase);

/* Runs the operator's shape rule on a case; the operands of `call` follow from it. */
qn_status qn_subject_shapes(const struct qn_op *op, const struct qn_check_case *item,
                            qn_dtype storage, bool store_parameters, struct qn_call *call,
                            char reason[160]);

/* Fills in subject->truth. Gives false when memory ran out. */
bool qn_truth_find(struct qn_subject *subject);

#endif
