/* SPDX-License-Identifier: MIT
 *
 * Linked with -Wl,--wrap=qn_device_try_limits: all devices are taken for such as have fma() in
 * software, so that kernels round products and sums apart.
 */
#include "cl/limits.h"

void __real_qn_device_try_limits(struct qn_device *device);
void __wrap_qn_device_try_limits(struct qn_device *device);

void __wrap_qn_device_try_limits(struct qn_device *device)
{
    __real_qn_device_try_limits(device);
    device->multiplies_apart = true;
}
