/* SPDX-License-Identifier: MIT
 *
 * The control block: the host's mirror of cl_kernels/lib/control.clh (change both together).
 */
#ifndef QN_OP_CONTROL_H
#define QN_OP_CONTROL_H

#include <stdint.h>

enum { QN_MAX_LOSSES = 8, QN_MAX_POSITIONS = 80 };

struct qn_control {
    uint32_t seed_lo, seed_hi;
    uint32_t update;
    float samples;
    float lr;
    float clip;
    float weight_decay;
    float loss_seed[QN_MAX_LOSSES];
    float loss[QN_MAX_LOSSES];
    uint32_t sample, padding, position[QN_MAX_POSITIONS]; /* written together (run/record.c) */
    /* kept on the device from update to update */
    float loss_scale;
    uint32_t good_updates;
    uint32_t applied;
    float grad_norm;
    float grad_scale;
    uint32_t skip;
    float bias1, bias2;
    uint32_t counted;
    uint32_t reserved[4];
};

#endif
