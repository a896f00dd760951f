/* SPDX-License-Identifier: MIT
 *
 * Without Quern: what a driver says that a kernel takes and bears, and whether it runs it right.
 * One kernel has 18,432 bytes of local memory and runs in a work-group of 64, which it does not
 * require. Mesa 22.3 (rusticl) says 36,864 bytes, of 32,768 that the device has, and 32 items at
 * most; it runs the kernel all the same, and right. Another has loops, which make 65,535 iterations
 * at most on its llvmpipe, all of a work-item together. One has a struct whose initializer is zeros
 * but for the first member: that is 0, too, in Mesa 22.3. The last two time fma() beside a product
 * and a sum: it is a function in software there, 48 times as long.
 *
 *     cc kernel_limits.c -lOpenCL -lm && OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd ./a.out
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { COUNT = 4608, ITEMS = 64, LOCAL_BYTES = COUNT * sizeof(float) };
enum { LOOPS = 2, ROUNDS = 300 }; /* rounds of either of two loops, one in the other */

static const char *source =
    "__kernel void turn(__global float *x)\n"
    "{\n"
    "    __local float a[4608];\n"
    "    const int i = get_local_id(0), n = get_local_size(0);\n"
    "    for (int k = i; k < 4608; k += n)\n"
    "        a[k] = x[k];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (int k = i; k < 4608; k += n)\n"
    "        x[k] = a[4607 - k];\n"
    "}\n"
    "__kernel void count(__global volatile uint *x, uint n, uint m)\n"
    "{\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        for (uint j = 0; j < m; j++)\n"
    "            x[0] = x[0] + 1;\n"
    "}\n"
    "struct three {\n"
    "    float4 first, second, third;\n"
    "};\n"
    "__kernel void start(__global float *x, uint n)\n"
    "{\n"
    "    struct three v = {(float4)(5.0f), (float4)(0.0f), (float4)(0.0f)};\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        v.first += 1.0f;\n"
    "    x[0] = v.first.s0 + v.second.s0 + v.third.s0;\n"
    "}\n"
    "__kernel void fused(__global float8 *x, uint n)\n"
    "{\n"
    "    float8 v = x[0];\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        v = fma(v, (float8)(0.5f), (float8)(1.0f));\n"
    "    x[0] = v;\n"
    "}\n"
    "__kernel void apart(__global float8 *x, uint n)\n"
    "{\n"
    "    float8 v = x[0];\n"
    "    for (uint i = 0; i < n; i++)\n"
    "        v = v * 0.5f + 1.0f;\n"
    "    x[0] = v;\n"
    "}\n";

struct driver {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
};

static int turns_wrong(const struct driver *d)
{
    cl_ulong has = 0, takes = 0;
    size_t most = 0;
    const size_t items = ITEMS;
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    cl_mem x = clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
    cl_kernel kernel = clCreateKernel(d->program, "turn", NULL);
    clGetDeviceInfo(d->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof has, &has, NULL);
    clGetKernelWorkGroupInfo(kernel, d->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof takes, &takes,
                             NULL);
    clGetKernelWorkGroupInfo(kernel, d->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                             NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    int launched = clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    clEnqueueReadBuffer(d->queue, x, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += values[i] != (float)(COUNT - 1 - i);
    printf("local memory: %llu bytes of the device, %d declared, %llu said; items: %zu said, %d "
           "launched: %d; %d of %d values are wrong\n",
           (unsigned long long)has, (int)LOCAL_BYTES, (unsigned long long)takes, most, ITEMS,
           launched, wrong, COUNT);
    return takes > LOCAL_BYTES + 1024 || most < ITEMS || wrong > 0;
}

static int counts_wrong(const struct driver *d)
{
    const size_t one = 1;
    const cl_uint rounds = ROUNDS;
    cl_uint counted = 0;
    cl_mem x = clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, sizeof counted, &counted, NULL);
    cl_kernel kernel = clCreateKernel(d->program, "count", NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    for (cl_uint i = 1; i <= LOOPS; i++)
        clSetKernelArg(kernel, i, sizeof rounds, &rounds);
    clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    clEnqueueReadBuffer(d->queue, x, CL_TRUE, 0, sizeof counted, &counted, 0, NULL, NULL);
    printf("loops: %u of %d iterations made\n", counted, ROUNDS * ROUNDS);
    return counted != ROUNDS * ROUNDS;
}

static int starts_wrong(const struct driver *d)
{
    const size_t one = 1;
    const cl_uint steps = 2;
    float made = 0;
    cl_mem x = clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, sizeof made, &made, NULL);
    cl_kernel kernel = clCreateKernel(d->program, "start", NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    clSetKernelArg(kernel, 1, sizeof steps, &steps);
    clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    clEnqueueReadBuffer(d->queue, x, CL_TRUE, 0, sizeof made, &made, 0, NULL, NULL);
    printf("initializers: %g, right is 7\n", (double)made);
    return made != 7;
}

/* Seconds of the fastest of some runs. */
static double seconds(const struct driver *d, const char *name)
{
    const size_t one = 1;
    const cl_uint steps = 60000;
    float values[8] = {0};
    double fastest = 1e9;
    cl_mem x = clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
    cl_kernel kernel = clCreateKernel(d->program, name, NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    clSetKernelArg(kernel, 1, sizeof steps, &steps);
    for (int i = 0; i < 5; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
        clFinish(d->queue);
        clock_gettime(CLOCK_MONOTONIC, &end);
        fastest = fmin(fastest, end.tv_sec - begin.tv_sec + 1e-9 * (end.tv_nsec - begin.tv_nsec));
    }
    return fastest;
}

static void time_fma(const struct driver *d)
{
    cl_device_fp_config config = 0;
    clGetDeviceInfo(d->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    printf("fma(): %ssaid, takes %.1f times as long as a product and a sum\n",
           config & CL_FP_FMA ? "" : "not ", seconds(d, "fused") / seconds(d, "apart"));
}

int main(void)
{
    struct driver d;
    cl_platform_id platform;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &d.device, NULL))
        return 1;
    d.context = clCreateContext(NULL, 1, &d.device, NULL, NULL, NULL);
    d.queue = clCreateCommandQueue(d.context, d.device, 0, NULL);
    d.program = clCreateProgramWithSource(d.context, 1, &source, NULL, NULL);
    printf("build %d\n", clBuildProgram(d.program, 1, &d.device, "", NULL, NULL));
    const int turned = turns_wrong(&d), counted = counts_wrong(&d), started = starts_wrong(&d);
    time_fma(&d);
    return turned || counted || started;
}
