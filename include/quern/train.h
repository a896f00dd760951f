/* SPDX-License-Identifier: MIT
 *
 * Running a plan: one call is one update of a whole effective batch, however many micro-steps it
 * takes.
 */
#ifndef QUERN_TRAIN_H
#define QUERN_TRAIN_H

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

typedef struct qn_cycle {
    int64_t samples; /* the effective batch: one of the plan's */
    double lr;       /* at least 0 */
    qn_fetch_fn fetch;
    void *user;
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
} qn_metrics;

/* Runs one cycle: enqueues and returns. `previous` (may be NULL) receives the metrics of the update
 * before this one: they arrive one update late, so that nobody waits. A call whose data could not
 * be fetched changed nothing that a later one uses: it may be repeated. */
QN_API qn_status qn_trainer_step(qn_trainer *trainer, const qn_cycle *cycle, qn_metrics *previous);
/* Waits for all that runs; `last` (may be NULL) receives the metrics of the last update, which are
 * given once. */
QN_API qn_status qn_trainer_finish(qn_trainer *trainer, qn_metrics *last);

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
    double begin, seconds;    /* on the host's clock; `begin` since some fixed moment */
    int64_t live_bytes;       /* alive while it ran, as planned */
} qn_profile_step;

/* From now on tells `fn` of every step, on the thread that runs it; NULL: no longer. Each step is
 * waited for, so that everything takes longer; no number changes. */
typedef void (*qn_profile_fn)(void *user, const qn_profile_step *step);
QN_API void qn_trainer_profile(qn_trainer *trainer, qn_profile_fn fn, void *user);

/* The micro-steps of a cycle without the update: leaves the gradient of the whole effective batch
 * in the accumulators, for qn_trainer_read_gradient, until the next call that runs anything.
 * QN_ERR_ARGUMENT under a plan with early_updates: it keeps no gradient. */
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
    const char *note; /* the caller's own text, kept beside the rest (a recipe); may be NULL */
} qn_save_params;

/* Saves all that a bit-identical continuation needs as DIR/update-NNNNNNNN/ (-1 and so on behind it
 * where that update was saved already): weights.safetensors (parameters and state),
 * optimizer.safetensors, train.json with the plan, the device's facts and the variant table, and
 * checksums.txt. The folder appears whole or not at all; then DIR/last (and
 * best) point to it and checkpoints that no link names are removed; nothing else in DIR is touched.
 * Waits for the device. */
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

/* The plan of the checkpoint, made again for `graph`: the same hash, or QN_ERR_FORMAT with the
 * reason (another graph, other kernels, a device on which it cannot run). A warning where the
 * device has only another name. */
QN_API qn_status qn_checkpoint_plan(const qn_checkpoint *checkpoint, const qn_graph *graph,
                                    const qn_device *device, qn_plan **plan);
/* Puts parameters, state, optimizer and counters into a trainer of the same graph and optimizer. A
 * checkpoint that does not fit is refused before anything is changed. */
QN_API qn_status qn_checkpoint_restore(const qn_checkpoint *checkpoint, qn_trainer *trainer);

/* Parameters and state from a safetensors file, by name: every tensor of the trainer must be there
 * with its shape; what the trainer does not know is refused, save for PyTorch's counters
 * (num_batches_tracked) beside running averages. Nothing is changed then. */
QN_API qn_status qn_weights_load(qn_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
