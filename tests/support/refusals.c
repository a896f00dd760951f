/* SPDX-License-Identifier: MIT
 *
 * What happens when memory ends, anywhere: the linker (--wrap) puts the functions below between the
 * library and malloc, and between it and the OpenCL calls that make objects. In run N the Nth of
 * these calls is refused; the runs end with the first in which nothing is. A run must give a status
 * and its reason, or succeed without what was refused, and a sanitizer sees what it leaves behind.
 * A checkpoint is saved and restored, and weights alone; kernels are tuned; and everything is done:
 * a device opened, a graph built, planned and trained for two updates, evaluated, saved and closed.
 * Once the trainer is open, updates and evaluations make none of these calls.
 *
 * Usage: refusals RUNS: about so many of tuning and of everything; refusals SHARE SHARES: of their
 * calls every one whose number is SHARE, SHARE + SHARES, ...
 */
#define _GNU_SOURCE
#include "refuse.h"

#include <CL/cl.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long calls_of_updates; /* and of the evaluation */
static char last_error[512];

cl_mem __real_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error);
cl_kernel __real_clCreateKernel(cl_program program, const char *name, cl_int *error);
cl_program __real_clCreateProgramWithSource(cl_context context, cl_uint count, const char **text,
                                            const size_t *sizes, cl_int *error);
cl_mem __wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error);
cl_kernel __wrap_clCreateKernel(cl_program program, const char *name, cl_int *error);
cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count, const char **text,
                                            const size_t *sizes, cl_int *error);

static void *no_object(cl_int *error)
{
    if (error)
        *error = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

cl_mem __wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error)
{
    return refuse() ? no_object(error) : __real_clCreateBuffer(context, flags, size, host, error);
}

cl_kernel __wrap_clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    return refuse() ? no_object(error) : __real_clCreateKernel(program, name, error);
}

cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count, const char **text,
                                            const size_t *sizes, cl_int *error)
{
    return refuse() ? no_object(error)
                    : __real_clCreateProgramWithSource(context, count, text, sizes, error);
}

static void keep_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    if (level == QN_LOG_ERROR)
        snprintf(last_error, sizeof last_error, "%s", text);
}

static const qn_log messages = {.fn = keep_message, .level = QN_LOG_ERROR};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    size_t size = strcmp(input, "images") == 0 ? 8 * 8 : 4;
    memset(rows, (int)first % 4, (size_t)count * size);
    if (size == 4)
        memset(rows, 0, (size_t)count * size);
    return QN_OK;
}

struct objects {
    const char *folder; /* for checkpoints */
    qn_device *device;
    qn_graph *graph;
    qn_plan *plan;
    qn_trainer *trainer;
    qn_checkpoint *checkpoint;
};

static qn_status plan_it(struct objects *o)
{
    const qn_model_data data = {.channels = 1, .height = 8, .width = 8, .classes = 3};
    const qn_model_option options[] = {{"width", "4"}, {"group", "4"}, {"dropout", "0.5"}};
    const qn_plan_params params = {.budget = 1 << 20,
                                   .batch = {12},
                                   .micro_batch = 8,
                                   .effort = QN_EFFORT_INSTANT,
                                   .cache_dir = "",
                                   .optimizer = {.name = "adamw"},
                                   .norm_groups = "conv*, *"};
    const qn_device_params device = {.log = messages, .cache_dir = ""};
    qn_status status = qn_device_open(&o->device, &device);
    if (status == QN_OK)
        status = qn_graph_create(&o->graph, &(qn_graph_params){.log = messages});
    if (status == QN_OK)
        status = qn_model_build(o->graph, "cnn", &data, options, 3);
    if (status == QN_OK)
        status = qn_plan_create(&o->plan, o->graph, qn_device_facts(o->device), &params, NULL);
    return status;
}

static qn_status update(struct objects *o)
{
    const qn_cycle cycle = {.samples = 12, .lr = 0.01, .fetch = fetch};
    const long before = calls_made();
    qn_status status = QN_OK;
    for (int i = 0; i < 2 && status == QN_OK; i++)
        status = qn_trainer_step(o->trainer, &cycle, NULL);
    if (status == QN_OK)
        status = qn_trainer_evaluate(o->trainer, 9, fetch, NULL, NULL);
    calls_of_updates = calls_made() - before;
    return status;
}

static qn_status train(struct objects *o)
{
    const qn_status status = qn_trainer_open(&o->trainer, o->device, o->plan, NULL);
    return status == QN_OK ? update(o) : status;
}

static void end(struct objects *o)
{
    qn_checkpoint_close(&o->checkpoint);
    qn_trainer_close(&o->trainer);
    qn_plan_destroy(&o->plan);
    qn_graph_destroy(&o->graph);
    qn_device_close(&o->device);
}

/* --- what is refused something --- */

static qn_status checkpoint(struct objects *o)
{
    qn_status status = qn_checkpoint_save(o->trainer, o->folder, &(qn_save_params){.note = "note"});
    if (status == QN_OK)
        status = qn_checkpoint_open(&o->checkpoint, o->folder, &messages);
    if (status == QN_OK)
        status = qn_checkpoint_restore(o->checkpoint, o->trainer);
    qn_checkpoint_close(&o->checkpoint);
    return status;
}

static qn_status weights(struct objects *o)
{
    char path[64];
    const qn_weights_params params = {.exclude = "*bias", .partial = true};
    snprintf(path, sizeof path, "%s/weights", o->folder);
    qn_status status = qn_trainer_save_weights(o->trainer, path, &params);
    if (status == QN_OK)
        status = qn_trainer_load_weights(o->trainer, path, &params);
    return status;
}

static qn_status tune(struct objects *o)
{
    char *found;
    const qn_tune_params params = {.seconds = 0.2};
    const qn_status status = qn_tune(o->device, o->plan, &params, &found, NULL);
    free(found);
    return status;
}

/* With objects of its own. */
static qn_status everything(struct objects *o)
{
    struct objects own = {.folder = o->folder};
    qn_status status = plan_it(&own);
    if (status == QN_OK)
        status = train(&own);
    if (status == QN_OK)
        status = checkpoint(&own);
    end(&own);
    return status;
}

/* --- refusing --- */

static long passed, failed;

static void judge(bool good, const char *what, const char *reason)
{
    passed += good;
    failed += !good;
    if (!good)
        printf("%s: %s\n", what, reason);
}

static qn_status act_once(struct objects *o, qn_status (*act)(struct objects *), long refused)
{
    refuse_call(refused);
    *last_error = 0;
    return act(o);
}

/* Which calls are refused. */
struct choice {
    long runs;        /* about so many, from the first on; 0: */
    long first, step; /* the first, and how many later the next */
};
static const struct choice each = {0, 1, 1};

/* The first time nothing is, and the calls are counted; then they are in turn, up to a run in which
 * none is. */
static void refuse_calls(struct objects *o, qn_status (*act)(struct objects *), const char *name,
                         struct choice choice)
{
    char reason[64];
    judge(act_once(o, act, 0) == QN_OK, name, last_error);
    const long total = calls_made();
    const long step = choice.runs && total > choice.runs ? total / choice.runs : choice.step;
    for (long n = choice.first; n <= total + step; n += step) {
        const qn_status status = act_once(o, act, n);
        snprintf(reason, sizeof reason, "call %ld refused: %s without a reason", n,
                 qn_status_name(status));
        judge(status == QN_OK || *last_error, name, reason);
    }
    refuse_call(0);
    printf("%s: %ld calls, one in %ld refused\n", name, total, step);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/quern-refusals-XXXXXX";
    char command[64];
    const long first = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    const long shares = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    const struct choice some =
        argc > 2 ? (struct choice){0, first, shares} : (struct choice){first, 1, 1};
    struct objects o = {.folder = first > 0 && shares > 0 ? mkdtemp(folder) : NULL};
    if (!o.folder || plan_it(&o) != QN_OK || train(&o) != QN_OK) {
        printf("nothing is refused, and yet: %s\n0 passed, 1 failed\n", last_error);
        return 1;
    }
    judge(!calls_of_updates, "two updates and an evaluation", "none of them should ask");
    refuse_calls(&o, checkpoint, "a checkpoint", each);
    refuse_calls(&o, weights, "weights", each);
    refuse_calls(&o, tune, "tuning", some);
    refuse_calls(&o, everything, "everything", some);
    end(&o);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    judge(system(command) == 0, command, "the folder stays");
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0;
}
