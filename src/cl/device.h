/* SPDX-License-Identifier: MIT
 *
 * What the rest of the library may do with an opened device. No type of OpenCL appears here: only
 * the files of cl/ include CL/cl.h.
 */
#ifndef QN_CL_DEVICE_H
#define QN_CL_DEVICE_H

#include <quern/device.h>

const struct qn_log *qn_device_log(const qn_device *device);

/* Waits until everything enqueued has run. QN_ERR_DEVICE if any of it failed. */
qn_status qn_device_finish(qn_device *device);
/* Hands what is enqueued to the device without waiting. */
qn_status qn_device_flush(qn_device *device);

/* What tells this device with its driver from others, as a hash; and what tells the kernels that
 * it would build from those of another version of the library. */
uint64_t qn_device_identity(const qn_device *device);
uint64_t qn_device_kernels(const qn_device *device);

/* A text in the device's cache folder; see base/cache.h. */
char *qn_device_load_text(qn_device *device, const char *name);
qn_status qn_device_store_text(qn_device *device, const char *name, const char *text);

#endif
