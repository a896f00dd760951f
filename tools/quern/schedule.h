/* SPDX-License-Identifier: MIT
 *
 * The learning rate as a pure function of the number of the update: nothing to save, nothing to
 * restore.
 */
#ifndef QUERN_TOOL_SCHEDULE_H
#define QUERN_TOOL_SCHEDULE_H

#include <stdint.h>

/* With u the update from 0, N all of them, W those of the warm-up, t = min(u - W, T), T = N - W:
 *
 *   warm-up    u < W, all but one-cycle    lr (u + 1) / W
 *   constant                               lr
 *   step       torch StepLR                lr factor^floor(t / every)
 *   cosine     torch CosineAnnealingLR     end + (lr - end) (1 + cos(pi t / T)) / 2
 *   linear     torch LinearLR              lr + (end - lr) t / T
 *   one-cycle  torch OneCycleLR            from lr / 25 at update 0 to lr at W - 1, then to end at
 *                                          N - 1, both along half a cosine
 */
enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,
    SCHEDULE_COSINE,
    SCHEDULE_LINEAR,
    SCHEDULE_ONE_CYCLE,
};

struct schedule {
    enum schedule_kind kind;
    double lr;
    double end;    /* below 0: 0, one-cycle lr / 25 / 1e4 */
    double warmup; /* below 1 a fraction of all updates, else updates; below 0: 0, one-cycle 0.3 */
    double factor; /* of step */
    int64_t every; /* of step; at least 1 */
    int64_t total; /* updates; at least 1 */
};

double schedule_lr(const struct schedule *schedule, int64_t update);

#endif
