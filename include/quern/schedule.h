/* SPDX-License-Identifier: MIT
 *
 * What changes from update to update: learning rates and effective batches by the number of the
 * update, batches by the noise of the gradient, and what follows from evaluations. Plain functions
 * of plain structs: no device, nothing to close, nothing to save but what stands in the structs.
 * Thread-safety: Safe, with a struct for each thread that writes to it.
 */
#ifndef QUERN_SCHEDULE_H
#define QUERN_SCHEDULE_H

#include <quern/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- learning rates --- */

/* With u the update from 0, N all of them, W those of the warm-up, t = min(u - W, T), T = N - W:
 *
 *   warm-up    u < W, all but one-cycle    lr (u + 1) / W
 *   constant                               lr
 *   step       torch StepLR                lr factor^floor((u - W) / every)
 *   cosine     torch CosineAnnealingLR     end + (lr - end) (1 + cos(pi t / T)) / 2
 *   linear     torch LinearLR              lr + (end - lr) t / T
 *   one-cycle  torch OneCycleLR            from lr / 25 at update 0 to lr at W - 1, then to end at
 *                                          N - 1, both along half a cosine
 */
typedef enum qn_lr_kind {
    QN_LR_CONSTANT,
    QN_LR_STEP,
    QN_LR_COSINE,
    QN_LR_LINEAR,
    QN_LR_ONE_CYCLE,
} qn_lr_kind;

typedef struct qn_lr_schedule {
    qn_lr_kind kind;
    double lr;
    double end;    /* of cosine, linear and one-cycle; one-cycle: 0: lr / 250000, below 0: 0 */
    double warmup; /* below 1 a fraction of all updates, else updates; one-cycle: 0: 0.3, below 0:
                      none */
    double factor; /* of step; 0: 0.1 */
    int64_t every; /* of step, in updates; 0: 1000 */
    int64_t total; /* updates; at least 1 */
} qn_lr_schedule;

/* The learning rate of an update, counted from 0; 0 for NULL. */
QN_API double qn_schedule_lr(const qn_lr_schedule *schedule, int64_t update);

/* --- finding a learning rate --- */

/* The range test of Smith 2015 ("Cyclical learning rates for training neural networks",
 * arXiv:1506.01186): a short training whose rate rises exponentially from update to update. Zero
 * means default. */
typedef struct qn_lr_range {
    double least, most; /* above 0; 0: 1e-7 and 10 */
    int64_t updates;    /* at least 3; 0: 100 */
} qn_lr_range;

/* With the defaults filled in. */
QN_API qn_lr_range qn_lr_range_whole(const qn_lr_range *range);
/* least (most / least)^(update / (updates - 1)), the rate of an update counted from 0. */
QN_API double qn_lr_range_at(const qn_lr_range *range, int64_t update);

/* Zeroed: the losses never fall. */
typedef struct qn_lr_found {
    double lr; /* where the loss falls fastest on its way to the lowest, by the rate's logarithm */
    double lowest; /* where the loss is lowest */
} qn_lr_found;

/* What the losses of the first `count` updates tell; they end before they are no numbers. Gives in
 * `smoothed` (count) what it looks at: averages over a twentieth of all updates on each side. */
QN_API qn_lr_found qn_lr_range_find(const qn_lr_range *range, const double *losses, int64_t count,
                                    double *smoothed);

/* --- effective batches --- */

/* Samples of an update, from this update on. */
typedef struct qn_batch_step {
    int64_t update, batch;
} qn_batch_step;

typedef struct qn_batch_schedule {
    int count;                              /* 1 to QN_MAX_BATCH_SIZES */
    qn_batch_step step[QN_MAX_BATCH_SIZES]; /* updates rise from 0; batches are at least 1 */
} qn_batch_schedule;

/* The effective batch of an update. */
QN_API int64_t qn_schedule_batch(const qn_batch_schedule *schedule, int64_t update);
/* Updates that it takes to see so many samples. */
QN_API int64_t qn_schedule_updates(const qn_batch_schedule *schedule, int64_t samples);
/* The sizes that occur, each once, the largest first, then zeros: for qn_plan_params.batch. Gives
 * how many there are. */
QN_API int qn_schedule_sizes(const qn_batch_schedule *schedule, int64_t sizes[QN_MAX_BATCH_SIZES]);

/* --- batches by the noise of the gradient --- */

/* Squared norms of one cycle's gradient: of its mean over the whole cycle, and of the means over
 * single micro-steps, averaged over those that were measured (all of one size). */
typedef struct qn_gradient_norms {
    int64_t batch, micro_batch; /* samples of the cycle, and of each measured micro-step */
    double batch_square, micro_square;
} qn_gradient_norms;

/* The noise scale of McCandlish et al. 2018 (arXiv:1812.06162), about the batch beyond which more
 * samples make an update little better, and a batch that follows it. With G the true gradient and S
 * the covariance of a sample's own, the squared norm of a mean over n samples is |G|^2 + tr(S) / n
 * on average. So, for a cycle of B samples and micro-steps of b,
 *
 *   signal = (B batch_square - b micro_square) / (B - b)             is |G|^2 on average,
 *   noise  = (micro_square - batch_square) / (1 / b - 1 / B)         is tr(S),
 *
 * and the noise scale is the ratio of both, each averaged over updates. */
typedef struct qn_adaptive_batch {
    int64_t least, most; /* sizes: least, 2 least, 4 least, ... up to most */
    double decay;        /* of the averages from one update to the next, in [0, 1); 0: 0.95 */
    /* What follows begins as zeros; saved and put back, it goes on as if nothing had happened. */
    int64_t batch;        /* of the next cycle; 0: least */
    int64_t measured;     /* updates since the batch changed */
    double signal, noise; /* averages that began at 0: their ratio is right, they are too small */
} qn_adaptive_batch;

/* The sizes, the largest first, then zeros: for qn_plan_params.batch. Gives how many there are, at
 * most QN_MAX_BATCH_SIZES. */
QN_API int qn_adaptive_sizes(const qn_adaptive_batch *adaptive, int64_t sizes[QN_MAX_BATCH_SIZES]);
/* Takes the norms of a cycle and gives the batch of the next one, which doubles when the noise
 * scale is at least twice as large and halves when it is at most half, each after no fewer than
 * 1 / (1 - decay) measured updates. Deterministic. Norms that are not finite (an overflow) tell
 * nothing; nor does NULL, nor a cycle that was one micro-step: plan micro-batches of at most half
 * of `least`. */
QN_API int64_t qn_batch_adapt(qn_adaptive_batch *adaptive, const qn_gradient_norms *norms);
/* The noise scale in samples; INFINITY: nothing but noise is seen; NAN: nothing is known. */
QN_API double qn_noise_scale(const qn_adaptive_batch *adaptive);

/* --- what follows from evaluations --- */

/* Watches a figure of the evaluations of a training, of two the larger one is better (of a loss:
 * its negative): ends the training that it has stopped to rise in (early stopping, as of Keras and
 * Lightning), and makes the learning rate smaller on a plateau (as torch ReduceLROnPlateau). */
typedef struct qn_improvement {
    int64_t patience;         /* figures in a row without a better one that end it; 0: none do */
    int64_t plateau_patience; /* the same after which the rate is made smaller; 0: never */
    double plateau_factor;    /* 0: 0.1 */
    /* What follows begins as zeros; saved and put back, it goes on as if nothing had happened. */
    double best;        /* where `seen` */
    int64_t waited;     /* figures since the best */
    int64_t flat;       /* the same, or since the rate was made smaller */
    int64_t reductions; /* of the rate */
    bool seen;          /* there is a best */
} qn_improvement;

/* Takes the figure of an evaluation; true: it is the best one. One that is not finite never is. */
QN_API bool qn_improvement_take(qn_improvement *improvement, double figure);
/* Whether the training is to end. */
QN_API bool qn_improvement_ends(const qn_improvement *improvement);
/* The factor of the learning rate, plateau_factor^reductions; 1 for NULL. */
QN_API double qn_improvement_scale(const qn_improvement *improvement);

#ifdef __cplusplus
}
#endif
#endif
