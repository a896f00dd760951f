/* SPDX-License-Identifier: MIT
 *
 * Without Quern: how much local memory a driver says that a kernel with 18,432 bytes takes, and
 * whether it launches it. Mesa 22.3 (rusticl) says twice as much.
 *
 *     cc local_memory.c -lOpenCL && OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd ./a.out
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source = "__kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
                            "void sum(__global float *x)\n"
                            "{\n"
                            "    __local float a[4608];\n"
                            "    const int i = get_local_id(0);\n"
                            "    for (int k = i; k < 4608; k += 64)\n"
                            "        a[k] = x[k];\n"
                            "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                            "    x[i] = a[4607 - i];\n"
                            "}\n";

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_ulong has = 0, takes = 0;
    const size_t items = 64;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, 4608 * sizeof(float), NULL, NULL);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    int built = clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "sum", NULL);
    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof has, &has, NULL);
    clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof takes, &takes, NULL);
    clSetKernelArg(kernel, 0, sizeof x, &x);
    int launched = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    int finished = clFinish(queue);
    printf("build %d; local memory: %llu bytes of the device, 18432 declared, %llu said; launch "
           "%d, finish %d\n",
           built, (unsigned long long)has, (unsigned long long)takes, launched, finished);
    return takes > 18432 + 1024;
}
