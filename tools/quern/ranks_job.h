/* SPDX-License-Identifier: MIT
 *
 * The state of the job, for the parts of ranks.h.
 */
#ifndef QUERN_TOOL_RANKS_JOB_H
#define QUERN_TOOL_RANKS_JOB_H

#include "ranks.h"
#include "ranks_library.h"

/* One member of each rank, who speaks for it. */
struct ranks_circle {
    qn_transport transport; /* of this rank's */
    int *speaker;           /* by rank: number of the member */
};

struct ranks_job {
    struct ranks_library library;
    qn_mpi *ranks, *members; /* one member for each rank; those that train. NULL: not yet */
    int own, count;
    struct ranks_circle before, during; /* the training */
    double timeout;                     /* seconds, of `during` */
    bool agreed;                        /* all end with the same code */
};

/* NULL: this process is alone. */
struct ranks_job *ranks_job(void);

/* Each rank gives `bytes` bytes and receives those of all. */
qn_status ranks_exchange(const struct ranks_circle *circle, const void *own, size_t bytes,
                         void *all);

#endif
