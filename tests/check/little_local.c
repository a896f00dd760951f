/* SPDX-License-Identifier: MIT
 *
 * Linked with check_ops.c: a driver that counts the local memory of kernels so often that 16 KiB of
 * the device's are left, half of the least that OpenCL 1.2 asks for. Kernels then take their
 * smallest blocks, or others take their place.
 */
#include <CL/cl.h>
#include <string.h>

enum { LEFT = 16 << 10 };

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
        cl_ulong bytes = 0, said;
        clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        memcpy(&said, value, sizeof said);
        said *= bytes / LEFT;
        memcpy(value, &said, sizeof said);
    }
    return error;
}
