/* SPDX-License-Identifier: MIT */
#include "ranks_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI, MPICH and its relatives, MVAPICH, Slurm: what they call the size of the job and the
 * rank. A script that Slurm runs is no step, and alone. */
static const struct {
    const char *size, *rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static int number(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int ranks_said(void)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (number(launchers[i].size) > 0)
            return number(launchers[i].size);
    return getenv("PMIX_RANK") ? 0 : 1;
}

int ranks_said_own(void)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (number(launchers[i].size) > 0)
            return number(launchers[i].rank);
    return number("PMIX_RANK");
}

/* ISO C has no conversion from a pointer to an object. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

int ranks_library_load(struct ranks_library *functions, struct failure *failure)
{
    bool complete = true;
    void *library = dlopen(QN_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return failure_set(failure, CODE_FAILED,
                           "processes that are started together need the library quern-mpi: %s",
                           dlerror());
#define FIND(result, name, parameters)                                                             \
    complete &= find(library, "qn_mpi_" #name, (void *)&functions->name);
    RANKS_LIBRARY_LIST(FIND)
#undef FIND
    return complete
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "%s: is of another version", QN_MPI_LIBRARY);
}
