/* SPDX-License-Identifier: MIT
 *
 * Facts of a device: those it reports, bounded, and estimates of its speed. Measured figures may
 * replace the estimates.
 */
#include "cl/private.h"

#include <stdio.h>

enum { TENSOR_ALIGNMENT = 512 };
static const int64_t largest_buffer = INT64_C(1) << 30;

void qn_facts_default(qn_facts *facts, bool cpu)
{
    *facts = (struct qn_facts){
        .cpu = cpu,
        .vector_width = cpu ? 8 : 4,
        .compute_units = cpu ? 4 : 32,
        .max_work_group = 256,
        .local_bytes = 32 << 10,
        .global_bytes = INT64_C(4) << 30,
        .max_alloc_bytes = largest_buffer,
        .alignment = TENSOR_ALIGNMENT,
        .matrix_layout = QN_MATRIX_MMA,
        .blas = true,
        .blas_rows = 32,
        .blas_columns = 32,
        .blas_terms = 32,
        .blas_side = 896,
        .flops = cpu ? 1e11 : 2e12,
        .bytes_per_second = cpu ? 2e10 : 2e11,
        .launch_seconds = cpu ? 5e-6 : 1e-5,
    };
    snprintf(facts->name, sizeof facts->name, "some %s", cpu ? "CPU" : "GPU");
}

static int64_t power_of_two_below(int64_t value)
{
    int64_t power = 1;
    while (power <= value / 2)
        power *= 2;
    return power;
}

static int64_t cap_of_buffer(int64_t reported, int64_t asked)
{
    if (asked > 0)
        return asked < reported ? asked : reported;
    return power_of_two_below(reported < largest_buffer ? reported : largest_buffer);
}

static int vector_width(cl_device_id id, bool cpu)
{
    cl_uint native = 0;
    clGetDeviceInfo(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof native, &native, NULL);
    if (!cpu || native <= 4)
        return 4;
    return native < 16 ? 8 : 16;
}

/* Peak at one fused multiply-add a lane and cycle; a GPU's unit has about 64 lanes. */
static double estimate_flops(cl_device_id id, const struct qn_facts *facts)
{
    cl_uint megahertz = 0;
    clGetDeviceInfo(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof megahertz, &megahertz, NULL);
    double clock = megahertz ? megahertz * 1e6 : 1e9;
    return 2 * clock * facts->compute_units * (facts->cpu ? facts->vector_width : 64);
}

void qn_device_measure(struct qn_device *device, int64_t max_alloc_bytes)
{
    cl_device_id id = device->found.id;
    const struct qn_device_info *info = &device->info;
    struct qn_facts *facts = &device->facts;
    cl_device_type type = 0;
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    qn_facts_default(facts, (type & CL_DEVICE_TYPE_CPU) != 0);
    snprintf(facts->name, sizeof facts->name, "%.60s (%.30s)", info->device, info->platform);
    facts->vector_width = vector_width(id, facts->cpu);
    facts->max_alloc_bytes = cap_of_buffer(info->max_alloc_bytes, max_alloc_bytes);
    facts->global_bytes = info->global_bytes;
    facts->compute_units = info->compute_units;

    size_t group = 0;
    cl_ulong local = 0;
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    clGetDeviceInfo(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof device->max_items, device->max_items,
                    NULL);
    facts->max_work_group = (int)group;
    facts->local_bytes = device->local_bytes = (int64_t)local;
    facts->flops = estimate_flops(id, facts);
}
