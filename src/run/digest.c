/* SPDX-License-Identifier: MIT
 *
 * A digest of parameters and state, by which members of a group are compared.
 */
#include "base/log.h"
#include "base/text.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes at a time */

struct digesting {
    struct qn_trainer *trainer;
    void *room; /* (PIECE) */
    uint64_t hash;
};

static qn_status add_value(struct digesting *d, const char *name, int value)
{
    const int64_t bytes = d->trainer->plan->persist.values[value].bytes;
    d->hash = qn_hash(d->hash, name, strlen(name) + 1);
    for (int64_t done = 0, size; done < bytes; done += size) {
        size = bytes - done < PIECE ? bytes - done : PIECE;
        QN_TRY(qn_trainer_read_value(d->trainer, value, done, d->room, size));
        d->hash = qn_hash(d->hash, d->room, (size_t)size);
    }
    return QN_OK;
}

static qn_status add_all(struct digesting *d)
{
    const struct qn_persist *persist = &d->trainer->plan->persist;
    for (int p = 0; p < persist->n_parameters; p++)
        if (persist->parameters[p].working >= 0)
            QN_TRY(add_value(d, persist->parameters[p].node->name, persist->parameters[p].working));
    for (int i = 0; i < persist->n_moving; i++)
        if (persist->moving[i].value >= 0)
            QN_TRY(add_value(d, persist->moving[i].node->name, persist->moving[i].value));
    return QN_OK;
}

qn_status qn_trainer_digest(qn_trainer *trainer, uint64_t *digest)
{
    QN_REQUIRE(NULL, trainer && digest);
    QN_TRY(qn_trainer_failure(trainer));
    struct digesting d = {trainer, malloc(PIECE), QN_HASH_START};
    qn_status status = d.room ? qn_trainer_check(trainer, qn_trainer_settle(trainer))
                              : qn_fail(&trainer->log, QN_ERR_MEMORY, "digest: out of host memory");
    if (status == QN_OK)
        status = qn_trainer_check(trainer, add_all(&d));
    free(d.room);
    *digest = d.hash;
    return status;
}
