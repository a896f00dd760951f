/* SPDX-License-Identifier: MIT
 *
 * What was found out about a device holds for that device, its driver and these kernels; and where
 * it is kept.
 */
#include "base/cache.h"
#include "base/text.h"
#include "cl/private.h"
#include "cl/source.h"

#include <errno.h>
#include <string.h>

static uint64_t add_text(uint64_t hash, const char *text)
{
    return qn_hash(hash, text, strlen(text) + 1);
}

uint64_t qn_device_identity(const qn_device *device)
{
    const struct qn_device_info *info = &device->info;
    char platform[256] = "";
    clGetPlatformInfo(device->found.platform, CL_PLATFORM_VERSION, sizeof platform - 1, platform,
                      NULL);
    uint64_t hash = add_text(QN_HASH_START, info->platform);
    hash = add_text(hash, platform);
    hash = add_text(hash, info->device);
    hash = add_text(hash, info->driver);
    return add_text(hash, info->version);
}

uint64_t qn_device_kernels(const qn_device *device)
{
    static const struct qn_log silent;
    uint64_t hash = QN_HASH_START;
    for (const struct qn_embedded_kernel *kernel = qn_embedded_kernels; kernel->stem; kernel++) {
        struct qn_source source;
        if (qn_source_open(&source, device->kernel_dir, kernel->stem, &silent) != QN_OK)
            continue;
        hash = qn_hash(hash, source.bytes, source.length);
        qn_source_free(&source);
    }
    return hash;
}

char *qn_device_load_text(qn_device *device, const char *name)
{
    return qn_cache_load_text(device->cache, name);
}

qn_status qn_device_store_text(qn_device *device, const char *name, const char *text)
{
    if (qn_cache_store_text(device->cache, name, text))
        return QN_OK;
    return qn_fail(
        &device->log, QN_ERR_IO, "%s: could not be written to the cache folder: %s", name,
        device->cache < 0 ? "there is none, or others may write to it" : strerror(errno));
}
