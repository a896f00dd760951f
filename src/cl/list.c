/* SPDX-License-Identifier: MIT
 *
 * Which devices there are.
 */
#include "cl/private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLATFORMS = 32, TEXT_BYTES = 1024 };

static int find_on_platform(cl_platform_id platform, struct qn_found *found, int capacity,
                            const struct qn_log *log)
{
    cl_device_id ids[QN_MAX_DEVICES];
    cl_uint count = 0;
    cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, QN_MAX_DEVICES, ids, &count);
    if (error != CL_SUCCESS) {
        qn_log_write(log, QN_LOG_DEBUG, "a platform gives no devices: %s", qn_cl_error_name(error));
        return 0;
    }
    int n = 0;
    for (; n < capacity && n < (int)count && n < QN_MAX_DEVICES; n++)
        found[n] = (struct qn_found){platform, ids[n]};
    return n;
}

int qn_find_devices(struct qn_found *found, int capacity, const struct qn_log *log)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS)
        return 0;
    int n = 0;
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
        n += find_on_platform(platforms[i], found + n, capacity - n, log);
    return n;
}

/* Copies without blanks at either end, cut to what fits. */
static void copy_trimmed(char *to, size_t capacity, const char *from)
{
    while (isspace((unsigned char)*from))
        from++;
    snprintf(to, capacity, "%s", from);
    for (size_t n = strlen(to); n > 0 && isspace((unsigned char)to[n - 1]); n--)
        to[n - 1] = 0;
}

static void device_text(cl_device_id id, cl_device_info what, char *to, size_t capacity)
{
    char text[TEXT_BYTES] = "";
    if (clGetDeviceInfo(id, what, sizeof text - 1, text, NULL) != CL_SUCCESS)
        text[0] = 0;
    copy_trimmed(to, capacity, text);
}

static void platform_text(cl_platform_id id, cl_platform_info what, char *to, size_t capacity)
{
    char text[TEXT_BYTES] = "";
    if (clGetPlatformInfo(id, what, sizeof text - 1, text, NULL) != CL_SUCCESS)
        text[0] = 0;
    copy_trimmed(to, capacity, text);
}

static const char *type_name(cl_device_id id)
{
    static const struct {
        cl_device_type bit;
        const char *name;
    } types[] = {
        {CL_DEVICE_TYPE_CPU, "cpu"},
        {CL_DEVICE_TYPE_GPU, "gpu"},
        {CL_DEVICE_TYPE_ACCELERATOR, "accelerator"},
    };
    cl_device_type type = 0;
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type & types[i].bit)
            return types[i].name;
    return "other";
}

static bool is_usable(cl_device_id id)
{
    cl_bool available = CL_FALSE, compiler = CL_FALSE;
    clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    char version[64];
    device_text(id, CL_DEVICE_OPENCL_C_VERSION, version, sizeof version);
    int major = 0, minor = 0;
    sscanf(version, "OpenCL C %d.%d", &major, &minor);
    return available && compiler && major * 10 + minor >= 12;
}

/* The answer of cl_khr_pci_bus_info. */
static void bus_text(cl_device_id id, char *to, size_t capacity)
{
    enum { PCI_BUS_INFO = 0x410F };
    cl_uint place[4] = {0}; /* domain, bus, device, function */
    if (clGetDeviceInfo(id, PCI_BUS_INFO, sizeof place, place, NULL) == CL_SUCCESS)
        snprintf(to, capacity, "%04x:%02x:%02x.%x", place[0], place[1], place[2], place[3]);
}

/* -1: of the caller's own, which may be in no list. */
static int number_of(cl_device_id id)
{
    struct qn_found found[QN_MAX_DEVICES];
    const int count = qn_find_devices(found, QN_MAX_DEVICES, NULL);
    int number = 0;
    while (number < count && found[number].id != id)
        number++;
    return number < count ? number : -1;
}

void qn_describe_device(const struct qn_found *found, struct qn_device_info *info)
{
    *info = (struct qn_device_info){.type = type_name(found->id), .usable = is_usable(found->id)};
    platform_text(found->platform, CL_PLATFORM_NAME, info->platform, sizeof info->platform);
    device_text(found->id, CL_DEVICE_NAME, info->device, sizeof info->device);
    device_text(found->id, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
    device_text(found->id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    device_text(found->id, CL_DEVICE_VERSION, info->version, sizeof info->version);
    cl_ulong memory = 0, largest = 0;
    cl_uint units = 0;
    clGetDeviceInfo(found->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    clGetDeviceInfo(found->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    clGetDeviceInfo(found->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    info->global_bytes = (int64_t)memory;
    info->max_alloc_bytes = (int64_t)largest;
    info->compute_units = (int)units;
    info->number = number_of(found->id);
    bus_text(found->id, info->bus, sizeof info->bus);
}

qn_status qn_device_list(qn_device_info *info, int capacity, int *count, const qn_log *log)
{
    QN_REQUIRE(log, count && capacity >= 0 && (info || capacity == 0));
    struct qn_found found[QN_MAX_DEVICES];
    *count = qn_find_devices(found, QN_MAX_DEVICES, log);
    for (int i = 0; i < *count && i < capacity; i++)
        qn_describe_device(&found[i], &info[i]);
    return QN_OK;
}
