/* SPDX-License-Identifier: MIT
 *
 * A driver that crashes when it is asked for a kernel whose name is in CRASHES_AT, or for a context
 * if that is "context": CRASHES_AT=relu_forward LD_PRELOAD=./libcrashes.so PROGRAM
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void crash_at(const char *name)
{
    const char *names = getenv("CRASHES_AT");
    if (names && strstr(names, name))
        raise(SIGKILL);
}

cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                           const cl_device_id *devices,
                           void (*told)(const char *, const void *, size_t, void *), void *user,
                           cl_int *error)
{
    cl_context (*real)(const cl_context_properties *, cl_uint, const cl_device_id *,
                       void (*)(const char *, const void *, size_t, void *), void *, cl_int *);
    void *symbol = dlsym(RTLD_NEXT, "clCreateContext");
    memcpy(&real, &symbol, sizeof real);
    crash_at("context");
    return real(properties, count, devices, told, user, error);
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    cl_kernel (*real)(cl_program, const char *, cl_int *);
    void *symbol = dlsym(RTLD_NEXT, "clCreateKernel");
    memcpy(&real, &symbol, sizeof real);
    crash_at(name);
    return real(program, name, error);
}
