/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "facts.h"
#include "line.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 64 };

/* The facts of a device that is listed, if the device of its name is that one; else NULL. */
static cJSON *look_up(const qn_device_info *info)
{
    const qn_device_params params = {.match = info->device};
    qn_device *device = NULL;
    cJSON *facts = NULL;
    if (info->usable && qn_device_open(&device, &params) == QN_OK &&
        strcmp(qn_device_describe(device)->platform, info->platform) == 0)
        facts = facts_json(qn_device_facts(device));
    qn_device_close(&device);
    return facts;
}

static cJSON *describe(const qn_device_info *info)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "platform", info->platform);
    cJSON_AddStringToObject(object, "device", info->device);
    cJSON_AddStringToObject(object, "vendor", info->vendor);
    cJSON_AddStringToObject(object, "driver", info->driver);
    cJSON_AddStringToObject(object, "version", info->version);
    cJSON_AddStringToObject(object, "type", info->type);
    cJSON_AddBoolToObject(object, "usable", info->usable);
    cJSON_AddNumberToObject(object, "global_bytes", (double)info->global_bytes);
    cJSON_AddNumberToObject(object, "max_alloc_bytes", (double)info->max_alloc_bytes);
    cJSON_AddNumberToObject(object, "compute_units", info->compute_units);
    cJSON *facts = look_up(info);
    if (facts)
        cJSON_AddItemToObject(object, "facts", facts);
    return object;
}

static int print_json(const qn_device_info *infos, int count, struct failure *failure)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, describe(&infos[i]));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static void print_line(const qn_device_info *info)
{
    char size[SIZE_TEXT_BYTES];
    line_print(stdout, "%s", info->device);
    line_print(stdout, "    %s, %s, %s", info->platform, info->version, info->driver);
    printf("    %s, %d compute units, %s%s\n", info->type, info->compute_units,
           size_text(info->global_bytes, size), info->usable ? "" : ", not usable");
}

static int run(const struct arguments *a, struct failure *failure)
{
    qn_device_info infos[MAX_DEVICES];
    const qn_log log = failure_log(failure);
    int count;
    TRY_LIBRARY(failure, NULL, qn_device_list(infos, MAX_DEVICES, &count, &log));
    count = count < MAX_DEVICES ? count : MAX_DEVICES;
    if (a->value[OPTION_JSON])
        TRY(print_json(infos, count, failure));
    else
        for (int i = 0; i < count; i++)
            print_line(&infos[i]);
    return count ? CODE_DONE
                 : failure_set(failure, CODE_NO_DEVICE, "no OpenCL device: no platform has one");
}

const struct command command_devices = {
    "devices",
    NULL,
    "lists every OpenCL device",
    "Lists every device of every OpenCL platform. With --json also what plans are made from: keep\n"
    "it in a file for quern plan --facts.",
    false,
    run,
    {OPTION_JSON, OPTION_COUNT},
};
