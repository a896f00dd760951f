/* SPDX-License-Identifier: MIT
 *
 * Members of a group in the processes of an MPI job: transports over messages between two ranks.
 * A library of its own, quern-mpi; libquern needs no MPI. It belongs to the shared libquern: a
 * program that has the static one would not find its lines by qn_last_error.
 */
#ifndef QUERN_MPI_H
#define QUERN_MPI_H

#include <quern/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The processes of MPI_COMM_WORLD. Members are numbered by rank, those of a rank one after another.
 * Thread-safety: Safe, by the functions of its tables. Lifetime: until qn_mpi_close; groups of its
 * transports are closed before.
 * After a failure of any member, here or elsewhere, what waits ends with QN_ERR_MEMBER, and MPI is
 * not finalised: MPI_Finalize may wait for what does not come. The program is to end, by MPI_Abort
 * or with a status other than 0. */
typedef struct qn_mpi qn_mpi;

typedef struct qn_mpi_params {
    int members; /* of this rank; 0: 1. Ranks may have different numbers of them */
    double
        timeout; /* seconds after which a member that waits for another gives up; 0: ten minutes */
    qn_log log;
} qn_mpi_params;

/* Called by every rank at the same time. Initialises MPI with MPI_THREAD_MULTIPLE if nobody has,
 * and qn_mpi_close finalises it then; before that it asks Open MPI, by variables of the environment
 * that nobody has set, to send a bucket of gradients without waiting for an answer (the eager limit
 * of btl tcp). A program that initialises MPI itself sets MPI_ERRORS_RETURN for MPI_COMM_WORLD:
 * MPICH asks there what an error of any message shall do. `params` may be NULL.
 * QN_ERR_ARGUMENT: MPI lacks thread support or was finalised, or there are too many members.
 * QN_ERR_MEMBER: a rank does not come, or is not what this one can talk to. */
QN_API qn_status qn_mpi_open(qn_mpi **mpi, const qn_mpi_params *params);
QN_API void qn_mpi_close(qn_mpi **mpi);

/* The table of a member of this rank, counted from 0; its `user` is borrowed from `mpi`. */
QN_API qn_status qn_mpi_transport(qn_mpi *mpi, int member, qn_transport *transport);

/* This rank, how many there are, and how many members all have together; 0 for NULL. */
QN_API int qn_mpi_rank(const qn_mpi *mpi);
QN_API int qn_mpi_ranks(const qn_mpi *mpi);
QN_API int qn_mpi_members(const qn_mpi *mpi);

#ifdef __cplusplus
}
#endif
#endif
