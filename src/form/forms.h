/* SPDX-License-Identifier: MIT
 *
 * The table of operators as graph files have them: operands in order, attributes, and the public
 * function that makes a node. Reader and writer both go by it: an operator is one row.
 */
#ifndef QN_FORM_FORMS_H
#define QN_FORM_FORMS_H

#include "form/field.h"

/* Sizes of the parameters that a line makes itself, by the layer's own attributes. */
struct qn_form_sizes {
    int64_t features, channels, rows, width;
    int kernel[2];
    bool bias;
    struct qn_form_init init; /* of the weight */
};

struct qn_form_parameter {
    const char *what; /* "weight": the parameter is NODE.weight */
    int rank;
    int64_t dim[QN_MAX_DIMS];
    qn_init init;
};

/* An operator whose line may make its parameters, where it names its first operand alone. */
struct qn_form_layer {
    const struct qn_field *fields; /* of struct qn_form_sizes; ended by no name */
    /* The parameters for the first operand's shape and the operator's params, in the order of its
     * operands; gives how many, at most 2. A size that is missing is 0. */
    int (*parameters)(const qn_shape *x, const void *params, const struct qn_form_sizes *sizes,
                      struct qn_form_parameter made[2]);
};

enum { QN_FORM_PARAMS = 512, QN_FORM_OPERANDS = 6 };

struct qn_form {
    const char *name;
    const char *op;       /* as src/op/list.h has it; NULL: another row writes it */
    const char *operands; /* "x weight bias?": those with '?' may be missing */
    const char *inputs;   /* digits: the number of the node's input, operand by operand; NULL: in
                             order */
    const struct qn_field *fields; /* ended by no name; NULL: none */
    qn_tensor (*make)(qn_graph *graph, const qn_tensor *in, const void *params);
    const struct qn_form_layer *layer; /* NULL: parameters are always named */
};

/* What a line of a parameter and one of any operator may say besides. */
struct qn_form_held {
    struct qn_form_init init;
    bool frozen;
    double rate, decay; /* factors; below 0: the usual one */
};
extern const struct qn_field qn_form_held_fields[];
extern const struct qn_field qn_form_node_fields[]; /* of a bool: recompute */

/* All rows; ended by no name. */
extern const struct qn_form qn_forms[];

/* The row of that name; NULL: there is none. */
const struct qn_form *qn_form_find(const char *name);
/* The row that writes a node; NULL: none does. */
const struct qn_form *qn_form_of(const struct qn_node *node);

/* Refuses a line whose constants are more than a file may have. */
void qn_form_refuse_numbers(qn_graph *graph, const char *name);

/* Whether a text can be the name of a node: it has no blank, none of ( ) , = # ", and nothing that
 * a terminal does not print. */
bool qn_form_is_name(const char *name);

/* How many operands there are, and how many of them must be there. */
int qn_form_operands(const struct qn_form *form, int *required);
/* The number of the node's input that operand i is. */
int qn_form_input(const struct qn_form *form, int i);
/* The attribute that holds the constant in the node's input i; NULL: no attribute does. */
const struct qn_field *qn_form_constant(const struct qn_form *form, int i);

#endif
