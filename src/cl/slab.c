/* SPDX-License-Identifier: MIT */
#include "cl/memory.h"

#include "base/shape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { FILL_GROUP = 64, FILL_GROUP_WORDS = 2048, HUGE_PAGE = 2 << 20 };

static int64_t sum(const int64_t *bytes, int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total = qn_sum_of(total, bytes[i]);
    return total;
}

static qn_status refused(const struct qn_slab *slab, int64_t asked, int index, cl_int error)
{
    int64_t obtained = sum(slab->bytes, index);
    return qn_fail(&slab->device->log, QN_ERR_MEMORY,
                   "the device refused memory: %" PRId64 " bytes asked in %d buffers, %" PRId64
                   " obtained; buffer %d of %" PRId64 " bytes: %s; try a budget of %" PRId64
                   " bytes",
                   asked, slab->count, obtained, index, slab->bytes[index], qn_cl_error_name(error),
                   obtained ? obtained : asked / 4 * 3);
}

static cl_int enqueue_fill(struct qn_slab *slab, int buffer, int64_t offset, int64_t size,
                           uint32_t word, cl_event *event)
{
    cl_ulong at = (cl_ulong)offset / 4, n = (cl_ulong)size / 4;
    cl_uint tail = (cl_uint)(size % 4), value = word;
    size_t local = FILL_GROUP;
    size_t global = (size_t)(n / FILL_GROUP_WORDS + 1) * FILL_GROUP;
    cl_kernel kernel = slab->fill;
    cl_int error = clSetKernelArg(kernel, 0, sizeof(cl_mem), &slab->buffer[buffer]);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, 1, sizeof at, &at);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, 2, sizeof n, &n);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, 3, sizeof tail, &tail);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, 4, sizeof value, &value);
    if (error != CL_SUCCESS)
        return error;
    return clEnqueueNDRangeKernel(slab->device->queue, kernel, 1, NULL, &global, &local, 0, NULL,
                                  event);
}

/* Writes to every page and waits, so that memory which is not there is missed now. */
static cl_int touch(struct qn_slab *slab, int buffer)
{
    cl_event event = NULL;
    cl_int error = enqueue_fill(slab, buffer, 0, slab->bytes[buffer], 0, &event);
    if (error != CL_SUCCESS)
        return error;
    error = clWaitForEvents(1, &event);
    cl_int state = CL_COMPLETE;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    clReleaseEvent(event);
    return state < 0 ? state : error;
}

/* Asks for huge pages where a device's memory is the host's: walks over large arrays then miss the
 * table of pages much less often. What comes of it is the host's affair. */
static void advise(struct qn_slab *slab, int buffer)
{
    const size_t size = (size_t)slab->bytes[buffer];
    cl_command_queue queue = slab->device->queue;
    cl_mem memory = slab->buffer[buffer];
    if (!slab->device->facts.cpu || size < 2 * HUGE_PAGE)
        return;
    char *start = clEnqueueMapBuffer(queue, memory, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL,
                                     &(cl_int){0});
    if (!start)
        return;
    const size_t skipped = HUGE_PAGE - (uintptr_t)start % HUGE_PAGE;
    madvise(start + skipped, (size - skipped) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    clEnqueueUnmapMemObject(queue, memory, start, 0, NULL, NULL);
}

static cl_int make_buffer(struct qn_slab *slab, int index, bool touched)
{
    if (slab->bytes[index] == 0)
        return CL_SUCCESS;
    cl_int error;
    slab->buffer[index] = clCreateBuffer(slab->device->context, CL_MEM_READ_WRITE,
                                         (size_t)slab->bytes[index], NULL, &error);
    if (error != CL_SUCCESS || !touched)
        return error;
    advise(slab, index);
    if (slab->device->quirks & QN_QUIRK_WRITE_BY_MAP)
        error = qn_slab_write_mapped(slab, index, 0, NULL, slab->bytes[index]);
    return error == CL_SUCCESS ? touch(slab, index) : error;
}

static qn_status make_buffers(struct qn_slab *slab, const int64_t *bytes, int count, bool touched)
{
    int64_t asked = sum(bytes, count);
    slab->count = count;
    for (int i = 0; i < count; i++)
        slab->bytes[i] = bytes[i];
    for (int i = 0; i < count; i++) {
        cl_int error = make_buffer(slab, i, touched);
        if (error != CL_SUCCESS)
            return refused(slab, asked, i, error);
    }
    return QN_OK;
}

static qn_status open_slab(struct qn_slab **slab, qn_device *device, const int64_t *bytes,
                           int count, bool touched)
{
    const struct qn_log *log = &device->log;
    *slab = NULL;
    QN_REQUIRE(log, count >= 0 && count <= QN_MAX_BUFFERS);
    QN_REQUIRE(log, sum(bytes, count) >= 0);
    struct qn_slab *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail(log, QN_ERR_MEMORY, "qn_slab_open: out of memory");
    made->device = device;
    qn_status status = qn_kernel_create(device, "fill", "", "fill", &made->fill);
    if (status == QN_OK)
        status = make_buffers(made, bytes, count, touched);
    if (status != QN_OK)
        qn_slab_close(&made);
    *slab = made;
    return status;
}

qn_status qn_slab_open(struct qn_slab **slab, qn_device *device, const int64_t *bytes, int count)
{
    return open_slab(slab, device, bytes, count, true);
}

qn_status qn_slab_open_untouched(struct qn_slab **slab, qn_device *device, const int64_t *bytes,
                                 int count)
{
    return open_slab(slab, device, bytes, count, false);
}

void qn_slab_close(struct qn_slab **slab)
{
    struct qn_slab *old = slab ? *slab : NULL;
    if (!old)
        return;
    qn_device_drain(old->device);
    for (int i = 0; i < old->count; i++)
        if (old->buffer[i])
            clReleaseMemObject(old->buffer[i]);
    if (old->fill)
        clReleaseKernel(old->fill);
    free(old);
    *slab = NULL;
}

int64_t qn_slab_bytes(const struct qn_slab *slab)
{
    return sum(slab->bytes, slab->count);
}

qn_status qn_slab_fill(struct qn_slab *slab, int buffer, int64_t offset, int64_t size,
                       uint32_t word)
{
    const struct qn_log *log = &slab->device->log;
    QN_REQUIRE(log, offset % 4 == 0 && size % 4 == 0);
    if (size == 0)
        return QN_OK;
    QN_REQUIRE(log, qn_slab_has(slab, buffer, offset, size));
    cl_event event = NULL;
    QN_TRY(qn_cl_check(log, enqueue_fill(slab, buffer, offset, size, word, &event), "filling"));
    qn_device_mark(slab->device, event);
    return QN_OK;
}
