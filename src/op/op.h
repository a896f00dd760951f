/* SPDX-License-Identifier: MIT
 *
 * The operator descriptor: all that the graph, the planner, the trainer and the harness know about
 * an operator. One operator is one stem: src/ops/NAME.c holds its descriptor and its public
 * function, cl_kernels/NAME.cl (or a family) its kernels, src/check/ops/NAME.c its reference in
 * double and its cases, and src/op/list.h its name.
 *
 * An operator is a list of launch groups. A group says what it reads and what it writes; from that
 * alone the planner derives lifetimes, what must be kept for the backward pass, what can be
 * recomputed, what runs in place, and which groups nobody needs.
 */
#ifndef QN_OP_OP_H
#define QN_OP_OP_H

#include "op/emit.h"
#include <quern/device.h>
#include <quern/graph.h>
#include <quern/tensor.h>

enum { QN_MAX_IN = 8, QN_MAX_OUT = 3, QN_MAX_SAVED = 2, QN_MAX_TEMP = 3, QN_MAX_STATE = 5 };
enum { QN_MAX_READS = 10, QN_MAX_WRITES = 6, QN_MAX_GROUPS = 10, QN_MAX_VARIANTS = 8 };

/* What an operand of a group is, seen from its node. */
enum qn_ref_kind {
    QN_REF_NONE,
    QN_REF_IN,     /* an input */
    QN_REF_OUT,    /* an output */
    QN_REF_DIN,    /* the gradient of an input: d_in = beta * d_in + g */
    QN_REF_DOUT,   /* the gradient of an output */
    QN_REF_SAVED,  /* a further result of the forward pass that backward reads (a statistic) */
    QN_REF_TEMP,   /* lives from one backward group to another of the same node */
    QN_REF_STATE,  /* lives for the whole training (running averages); moves once per update */
    QN_REF_GATHER, /* gathered over the cycle for the state: gather = beta * gather + g */
    QN_REF_KINDS,
};

struct qn_ref {
    uint8_t kind; /* enum qn_ref_kind */
    uint8_t index;
};

#define QN_REF(kind_, index_) ((struct qn_ref){(kind_), (index_)})
#define QN_IN(i)                                                                                   \
    {                                                                                              \
        QN_REF_IN, (i)                                                                             \
    }
#define QN_OUT(i)                                                                                  \
    {                                                                                              \
        QN_REF_OUT, (i)                                                                            \
    }
#define QN_DIN(i)                                                                                  \
    {                                                                                              \
        QN_REF_DIN, (i)                                                                            \
    }
#define QN_DOUT(i)                                                                                 \
    {                                                                                              \
        QN_REF_DOUT, (i)                                                                           \
    }
#define QN_SAVED(i)                                                                                \
    {                                                                                              \
        QN_REF_SAVED, (i)                                                                          \
    }
#define QN_TEMP(i)                                                                                 \
    {                                                                                              \
        QN_REF_TEMP, (i)                                                                           \
    }
#define QN_STATE(i)                                                                                \
    {                                                                                              \
        QN_REF_STATE, (i)                                                                          \
    }
#define QN_GATHER(i)                                                                               \
    {                                                                                              \
        QN_REF_GATHER, (i)                                                                         \
    }

/* One tensor as a kernel sees it. Before addresses are known only dtype and shape are set. */
struct qn_operand {
    qn_dtype dtype; /* QN_DTYPE_NONE: not there (an optional input, the other alternative) */
    struct qn_shape shape;
    int buffer;     /* index into the buffers of the recording */
    int64_t offset; /* in elements */
};

/* One group of one node at one batch size: what cost() and emit() are given. */
struct qn_call {
    const struct qn_op *op;
    const void *attr; /* of the operator's own attribute struct */
    const struct qn_facts *facts;
    const char *name;    /* of the node, for messages */
    uint32_t node;       /* number of the node: the third word of a random counter */
    int setting;         /* of the variant: an index into its settings */
    bool cpu;            /* of the variant: its kernels have the shape for CPUs */
    int64_t batch;       /* samples of the micro-step; a sample may have several rows */
    int slot[QN_MAX_IN]; /* of control.position: the row at which the ring that is input i takes
                            those of the micro-step; 0 where it is none */
    struct qn_operand in[QN_MAX_IN], din[QN_MAX_IN];
    struct qn_operand out[QN_MAX_OUT], dout[QN_MAX_OUT];
    struct qn_operand saved[QN_MAX_SAVED], temp[QN_MAX_TEMP];
    struct qn_operand state[QN_MAX_STATE], gather[QN_MAX_STATE];
    struct qn_operand scratch;       /* f32, at least the floats that cost() asked for */
    struct qn_operand control;       /* the control block (op/control.h) */
    float beta_in[QN_MAX_IN];        /* of the write to din[i]: 0 or 1 in training */
    float beta_gather[QN_MAX_STATE]; /* of the write to gather[i] */
};

/* What one run of a group costs. Bytes are those that must move: each operand once. */
struct qn_cost {
    double flops, bytes;
    int launches;
    int64_t scratch; /* bytes of device memory that the group needs while it runs */
    int64_t blas[3]; /* m, n, k of the CLBlast product it calls, if any: the plan then holds its
                        temporary buffer */
};

/* One implementation of a group. */
struct qn_variant {
    const char *name; /* "cpu" and "gpu" for the two shapes, "any", "clblast", or a way's own */
    /* NULL: always. Otherwise whether it can run there; if not, *why is a short reason. */
    bool (*fits)(const struct qn_call *call, const char **why);
    void (*cost)(const struct qn_call *call, struct qn_cost *cost);
    qn_status (*emit)(struct qn_emit *emit, const struct qn_call *call);
    /* Names of the parameter sets (tiles, blocks) that may be tried, the default first, ended by
     * NULL; call->setting says which. NULL: there is one, without a name. */
    const char *const *settings;
    /* Its kernels have the shape for CPUs, one work-item per work-group; false: that for GPUs, or
     * one for both. call->cpu says so to the three functions, where facts->cpu does not: CPUs can
     * run the shape for GPUs. */
    bool cpu;
};

/* Chooses variant and setting for a call, before any function of the variant is given it. */
void qn_call_choose(struct qn_call *call, const struct qn_variant *variant, int setting);
/* Chooses them, and tells whether the variant can run there; if not, *why is a short reason. */
bool qn_call_fits(struct qn_call *call, const struct qn_variant *variant, int setting,
                  const char **why);

/* Name of a setting, "" where the variant has none; index of a name, -1: there is none of it; and
 * how many there are, at least 1. */
const char *qn_setting_name(const struct qn_variant *variant, int setting);
int qn_setting_index(const struct qn_variant *variant, const char *name);
int qn_setting_count(const struct qn_variant *variant);

/* When a group runs. A group may name several. */
enum qn_phase {
    QN_PHASE_TRAIN = 1,    /* forward pass of a micro-step */
    QN_PHASE_EVAL = 2,     /* forward pass of an evaluation */
    QN_PHASE_BACKWARD = 4, /* backward pass; groups run in the order of the list */
    QN_PHASE_UPDATE = 8,   /* once per update, after the last micro-step */
};

struct qn_read {
    struct qn_ref ref;
    struct qn_ref or_; /* an alternative that gives the same bits (ReLU: input or output) */
};

struct qn_write {
    struct qn_ref ref;
    struct qn_ref in_place; /* may share the bytes of this operand if nobody reads it later */
};

struct qn_group {
    const char *name;                     /* "forward", "input gradient" */
    unsigned phase;                       /* enum qn_phase, or-ed */
    struct qn_read read[QN_MAX_READS];    /* ended by the first that is none */
    struct qn_write write[QN_MAX_WRITES]; /* likewise; operands that are absent are skipped */
    /* Bit i: a node with these attributes does without read i. NULL: it needs all. */
    unsigned (*spares)(const void *attr);
    bool once; /* has an effect besides its writes: never recomputed */
    struct qn_variant variant[QN_MAX_VARIANTS]; /* in the order of preference; ended by no name */
};

/* What the shape rule is given and fills in. in[] and attr are set; it sets dtype and shape of out,
 * saved, temp, state and gather. On failure it writes one sentence to `reason`. */
struct qn_shape_call {
    const void *attr;
    qn_dtype storage;                /* type in which activations are kept: f32, f16 or bf16 */
    int64_t batch;                   /* samples of the micro-step */
    struct qn_operand in[QN_MAX_IN]; /* absent ones have QN_DTYPE_NONE */
    struct qn_operand out[QN_MAX_OUT], saved[QN_MAX_SAVED], temp[QN_MAX_TEMP];
    struct qn_operand state[QN_MAX_STATE], gather[QN_MAX_STATE];
    char reason[160];
};

/* Whether an input may hold the batch. One that does holds it in dimension 0, as every output of
 * the node then does: as many rows for each sample, side by side. What belongs to one sample
 * follows from its own rows and from inputs without the batch, which are the same for all samples.
 */
enum qn_batch_rule {
    QN_BATCH_NEVER, /* a weight, a bias, a table: samples would mix */
    QN_BATCH_MAY,
    QN_BATCH_MUST, /* the kernels ask which sample a row belongs to */
};

struct qn_state_info {
    const char *name; /* "running_mean": saved as NODE.running_mean; an optimizer's "exp_avg" as
                         PARAMETER.exp_avg */
    float initial;
    int per_chunk; /* of an optimizer: elements for each chunk of a parameter; 0: one for each of
                      the parameter's elements, or of qn_op.whole what the shape rule says */
};

/* Of an operator that keeps a table of rings (cells of the kind QN_CELL_TABLE). */
struct qn_table_rule {
    unsigned forgets; /* bit i: rows of the ring that is input i may be emptied, since without them
                         only what the others know of their stretches is another one */
    /* Rows of a ring that forgets in a stretch: what all rows know of one is made anew as a whole,
     * where by the position of that ring it has rows of the micro-step. */
    int64_t (*stretch)(const struct qn_call *call);
};

struct qn_chain_link;
struct qn_optimizer_attr;

struct qn_op {
    const char *name;
    int attr_size;        /* of a struct without padding: plans hash its bytes */
    int n_in, n_required; /* inputs at most; the first n_required must be there */
    int n_out;
    bool view;                         /* the output shares the bytes of input 0; no groups */
    const struct qn_table_rule *table; /* output 0 is what a cell of the kind QN_CELL_TABLE holds:
                                          it is made of rings, and of what it was before, which are
                                          the inputs; NULL: it is not */
    unsigned no_gradient;              /* bit i: input i never gets a gradient (labels, images) */
    qn_status (*shape)(struct qn_shape_call *call);
    struct qn_group groups[QN_MAX_GROUPS]; /* ended by the first without a name */
    struct qn_state_info state[QN_MAX_STATE];
    /* Whether the groups of the update of nodes with these attributes do the same to each element
     * of their states, so that one launch may do it to those of many nodes, with what lies between
     * them. NULL: never. */
    bool (*commits_like)(const void *a, const void *b);
    bool optimizer; /* its inputs are a block's parameters, gradients and table; output 0 the new
                       parameters; its states are kept for the block (ops/update.h) */
    bool whole;     /* of an optimizer: it is given each parameter alone and in its own shape, with
                       the gradient and the rows of the table that are the parameter's, whatever
                       first elements these say; its shape rule gives slots of any size */
    /* Of an optimizer: what settings of 0 mean; NULL: Adam's, 0.9, 0.999 and 1e-8. */
    const struct qn_optimizer_attr *defaults;
    /* Of an optimizer that is not for all parameters: those of less than `below` elements, or of
     * less than `rank` dimensions, are updated by the optimizer `name`, with the same settings. */
    struct {
        int64_t below;
        int rank;
        const char *name;
    } small;
    /* Of an optimizer: number of the slot, of u8, that has 8 more bits of parameters in bf16, which
     * therefore need no master (base/number.h); 0: there is none. */
    int correction;
    /* For operators on single elements: the step that this is in a chain of such (op/chain.h), its
     * values left out; false: none with these operands. NULL: never. */
    bool (*link)(const struct qn_shape_call *call, struct qn_chain_link *link);
    uint8_t batch[QN_MAX_IN]; /* enum qn_batch_rule of each input */
    /* Samples that must stay together (batch norm's group); NULL: 1. The micro-batch is a multiple
     * of it, so that no plan changes what the model computes. */
    int64_t (*batch_group)(const void *attr);
    /* For operators that give losses: the sum of the weights of these samples, from inputs alone.
     * host[i] is the data of input i for `call`'s shapes, NULL if the input is not known on the
     * host; reads only inputs named by weight_inputs (bit i). NULL: the number of output elements.
     */
    double (*loss_weight)(const struct qn_call *call, const void *const *host);
    unsigned weight_inputs;
};

/* The operator of that name, or NULL. Thread-safety: Safe. */
const struct qn_op *qn_op_find(const char *name);
/* All operators, in the order of the list; NULL ends it. */
const struct qn_op *const *qn_op_all(void);
/* For tests: adds `op` behind the list, in the place of the one that was lent before; NULL takes it
 * back. The test's own kernel folder has its program (qn_device_params.kernel_dir). Thread-safety:
 * Unsafe; while there is no plan that names it. */
void qn_op_lend(const struct qn_op *op);

/* Appends a node to a graph; used by the public functions that stand beside the descriptors. `in`
 * has op->n_in tensors (0 = absent), `attr` is copied. Gives output 0; errors stick to the graph.
 * Implemented by graph/, declared here so that ops/ need not see it. */
qn_tensor qn_op_apply(qn_graph *graph, const struct qn_op *op, const qn_tensor *in,
                      const void *attr);
/* A constant f32 tensor of `count` values, copied; for attributes that kernels read as arrays. */
qn_tensor qn_op_constant(qn_graph *graph, const char *name, const float *values, int64_t count);

/* Warns through the graph's log, the first time that anything does. Implemented by graph/, too. */
void qn_op_warn(qn_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes of an operand; 0 if it is absent. */
int64_t qn_operand_bytes(const struct qn_operand *operand);
/* Elements of an operand; 0 if it is absent. */
int64_t qn_operand_count(const struct qn_operand *operand);
static inline bool qn_present(const struct qn_operand *operand)
{
    return operand->dtype != QN_DTYPE_NONE;
}
/* Whether a node with these attributes needs read i of the group. */
static inline bool qn_group_reads(const struct qn_group *group, const void *attr, int i)
{
    return !group->spares || !(group->spares(attr) >> i & 1u);
}
/* The operand that `ref` names in the call; never NULL for a ref that is not none. */
struct qn_operand *qn_call_operand(struct qn_call *call, struct qn_ref ref);

/* Fails a shape rule: formats the reason and gives QN_ERR_SHAPE. */
qn_status qn_shape_error(struct qn_shape_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets an output of a shape rule. */
void qn_shape_set(struct qn_operand *operand, qn_dtype dtype, int rank, const int64_t *dim);

#endif
