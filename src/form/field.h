/* SPDX-License-Identifier: MIT
 *
 * Attributes of nodes as text: read into the struct that a public function takes, and written from
 * what a node keeps.
 */
#ifndef QN_FORM_FIELD_H
#define QN_FORM_FIELD_H

#include "base/text.h"
#include "graph/graph.h"

#include <quern/ops.h>

enum qn_field_kind {
    QN_FIELD_INT,    /* 3: int in both */
    QN_FIELD_LONG,   /* int64_t in both */
    QN_FIELD_REAL,   /* 0.5: double, and float in the node */
    QN_FIELD_DOUBLE, /* double in both */
    QN_FIELD_SWITCH, /* yes or no: bool, and int in the node */
    QN_FIELD_WORD,   /* one of some words, by their number: int in both */
    QN_FIELD_PAIR,   /* 3, or height,width: int[2] in both */
    QN_FIELD_SHAPE,  /* Bx49x64: qn_shape, and struct qn_reshape_attr */
    QN_FIELD_AXES,   /* 0,2,1,3: struct qn_form_axes, and struct qn_transpose_attr */
    QN_FIELD_FLOATS, /* 0.5,0.25: struct qn_form_floats, and the constant that is the node's input
                        `in_node` */
    QN_FIELD_IGNORE, /* -100: qn_cross_entropy_params, and struct qn_cross_entropy_attr, whole */
    QN_FIELD_STEPS,  /* add:0:5,gelu:8: struct qn_form_steps, and struct qn_chain_attr */
    QN_FIELD_INIT,   /* he, normal(0,0.02): struct qn_form_init; never in a node */
};

struct qn_form_axes {
    int rank, axis[QN_MAX_DIMS];
};
struct qn_form_floats {
    const float *values; /* of the reader's arena; NULL: not given */
    int64_t count;
};
struct qn_form_steps {
    int count;
    qn_chain_step step[QN_CHAIN_STEPS];
};
/* How a parameter starts. Of he and fan_in `count` is what goes in, 0: what its shape says. */
struct qn_form_init {
    enum { QN_FORM_INIT_NONE, QN_FORM_INIT_PLAIN, QN_FORM_INIT_HE, QN_FORM_INIT_FAN_IN } kind;
    qn_init plain;
    int64_t count;
};

enum { QN_FIELD_UNKEPT = 1 << 30 }; /* in_node of what a node does not keep */

struct qn_field {
    const char *name;
    enum qn_field_kind kind;
    size_t in_params, in_node; /* offsets */
    double least, most;        /* of numbers; both are in the range */
    double standard;          /* what a node has where the text says nothing; NAN: it always does */
    const char *const *words; /* ended by NULL */
    bool spread;              /* one number of QN_FIELD_FLOATS stands for all */
    /* Whether a node has what it would have without the attribute; NULL: by `standard`. */
    bool (*usual)(const qn_graph *graph, const struct qn_node *node);
};

enum { QN_FIELD_REASON = 160 };

/* Reads `text`, which may be written over. NULL, or why it does not fit, in `reason`. */
const char *qn_field_read(const struct qn_field *field, char *text, void *params,
                          struct qn_arena *arena, char reason[QN_FIELD_REASON]);
/* Adds " NAME=VALUE", unless a reader would take the same without it. `kept` is what the offsets
 * of the node are in. */
void qn_field_write(struct qn_text *text, const struct qn_field *field, const qn_graph *graph,
                    const struct qn_node *node, const void *kept);
/* For people: "from 1 to 8", "yes or no". */
void qn_field_range(const struct qn_field *field, char text[QN_FIELD_REASON]);

/* Numbers with a point, whatever the locale. `*end` is behind what was read; false: nothing was, or
 * it is not finite. */
bool qn_form_number(const char *text, const char **end, double *value);
/* In as few digits as give the same double, or float, again, but no 1e+04. */
void qn_form_put(struct qn_text *text, double value, bool single);

/* "Bx3x224x224", where B is the batch; "scalar". False: it is no shape. */
bool qn_form_shape(const char *text, qn_shape *shape);
void qn_form_put_shape(struct qn_text *text, const qn_shape *shape);

/* Numbers with blanks or commas between, N*V is V so many times. NULL: `*wrong` is where something
 * else stands; else with `*count` 0 there are more than `most`, or none, with another no memory. */
float *qn_form_floats(const char *text, int64_t most, struct qn_arena *arena, int64_t *count,
                      const char **wrong);
void qn_form_put_floats(struct qn_text *text, const float *values, int64_t count, char between);

/* How a parameter of this shape starts, and the shortest words for it. */
qn_init qn_form_init(const struct qn_form_init *init, const qn_shape *shape);
void qn_form_put_init(struct qn_text *text, const qn_init *init, const qn_shape *shape);

#endif
