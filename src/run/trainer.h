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

enum { QN_STAGES = 2 };

/* Host memory for one micro-step's transfers, reused in turn: the device may still read one while
 * the next is filled. */
struct qn_stage {
    unsigned char *rows; /* of every input, at trainer->input_at */
    uint32_t sample;
    struct qn_transfer
        *transfers; /* from here, not yet waited for: one for each input and one more */
    int n_transfers;
    struct qn_transfer *parking; /* likewise, as the phase's items */
    int begun, awaited;          /* of them; how many of the phase's ends kernels wait for */
};

/* Host side of one update: what is written to the control block and what is read back. */
struct qn_update_slot {
    struct qn_control out, in;
    struct qn_transfer write, read;
    struct qn_metrics metrics; /* what the host knows of it already */
    double weight[QN_MAX_LOSSES];
    bool pending; /* enqueued and not yet collected */
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

/* The launches of one phase. */
struct qn_phase_recording {
    struct qn_recording *recording;
    int *first_launch; /* by step; one more than there are steps */
    struct qn_phase_parking parking;
};

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
    const char **tensor_names; /* of qn_trainer_tensor */
    int64_t *input_at;         /* by node: offset of an input's rows in a stage */
    int64_t stage_bytes;
    unsigned char *results; /* host memory of one evaluation output */
    unsigned char *parked;  /* host memory of what is parked */
    struct qn_update_slot slots[QN_STAGES];
    int64_t updates;
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

/* Records every phase of the plan. */
qn_status qn_trainer_record(struct qn_trainer *trainer);

/* Runs a phase with input rows from `fetch` for samples first .. first + count - 1 of the cycle;
 * rows beyond `count` repeat the last. Evaluation results go to `result`. */
struct qn_feed {
    qn_fetch_fn fetch;
    qn_result_fn result;
    void *user;
    int64_t first, count;
};
qn_status qn_trainer_run_phase(struct qn_trainer *trainer, int phase, const struct qn_feed *feed);

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

/* --- looking on --- */

/* Waits for step `index` of the phase, which began at `begin`, and tells trainer->profile. */
qn_status qn_trainer_report_step(struct qn_trainer *trainer, int phase, int index, double begin);

/* Waits until the device has read all that a stage holds. */
qn_status qn_stage_wait(struct qn_trainer *trainer, struct qn_stage *stage);

/* Draws parameters, writes constants, tables and initial state. */
qn_status qn_trainer_initialise(struct qn_trainer *trainer);

/* Writes the tables that tell optimizers where parameters lie. */
qn_status qn_trainer_write_tables(struct qn_trainer *trainer);

/* Sums of the weights of every loss over the cycle, from the host's data, in double. */
qn_status qn_trainer_weigh(struct qn_trainer *trainer, const struct qn_cycle *cycle,
                           double weight[QN_MAX_LOSSES]);

/* Passes a status on and remembers a device error. */
qn_status qn_trainer_check(struct qn_trainer *trainer, qn_status status);

/* A tensor that has a name: a parameter, a moving average, or an optimizer's slot. */
struct qn_named {
    const char *name;
    int value;
    struct qn_shape shape;
};
/* Entry `index` of parameters and state, in the order of the graph; false past the last. The name
 * of a state is made in `text`. */
bool qn_trainer_named(const struct qn_trainer *trainer, int index, char text[128],
                      struct qn_named *named);

/* Reads or writes f32 elements at a value; waits. */
qn_status qn_trainer_read_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                void *host, int64_t bytes);
qn_status qn_trainer_write_value(struct qn_trainer *trainer, int value, int64_t offset_bytes,
                                 const void *host, int64_t bytes);

#endif
