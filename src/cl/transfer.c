/* SPDX-License-Identifier: MIT
 *
 * Copies between a slab and the host.
 */
#include "cl/memory.h"

#include <string.h>

bool qn_slab_has(const struct qn_slab *slab, int buffer, int64_t offset, int64_t size)
{
    return buffer >= 0 && buffer < slab->count && slab->buffer[buffer] && offset >= 0 &&
           size >= 0 && size <= slab->bytes[buffer] && offset <= slab->bytes[buffer] - size;
}

static qn_status begin(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                       int64_t size, struct qn_transfer *transfer)
{
    const struct qn_log *log = &slab->device->log;
    QN_REQUIRE(log, !transfer || !transfer->event);
    QN_REQUIRE(log, size == 0 || host);
    QN_REQUIRE(log, size == 0 || qn_slab_has(slab, buffer, offset, size));
    return QN_OK;
}

/* A transfer that blocked has seen the end of everything before it; one that did not is on its way.
 */
static qn_status end(struct qn_device *device, cl_int error, const char *what, bool blocked)
{
    QN_TRY(qn_cl_check(&device->log, error, what));
    return blocked ? qn_device_check(device, true) : qn_device_flush(device);
}

cl_int qn_slab_write_mapped(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                            int64_t size)
{
    cl_command_queue queue = slab->device->queue;
    cl_mem memory = slab->buffer[buffer];
    cl_map_flags flags = host ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_WRITE;
    cl_int error;
    void *to = clEnqueueMapBuffer(queue, memory, CL_TRUE, flags, (size_t)offset, (size_t)size, 0,
                                  NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return error;
    if (host)
        memcpy(to, host, (size_t)size);
    return clEnqueueUnmapMemObject(queue, memory, to, 0, NULL, NULL);
}

qn_status qn_slab_write(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                        int64_t size, struct qn_transfer *transfer)
{
    QN_TRY(begin(slab, buffer, offset, host, size, transfer));
    if (size == 0)
        return QN_OK;
    if (slab->device->quirks & QN_QUIRK_WRITE_BY_MAP)
        return end(slab->device, qn_slab_write_mapped(slab, buffer, offset, host, size),
                   "clEnqueueMapBuffer", true);
    cl_int error = clEnqueueWriteBuffer(slab->device->queue, slab->buffer[buffer], !transfer,
                                        (size_t)offset, (size_t)size, host, 0, NULL,
                                        transfer ? (cl_event *)&transfer->event : NULL);
    return end(slab->device, error, "clEnqueueWriteBuffer", !transfer);
}

qn_status qn_slab_read(struct qn_slab *slab, int buffer, int64_t offset, void *host, int64_t size,
                       struct qn_transfer *transfer)
{
    QN_TRY(begin(slab, buffer, offset, host, size, transfer));
    if (size == 0)
        return QN_OK;
    cl_int error = clEnqueueReadBuffer(slab->device->queue, slab->buffer[buffer], !transfer,
                                       (size_t)offset, (size_t)size, host, 0, NULL,
                                       transfer ? (cl_event *)&transfer->event : NULL);
    return end(slab->device, error, "clEnqueueReadBuffer", !transfer);
}

/* --- beside the kernels --- */

static qn_status open_aside(struct qn_device *device)
{
    cl_int error = CL_SUCCESS;
    if (!device->aside)
        device->aside = clCreateCommandQueue(device->context, device->found.id, 0, &error);
    return qn_cl_check(&device->log, error, "clCreateCommandQueue");
}

/* An event for the end of all that was enqueued so far. */
static qn_status mark_end(struct qn_device *device, cl_event *event)
{
    QN_TRY(open_aside(device));
    QN_TRY(qn_cl_check(&device->log, clEnqueueMarkerWithWaitList(device->queue, 0, NULL, event),
                       "clEnqueueMarkerWithWaitList"));
    return qn_device_flush(device);
}

/* To the host or, where `to` is NULL, from it; after `before`. */
static qn_status copy_after(struct qn_slab *slab, int buffer, int64_t offset, void *to,
                            const void *from, int64_t size, cl_event before,
                            struct qn_transfer *transfer)
{
    struct qn_device *device = slab->device;
    cl_mem memory = slab->buffer[buffer];
    cl_event *event = (cl_event *)&transfer->event;
    const cl_int error = to ? clEnqueueReadBuffer(device->aside, memory, CL_FALSE, (size_t)offset,
                                                  (size_t)size, to, 1, &before, event)
                            : clEnqueueWriteBuffer(device->aside, memory, CL_FALSE, (size_t)offset,
                                                   (size_t)size, from, 1, &before, event);
    QN_TRY(qn_cl_check(&device->log, error, to ? "clEnqueueReadBuffer" : "clEnqueueWriteBuffer"));
    return qn_cl_check(&device->log, clFlush(device->aside), "clFlush");
}

static qn_status copy_aside(struct qn_slab *slab, int buffer, int64_t offset, void *to,
                            const void *from, int64_t size, struct qn_transfer *transfer)
{
    cl_event before;
    QN_TRY(mark_end(slab->device, &before));
    const qn_status status = copy_after(slab, buffer, offset, to, from, size, before, transfer);
    clReleaseEvent(before);
    return status;
}

qn_status qn_slab_write_aside(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                              int64_t size, struct qn_transfer *transfer)
{
    if (slab->device->quirks & QN_QUIRK_WRITE_BY_MAP)
        return qn_slab_write(slab, buffer, offset, host, size, transfer);
    QN_TRY(begin(slab, buffer, offset, host, size, transfer));
    return size ? copy_aside(slab, buffer, offset, NULL, host, size, transfer) : QN_OK;
}

qn_status qn_slab_read_aside(struct qn_slab *slab, int buffer, int64_t offset, void *host,
                             int64_t size, struct qn_transfer *transfer)
{
    if (slab->device->quirks & QN_QUIRK_WRITE_BY_MAP)
        return qn_slab_read(slab, buffer, offset, host, size, transfer);
    QN_TRY(begin(slab, buffer, offset, host, size, transfer));
    return size ? copy_aside(slab, buffer, offset, host, NULL, size, transfer) : QN_OK;
}

qn_status qn_slab_mark(struct qn_slab *slab, struct qn_transfer *mark)
{
    QN_REQUIRE(&slab->device->log, !mark->event);
    return mark_end(slab->device, (cl_event *)&mark->event);
}

qn_status qn_slab_read_after(struct qn_slab *slab, int buffer, int64_t offset, void *host,
                             int64_t size, const struct qn_transfer *mark,
                             struct qn_transfer *transfer)
{
    if (slab->device->quirks & QN_QUIRK_WRITE_BY_MAP)
        return qn_slab_read(slab, buffer, offset, host, size, transfer);
    QN_TRY(begin(slab, buffer, offset, host, size, transfer));
    QN_REQUIRE(&slab->device->log, mark->event);
    return size ? copy_after(slab, buffer, offset, host, NULL, size, mark->event, transfer) : QN_OK;
}

qn_status qn_slab_await(struct qn_slab *slab, const struct qn_transfer *transfer)
{
    const cl_event event = transfer->event;
    if (!event)
        return QN_OK;
    return qn_cl_check(&slab->device->log,
                       clEnqueueBarrierWithWaitList(slab->device->queue, 1, &event, NULL),
                       "clEnqueueBarrierWithWaitList");
}

qn_status qn_transfer_wait(qn_device *device, struct qn_transfer *transfer)
{
    cl_event event = transfer ? transfer->event : NULL;
    if (!event)
        return QN_OK;
    transfer->event = NULL;
    cl_int error = clWaitForEvents(1, &event);
    qn_device_mark(device, event);
    QN_TRY(qn_device_check(device, false));
    return qn_cl_check(&device->log, error, "clWaitForEvents");
}
