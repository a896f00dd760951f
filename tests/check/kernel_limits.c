/* SPDX-License-Identifier: MIT
 *
 * Without Quern: what a driver says that a kernel takes and bears, and whether it runs it right.
 * The kernel has 18,432 bytes of local memory and runs in a work-group of 64, which it does not
 * require. Mesa 22.3 (rusticl) says 36,864 bytes, of 32,768 that the device has, and 32 items at
 * most; it runs the kernel all the same, and right.
 *
 *     cc kernel_limits.c -lOpenCL && OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd ./a.out
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

enum { COUNT = 4608, ITEMS = 64, LOCAL_BYTES = COUNT * sizeof(float) };

static const char *source = "__kernel void turn(__global float *x)\n"
                            "{\n"
                            "    __local float a[4608];\n"
                            "    const int i = get_local_id(0), n = get_local_size(0);\n"
                            "    for (int k = i; k < 4608; k += n)\n"
                            "        a[k] = x[k];\n"
                            "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                            "    for (int k = i; k < 4608; k += n)\n"
                            "        x[k] = a[4607 - k];\n"
                            "}\n";

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_ulong has = 0, takes = 0;
    size_t most = 0;
    const size_t items = ITEMS;
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_mem x = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    int built = clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "turn", NULL);
    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof has, &has, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof takes, &takes, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    int launched = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += values[i] != (float)(COUNT - 1 - i);
    printf("build %d; local memory: %llu bytes of the device, %d declared, %llu said; items: %zu "
           "said, "
           "%d launched: %d; %d of %d values are wrong\n",
           built, (unsigned long long)has, (int)LOCAL_BYTES, (unsigned long long)takes, most, ITEMS,
           launched, wrong, COUNT);
    return takes > LOCAL_BYTES + 1024 || most < ITEMS || wrong > 0;
}
