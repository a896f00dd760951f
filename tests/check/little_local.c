/* SPDX-License-Identifier: MIT
 *
 * Linked with check_ops.c: a driver that counts the local memory of kernels so often that 16 KiB of
 * the device's are left, half of the least that OpenCL 1.2 asks for. Kernels then take their
 * smallest blocks, or others take their place.
 */
#include "../support/local_said.h"

enum { LEFT = 16 << 10 };

static cl_ulong local_said(cl_kernel kernel, cl_device_id device, cl_ulong bytes)
{
    cl_ulong all = 0;
    (void)kernel;
    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof all, &all, NULL);
    return all / LEFT * bytes;
}
