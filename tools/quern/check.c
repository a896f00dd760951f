/* SPDX-License-Identifier: MIT */
#include "check_progress.h"
#include "check_workers.h"
#include "commands.h"
#include "line.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPERATORS = 256 };

struct operator_counts {
    char name[64];
    int count[3]; /* by outcome */
    int worker;   /* the process that checks it */
    bool over;
};

struct report {
    bool json;
    struct operator_counts operators[MAX_OPERATORS]; /* each in its place */
    int printed; /* operators from the first on, whose lines are out */
    uint64_t seed;
    qn_device_info info; /* with a type once a process has told it */
    cJSON *failures;
    struct check_progress progress;
};

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

static void take_device(struct report *r, const qn_device_info *info)
{
    if (!r->info.type && !r->json)
        print_device(info);
    r->info = *info;
}

static bool has_records(const struct operator_counts *o)
{
    return o->count[QN_CHECK_PASSED] + o->count[QN_CHECK_FAILED] +
               o->count[QN_CHECK_NOT_APPLICABLE] >
           0;
}

/* What the process had before is over; the lines of what is over follow the order of operators. */
static void end_operator(struct report *r, int worker)
{
    for (int i = r->printed; i < MAX_OPERATORS; i++)
        r->operators[i].over |= r->operators[i].name[0] && r->operators[i].worker == worker;
    for (; r->printed < MAX_OPERATORS && r->operators[r->printed].over; r->printed++) {
        const struct operator_counts *o = &r->operators[r->printed];
        if (r->json || !has_records(o))
            continue;
        check_progress_clear(&r->progress);
        printf("%-24s %5d passed  %5d failed  %5d not applicable\n", o->name,
               o->count[QN_CHECK_PASSED], o->count[QN_CHECK_FAILED],
               o->count[QN_CHECK_NOT_APPLICABLE]);
        fflush(stdout);
    }
}

static void begin_operator(struct report *r, const struct check_message *m)
{
    end_operator(r, m->worker);
    struct operator_counts *o = &r->operators[m->place];
    snprintf(o->name, sizeof o->name, "%s", m->op);
    o->worker = m->worker;
}

static void add_failure(struct report *r, const struct check_message *m)
{
    if (!r->json) {
        check_progress_clear(&r->progress);
        line_print(stdout, "FAILED %s/%s %s %s: %s", m->op, m->item, m->storage, m->variant,
                   m->reason);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "op", m->op);
    cJSON_AddStringToObject(object, "case", m->item);
    cJSON_AddStringToObject(object, "storage", m->storage);
    cJSON_AddStringToObject(object, "variant", m->variant);
    cJSON_AddStringToObject(object, "reason", m->reason);
    cJSON_AddItemToArray(r->failures, object);
}

static void add_record(struct report *r, const struct check_message *m, qn_check_outcome outcome)
{
    r->operators[m->place].count[outcome]++;
    if (outcome == QN_CHECK_FAILED)
        add_failure(r, m);
}

static void receive(void *user, const struct check_message *m)
{
    struct report *r = user;
    switch (m->kind) {
    case CHECK_DEVICE:
        take_device(r, &m->info);
        break;
    case CHECK_OPERATOR:
        begin_operator(r, m);
        break;
    case CHECK_BEGIN:
        check_progress_show(&r->progress, m);
        break;
    case CHECK_RECORD:
        add_record(r, m, m->outcome);
        break;
    case CHECK_CRASHED:
        add_record(r, m, QN_CHECK_FAILED);
        end_operator(r, m->worker);
        break;
    case CHECK_DONE:
        r->seed = m->seed;
        end_operator(r, m->worker);
        break;
    case CHECK_FAILED:
        end_operator(r, m->worker);
        break;
    }
}

static qn_check_summary sum_up(const struct report *r)
{
    qn_check_summary sum = {.seed = r->seed};
    for (const struct operator_counts *o = r->operators; o < r->operators + MAX_OPERATORS; o++) {
        sum.passed += o->count[QN_CHECK_PASSED];
        sum.failed += o->count[QN_CHECK_FAILED];
        sum.not_applicable += o->count[QN_CHECK_NOT_APPLICABLE];
    }
    return sum;
}

static void add_operators(const struct report *r, cJSON *list)
{
    for (const struct operator_counts *o = r->operators; o < r->operators + MAX_OPERATORS; o++) {
        if (!has_records(o))
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "op", o->name);
        cJSON_AddNumberToObject(object, "passed", o->count[QN_CHECK_PASSED]);
        cJSON_AddNumberToObject(object, "failed", o->count[QN_CHECK_FAILED]);
        cJSON_AddNumberToObject(object, "not_applicable", o->count[QN_CHECK_NOT_APPLICABLE]);
        cJSON_AddItemToArray(list, object);
    }
}

static int print_json(const struct report *r, const qn_check_summary *summary,
                      struct failure *failure)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "quern", QN_VERSION);
    cJSON_AddStringToObject(root, "device", r->info.device);
    cJSON_AddStringToObject(root, "platform", r->info.platform);
    cJSON_AddStringToObject(root, "vendor", r->info.vendor);
    cJSON_AddStringToObject(root, "version", r->info.version);
    cJSON_AddStringToObject(root, "driver", r->info.driver);
    cJSON_AddNumberToObject(root, "seed", (double)summary->seed);
    cJSON_AddNumberToObject(root, "passed", summary->passed);
    cJSON_AddNumberToObject(root, "failed", summary->failed);
    cJSON_AddNumberToObject(root, "not_applicable", summary->not_applicable);
    add_operators(r, cJSON_AddArrayToObject(root, "operators"));
    cJSON_AddItemReferenceToObject(root, "failures", r->failures);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static int check(struct report *r, const struct arguments *a, struct failure *failure)
{
    const bool small = a->value[OPTION_SMALL] != NULL;
    /* A driver that is asked for the binary of a program may build all its kernels once more. */
    const qn_device_params device = {.match = a->value[OPTION_DEVICE],
                                     .cache_dir = small ? "" : NULL};
    const qn_check_params params = {
        .filter = a->value[OPTION_OP], .small = small, .quick = small, .every_type = !small};
    TRY(check_workers_run(&device, &params, receive, r, failure));
    const qn_check_summary summary = sum_up(r);
    if (r->json)
        TRY(print_json(r, &summary, failure));
    else
        printf("\n%d passed, %d failed, %d not applicable (seed %" PRIu64 ")\n", summary.passed,
               summary.failed, summary.not_applicable, summary.seed);
    return summary.failed ? failure_set(failure, CODE_FAILED, "check: %d of %d checks failed",
                                        summary.failed, summary.passed + summary.failed)
                          : CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    const bool json = a->value[OPTION_JSON] != NULL;
    struct report report = {.json = json,
                            .failures = cJSON_CreateArray(),
                            .progress = {.quiet = json, .terminal = isatty(STDOUT_FILENO) == 1}};
    int code = check(&report, a, failure);
    cJSON_Delete(report.failures);
    return code;
}

const struct command command_check = {
    "check",
    NULL,
    "whether the kernels compute the right numbers on a device",
    "Compares every operator, forward and backward, in every storage type and kernel variant,\n"
    "with a reference in double precision. Prints a report that can be sent with a question.\n"
    "--small takes the tiny cases in f32 and one type of 16 bits; kernels that do not suit the\n"
    "device, such as those for GPUs on a CPU, once each in f32. Several processes share the work; "
    "if\n"
    "a driver crashes in one, the check that it was at has failed and the others go on.",
    false,
    run,
    {OPTION_DEVICE, OPTION_OP, OPTION_SMALL, OPTION_JSON, OPTION_COUNT},
};
