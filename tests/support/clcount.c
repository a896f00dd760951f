/* SPDX-License-Identifier: MIT
 *
 * Counts the OpenCL buffers of a program from outside, whoever in it makes them:
 *
 *     CLCOUNT_FILE=counts.json LD_PRELOAD=./libclcount.so PROGRAM
 *
 * At exit one line of JSON is written: buffers created, refused and alive, bytes alive, and the
 * most bytes that were alive at one moment. CLCOUNT_FAIL_AT=N refuses the Nth buffer (from 1),
 * CLCOUNT_LIMIT=BYTES each one with which more bytes would be alive.
 */
#define _GNU_SOURCE
#include <CL/cl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer {
    cl_mem mem;
    size_t size;
    long references;
} buffers[MOST];
static int used;
static long created, refused, alive;
static unsigned long long live_bytes, peak_bytes;

static unsigned long long setting(const char *name, unsigned long long without)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : without;
}

static void *next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "clcount: %s is nowhere\n", name);
        abort();
    }
    return symbol;
}

static struct buffer *find(cl_mem mem)
{
    for (int i = 0; i < used; i++)
        if (buffers[i].mem == mem)
            return &buffers[i];
    return NULL;
}

static bool refuses(size_t size)
{
    return (unsigned long long)(created + refused + 1) == setting("CLCOUNT_FAIL_AT", 0) ||
           live_bytes + size > setting("CLCOUNT_LIMIT", ~0ull);
}

static void add(cl_mem mem, size_t size)
{
    struct buffer *free_place = find(NULL);
    if (!free_place && used == MOST) {
        fprintf(stderr, "clcount: more than %d buffers\n", MOST);
        abort();
    }
    if (!free_place)
        free_place = &buffers[used++];
    *free_place = (struct buffer){mem, size, 1};
    created++;
    alive++;
    live_bytes += size;
    if (live_bytes > peak_bytes)
        peak_bytes = live_bytes;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                      cl_int *error)
{
    cl_mem (*real)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    *(void **)&real = next("clCreateBuffer");
    pthread_mutex_lock(&lock);
    bool refuse = refuses(size);
    cl_mem mem = refuse ? NULL : real(context, flags, size, host, error);
    if (mem)
        add(mem, size);
    else
        refused++;
    pthread_mutex_unlock(&lock);
    if (refuse && error)
        *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return mem;
}

cl_int clRetainMemObject(cl_mem mem)
{
    cl_int (*real)(cl_mem);
    *(void **)&real = next("clRetainMemObject");
    pthread_mutex_lock(&lock);
    struct buffer *buffer = mem ? find(mem) : NULL;
    if (buffer)
        buffer->references++;
    pthread_mutex_unlock(&lock);
    return real(mem);
}

cl_int clReleaseMemObject(cl_mem mem)
{
    cl_int (*real)(cl_mem);
    *(void **)&real = next("clReleaseMemObject");
    pthread_mutex_lock(&lock);
    struct buffer *buffer = mem ? find(mem) : NULL;
    if (buffer && --buffer->references == 0) {
        live_bytes -= buffer->size;
        alive--;
        buffer->mem = NULL;
    }
    cl_int result = real(mem);
    pthread_mutex_unlock(&lock);
    return result;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("CLCOUNT_FILE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file,
            "{\"created\": %ld, \"refused\": %ld, \"alive\": %ld, \"live_bytes\": %llu, "
            "\"peak_bytes\": %llu}\n",
            created, refused, alive, live_bytes, peak_bytes);
    fclose(file);
}
