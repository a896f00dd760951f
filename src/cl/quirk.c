/* SPDX-License-Identifier: MIT
 *
 * What certain drivers do, keyed on their texts. The only place with vendors' names; every quirk
 * has an effect somewhere in cl/.
 */
#include "cl/private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the texts; NULL: any. */
static const struct {
    const char *platform, *vendor, *driver;
    unsigned quirks;
} table[] = {
    {"NVIDIA CUDA", NULL, NULL, QN_QUIRK_OWN_CACHE | QN_QUIRK_PTX_ASM},
    {"Oclgrind", NULL, NULL, QN_QUIRK_WRITE_BY_MAP},
    {"Portable Computing Language", NULL, NULL, QN_QUIRK_OWN_PROGRAMS | QN_QUIRK_HOST_ASM},
};

static bool has(const char *text, const char *part)
{
    return !part || strstr(text, part);
}

unsigned qn_quirks_of(const struct qn_device_info *info)
{
    unsigned quirks = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (has(info->platform, table[i].platform) && has(info->vendor, table[i].vendor) &&
            has(info->driver, table[i].driver))
            quirks |= table[i].quirks;
    return quirks;
}

/* A bit for each number that is taken. */
static atomic_uint instances;

void qn_instance_take(struct qn_device *device)
{
    if (!(device->quirks & QN_QUIRK_OWN_PROGRAMS))
        return;
    while (device->instance < QN_MAX_INSTANCES - 1 &&
           atomic_fetch_or(&instances, 1u << device->instance) & 1u << device->instance)
        device->instance++;
}

void qn_instance_give_back(const struct qn_device *device)
{
    if (device->quirks & QN_QUIRK_OWN_PROGRAMS)
        atomic_fetch_and(&instances, ~(1u << device->instance));
}

/* Unpinned, the worker threads of PoCL may share a core while another is idle: products then ran at
 * half speed now and then. Pinned, the first threads of all devices share the first core, where
 * POCL_DEVICES names several. */
void qn_device_hints(void)
{
    const char *devices = getenv("POCL_DEVICES");
    if (!devices || !strchr(devices, ' '))
        setenv("POCL_AFFINITY", "1", 0);
}
