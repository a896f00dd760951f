/* SPDX-License-Identifier: MIT
 *
 * A device on which every launch takes 10 ms more: LD_PRELOAD=./libslowdevice.so PROGRAM
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint n_events, const cl_event *events, cl_event *event)
{
    cl_int (*real)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                   const size_t *, cl_uint, const cl_event *, cl_event *);
    void *symbol = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    memcpy(&real, &symbol, sizeof real);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return real(queue, kernel, dimensions, offset, global, local, n_events, events, event);
}
