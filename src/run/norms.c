/* SPDX-License-Identifier: MIT
 *
 * The norms of the gradients of groups of parameters, which arrive with the metrics.
 */
#include "run/trainer.h"

qn_status qn_norms_ask(struct qn_trainer *trainer, struct qn_update_record *record)
{
    const struct qn_norm_groups *groups = &trainer->plan->persist.groups;
    if (!groups->count)
        return QN_OK;
    const struct qn_place_of place = qn_trainer_place(trainer, groups->norms);
    return qn_slab_read(trainer->slab, place.buffer, place.offset, record->norms.norm,
                        groups->count * (int64_t)sizeof *record->norms.norm, &record->norms.read);
}

qn_status qn_norms_wait(const struct qn_trainer *trainer, struct qn_update_record *record)
{
    return qn_transfer_wait(trainer->device, &record->norms.read);
}

void qn_norms_give(struct qn_trainer *trainer, const struct qn_update_record *record)
{
    trainer->n_grad_norms = trainer->plan->persist.groups.count;
    for (int g = 0; g < trainer->n_grad_norms; g++)
        trainer->grad_norms[g] = (double)record->norms.norm[g];
}

int qn_trainer_grad_norms(const qn_trainer *trainer, double *norms, int room)
{
    const int count = trainer ? trainer->n_grad_norms : 0;
    for (int g = 0; norms && g < count && g < room; g++)
        norms[g] = trainer->grad_norms[g];
    return count;
}
