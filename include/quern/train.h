/* SPDX-License-Identifier: MIT
 *
 * Running a plan: one call is one update of a whole effective batch, however many micro-steps it
 * takes.
 */
#ifndef QUERN_TRAIN_H
#define QUERN_TRAIN_H

#include <quern/io.h>
#include <quern/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory, parameters and recorded launches of one plan on one device.
 * Thread-safety: Unsafe; several trainers live in one process.
 * Lifetime: until qn_trainer_close; device and plan must outlive it. After a device error every
 * call gives that status. */
typedef struct qn_trainer qn_trainer;

typedef struct qn_trainer_params {
    uint64_t seed;       /* of initial parameters and dropout */
    double weight_decay; /* of the optimizer; at least 0 */
    double clip;         /* largest global gradient norm; 0: none; not under early_updates */
    bool poison;         /* debug: after each step fill what is dead with NaN; changes no result */
} qn_trainer_params;

/* Creates every buffer of the plan (and no other, later), touches all of it, draws the parameters
 * and records the launches. QN_ERR_MEMORY if the device refuses: the log gives bytes asked and
 * obtained and a budget to try. */
QN_API qn_status qn_trainer_open(qn_trainer **trainer, qn_device *device, const qn_plan *plan,
                                 const qn_trainer_params *params);
QN_API void qn_trainer_close(qn_trainer **trainer);

/* Gives samples first .. first + count - 1 of the cycle for one input: `count` rows, one after
 * another, written to `rows`. May be asked for any range, more than once, on the calling thread.
 * Whatever it returns but QN_OK ends the call that asked, which returns it too; QN_ERR_DEVICE is
 * taken for an error of the trainer's own device. */
typedef qn_status (*qn_fetch_fn)(void *user, const char *input, int64_t first, int64_t count,
                                 void *rows);

/* Neighbouring numbers of one of the arrays in which a cycle's gradient is summed. */
typedef struct qn_reduce_slice {
    int array; /* qn_trainer_arrays */
    int64_t first, count;
} qn_reduce_slice;

/* How trainers that share a cycle ("members") add up what each has computed of it. The functions
 * are called on the thread of the member; what they return but QN_OK ends its call. */
typedef struct qn_reduce {
    void *user;
    /* Makes this member's sums those of all members. */
    qn_status (*weights)(void *user, double *weights, int count);
    /* This member's part of the slice is complete once what was enqueued so far has run: called in
     * the last micro-step, for every number once, in an order that plans of equal steps share. */
    qn_status (*begin)(void *user, qn_trainer *trainer, const qn_reduce_slice *slice);
    /* Returns when every slice of this member holds the sum over all members; where members share
     * the optimizer's work (qn_plan_params.members), of gradients the numbers that it updates. */
    qn_status (*finish)(void *user, qn_trainer *trainer);
    /* Where they share it, else not called: gives each member the norms of all chunks, and what
     * the others have updated. */
    qn_status (*norms)(void *user, qn_trainer *trainer);
    qn_status (*parameters)(void *user, qn_trainer *trainer);
    /* Of programs whose whole runs read cells of samples, else not called: this member's samples
     * have their rows in the cell; returns when those of all members are there. Each member then
     * computes what comes of all samples; of a loss over them, and of the gradients of parameters
     * that nothing else reads, the sums of all members are those of the one whose samples are the
     * first. */
    qn_status (*rows)(void *user, qn_trainer *trainer, const char *cell);
} qn_reduce;

typedef struct qn_cycle {
    int64_t samples; /* the effective batch: one of the plan's; of a member its share, which may be
                        0 */
    double lr;       /* at least 0 */
    qn_fetch_fn fetch;
    void *user;
    /* Of plans with runs that are alternatives (plan.h): which of them, from 0, the micro-step of
     * `count` samples from `first` on takes. Asked more than once; the same samples give the same
     * answer. NULL: always 0. */
    int (*choose)(void *user, int64_t first, int64_t count);
    int64_t first; /* of a member: what its first sample is in the whole cycle. Data is fetched, and
                      random numbers are drawn, by the place in the whole cycle */
    int64_t whole; /* of a member: samples of the whole cycle; 0: `samples` */
    const qn_reduce *reduce; /* of a member; NULL: there are no others */
    bool measure_noise;      /* gives the micro_norm of qn_metrics; changes no number */
} qn_cycle;

enum { QN_METRICS_LOSSES = 8 };

/* What an update did. */
typedef struct qn_metrics {
    bool valid;     /* false: there is none yet, or it was given already */
    int64_t update; /* from 0 */
    int64_t samples;
    double loss;                      /* sum over losses of coefficient * numerators / weights */
    double losses[QN_METRICS_LOSSES]; /* each alone, without its coefficient; NAN without weight */
    double grad_norm; /* of the whole gradient, before clipping; 0 if nothing had weight */
    double lr;
    bool skipped; /* the gradient was not finite, or nothing had weight: nothing changed, but for
                     early_updates of parameters whose own gradient was finite */
    /* Of the first micro-step where qn_cycle.measure_noise asked for it and it was not all of
     * qn_cycle.samples, else 0: its samples, and the norm of its share of the gradient, times
     * samples / micro_samples. What qn_batch_adapt takes. Plans with cells or several passes give
     * none. */
    int64_t micro_samples;
    double micro_norm;
} qn_metrics;

/* Runs one cycle: enqueues and returns. `previous` (may be NULL) receives the metrics of the update
 * before this one: they arrive one update late, so that nobody waits. A call whose data could not
 * be fetched changed nothing that a later one uses: it may be repeated. */
QN_API qn_status qn_trainer_step(qn_trainer *trainer, const qn_cycle *cycle, qn_metrics *previous);
/* Waits for all that runs; `last` (may be NULL) receives the metrics of the last update, which are
 * given once. */
QN_API qn_status qn_trainer_finish(qn_trainer *trainer, qn_metrics *last);

/* The norms of the gradient of each group of the plan's norm_groups (plan.h), in their order, in
 * the update whose metrics were given last: as grad_norm that of the declared loss and of the whole
 * cycle, before clipping, not finite where the group's gradient is not, and 0 if nothing had
 * weight. Gives how many there are, of which the first `room` are copied to `norms`; 0: the plan
 * has no groups, or no metrics were given yet. Does not wait. */
QN_API int qn_trainer_grad_norms(const qn_trainer *trainer, double *norms, int room);

/* --- an update in four calls --- */

/* What qn_trainer_step does, one call after the other, for members of one cycle. Gradient norm,
 * test for finite numbers, loss scale and the skipping of weightless cycles are those of the whole
 * cycle, since each member goes on from the sums of all. After a failure an update begins anew with
 * qn_trainer_run. QN_ERR_ARGUMENT: out of turn, or a plan with early_updates where there are other
 * members.
 *
 * The sums of the losses' weights over this member's samples. */
QN_API qn_status qn_trainer_weigh(qn_trainer *trainer, const qn_cycle *cycle,
                                  double weights[QN_METRICS_LOSSES]);
/* Enqueues the runs of the cycle, given the weights of the whole cycle. */
QN_API qn_status qn_trainer_run(qn_trainer *trainer, const qn_cycle *cycle, const double *weights);
/* Begins what cycle->reduce was not told of yet and finishes; does nothing where there is none. */
QN_API qn_status qn_trainer_reduce(qn_trainer *trainer, const qn_cycle *cycle);
/* The update; `previous` as of qn_trainer_step. */
QN_API qn_status qn_trainer_update(qn_trainer *trainer, const qn_cycle *cycle,
                                   qn_metrics *previous);

/* The arrays of f32 that members add up: gradients of parameters, what running averages gather,
 * and, last, the numerators of the losses. Gives how many and, of the first `room`, the numbers in
 * each; members of one model and one largest allocation have the same. 0 under early_updates. */
QN_API int qn_trainer_arrays(const qn_trainer *trainer, int64_t *counts, int room);
/* Reads or writes a slice; waits for what was enqueued before. */
QN_API qn_status qn_trainer_read_slice(qn_trainer *trainer, const qn_reduce_slice *slice,
                                       float *values);
QN_API qn_status qn_trainer_write_slice(qn_trainer *trainer, const qn_reduce_slice *slice,
                                        const float *values);

/* Makes the plan again for another budget, between two cycles, and moves the training onto it:
 * state goes through the host, so that the buffers of the old plan and of the new one never stand
 * on the device together. The training stays the same: to the bit at an equal micro-batch, else to
 * rounding. Waits for the device; metrics of the last update arrive as ever. QN_ERR_BUDGET: no plan
 * fits, the old one goes on; so it does if the device or the host has no memory for the new one
 * (QN_ERR_MEMORY). */
QN_API qn_status qn_trainer_set_budget(qn_trainer *trainer, int64_t budget);
/* The plan that runs: that of qn_trainer_open, or the last one that qn_trainer_set_budget made,
 * borrowed until it makes another. */
QN_API const qn_plan *qn_trainer_plan(const qn_trainer *trainer);

/* What a step of the plan did. */
typedef enum qn_profile_kind {
    QN_PROFILE_FORWARD,
    QN_PROFILE_RECOMPUTE, /* of the forward pass, again */
    QN_PROFILE_BACKWARD,
    QN_PROFILE_UPDATE,
    QN_PROFILE_EVALUATION,
    QN_PROFILE_TRANSFER, /* between host and device */
} qn_profile_kind;

typedef struct qn_profile_step {
    qn_profile_kind kind;
    const char *name, *group; /* "conv1", "weight gradient"; borrowed for the call */
    double begin, seconds;    /* on the host's CLOCK_MONOTONIC */
    int64_t live_bytes;       /* alive while it ran, as planned */
} qn_profile_step;

/* From now on tells `fn` of every step, on the thread that runs it; NULL: no longer. Each step is
 * waited for, so that everything takes longer; no number changes. */
typedef void (*qn_profile_fn)(void *user, const qn_profile_step *step);
QN_API void qn_trainer_profile(qn_trainer *trainer, qn_profile_fn fn, void *user);

/* A digest of all parameters, as operators read them, and of what operators keep from update to
 * update: the same for trainers of one model that compute the same, as members of a group do,
 * whatever each keeps of masters and averages. Waits. QN_ERR_MEMORY. */
QN_API qn_status qn_trainer_digest(qn_trainer *trainer, uint64_t *digest);

/* The micro-steps of a cycle without the update: leaves the gradient of the whole effective batch
 * in the accumulators, for qn_trainer_read_gradient, until the next call that runs anything.
 * QN_ERR_ARGUMENT under a plan with early_updates: it keeps no gradient. It is that of the loss as
 * declared, whatever the storage type: a loss scale is divided out. */
QN_API qn_status qn_trainer_accumulate(qn_trainer *trainer, const qn_cycle *cycle);
QN_API qn_status qn_trainer_read_gradient(qn_trainer *trainer, const char *parameter, float *values,
                                          int64_t count);

/* Results of an evaluation: output `name` for samples first .. first + count - 1, one after
 * another, in its shape and element type (qn_shape_of and qn_dtype_of of its tensor: under f16 or
 * bf16 storage most are of 16 bits). `rows` is borrowed for the call. What it returns is taken as
 * that of qn_fetch_fn. */
typedef qn_status (*qn_result_fn)(void *user, const char *name, int64_t first, int64_t count,
                                  const void *rows);
/* Forward passes in evaluation mode over `samples` samples, in micro-batches; the last one is
 * filled up with repetitions, which are not given to `result` (may be NULL). Waits. */
QN_API qn_status qn_trainer_evaluate(qn_trainer *trainer, int64_t samples, qn_fetch_fn fetch,
                                     qn_result_fn result, void *user);
/* The same for the run of that name, of kind QN_RUN_EVALUATE, where a program has several. */
QN_API qn_status qn_trainer_evaluate_run(qn_trainer *trainer, const char *run, int64_t samples,
                                         qn_fetch_fn fetch, qn_result_fn result, void *user);

/* Rows that were stored in a ring or cache (plan.h) since it was empty, those that a ring has
 * forgotten included; -1: there is none of the name. A cycle that failed or was skipped leaves
 * rings as they were: a plan that has any waits for each update before the next one begins, and
 * qn_trainer_finish for the last. */
QN_API int64_t qn_trainer_cell_rows(const qn_trainer *trainer, const char *name);
/* Empties a ring or cache: every element is again as the plan says that it begins. */
QN_API qn_status qn_trainer_clear_cell(qn_trainer *trainer, const char *name);
/* From now on the newest `rows` rows of a ring stay; 0: as many as it has room for. Older ones are
 * again as the plan says that they begin, from repetition to repetition. Belongs to checkpoints.
 * Tables (QN_CELL_TABLE) follow. Between two cycles; QN_ERR_ARGUMENT: no ring of the plan, or one
 * whose rows have no multiple of 4 bytes, or of whose rows there is a table that needs them all: of
 * a bank (contrastive.h) ids alone may be limited. What stays: 0, all; -1: there is no ring of the
 * name. */
QN_API qn_status qn_trainer_limit_cell(qn_trainer *trainer, const char *name, int64_t rows);
QN_API int64_t qn_trainer_cell_limit(const qn_trainer *trainer, const char *name);

/* Parameters ("conv1.weight") and state ("bn1.running_mean") by name, f32. Waits. QN_ERR_ARGUMENT
 * if the name is unknown or `count` is not its number of elements. */
QN_API qn_status qn_trainer_read(qn_trainer *trainer, const char *name, float *values,
                                 int64_t count);
QN_API qn_status qn_trainer_write(qn_trainer *trainer, const char *name, const float *values,
                                  int64_t count);
/* Names in a fixed order; NULL past the last. */
QN_API const char *qn_trainer_tensor(const qn_trainer *trainer, int index, qn_shape *shape);

/* Updates done so far, skipped ones included, and bytes of all device buffers of this trainer. */
QN_API int64_t qn_trainer_updates(const qn_trainer *trainer);
QN_API int64_t qn_trainer_bytes(const qn_trainer *trainer);

/* --- checkpoints --- */

typedef struct qn_save_params {
    int64_t position; /* of the data: samples taken since the start of training */
    bool best;        /* the link `best` follows too */
    int keep;         /* the newest so many stay, besides those that links name; 0: these alone */
    const char *note; /* the caller's own text, kept beside the rest (a recipe); may be NULL */
} qn_save_params;

/* Saves all that a bit-identical continuation needs as DIR/update-NNNNNNNN/ (-1 and so on behind it
 * where that update was saved already): weights.safetensors (parameters and state),
 * optimizer.safetensors, train.json with the plan, the device's facts and the variant table, and
 * checksums.txt. The folder appears whole or not at all; then DIR/last (and
 * best) point to it and older checkpoints that no link names are removed; nothing else in DIR is
 * touched. Waits for the device. */
QN_API qn_status qn_checkpoint_save(qn_trainer *trainer, const char *dir,
                                    const qn_save_params *params);

/* Makes DIR if it is missing and locks it, so that one training alone saves there; saving does not
 * ask for it. The lock lasts until the descriptor is closed or the process ends. QN_ERR_IO: another
 * one has it. `log` may be NULL. */
QN_API qn_status qn_checkpoint_lock(const char *dir, int *descriptor, const qn_log *log);

/* A checkpoint opened for reading; every file was checked against its checksum.
 * Thread-safety: immutable. Lifetime: until qn_checkpoint_close; what it gives is borrowed from it.
 */
typedef struct qn_checkpoint qn_checkpoint;

typedef struct qn_checkpoint_info {
    const char *path;    /* of its folder, links followed */
    const char *weights; /* path of weights.safetensors */
    int64_t update;      /* updates done */
    int64_t position;
    const char *note;
    qn_trainer_params trainer;
    qn_plan_params plan; /* with the micro-batch that was chosen */
    qn_facts facts;
    uint64_t plan_hash;
} qn_checkpoint_info;

/* Opens a checkpoint's folder, or the one that DIR/last points to. QN_ERR_IO: not there or not
 * readable; QN_ERR_FORMAT: short, corrupt or of another version. `log` may be NULL. */
QN_API qn_status qn_checkpoint_open(qn_checkpoint **checkpoint, const char *path,
                                    const qn_log *log);
QN_API void qn_checkpoint_close(qn_checkpoint **checkpoint);
QN_API const qn_checkpoint_info *qn_checkpoint_describe(const qn_checkpoint *checkpoint);
/* The checkpoint as a member of the group that saved it has it (group.h): plan, facts and plan_hash
 * are those of that member, all else is the same; borrowed. Member 0, and of a training by one
 * device the only one, has the checkpoint itself. NULL: there is no such member, or the plans of so
 * many had no room. */
QN_API const qn_checkpoint *qn_checkpoint_member(const qn_checkpoint *checkpoint, int member);

/* The plan of the checkpoint, made again for `graph`: the same hash, or QN_ERR_FORMAT with the
 * reason (another graph, other kernels, a device on which it cannot run). A warning where the
 * device has only another name. */
QN_API qn_status qn_checkpoint_plan(const qn_checkpoint *checkpoint, const qn_graph *graph,
                                    const qn_device *device, qn_plan **plan);
/* The same for a program of several runs. */
QN_API qn_status qn_checkpoint_plan_runs(const qn_checkpoint *checkpoint, const qn_run_list *list,
                                         const qn_device *device, qn_plan **plan);
/* Puts parameters, state, optimizer and counters into a trainer of the same graph and optimizer. A
 * checkpoint that does not fit is refused before anything is changed. */
QN_API qn_status qn_checkpoint_restore(const qn_checkpoint *checkpoint, qn_trainer *trainer);

/* --- weights alone --- */

/* What becomes of a tensor between a file and a trainer. */
typedef enum qn_weights_fate {
    QN_WEIGHTS_TAKEN,        /* loaded, or saved */
    QN_WEIGHTS_LEFT_OUT,     /* `include`, `exclude` or `layout` say so; or it is one of PyTorch's
                                counters (num_batches_tracked) beside running averages */
    QN_WEIGHTS_NOT_IN_FILE,  /* the trainer alone has it */
    QN_WEIGHTS_NOT_IN_MODEL, /* the file alone has it */
    QN_WEIGHTS_OTHER_SHAPE,  /* both have it, in two shapes */
    QN_WEIGHTS_OTHER_TYPE,   /* both have it, in types of which one is no f32, f16 or bf16: always
                                refused */
    QN_WEIGHTS_FIRST_ROWS,   /* loaded: the first rows of the file's, as `layout` says */
} qn_weights_fate;

typedef struct qn_weights_record {
    const char *name; /* borrowed for the call */
    qn_weights_fate fate;
    qn_shape model, file; /* its shape there, whatever the layout; rank 0 where it is missing */
} qn_weights_record;

/* Told of every tensor of the trainer, in the order of qn_trainer_tensor, then of those that the
 * file alone has. */
typedef void (*qn_weights_fn)(void *user, const qn_weights_record *record);

/* Patterns of names are separated by commas: `*` is any characters, dots included, or none, `?` is
 * one, all else stands for itself. "encoder.*,head.bias". */
typedef struct qn_weights_params {
    const char *include;    /* patterns of the tensors to load or save; NULL or "": all */
    const char *exclude;    /* but not these; NULL or "": none */
    bool partial;           /* loading: a tensor that only one side has is no error; the trainer's
                               keep their numbers */
    bool skip_other_shapes; /* loading: nor is a shape that differs; the trainer's keep theirs */
    qn_weights_fn fn;       /* NULL: nobody is told */
    void *user;
    const qn_layout *layout; /* how the file's tensors stand in it (qn_model_layout); NULL: as the
                                trainer has them. Borrowed for the call */
    const char *scope; /* loading: of the trainer's tensors those alone whose names begin so, such
                          as "query." (qn_graph_begin_scope), without it from then on; NULL: all */
} qn_weights_params;

/* Parameters and state from a safetensors file, by name; counters and optimizer stay as they are.
 * Numbers in f32, f16 and bf16 become those of the trainer's type, rounded to nearest even.
 * `params` may be NULL: then every tensor of the trainer must be in the file with its shape, and
 * none that the trainer does not know. QN_ERR_FORMAT: a tensor that was chosen does not fit;
 * QN_ERR_ARGUMENT: a pattern matches no name of either side, or nothing is left to load. `fn` is
 * told everything before anything is written, and of a file that is then refused too. A file that
 * is refused or cannot be read to its end changes nothing. Where a checkpoint's checksums.txt lies
 * beside the file and names it, its bytes are checked first. Waits. */
QN_API qn_status qn_trainer_load_weights(qn_trainer *trainer, const char *path,
                                         const qn_weights_params *params);
/* Parameters and state to a safetensors file, which appears whole or not at all and replaces what
 * had its name. `params` may be NULL: all of them. QN_ERR_ARGUMENT as above. Waits. */
QN_API qn_status qn_trainer_save_weights(qn_trainer *trainer, const char *path,
                                         const qn_weights_params *params);
/* qn_trainer_load_weights without params. */
QN_API qn_status qn_weights_load(qn_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
