/* SPDX-License-Identifier: MIT
 *
 * A driver that says of kernels' local memory what a test wants. Included by one file of a program
 * that is linked with -Wl,--wrap=clGetKernelWorkGroupInfo; that file defines local_said().
 */
#ifndef QN_TESTS_SUPPORT_LOCAL_SAID_H
#define QN_TESTS_SUPPORT_LOCAL_SAID_H

#include <CL/cl.h>
#include <string.h>

/* What is said instead of `bytes`. */
static cl_ulong local_said(cl_kernel kernel, cl_device_id device, cl_ulong bytes);

cl_int __real_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t room, void *value,
                                       size_t *size);
cl_int __wrap_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t room, void *value,
                                       size_t *size);

cl_int __wrap_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                       cl_kernel_work_group_info what, size_t room, void *value,
                                       size_t *size)
{
    const cl_int error = __real_clGetKernelWorkGroupInfo(kernel, device, what, room, value, size);
    if (error == CL_SUCCESS && what == CL_KERNEL_LOCAL_MEM_SIZE) {
        cl_ulong said;
        memcpy(&said, value, sizeof said);
        said = local_said(kernel, device, said);
        memcpy(value, &said, sizeof said);
    }
    return error;
}

#endif
