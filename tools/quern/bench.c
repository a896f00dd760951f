/* SPDX-License-Identifier: MIT */
#include "bench_update.h"
#include "bench_works.h"
#include "commands.h"
#include "line.h"
#include "session.h"
#include "tuning.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_BYTES = 24 };

struct bench {
    struct session session; /* device, tuning; graph and plan of the work under way */
    const struct arguments *arguments;
    const struct work *work; /* NULL: a recipe */
    qn_ceilings ceilings;
    cJSON *results;
    int count;
};

static double share(double done, double seconds, double ceiling)
{
    return seconds > 0 && ceiling > 0 ? 100 * done / seconds / ceiling : 0;
}

static void print_row(const struct bench *b, const qn_bench_record *r)
{
    char variant[64];
    snprintf(variant, sizeof variant, "%s%s%s%s", r->variant, *r->setting ? ":" : "", r->setting,
             r->chosen ? " *" : "");
    printf("  %-21s %-18s ", r->group, variant);
    if (r->outcome == QN_BENCH_TIMED)
        printf("%10.3f ms %8.1f GFLOP/s %3.0f %% %7.1f GB/s %3.0f %%\n", 1e3 * r->seconds,
               1e-9 * r->flops / r->seconds, share(r->flops, r->seconds, b->ceilings.flops),
               1e-9 * r->bytes / r->seconds,
               share(r->bytes, r->seconds, b->ceilings.bytes_per_second));
    else
        printf("%s: %s\n", r->outcome == QN_BENCH_FAILED ? "FAILED" : "not here", r->reason);
    fflush(stdout);
}

static void add_result(struct bench *b, const qn_bench_record *r)
{
    static const char *const outcomes[] = {"timed", "failed", "not applicable"};
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "work", b->work ? b->work->name : b->session.recipe.name);
    if (b->work) {
        cJSON *sizes = cJSON_AddArrayToObject(object, "size");
        for (int i = 0; i < WORK_SIZES; i++)
            cJSON_AddItemToArray(sizes, cJSON_CreateNumber((double)b->work->size[i]));
    }
    cJSON_AddStringToObject(object, "node", r->node);
    cJSON_AddStringToObject(object, "op", r->op);
    cJSON_AddStringToObject(object, "group", r->group);
    cJSON_AddStringToObject(object, "task", r->task);
    cJSON_AddStringToObject(object, "variant", r->variant);
    cJSON_AddStringToObject(object, "setting", r->setting);
    cJSON_AddBoolToObject(object, "chosen", r->chosen);
    cJSON_AddStringToObject(object, "outcome", outcomes[r->outcome]);
    cJSON_AddStringToObject(object, "reason", r->reason);
    cJSON_AddNumberToObject(object, "seconds", r->seconds);
    cJSON_AddNumberToObject(object, "fastest_seconds", r->fastest);
    cJSON_AddNumberToObject(object, "flops", r->flops);
    cJSON_AddNumberToObject(object, "bytes", r->bytes);
    cJSON_AddNumberToObject(object, "launches", r->launches);
    cJSON_AddNumberToObject(object, "scratch", (double)r->scratch);
    cJSON_AddItemToArray(b->results, object);
}

static void receive(void *user, const qn_bench_record *record)
{
    struct bench *b = user;
    if (b->work && strcmp(record->op, b->work->op) != 0)
        return;
    b->count++;
    if (b->results)
        add_result(b, record);
    else
        print_row(b, record);
}

static int measure(struct bench *b)
{
    const qn_bench_params params = {
        .all = b->arguments->value[OPTION_ALL] != NULL, .fn = receive, .user = b};
    TRY_LIBRARY(b->session.failure, NULL, qn_bench(b->session.device, b->session.plan, &params));
    return CODE_DONE;
}

static void add_update(struct bench *b, const struct update_times *times)
{
    const qn_plan_info *plan = qn_plan_facts(b->session.plan);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "work", b->work ? b->work->name : b->session.recipe.name);
    cJSON_AddStringToObject(object, "op", "update");
    cJSON_AddStringToObject(object, "outcome", "timed");
    cJSON_AddNumberToObject(object, "seconds", times->seconds);
    cJSON_AddNumberToObject(object, "fastest_seconds", times->fastest);
    cJSON_AddNumberToObject(object, "predicted_seconds", plan->seconds);
    cJSON_AddNumberToObject(object, "measured_share", plan->measured_share);
    cJSON_AddNumberToObject(object, "host_seconds", times->host);
    cJSON_AddNumberToObject(object, "samples", (double)qn_plan_settings(b->session.plan)->batch[0]);
    cJSON_AddNumberToObject(object, "micro_batch", (double)plan->micro_batch);
    cJSON_AddNumberToObject(object, "peak_bytes", (double)plan->peak_bytes);
    char hash[HASH_BYTES];
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->hash);
    cJSON_AddStringToObject(object, "plan", hash);
    cJSON_AddItemToArray(b->results, object);
}

static int measure_update(struct bench *b)
{
    struct update_times times;
    const double samples = (double)qn_plan_settings(b->session.plan)->batch[0];
    TRY(b->work ? update_time_made_up(&b->session, &times) : update_time(&b->session, &times));
    b->count++;
    if (b->results)
        add_update(b, &times);
    else
        printf("  update: %.1f ms, fastest %.1f, predicted %.1f; %.1f samples/s; calling thread "
               "%.2f ms, %.2f %%; micro-batch %lld\n",
               1e3 * times.seconds, 1e3 * times.fastest,
               1e3 * qn_plan_facts(b->session.plan)->seconds, samples / times.seconds,
               1e3 * times.host, 100 * times.host / times.seconds,
               (long long)qn_plan_facts(b->session.plan)->micro_batch);
    return CODE_DONE;
}

/* --- the works that ship --- */

static int build_work(struct bench *b)
{
    struct session *s = &b->session;
    const qn_graph_params params = {.log = failure_log(s->failure),
                                    .storage = s->settings.memory.storage,
                                    .parameter_storage = s->settings.memory.parameter_storage};
    TRY_LIBRARY(s->failure, NULL, qn_graph_create(&s->graph, &params));
    b->work->build(s->graph, b->work);
    qn_plan_params plan = work_plan(b->work);
    plan.variants = s->settings.memory.variants;
    if (b->work->data)
        s->data.model = *b->work->data;
    TRY(tuning_plan(s, &plan, s->settings.memory.tune));
    return tuning_probe(s, &plan, s->settings.memory.tune);
}

static int run_work(struct bench *b)
{
    if (!b->results)
        printf("%s %s\n", b->work->op, b->work->name);
    int code = build_work(b);
    if (code == CODE_DONE)
        code = work_is_update(b->work) ? measure_update(b) : measure(b);
    qn_plan_destroy(&b->session.plan);
    qn_graph_destroy(&b->session.graph);
    return code;
}

/* Whether the work is among those that were asked for: by "op", or by part of "op name". */
static bool is_asked(const struct work *work, const char *only)
{
    char name[128];
    snprintf(name, sizeof name, "%s %s", work->op, work->name);
    return !only || strstr(name, only);
}

/* Without a recipe only what concerns the kernels themselves can be set; it is read as if it stood
 * in a recipe. */
static int read_settings(struct bench *b)
{
    static const char *const known[] = {"memory.storage", "memory.parameter_storage", "memory.tune",
                                        "memory.variants"};
    const struct arguments *a = b->arguments;
    for (int i = 0; i < a->n_overrides; i++) {
        bool good = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            good = good || strcmp(a->overrides[i].name, known[k]) == 0;
        if (!good)
            return failure_set(b->session.failure, CODE_USAGE, "%s: goes with a RECIPE",
                               a->overrides[i].option);
    }
    return session_recipe(&b->session, "fashion-mlp", a);
}

static int run_works(struct bench *b)
{
    TRY(read_settings(b));
    for (b->work = works; b->work->op; b->work++)
        if (is_asked(b->work, b->arguments->value[OPTION_ONLY]))
            TRY(run_work(b));
    if (b->count == 0)
        return failure_set(b->session.failure, CODE_USAGE, "--only: no benchmark is named %s",
                           b->arguments->value[OPTION_ONLY]);
    return CODE_DONE;
}

/* --- a recipe --- */

static int run_recipe(struct bench *b)
{
    struct session *s = &b->session;
    TRY(session_recipe(s, b->arguments->operand, b->arguments));
    TRY(data_open(&s->data, &s->settings, &s->recipe, s->failure));
    TRY(session_graph(s));
    const qn_plan_params params = settings_plan(&s->settings);
    TRY(tuning_plan(s, &params, s->settings.memory.tune));
    TRY(tuning_probe(s, &params, s->settings.memory.tune));
    if (!b->arguments->value[OPTION_ONLY])
        TRY(measure(b));
    return measure_update(b);
}

/* --- the command --- */

static int print_json(struct bench *b)
{
    const qn_device_info *info = qn_device_describe(b->session.device);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "quern", QN_VERSION);
    cJSON_AddStringToObject(root, "device", info->device);
    cJSON_AddStringToObject(root, "platform", info->platform);
    cJSON_AddStringToObject(root, "driver", info->driver);
    cJSON_AddNumberToObject(root, "flops_ceiling", b->ceilings.flops);
    cJSON_AddNumberToObject(root, "bytes_per_second_ceiling", b->ceilings.bytes_per_second);
    cJSON_AddNumberToObject(root, "launch_seconds", b->ceilings.launch_seconds);
    cJSON_AddItemToObject(root, "results", b->results);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    b->results = NULL;
    if (!text)
        return failure_set(b->session.failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static void announce(const struct bench *b)
{
    line_print(stdout, "device: %s", qn_device_facts(b->session.device)->name);
    printf("ceilings: %.1f GFLOP/s, %.1f GB/s copied, %.1f us a launch\n"
           "* is what a plan takes; percentages are of the ceilings\n",
           1e-9 * b->ceilings.flops, 1e-9 * b->ceilings.bytes_per_second,
           1e6 * b->ceilings.launch_seconds);
}

static int bench(struct bench *b)
{
    struct session *s = &b->session;
    const char *only = b->arguments->value[OPTION_ONLY];
    if (b->arguments->operand && only && strcmp(only, "update") != 0)
        return failure_set(s->failure, CODE_USAGE, "bench: --only: of a RECIPE only 'update'");
    TRY(session_device(s, b->arguments));
    TRY_LIBRARY(s->failure, NULL, qn_measure_ceilings(s->device, &b->ceilings));
    if (b->arguments->value[OPTION_JSON])
        b->results = cJSON_CreateArray();
    else
        announce(b);
    TRY(b->arguments->operand ? run_recipe(b) : run_works(b));
    return b->results ? print_json(b) : CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return failure_set(failure, CODE_FAILED, "out of memory");
    b->session.failure = failure;
    b->session.quiet = a->value[OPTION_JSON] != NULL;
    b->arguments = a;
    int code = bench(b);
    cJSON_Delete(b->results);
    session_close(&b->session);
    free(b);
    return code;
}

const struct command command_bench = {
    "bench",
    "[RECIPE]",
    "times kernels on a device",
    "Times the launch groups of a recipe, or without one operators at sizes of well-known "
    "networks,\n"
    "through the same launches as training, and compares them with what the device reaches at "
    "best:\n"
    "fused multiply-adds from registers, and a copy of memory. Then whole updates: of a\n"
    "recipe on its data, else on made-up images and tokens.",
    true,
    run,
    {OPTION_ONLY, OPTION_ALL, OPTION_DATA, OPTION_BUDGET, OPTION_BATCH, OPTION_MICRO_BATCH,
     OPTION_STORAGE, OPTION_DEVICE, OPTION_TUNE, OPTION_SET, OPTION_JSON, OPTION_COUNT},
};
