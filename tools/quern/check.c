/* SPDX-License-Identifier: MIT */
#include "check_progress.h"
#include "commands.h"
#include "line.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Counts of the operator under way, and the report so far as JSON. */
struct report {
    bool json;
    char op[64];
    int count[3]; /* by outcome */
    cJSON *operators, *failures;
    struct check_progress progress;
};

static void end_operator(struct report *r)
{
    const int *count = r->count;
    if (!r->op[0])
        return;
    if (r->json) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "op", r->op);
        cJSON_AddNumberToObject(object, "passed", count[QN_CHECK_PASSED]);
        cJSON_AddNumberToObject(object, "failed", count[QN_CHECK_FAILED]);
        cJSON_AddNumberToObject(object, "not_applicable", count[QN_CHECK_NOT_APPLICABLE]);
        cJSON_AddItemToArray(r->operators, object);
    } else {
        check_progress_clear(&r->progress);
        printf("%-24s %5d passed  %5d failed  %5d not applicable\n", r->op, count[QN_CHECK_PASSED],
               count[QN_CHECK_FAILED], count[QN_CHECK_NOT_APPLICABLE]);
        fflush(stdout);
    }
    memset(r->count, 0, sizeof r->count);
}

static void add_failure(struct report *r, const qn_check_record *record)
{
    if (!r->json) {
        check_progress_clear(&r->progress);
        line_print(stdout, "FAILED %s/%s %s %s: %s", record->op, record->item, record->storage,
                   record->variant, record->reason);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "op", record->op);
    cJSON_AddStringToObject(object, "case", record->item);
    cJSON_AddStringToObject(object, "storage", record->storage);
    cJSON_AddStringToObject(object, "variant", record->variant);
    cJSON_AddStringToObject(object, "reason", record->reason);
    cJSON_AddItemToArray(r->failures, object);
}

static void receive(void *user, const qn_check_record *record)
{
    struct report *r = user;
    if (strcmp(r->op, record->op) != 0)
        end_operator(r);
    snprintf(r->op, sizeof r->op, "%s", record->op);
    r->count[record->outcome]++;
    if (record->outcome == QN_CHECK_FAILED)
        add_failure(r, record);
}

static void show_begin(void *user, const qn_check_record *record)
{
    struct report *r = user;
    check_progress_show(&r->progress, record);
}

static void print_device(const qn_device_info *info)
{
    printf("quern     %s\n", QN_VERSION);
    line_print(stdout, "device    %s (%s)", info->device, info->type);
    line_print(stdout, "platform  %s", info->platform);
    line_print(stdout, "vendor    %s", info->vendor);
    line_print(stdout, "version   %s", info->version);
    line_print(stdout, "driver    %s", info->driver);
    printf("\n");
}

static int print_json(const struct report *r, const qn_device_info *info,
                      const qn_check_summary *summary, struct failure *failure)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "quern", QN_VERSION);
    cJSON_AddStringToObject(root, "device", info->device);
    cJSON_AddStringToObject(root, "platform", info->platform);
    cJSON_AddStringToObject(root, "vendor", info->vendor);
    cJSON_AddStringToObject(root, "version", info->version);
    cJSON_AddStringToObject(root, "driver", info->driver);
    cJSON_AddNumberToObject(root, "seed", (double)summary->seed);
    cJSON_AddNumberToObject(root, "passed", summary->passed);
    cJSON_AddNumberToObject(root, "failed", summary->failed);
    cJSON_AddNumberToObject(root, "not_applicable", summary->not_applicable);
    cJSON_AddItemReferenceToObject(root, "operators", r->operators);
    cJSON_AddItemReferenceToObject(root, "failures", r->failures);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static int check(struct report *r, qn_device *device, const struct arguments *a,
                 struct failure *failure)
{
    const qn_device_info *info = qn_device_describe(device);
    const bool small = a->value[OPTION_SMALL] != NULL;
    const qn_check_params params = {.filter = a->value[OPTION_OP],
                                    .small = small,
                                    .quick = small,
                                    .every_type = !small,
                                    .fn = receive,
                                    .begin = show_begin,
                                    .user = r};
    qn_check_summary summary = {0};
    if (!r->json)
        print_device(info);
    TRY_LIBRARY(failure, params.filter ? "--op" : NULL, qn_check_run(device, &params, &summary));
    end_operator(r);
    if (r->json)
        TRY(print_json(r, info, &summary, failure));
    else
        printf("\n%d passed, %d failed, %d not applicable (seed %" PRIu64 ")\n", summary.passed,
               summary.failed, summary.not_applicable, summary.seed);
    return summary.failed ? failure_set(failure, CODE_FAILED, "check: %d of %d checks failed",
                                        summary.failed, summary.passed + summary.failed)
                          : CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    /* A driver that is asked for the binary of a program may build all its kernels once more. */
    const qn_device_params params = {.log = failure_log(failure),
                                     .match = a->value[OPTION_DEVICE],
                                     .cache_dir = a->value[OPTION_SMALL] ? "" : NULL};
    qn_device *device = NULL;
    TRY_LIBRARY(failure, params.match ? "--device" : NULL, qn_device_open(&device, &params));
    const bool json = a->value[OPTION_JSON] != NULL;
    struct report report = {.json = json,
                            .operators = cJSON_CreateArray(),
                            .failures = cJSON_CreateArray(),
                            .progress = {.quiet = json, .terminal = isatty(STDOUT_FILENO) == 1}};
    int code = check(&report, device, a, failure);
    cJSON_Delete(report.operators);
    cJSON_Delete(report.failures);
    qn_device_close(&device);
    return code;
}

const struct command command_check = {
    "check",
    NULL,
    "whether the kernels compute the right numbers on a device",
    "Compares every operator, forward and backward, in every storage type and kernel variant,\n"
    "with a reference in double precision. Prints a report that can be sent with a question.\n"
    "--small takes the tiny cases in f32 and one type of 16 bits; kernels that do not suit the\n"
    "device, such as those for GPUs on a CPU, once each in f32.",
    false,
    run,
    {OPTION_DEVICE, OPTION_OP, OPTION_SMALL, OPTION_JSON, OPTION_COUNT},
};
