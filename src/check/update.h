/* SPDX-License-Identifier: MIT
 *
 * What the checks of the optimizers share: their cases and the walk over the chunk table.
 */
#ifndef QN_CHECK_UPDATE_H
#define QN_CHECK_UPDATE_H

#include "check/check.h"
#include "op/optimizer.h"

/* One element of a parameter: an update reads p, g (clipped, without the loss scale) and the state,
 * and writes p and the state. `rate` and `decay` are those of its chunk. */
struct qn_check_element {
    const struct qn_reference *r;
    double p, g, rate, decay;
    double state[QN_MAX_STATE];
};

/* Row k of the table: elements, and the learning rate and weight decay of this update. */
struct qn_check_chunk {
    int64_t first, n, number;
    double rate, decay;
};
struct qn_check_chunk qn_check_chunk_of(const struct qn_reference *r, int64_t k);

/* The random word for element i of the parameters, whose chunks follow one another. */
uint32_t qn_check_update_word(const struct qn_reference *r, int64_t i);

/* A parameter in bf16 with the code that corrects it: a step is a unit of 16 bits, half as large
 * below a power of two. */
double qn_check_corrected(double stored, int code);

/* Applies `step` to every element of every chunk, unless the update is skipped. For slots with one
 * element for each element of the parameters. */
void qn_check_update(const struct qn_reference *r, void (*step)(struct qn_check_element *));

/* A skipped update: results are what was there. */
void qn_check_unmoved(const struct qn_reference *r);

/* The new parameters: like the old ones. */
void qn_check_update_outputs(const struct qn_call *call, struct qn_operand out[QN_MAX_OUT]);

/* Inputs of a case: parameters, gradients and table. */
#define QN_CHECK_STORED(type, n)                                                                   \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = (type), .rank = 1, .dim = {(n) }                           \
    }
#define QN_CHECK_PARAMETERS(n) QN_CHECK_STORED(QN_F32, n)
#define QN_CHECK_GIVEN(n, numbers)                                                                 \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_F32, .rank = 1, .dim = {(n)}, .values = (numbers)       \
    }
#define QN_CHECK_TABLE(chunks, rows)                                                               \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 2, .dim = {(chunks), QN_CHUNK_NUMBERS},    \
        .values = (rows)                                                                           \
    }
#define QN_CHECK_BLOCK(n, chunks, rows)                                                            \
    {                                                                                              \
        QN_CHECK_PARAMETERS(n), QN_CHECK_PARAMETERS(n), QN_CHECK_TABLE(chunks, rows)               \
    }

/* The same with parameters in 16 bits. */
#define QN_CHECK_STORED_BLOCK(type, n, chunks, rows)                                               \
    {                                                                                              \
        QN_CHECK_STORED(type, n), QN_CHECK_PARAMETERS(n), QN_CHECK_TABLE(chunks, rows)             \
    }

/* Factors in the table: the bits of f32. */
enum { QN_CHECK_HALF = 0x3f000000, QN_CHECK_ONE = 0x3f800000, QN_CHECK_TWO = 0x40000000 };

/* Inputs of an optimizer that sees a parameter whole: parameter and gradient of these dimensions,
 * normal numbers, and a table. qn_check_chunk_of(r, 0) tells rate and decay. */
#define QN_CHECK_TENSOR(type, factor, ...)                                                         \
    {                                                                                              \
        .role = QN_ROLE_FIXED, .dtype = (type), .a = (factor),                                     \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {                       \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define QN_CHECK_WHOLE(type, chunks, rows, ...)                                                    \
    {                                                                                              \
        QN_CHECK_TENSOR(type, 1, __VA_ARGS__), QN_CHECK_TENSOR(QN_F32, 1, __VA_ARGS__),            \
            QN_CHECK_TABLE(chunks, rows)                                                           \
    }

/* The rows of struct qn_chunk, one chunk after another. */
extern const double qn_check_one_chunk[];  /* 37 elements */
extern const double qn_check_neighbours[]; /* 4437 in three chunks side by side, each with a rate
                                              and a decay of its own, none in the first */
extern const double qn_check_one_element[];

/* Cases that every optimizer refuses. */
extern const struct qn_check_case qn_check_update_refused[];

extern const struct qn_control qn_check_first_update, qn_check_skipped_update;

/* The cases of adam and adamw, and their step after weight decay. */
extern const struct qn_check_case qn_check_adam_cases[];
void qn_check_adam_step(struct qn_check_element *e);

#endif
