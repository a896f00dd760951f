/* SPDX-License-Identifier: MIT
 *
 * The inside of a trainer, shared by the files of run/.
 */
#ifndef QN_RUN_TRAINER_H
#define QN_RUN_TRAINER_H

#include "cl/device.h"
#include "cl/recording.h"
#include "cl/slab.h"
#include "op/control.h"
#include "plan/plan.h"
#include <quern/train.h>

_Static_assert((int)QN_METRICS_LOSSES == (int)QN_MAX_LOSSES, "metrics hold every loss");
_Static_assert((int)QN_MAX_CELLS == (int)QN_MAX_POSITIONS, "every cell has a position");

enum { QN_STAGES = 2 };

/* Host memory for one micro-step's transfers, reused in turn: the device may still read one while
 * the next is filled. */
struct qn_stage {
    unsigned char *rows; /* of every input, at trainer->input_at */
    struct qn_start {    /* as in the control block */
        uint32_t sample, padding, position[QN_MAX_POSITIONS];
    } start;
    struct qn_transfer
        *transfers; /* from here, not yet waited for: one for each input and one more */
    int n_transfers;
    struct qn_transfer *parking; /* likewise, as the phase's items */
    int begun, awaited;          /* of them; how many of the phase's ends kernels wait for */
};

/* The norm of a first micro-step's gradient on its way to the host. */
struct qn_noise {
    float *norms; /* of chunks */
    float loss_scale;
    struct qn_transfer read[2];
    bool pending;
};

/* The norms of groups of parameters on their way to the host. */
struct qn_norms {
    float norm[QN_MAX_NORM_GROUPS];
    struct qn_transfer read;
};

/* Update record: host side of one update, what is written to the control block and read back. */
struct qn_update_record {
    struct qn_control out, in;
    struct qn_transfer write, read;
    struct qn_noise noise;
    struct qn_norms norms;
    struct qn_metrics metrics; /* what the host knows already */
    double weight[QN_MAX_LOSSES];
    bool pending; /* enqueued and not yet collected */
    bool settled; /* waited for */
};

/* A store or a fetch, which runs beside the kernels: by steps of its phase. */
struct qn_parked {
    int step;
    int begin; /* after this step; -1: with the phase */
    int end;   /* what comes from this step on waits for it; may be the number of steps */
};

struct qn_phase_parking {
    struct qn_parked *items; /* by when they begin */
    struct qn_parked **ends; /* the same by when they end */
    int count;
};

/* The gradient of a parameter that is complete after a step of a phase. */
struct qn_complete {
    int step, parameter;
};

/* The launches of one phase. */
struct qn_phase_recording {
    struct qn_recording *recording;
    int *first_launch; /* by step; one more than there are steps */
    struct qn_phase_parking parking;
    struct qn_complete *complete; /* gradients that are complete, by step */
    int n_complete;
};

/* What a member of a group that writes a checkpoint has of the others. */
struct qn_lender {
    void *user;
    /* Reads what they keep (shard.c): `value` of theirs, from an offset in bytes as if they had all
     * of it. */
    qn_status (*read)(void *user, int owner, int value, int64_t offset_bytes, void *host,
                      int64_t bytes);
    const char *plans; /* qn_train_plan_json of each, in order, with commas; NULL: there are none */
};

/* How far the four calls of an update are. */
enum qn_stage_of_update { QN_UPDATE_IDLE, QN_UPDATE_RUN, QN_UPDATE_REDUCED };

struct qn_trainer {
    qn_device *device;
    const struct qn_plan *plan;
    struct qn_plan *own; /* the plan, if the trainer made it (budget.c); NULL */
    struct qn_log log;
    struct qn_trainer_params params;
    struct qn_slab *slab;
    int blas_buffer; /* index in the slab; -1 */
    struct qn_phase_recording phases[QN_MAX_PHASES];
    struct qn_stage stages[QN_STAGES];
    const char **tensor_names;       /* of qn_trainer_tensor */
    int64_t *input_at[QN_MAX_RUNS];  /* by graph, by node: offset of an input's rows in a stage */
    int64_t cell_rows[QN_MAX_CELLS]; /* stored since the start, or the last clearing */
    int64_t cell_rows_before[QN_MAX_CELLS]; /* the same before the present update */
    int64_t cell_limits[QN_MAX_CELLS];      /* of rings: rows that stay; 0: all */
    bool told_of_drift;   /* the last look at banks gave a warning (drift.c), or followed one */
    unsigned char *rings; /* host memory: what rings and tables held then; NULL: there are none */
    int64_t stage_bytes;
    unsigned char *results; /* host memory of one evaluation output */
    unsigned char *parked;  /* host memory of what is parked */
    struct qn_update_record records[QN_STAGES];
    int64_t updates;
    double grad_norms[QN_MAX_NORM_GROUPS]; /* with the metrics that were given last */
    int n_grad_norms;                      /* 0: none were given yet */
    enum qn_stage_of_update stage_of_update;
    bool *begun;                    /* by parameter: its slice, in the present update */
    const struct qn_lender *lender; /* NULL: what others keep cannot be read now */
    unsigned char *covered; /* host memory: parameters in whose place averages are (averages.c);
                               NULL: they are in none's */
    int next_stage;
    qn_profile_fn profile; /* told of each step; NULL: nobody is */
    void *profile_user;
    qn_status failed;           /* a device error sticks */
    struct qn_arena arena;      /* of tensor_names */
    struct qn_arena plan_arena; /* of all that belongs to the present plan */
};

/* Buffers, host memory for transfers and recordings of trainer->plan; the buffers hold nothing yet.
 * After a failure qn_trainer_close_plan is still to be called. */
qn_status qn_trainer_open_plan(struct qn_trainer *trainer);
/* Gives them back; the device must be idle. */
void qn_trainer_close_plan(struct qn_trainer *trainer);

/* Where a value lies: buffer and byte offset. */
struct qn_place_of {
    int buffer;
    int64_t offset;
};
struct qn_place_of qn_trainer_place(const struct qn_trainer *trainer, int value);
/* The same of a storage of the program. */
struct qn_place_of qn_trainer_storage_place(const struct qn_trainer *trainer, int storage);

/* Records every phase of the plan. */
qn_status qn_trainer_record(struct qn_trainer *trainer);

/* --- cells (cells.c) --- */

/* Runs a phase with input rows from `fetch` for samples first .. first + count - 1 of the cycle;
 * rows beyond `count` repeat the last. Evaluation results go to `result`. */
struct qn_feed {
    qn_fetch_fn fetch;
    qn_result_fn result;
    void *user;
    int64_t first, count;
    int64_t base;            /* what sample 0 is in the whole cycle */
    const qn_reduce *reduce; /* is told of slices as they are complete; NULL: nobody is */
};
qn_status qn_trainer_run_phase(struct qn_trainer *trainer, int phase, const struct qn_feed *feed);

/* --- cells (cells.c) --- */

/* Rows of a cell that a sample of the phase's repetition fills; 0: it fills none. */
int64_t qn_cell_rows_each(const struct qn_phase_run *phase, const struct qn_cell_of *cell);
/* Where the rows of a phase's repetition begin, and which are padding, in `start`. QN_ERR_ARGUMENT:
 * a cache has no room for them. */
qn_status qn_cells_begin(const struct qn_trainer *trainer, const struct qn_phase_run *phase,
                         const struct qn_feed *feed, struct qn_start *start);
/* Counts the rows of `samples` samples that the steps of a phase stored; rings forget what is too
 * old. */
qn_status qn_cells_end(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                       int64_t samples);
/* The number of a ring or cache; -1: there is none of the name. */
int qn_cells_find(const struct qn_trainer *trainer, const char *name);
/* Sets a cell that outlives cycles to its beginning; nothing of the others. */
qn_status qn_cells_clear(struct qn_trainer *trainer, int cell);
/* Host memory for what rings and tables hold, among that of the plan. */
qn_status qn_cells_open(struct qn_trainer *trainer);
/* Keeps how many rows there are and what rings and tables hold; goes back to that, where what
 * stored more has failed or was skipped. Both wait for what they hold. */
qn_status qn_cells_keep(struct qn_trainer *trainer);
qn_status qn_cells_go_back(struct qn_trainer *trainer);
/* Waits for the last update where there are rings: if it was skipped, they go back. */
qn_status qn_trainer_settle(struct qn_trainer *trainer);

/* --- rings that forget (rings.c) --- */

/* Rows of ring c that stay in the present update, and those of them that there are. */
int64_t qn_ring_kept(const struct qn_trainer *trainer, int c);
int64_t qn_ring_fill(const struct qn_trainer *trainer, int c);
/* After rows were added by the phase to ring c, which had `before`: forgets those that are now too
 * old. */
qn_status qn_ring_forget(struct qn_trainer *trainer, int c, const struct qn_phase_run *phase,
                         int64_t before);

/* --- tables of rings that forget (tables.c) --- */

/* Whether rows of ring c may be emptied: all tables of it allow that. */
bool qn_tables_let_forget(const struct qn_trainer *trainer, int c);
/* After `count` rows of ring c from `first` on were emptied: what tables say of their stretches is
 * made anew. Right after a phase has added rows, whose last steps keep its tables, so that their
 * scratch is free still; or, with NULL, between two cycles. */
qn_status qn_tables_forget(struct qn_trainer *trainer, int c, const struct qn_phase_run *phase,
                           int64_t first, int64_t count);

/* --- slices (slices.c) --- */

/* Lists those of a phase by step, into `complete`; gives how many, -1 when out of memory. */
int qn_slices_find(const struct qn_phase_run *phase, struct qn_arena *arena,
                   struct qn_complete **complete);
/* Begins the slice of a parameter; those of all that the last phase has not begun; all with zeros.
 */
qn_status qn_slices_begin(struct qn_trainer *trainer, const qn_reduce *reduce, int parameter);
qn_status qn_slices_begin_rest(struct qn_trainer *trainer, const qn_reduce *reduce);
qn_status qn_slices_clear(struct qn_trainer *trainer);
/* All slices, each once, in an order that members of one model share: those of parameters, then the
 * rest. Gives how many, of which the first `room` are copied. */
int qn_slices_list(const struct qn_trainer *trainer, qn_reduce_slice *list, int room);
/* Slices of the same numbers that each member computes of all samples, not of its own: gradients of
 * parameters that whole runs alone read, and their losses. Gives how many, of which the first
 * `room` are copied. */
int qn_slices_whole(const struct qn_trainer *trainer, qn_reduce_slice *list, int room);
/* The end of what was enqueued so far; reading a slice beside the kernels from then on; writing one
 * in order with them. Marks and transfers are waited for by qn_transfer_wait. */
qn_status qn_slices_mark(struct qn_trainer *trainer, struct qn_transfer *mark);
qn_status qn_slices_read(struct qn_trainer *trainer, const qn_reduce_slice *slice, float *values,
                         const struct qn_transfer *mark, struct qn_transfer *transfer);
qn_status qn_slices_write(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                          const float *values, struct qn_transfer *transfer);
/* The same of the parameters whose gradient a slice is, as operators read them, in their own type.
 */
qn_dtype qn_slices_type(const struct qn_trainer *trainer, const qn_reduce_slice *slice);
qn_status qn_slices_read_parameters(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                                    void *values, const struct qn_transfer *mark,
                                    struct qn_transfer *transfer);
qn_status qn_slices_write_parameters(struct qn_trainer *trainer, const qn_reduce_slice *slice,
                                     const void *values, struct qn_transfer *transfer);

/* --- parking (park.c) --- */

/* False when out of memory. */
bool qn_parking_lay(const struct qn_program *program, const struct qn_phase_run *phase,
                    struct qn_arena *arena, struct qn_phase_parking *parking);
/* The step after which, with all launches up to it enqueued, qn_parking_pass is to be called next;
 * INT_MAX: no more in this phase. */
int qn_parking_next(const struct qn_phase_parking *parking, const struct qn_stage *stage);
/* Begins what may begin after the step, and has what follows wait for what ends there. */
qn_status qn_parking_pass(struct qn_trainer *trainer, int phase, struct qn_stage *stage, int step);
/* Runs the store or fetch of a step in its place, for those who look at what is between steps. */
qn_status qn_parking_run(struct qn_trainer *trainer, int phase, struct qn_stage *stage, int step);

/* --- passes (passes.c) --- */

/* The run that a micro-step takes, of the pass that run `first` begins: its alternative, by
 * cycle->choose. QN_ERR_ARGUMENT: it is none. */
qn_status qn_trainer_choose(const struct qn_trainer *trainer, const struct qn_cycle *cycle,
                            int first, int64_t sample, int64_t count, int *run);
/* Runs in the pass that run `first` begins. */
int qn_pass_length(const struct qn_run_set *runs, int first);
/* Sums of the weights of every loss over this member's samples, from the host's data, in double. */
qn_status qn_trainer_sum_weights(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                                 double weight[QN_MAX_LOSSES]);
/* Enqueues every run of the cycle; `record` takes the noise of the gradient, if it is wanted. */
qn_status qn_trainer_run_passes(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                                const struct qn_cycle_plan *plan, struct qn_update_record *record);

/* --- noise of the gradient (noise.c) --- */

/* Host memory for the norms of both update records, among that of the plan. */
qn_status qn_noise_open(struct qn_trainer *trainer);
/* Between the first micro-step of a cycle and the second: asks for the norm of what the first gave.
 */
qn_status qn_noise_ask(struct qn_trainer *trainer, struct qn_update_record *record);
/* Waits for that norm, if it is on its way, and puts it into record->metrics. */
qn_status qn_noise_collect(struct qn_trainer *trainer, struct qn_update_record *record);

/* --- norms of groups (norms.c) --- */

/* After the update: asks for what it left. */
qn_status qn_norms_ask(struct qn_trainer *trainer, struct qn_update_record *record);
/* Waits for that, if it is on its way. */
qn_status qn_norms_wait(const struct qn_trainer *trainer, struct qn_update_record *record);
/* Makes the norms of this update those that qn_trainer_grad_norms gives; 0 if it never ran. */
void qn_norms_give(struct qn_trainer *trainer, const struct qn_update_record *record);

/* --- looking on --- */

/* Waits for step `index` of the phase, which began at `begin`, and tells trainer->profile. */
qn_status qn_trainer_report_step(struct qn_trainer *trainer, int phase, int index, double begin);

/* Waits until the device has read all that a stage holds. */
qn_status qn_stage_wait(struct qn_trainer *trainer, struct qn_stage *stage);

/* Draws parameters, writes constants, tables and initial state. */
qn_status qn_trainer_initialise(struct qn_trainer *trainer);

/* Writes the tables that tell optimizers where parameters lie. */
qn_status qn_trainer_write_tables(struct qn_trainer *trainer);

/* Passes a status on and remembers a device error. */
qn_status qn_trainer_check(struct qn_trainer *trainer, qn_status status);

/* QN_OK, or the device error after which a trainer does nothing. The log had its line; this one is
 * for qn_last_error alone. */
qn_status qn_trainer_failure(const struct qn_trainer *trainer);

/* A tensor that has a name: a parameter, a moving average, or an optimizer's slot. */
struct qn_named {
    const char *name;
    int value;
    qn_dtype dtype;
    struct qn_shape shape;
};
/* Entry `index` of parameters and state, in the order of the graph; false past the last. The name
 * of a state is made in `text`. */
bool qn_trainer_named(const struct qn_trainer *trainer, int index, char text[128],
                      struct qn_named *named);

/* Sets every element of a value; those in some of its bytes, of which begin and number are
 * multiples of 4. */
qn_status qn_trainer_fill_value(struct qn_trainer *trainer, int value, float with);
qn_status qn_trainer_fill_part(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                               int64_t bytes, float with);

/* Reads or writes bytes of a value; waits. */
qn_status qn_trainer_read_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                void *host, int64_t bytes);
qn_status qn_trainer_write_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 const void *host, int64_t bytes);

/* The same of masters, averages and states as if this member had all of them, whatever it keeps;
 * what others keep is not written, and read through trainer->lender. Without one masters and what
 * corrects parameters are read as the rounded parameters are, the rest not: QN_ERR_ARGUMENT. */
qn_status qn_shard_read(struct qn_trainer *trainer, int value, int64_t offset_bytes, void *host,
                        int64_t bytes);
qn_status qn_shard_write(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                         const void *host, int64_t bytes);

/* The parameter that `value` holds; NULL: it holds none. */
const struct qn_parameter *qn_trainer_parameter(const struct qn_trainer *trainer, int value);

/* Writes a tensor that is saved, or a part of an optimizer's slot, in its type; f32 masters,
 * parameters with an average and averages are written whole, and what operators read of them with
 * them. The average of a parameter begins anew. */
qn_status qn_trainer_write_tensor(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                  const void *host, int64_t bytes);
/* Reads whole elements of one. */
qn_status qn_trainer_read_tensor(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 void *host, int64_t bytes);
/* The value's own type, and f32 of parameters that an optimizer's slot corrects. */
qn_dtype qn_trainer_tensor_type(const struct qn_trainer *trainer, int value);
/* Elements of such a parameter from `first` on. QN_ERR_MEMORY. */
qn_status qn_corrected_write(struct qn_trainer *trainer, const struct qn_parameter *parameter,
                             int64_t first, const float *numbers, int64_t count);
qn_status qn_corrected_read(struct qn_trainer *trainer, const struct qn_parameter *parameter,
                            int64_t first, float *numbers, int64_t count);
/* All elements of a value, which is f32, f16 or bf16, from and to f32. QN_ERR_MEMORY. */
qn_status qn_trainer_write_numbers(struct qn_trainer *trainer, int value, const float *numbers,
                                   int64_t count);
qn_status qn_trainer_read_numbers(struct qn_trainer *trainer, int value, float *numbers,
                                  int64_t count);
/* Elements of a value in 16 bits, from `first` on. QN_ERR_MEMORY. */
qn_status qn_trainer_read_rounded(struct qn_trainer *trainer, int value, int64_t first,
                                  float *numbers, int64_t count);
qn_status qn_trainer_write_rounded(struct qn_trainer *trainer, int value, int64_t first,
                                   const float *numbers, int64_t count);

/* --- averages of which members have parts (averages.c) --- */

/* Whether evaluations of the trainer read averages that other members have parts of. */
bool qn_averages_are_parted(const struct qn_trainer *trainer);
/* Puts this member's averages into the place of its parameters, or these back; then members send
 * what they have of them. Other places are not touched. QN_ERR_MEMORY. */
qn_status qn_averages_cover(struct qn_trainer *trainer);
qn_status qn_averages_uncover(struct qn_trainer *trainer);

#endif
