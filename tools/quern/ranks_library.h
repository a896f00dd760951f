/* SPDX-License-Identifier: MIT
 *
 * The library quern-mpi, which is loaded when the program runs in several processes.
 */
#ifndef QUERN_TOOL_RANKS_LIBRARY_H
#define QUERN_TOOL_RANKS_LIBRARY_H

#include "failure.h"

#include <quern/mpi.h>

/* X(result, name, parameters) of its functions. */
#define RANKS_LIBRARY_LIST(X)                                                                      \
    X(qn_status, open, (qn_mpi * *mpi, const qn_mpi_params *params))                               \
    X(void, close, (qn_mpi * *mpi))                                                                \
    X(qn_status, transport, (qn_mpi * mpi, int member, qn_transport *transport))                   \
    X(int, rank, (const qn_mpi *mpi))                                                              \
    X(int, ranks, (const qn_mpi *mpi))                                                             \
    X(int, members, (const qn_mpi *mpi))

struct ranks_library {
#define FUNCTION(result, name, parameters) result(*name) parameters;
    RANKS_LIBRARY_LIST(FUNCTION)
#undef FUNCTION
};

/* How many processes were started together, this one included, by what mpirun or srun put into the
 * environment; 0: some were, and it does not say how many. */
int ranks_said(void);
/* The number that it gave this one; 0: it does not say. */
int ranks_said_own(void);
/* Loads it, for as long as the process lives. */
int ranks_library_load(struct ranks_library *library, struct failure *failure);

#endif
