/* SPDX-License-Identifier: MIT
 *
 * From the description of a launch to a kernel with all its arguments bound. All that can be wrong
 * with a launch is found here, before anything runs.
 */
#include "cl/launch.h"
#include "op/tile.h"

#include "base/shape.h"
#include "op/op.h"

#include <inttypes.h>

/* One launch on its way. */
struct binding {
    struct qn_recording *recording;
    struct qn_device *device;
    const struct qn_launch *launch;
    const char *tag;
    cl_kernel kernel;
    cl_uint place; /* of the next argument */
};

static qn_status wrong(const struct binding *binding, qn_status status, const char *what)
{
    const struct qn_launch *launch = binding->launch;
    return qn_fail(&binding->device->log, status, "%s: kernel %s of %s (options \"%s\"): %s",
                   binding->tag, launch->kernel, launch->program, launch->options, what);
}

qn_status qn_check_operand(const struct qn_recording *recording, const struct qn_operand *operand,
                           int64_t count, const char *what)
{
    int64_t size = qn_dtype_size(operand->dtype);
    int64_t offset = qn_mul(operand->offset, size), bytes = qn_mul(count, size);
    if (offset >= 0 && bytes >= 0 && qn_slab_has(recording->slab, operand->buffer, offset, bytes))
        return QN_OK;
    return qn_fail(&recording->slab->device->log, QN_ERR_INTERNAL,
                   "%s: an operand of %" PRId64 " bytes at byte %" PRId64
                   " does not lie in buffer %d",
                   what, bytes, offset, operand->buffer);
}

static qn_status set(struct binding *binding, size_t size, const void *value)
{
    cl_int error = clSetKernelArg(binding->kernel, binding->place, size, value);
    if (error != CL_SUCCESS)
        return wrong(binding, QN_ERR_DEVICE, qn_cl_error_name(error));
    binding->place++;
    return QN_OK;
}

static cl_mem some_buffer(const struct qn_slab *slab)
{
    for (int i = 0; i < slab->count; i++)
        if (slab->buffer[i])
            return slab->buffer[i];
    return NULL;
}

static qn_status set_buffer(struct binding *binding, const struct qn_operand *operand)
{
    const struct qn_slab *slab = binding->recording->slab;
    cl_mem memory = some_buffer(slab);
    cl_ulong at = 0;
    if (operand && qn_present(operand)) {
        QN_TRY(
            qn_check_operand(binding->recording, operand, qn_operand_count(operand), binding->tag));
        memory = slab->buffer[operand->buffer];
        at = (cl_ulong)operand->offset;
    }
    QN_TRY(set(binding, sizeof memory, &memory));
    return set(binding, sizeof at, &at);
}

static qn_status set_argument(struct binding *binding, const struct qn_arg *arg)
{
    const cl_int narrow = (cl_int)arg->integer;
    const cl_long wide = arg->integer;
    const cl_float real = arg->real;
    switch (arg->kind) {
    case QN_ARG_BUFFER:
        return set_buffer(binding, arg->operand);
    case QN_ARG_INT:
        if (narrow != arg->integer && arg->integer != (cl_uint)narrow)
            return wrong(binding, QN_ERR_INTERNAL, "an integer does not fit 32 bits");
        return set(binding, sizeof narrow, &narrow);
    case QN_ARG_LONG:
        return set(binding, sizeof wide, &wide);
    case QN_ARG_FLOAT:
        return set(binding, sizeof real, &real);
    case QN_ARG_END:
        break;
    }
    return wrong(binding, QN_ERR_INTERNAL, "an argument has no kind");
}

static qn_status set_arguments(struct binding *binding)
{
    const struct qn_arg *arg = binding->launch->args;
    for (int i = 0; i < QN_MAX_ARGS && arg[i].kind != QN_ARG_END; i++)
        QN_TRY(set_argument(binding, &arg[i]));
    cl_uint wanted = 0;
    clGetKernelInfo(binding->kernel, CL_KERNEL_NUM_ARGS, sizeof wanted, &wanted, NULL);
    if (wanted != binding->place)
        return wrong(binding, QN_ERR_INTERNAL, "the number of arguments is not the kernel's");
    return QN_OK;
}

static void set_range(const struct qn_launch *launch, struct qn_site *site)
{
    for (int i = 0; i < 3; i++) {
        int64_t local = launch->local[i] > 0 ? launch->local[i] : 1;
        int64_t global = launch->global[i] > 0 ? launch->global[i] : 1;
        site->local[i] = (size_t)local;
        site->global[i] = (size_t)qn_round_up(global, local);
    }
}

static int64_t most_local(const struct qn_device *device)
{
    const int64_t strips = device->facts.matrix_units & QN_MATRIX_STRIPS && !device->facts.cpu
                               ? QN_STRIPS_BYTES + QN_STRIPS_COUNTED
                               : 0;
    return device->local_bytes > strips ? device->local_bytes : strips;
}

/* What the driver says of the kernel as it was built; it may count more than the source declares.
 */
static qn_status check_group(const struct binding *binding, const struct qn_site *site)
{
    const struct qn_device *device = binding->device;
    const size_t *local = site->local;
    size_t most = 0, fixed[3] = {0};
    cl_ulong used = 0;
    clGetKernelWorkGroupInfo(binding->kernel, device->found.id, CL_KERNEL_WORK_GROUP_SIZE,
                             sizeof most, &most, NULL);
    clGetKernelWorkGroupInfo(binding->kernel, device->found.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                             sizeof fixed, fixed, NULL);
    clGetKernelWorkGroupInfo(binding->kernel, device->found.id, CL_KERNEL_LOCAL_MEM_SIZE,
                             sizeof used, &used, NULL);
    /* Some drivers give less than what the kernel requires and yet run it. */
    if (fixed[0] && most < fixed[0] * fixed[1] * fixed[2])
        most = fixed[0] * fixed[1] * fixed[2];
    for (int i = 0; i < 3; i++)
        if (local[i] > device->max_items[i])
            most = 0;
    if (local[0] * local[1] * local[2] > most)
        return qn_fail(&device->log, QN_ERR_BUILD,
                       "%s: kernel %s of %s: a work-group of %zu x %zu x %zu is more than the "
                       "device runs of it (%zu in all, %zu x %zu x %zu)",
                       binding->tag, site->name, binding->launch->program, local[0], local[1],
                       local[2], most, device->max_items[0], device->max_items[1],
                       device->max_items[2]);
    if (fixed[0] && (fixed[0] != local[0] || fixed[1] != local[1] || fixed[2] != local[2]))
        return wrong(binding, QN_ERR_INTERNAL, "the work-group is not the one the kernel requires");
    if ((int64_t)used > most_local(device))
        return qn_fail(&device->log, QN_ERR_BUILD,
                       "%s: kernel %s of %s: %" PRIu64 " bytes of local memory, the device has "
                       "%" PRId64,
                       binding->tag, site->name, binding->launch->program, (uint64_t)used,
                       most_local(device));
    return QN_OK;
}

static qn_status bind(struct binding *binding, struct qn_site *site)
{
    const struct qn_launch *launch = binding->launch;
    site->name = qn_arena_strdup(&binding->recording->arena, launch->kernel);
    if (!site->name)
        return wrong(binding, QN_ERR_MEMORY, "out of memory");
    if (launch->options[sizeof launch->options - 2])
        return wrong(binding, QN_ERR_INTERNAL, "the options are too long");
    QN_TRY(qn_kernel_create(binding->device, launch->program, launch->options, launch->kernel,
                            &binding->kernel));
    site->kernel = binding->kernel;
    QN_TRY(set_arguments(binding));
    set_range(launch, site);
    QN_TRY(check_group(binding, site));
    return qn_recording_add(binding->recording, site);
}

qn_status qn_emit_launch(struct qn_emit *emit, const struct qn_launch *launch)
{
    struct qn_recording *recording = emit->recording;
    struct binding binding = {recording, recording->slab->device, launch, emit->tag, NULL, 0};
    struct qn_site site = {.tag = emit->tag};
    qn_status status = bind(&binding, &site);
    if (status != QN_OK && site.kernel)
        clReleaseKernel(site.kernel);
    return status;
}
