/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include <quern/abi.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define INFO(name, layout) {#name, sizeof(name), layout},
static const qn_struct_info structs[] = {QN_STRUCT_LIST(INFO)};
#undef INFO
enum { N_STRUCTS = sizeof structs / sizeof *structs };

const char *qn_version(int numbers[3])
{
    const int all[] = {QN_VERSION_MAJOR, QN_VERSION_MINOR, QN_VERSION_PATCH};
    if (numbers)
        memcpy(numbers, all, sizeof all);
    return QN_VERSION;
}

static const qn_struct_info *find(const char *name)
{
    for (int i = 0; name && i < N_STRUCTS; i++)
        if (strcmp(structs[i].name, name) == 0)
            return &structs[i];
    return NULL;
}

int64_t qn_struct_size(const char *name)
{
    const qn_struct_info *info = find(name);
    return info ? info->bytes : 0;
}

static bool has_this_abi(const char *version)
{
    int major, minor;
    return sscanf(version, "%d.%d", &major, &minor) == 2 && major == QN_VERSION_MAJOR &&
           (major > 0 || minor == QN_VERSION_MINOR);
}

static qn_status compare(const qn_struct_info *theirs)
{
    const qn_struct_info *ours = find(theirs->name);
    if (!ours)
        return qn_fail(NULL, QN_ERR_ARGUMENT, "%s: Quern %s has no such struct",
                       theirs->name ? theirs->name : "NULL", QN_VERSION);
    if (ours->bytes != theirs->bytes)
        return qn_fail(NULL, QN_ERR_ARGUMENT,
                       "%s: has %" PRId64 " bytes in the program and %" PRId64 " in Quern %s",
                       ours->name, theirs->bytes, ours->bytes, QN_VERSION);
    if (theirs->layout && ours->layout != theirs->layout)
        return qn_fail(NULL, QN_ERR_ARGUMENT,
                       "%s: has other fields in the program than in Quern %s", ours->name,
                       QN_VERSION);
    return QN_OK;
}

qn_status qn_abi_compare(const char *version, const qn_struct_info *theirs, int count)
{
    QN_REQUIRE(NULL, theirs && count >= 0);
    if (version && !has_this_abi(version))
        return qn_fail(NULL, QN_ERR_ARGUMENT,
                       "the program was made for Quern %s and runs with %s, which has another ABI",
                       version, QN_VERSION);
    for (int i = 0; i < count; i++)
        QN_TRY(compare(&theirs[i]));
    return QN_OK;
}
