/* SPDX-License-Identifier: MIT
 *
 * What certain drivers do, keyed on their texts. The only place with vendors' names; every quirk
 * has an effect somewhere in cl/.
 */
#include "cl/private.h"

#include <stdlib.h>
#include <string.h>

/* Parts of the texts; NULL: any. */
static const struct {
    const char *platform, *vendor, *driver;
    unsigned quirks;
} table[] = {
    {"NVIDIA CUDA", NULL, NULL, QN_QUIRK_OWN_CACHE | QN_QUIRK_PTX_ASM},
    {"Oclgrind", NULL, NULL, QN_QUIRK_WRITE_BY_MAP},
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

/* Unpinned, the worker threads of PoCL may share a core while another is idle: products then ran at
 * half speed now and then. */
void qn_device_hints(void)
{
    setenv("POCL_AFFINITY", "1", 0);
}
