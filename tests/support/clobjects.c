/* SPDX-License-Identifier: MIT
 *
 * Counts references to contexts, queues, programs, kernels and events: each function that creates
 * or retains one adds one, each release takes one away. Functions that nobody here calls are left
 * out; a release without them would show as a number below 0.
 */
#define _GNU_SOURCE
#include "clcount.h"

#include <stdatomic.h>

static atomic_long alive[KINDS];

long clcount_alive(enum clcount_kind kind)
{
    return atomic_load(&alive[kind]);
}

/* A new object, or NULL. Gives it. */
static void *made(enum clcount_kind kind, void *object)
{
    alive[kind] += object != NULL;
    return object;
}

static cl_int changed(enum clcount_kind kind, cl_int error, long by)
{
    alive[kind] += error == CL_SUCCESS ? by : 0;
    return error;
}

/* A command that gives an event if it is asked for one. */
static cl_int enqueued(cl_int error, const cl_event *event)
{
    return changed(EVENTS, error, event != NULL);
}

#define COUNT_REFERENCES(kind, type, name)                                                         \
    cl_int clRetain##name(type object)                                                             \
    {                                                                                              \
        NEXT(clRetain##name);                                                                      \
        return changed(kind, real(object), 1);                                                     \
    }                                                                                              \
    cl_int clRelease##name(type object)                                                            \
    {                                                                                              \
        NEXT(clRelease##name);                                                                     \
        return changed(kind, real(object), -1);                                                    \
    }

COUNT_REFERENCES(CONTEXTS, cl_context, Context)
COUNT_REFERENCES(QUEUES, cl_command_queue, CommandQueue)
COUNT_REFERENCES(PROGRAMS, cl_program, Program)
COUNT_REFERENCES(KERNELS, cl_kernel, Kernel)
COUNT_REFERENCES(EVENTS, cl_event, Event)

cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                           const cl_device_id *devices,
                           void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                           void *user, cl_int *error)
{
    NEXT(clCreateContext);
    return made(CONTEXTS, real(properties, count, devices, notify, user, error));
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *error)
{
    NEXT(clCreateCommandQueue);
    return made(QUEUES, real(context, device, properties, error));
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **text,
                                     const size_t *lengths, cl_int *error)
{
    NEXT(clCreateProgramWithSource);
    return made(PROGRAMS, real(context, count, text, lengths, error));
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                     const size_t *lengths, const unsigned char **binaries,
                                     cl_int *status, cl_int *error)
{
    NEXT(clCreateProgramWithBinary);
    return made(PROGRAMS, real(context, count, devices, lengths, binaries, status, error));
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    NEXT(clCreateKernel);
    return made(KERNELS, real(program, name, error));
}

cl_event clCreateUserEvent(cl_context context, cl_int *error)
{
    NEXT(clCreateUserEvent);
    return made(EVENTS, real(context, error));
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint waits, const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueNDRangeKernel);
    return enqueued(real(queue, kernel, dimensions, offset, global, local, waits, wait, event),
                    event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                           size_t size, void *host, cl_uint waits, const cl_event *wait,
                           cl_event *event)
{
    NEXT(clEnqueueReadBuffer);
    return enqueued(real(queue, mem, blocking, offset, size, host, waits, wait, event), event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset,
                            size_t size, const void *host, cl_uint waits, const cl_event *wait,
                            cl_event *event)
{
    NEXT(clEnqueueWriteBuffer);
    return enqueued(real(queue, mem, blocking, offset, size, host, waits, wait, event), event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *wait,
                                   cl_event *event)
{
    NEXT(clEnqueueMarkerWithWaitList);
    return enqueued(real(queue, waits, wait, event), event);
}
