/* SPDX-License-Identifier: MIT */
#include "tune/store.h"

#include "cl/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 48, HASH_BYTES = 24 };

static void write_hash(char text[HASH_BYTES], uint64_t hash)
{
    snprintf(text, HASH_BYTES, "%016" PRIx64, hash);
}

static void file_name(char name[NAME_BYTES], const qn_device *device)
{
    snprintf(name, NAME_BYTES, "tuning-%016" PRIx64 ".json", qn_device_identity(device));
}

/* Whether the table's entries were found on this device with these kernels. */
static bool is_ours(const struct qn_tuning *tuning, const qn_device *device, const char *kernels)
{
    const qn_device_info *info = qn_device_describe(device);
    return tuning->device && strcmp(tuning->device, info->device) == 0 &&
           strcmp(tuning->driver, info->driver) == 0 && strcmp(tuning->kernels, kernels) == 0;
}

qn_status qn_tuning_open(struct qn_tuning *tuning, qn_device *device, const char *known)
{
    const qn_device_info *info = qn_device_describe(device);
    char kernels[HASH_BYTES];
    write_hash(kernels, qn_device_kernels(device));
    *tuning = (struct qn_tuning){0};
    if (known && *known)
        QN_TRY(qn_tuning_parse(tuning, known, qn_device_log(device)));
    if (is_ours(tuning, device, kernels))
        return QN_OK;
    qn_tuning_free(tuning);
    tuning->device = qn_arena_strdup(&tuning->arena, info->device);
    tuning->driver = qn_arena_strdup(&tuning->arena, info->driver);
    tuning->kernels = qn_arena_strdup(&tuning->arena, kernels);
    if (tuning->device && tuning->driver && tuning->kernels)
        return QN_OK;
    return qn_fail(qn_device_log(device), QN_ERR_MEMORY, "tuning: out of host memory");
}

/* Whether the text is a tuning table of this device with these kernels. Any other file counts as
 * missing: tuning replaces it. */
static bool is_usable(qn_device *device, const char *text)
{
    static const struct qn_log silent;
    struct qn_tuning tuning = {0};
    char kernels[HASH_BYTES];
    write_hash(kernels, qn_device_kernels(device));
    bool usable =
        qn_tuning_parse(&tuning, text, &silent) == QN_OK && is_ours(&tuning, device, kernels);
    qn_tuning_free(&tuning);
    return usable;
}

qn_status qn_tuning_load(qn_device *device, char **tuning)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), tuning);
    char name[NAME_BYTES];
    file_name(name, device);
    *tuning = qn_device_load_text(device, name);
    if (*tuning && is_usable(device, *tuning))
        return QN_OK;
    free(*tuning);
    *tuning = calloc(1, 1);
    return *tuning ? QN_OK
                   : qn_fail(qn_device_log(device), QN_ERR_MEMORY, "tuning: out of host memory");
}

qn_status qn_tuning_save(qn_device *device, const char *tuning)
{
    QN_REQUIRE(NULL, device);
    QN_REQUIRE(qn_device_log(device), tuning);
    char name[NAME_BYTES];
    file_name(name, device);
    return qn_device_store_text(device, name, tuning);
}
