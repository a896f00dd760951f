/* SPDX-License-Identifier: MIT
 *
 * Opening and closing a device.
 */
#include "base/cache.h"
#include "cl/limits.h"

#include <stdlib.h>
#include <string.h>

static const char *wanted_text(const struct qn_device_params *params)
{
    const char *match = params->match ? params->match : getenv("QN_DEVICE");
    return match && *match ? match : NULL;
}

static qn_status open_own(struct qn_device *device, const struct qn_device_params *params)
{
    QN_TRY(qn_choose_device(&device->found, wanted_text(params), params));
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->found.platform, 0};
    cl_int error;
    device->context = clCreateContext(properties, 1, &device->found.id, NULL, NULL, &error);
    return qn_cl_check(&device->log, error, "clCreateContext");
}

static bool context_has(cl_context context, cl_device_id id)
{
    cl_device_id ids[QN_MAX_DEVICES];
    size_t size = 0;
    if (clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof ids, ids, &size) != CL_SUCCESS)
        return false;
    for (size_t i = 0; i < size / sizeof *ids; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static qn_status wrap_context(struct qn_device *device, const struct qn_device_params *params)
{
    const struct qn_log *log = &device->log;
    cl_context context = params->cl_context;
    cl_device_id id = params->cl_device_id;
    if (!context || !id)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "qn_device_open: cl_context and cl_device_id go together");
    if (!context_has(context, id))
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "qn_device_open: cl_device_id is not a device of cl_context");
    device->found.id = id;
    QN_TRY(qn_cl_check(log,
                       clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof device->found.platform,
                                       &device->found.platform, NULL),
                       "clGetDeviceInfo(CL_DEVICE_PLATFORM)"));
    QN_TRY(qn_cl_check(log, clRetainContext(context), "clRetainContext"));
    device->context = context;
    return QN_OK;
}

static qn_status wrap_queue(struct qn_device *device, cl_command_queue queue)
{
    const struct qn_log *log = &device->log;
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (context != device->context || id != device->found.id)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "qn_device_open: cl_queue is not of cl_context and cl_device_id");
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return qn_fail(log, QN_ERR_ARGUMENT,
                       "qn_device_open: cl_queue runs out of order; an in-order queue is needed");
    QN_TRY(qn_cl_check(log, clRetainCommandQueue(queue), "clRetainCommandQueue"));
    device->queue = queue;
    return QN_OK;
}

static qn_status make_queue(struct qn_device *device)
{
    cl_int error;
    device->queue = clCreateCommandQueue(device->context, device->found.id, 0, &error);
    return qn_cl_check(&device->log, error, "clCreateCommandQueue");
}

static qn_status open_device(struct qn_device *device, const struct qn_device_params *params)
{
    const struct qn_log *log = &device->log;
    bool wrapped = params->cl_context || params->cl_device_id || params->cl_queue;
    QN_REQUIRE(log, params->max_alloc_bytes >= 0 && params->skip >= 0);
    QN_TRY(wrapped ? wrap_context(device, params) : open_own(device, params));
    qn_describe_device(&device->found, &device->info);
    if (!device->info.usable)
        return qn_fail(log, QN_ERR_NO_DEVICE, "%s: does not compile OpenCL C 1.2 kernels",
                       device->info.device);
    QN_TRY(params->cl_queue ? wrap_queue(device, params->cl_queue) : make_queue(device));
    qn_device_measure(device, params->max_alloc_bytes);
    device->quirks = qn_quirks_of(&device->info);
    qn_instance_take(device);
    device->cache = qn_cache_open(params->cache_dir, log);
    if (params->kernel_dir) {
        device->kernel_dir = qn_arena_strdup(&device->arena, params->kernel_dir);
        if (!device->kernel_dir)
            return qn_fail(log, QN_ERR_MEMORY, "qn_device_open: out of memory");
    }
    qn_device_try_limits(device);
    qn_blas_measure(device);
    qn_device_try_units(device);
    return QN_OK;
}

qn_status qn_device_open(qn_device **device, const qn_device_params *params)
{
    static const struct qn_device_params defaults;
    if (!params)
        params = &defaults;
    QN_REQUIRE(&params->log, device);
    *device = NULL;
    struct qn_device *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail(&params->log, QN_ERR_MEMORY, "qn_device_open: out of memory");
    made->log = params->log;
    made->cache = -1;
    qn_status status = open_device(made, params);
    if (status != QN_OK)
        qn_device_close(&made);
    *device = made;
    return status;
}

void qn_device_close(qn_device **device)
{
    struct qn_device *old = device ? *device : NULL;
    if (!old)
        return;
    if (old->queue)
        qn_device_drain(old);
    qn_device_check(old, true);
    qn_programs_release(old);
    qn_blas_release(old);
    if (old->queue)
        clReleaseCommandQueue(old->queue);
    if (old->aside)
        clReleaseCommandQueue(old->aside);
    if (old->context)
        clReleaseContext(old->context);
    qn_cache_close(old->cache);
    qn_instance_give_back(old);
    qn_arena_free(&old->arena);
    free(old);
    *device = NULL;
}

const qn_facts *qn_device_facts(const qn_device *device)
{
    return device ? &device->facts : NULL;
}

const qn_device_info *qn_device_describe(const qn_device *device)
{
    return device ? &device->info : NULL;
}
