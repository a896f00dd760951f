/* SPDX-License-Identifier: MIT
 *
 * The queue of a device: waiting for it, and the marks that tell of commands that failed.
 */
#include "cl/private.h"

const struct qn_log *qn_device_log(const qn_device *device)
{
    return &device->log;
}

/* Looks at one mark; gives whether its command has ended. */
static bool look_at(struct qn_device *device, cl_event event)
{
    cl_int state = CL_QUEUED;
    cl_int error =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error != CL_SUCCESS)
        state = error;
    if (state < 0 && !device->lost)
        device->lost = state;
    return state <= CL_COMPLETE;
}

void qn_device_mark(struct qn_device *device, cl_event event)
{
    cl_event *slot = &device->marks[device->next_mark];
    if (*slot) {
        if (!look_at(device, *slot)) {
            clWaitForEvents(1, slot);
            look_at(device, *slot);
        }
        clReleaseEvent(*slot);
    }
    *slot = event;
    device->next_mark = (device->next_mark + 1) % QN_MAX_MARKS;
}

qn_status qn_device_check(struct qn_device *device, bool all)
{
    for (int i = 0; i < QN_MAX_MARKS; i++) {
        cl_event *mark = &device->marks[i];
        if (*mark && (look_at(device, *mark) || all)) {
            clReleaseEvent(*mark);
            *mark = NULL;
        }
    }
    return qn_cl_check(&device->log, device->lost, "a command failed on the device");
}

/* Waits for a marker before clFinish(): where all commands are flushed already, some drivers return
 * from that at once, though they still run. */
static cl_int drain(cl_command_queue queue)
{
    cl_event last;
    cl_int error = clEnqueueMarkerWithWaitList(queue, 0, NULL, &last);
    if (error == CL_SUCCESS) {
        error = clWaitForEvents(1, &last);
        clReleaseEvent(last);
    }
    const cl_int finished = clFinish(queue);
    return error == CL_SUCCESS ? finished : error;
}

cl_int qn_device_drain(struct qn_device *device)
{
    const cl_int error = drain(device->queue);
    const cl_int beside = device->aside ? drain(device->aside) : CL_SUCCESS;
    return error == CL_SUCCESS ? beside : error;
}

qn_status qn_device_finish(qn_device *device)
{
    cl_int error = qn_device_drain(device);
    QN_TRY(qn_device_check(device, true));
    return qn_cl_check(&device->log, error, "clFinish");
}

qn_status qn_device_flush(qn_device *device)
{
    return qn_cl_check(&device->log, clFlush(device->queue), "clFlush");
}
