/* SPDX-License-Identifier: MIT
 *
 * Counts the OpenCL buffers and other objects of a program from outside, whoever in it makes them:
 *
 *     CLCOUNT_FILE=counts.json LD_PRELOAD=./libclcount.so PROGRAM
 *
 * At exit one line of JSON is written: buffers created, refused and alive, bytes alive, the most
 * bytes that were alive at one moment, and for each kind of other object the references that were
 * not given back. CLCOUNT_FAIL_AT=N refuses the Nth buffer (from 1), CLCOUNT_LIMIT=BYTES each one
 * with which more bytes would be alive. With CLCOUNT_STRICT=1 a program that leaves anything behind
 * ends with status 1.
 */
#define _GNU_SOURCE
#include "clcount.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer {
    void *mem;
    size_t size;
    long references;
} buffers[MOST];
static int used;
static long created, refused, alive;
static unsigned long long live_bytes, peak_bytes, window_bytes;

static unsigned long long setting(const char *name, unsigned long long without)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : without;
}

void *clcount_next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "clcount: %s is nowhere\n", name);
        abort();
    }
    return symbol;
}

static struct buffer *find(const void *mem)
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

static void add(void *mem, size_t size)
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
    if (live_bytes > window_bytes)
        window_bytes = live_bytes;
}

unsigned long long clcount_largest_since(void)
{
    pthread_mutex_lock(&lock);
    const unsigned long long largest = window_bytes;
    window_bytes = live_bytes;
    pthread_mutex_unlock(&lock);
    return largest;
}

/* Asks `ask` for memory of `size` bytes, unless it is to be refused. */
struct request {
    cl_context context;
    const cl_mem_properties *properties;
    cl_mem_flags flags;
    size_t size;
    void *host;
    cl_int *error;
    cl_uint alignment;
};

static void *make(const struct request *request, void *(*ask)(const struct request *))
{
    pthread_mutex_lock(&lock);
    bool refuse = refuses(request->size);
    void *memory = refuse ? NULL : ask(request);
    if (memory)
        add(memory, request->size);
    else
        refused++;
    pthread_mutex_unlock(&lock);
    if (refuse && request->error)
        *request->error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return memory;
}

/* One reference less. Under the lock. */
static void drop(void *memory)
{
    struct buffer *buffer = memory ? find(memory) : NULL;
    if (!buffer || --buffer->references > 0)
        return;
    live_bytes -= buffer->size;
    alive--;
    buffer->mem = NULL;
}

static void *ask_buffer(const struct request *r)
{
    NEXT(clCreateBuffer);
    return real(r->context, r->flags, r->size, r->host, r->error);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                      cl_int *error)
{
    return make(&(struct request){context, NULL, flags, size, host, error, 0}, ask_buffer);
}

static void *ask_buffer_with_properties(const struct request *r)
{
    NEXT(clCreateBufferWithProperties);
    return real(r->context, r->properties, r->flags, r->size, r->host, r->error);
}

cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties,
                                    cl_mem_flags flags, size_t size, void *host, cl_int *error)
{
    return make(&(struct request){context, properties, flags, size, host, error, 0},
                ask_buffer_with_properties);
}

static void *ask_shared(const struct request *r)
{
    NEXT(clSVMAlloc);
    return real(r->context, r->flags, r->size, r->alignment);
}

void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    return make(&(struct request){context, NULL, flags, size, NULL, NULL, alignment}, ask_shared);
}

void clSVMFree(cl_context context, void *memory)
{
    NEXT(clSVMFree);
    pthread_mutex_lock(&lock);
    drop(memory);
    real(context, memory);
    pthread_mutex_unlock(&lock);
}

cl_int clRetainMemObject(cl_mem mem)
{
    NEXT(clRetainMemObject);
    pthread_mutex_lock(&lock);
    struct buffer *buffer = mem ? find(mem) : NULL;
    if (buffer)
        buffer->references++;
    pthread_mutex_unlock(&lock);
    return real(mem);
}

cl_int clReleaseMemObject(cl_mem mem)
{
    NEXT(clReleaseMemObject);
    pthread_mutex_lock(&lock);
    drop(mem);
    cl_int result = real(mem);
    pthread_mutex_unlock(&lock);
    return result;
}

static void write_counts(FILE *file)
{
    fprintf(file,
            "{\"created\": %ld, \"refused\": %ld, \"alive\": %ld, \"live_bytes\": %llu, "
            "\"peak_bytes\": %llu, \"contexts\": %ld, \"queues\": %ld, \"programs\": %ld, "
            "\"kernels\": %ld, \"events\": %ld}\n",
            created, refused, alive, live_bytes, peak_bytes, clcount_alive(CONTEXTS),
            clcount_alive(QUEUES), clcount_alive(PROGRAMS), clcount_alive(KERNELS),
            clcount_alive(EVENTS));
}

static bool is_clean(void)
{
    bool clean = alive == 0;
    for (int kind = 0; kind < KINDS; kind++)
        clean = clean && clcount_alive(kind) == 0;
    return clean;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("CLCOUNT_FILE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        write_counts(file);
        fclose(file);
    }
    if (setting("CLCOUNT_STRICT", 0) && !is_clean()) {
        fputs("clcount: something is left: ", stderr);
        write_counts(stderr);
        fflush(NULL);
        _exit(1);
    }
}
