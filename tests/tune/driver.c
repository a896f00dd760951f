/* SPDX-License-Identifier: MIT
 *
 * What a driver does beside computing: a read that fails once bans no variant, and a kernel that
 * needs more local memory than there is, as the driver counts it, is left out.
 */
#include "support.h"

#include "support/local_said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct layer small = {.batch = 24, .n = 24, .k = 40};
static int reads, failing_read;      /* counts from 1; 0: none fails */
static const char *greedy;           /* kernels of this name need more than there is */
static int refusals;                 /* so many of them; -1: all */
static const cl_ulong all = 1 << 30; /* bytes */

cl_int __real_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                  size_t offset, size_t size, void *to, cl_uint n_before,
                                  const cl_event *before, cl_event *event);
cl_int __wrap_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                  size_t offset, size_t size, void *to, cl_uint n_before,
                                  const cl_event *before, cl_event *event);

cl_int __wrap_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                  size_t offset, size_t size, void *to, cl_uint n_before,
                                  const cl_event *before, cl_event *event)
{
    if (++reads == failing_read)
        return CL_OUT_OF_RESOURCES;
    return __real_clEnqueueReadBuffer(queue, memory, blocks, offset, size, to, n_before, before,
                                      event);
}

static cl_ulong local_said(cl_kernel kernel, cl_device_id device, cl_ulong bytes)
{
    char name[64] = "";
    (void)device;
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (!greedy || !refusals || strcmp(name, greedy) != 0)
        return bytes;
    refusals -= refusals > 0;
    return all;
}

static qn_status tune(struct bench_device *d, const char *known, char **text)
{
    const qn_tune_params params = {.known = known, .seconds = 1, .all = true};
    qn_plan *plan = layer_plan(d, &small);
    const qn_status status = qn_tune(d->device, plan, &params, text, NULL);
    qn_plan_destroy(&plan);
    return status;
}

/* Any of the first reads, of self-tests and of results that are compared. */
static void a_read_that_fails_once_bans_nothing(void **state)
{
    (void)state;
    struct bench_device d;
    bench_device_open(&d, NULL, NULL);
    for (int fail = 1; fail <= 7; fail += 2) {
        char *text = NULL;
        reads = 0;
        failing_read = fail;
        const qn_status status = tune(&d, NULL, &text);
        assert_true(reads >= fail);
        failing_read = 0;
        if (status != QN_OK)
            assert_int_equal(status, QN_ERR_DEVICE);
        assert_true(!text || !strstr(text, "QN_ERR"));
        assert_null(strstr(d.warnings, "wrong numbers"));
        free(text);
    }
    bench_device_close(&d);
}

/* What a plan takes for the layer. */
struct choice {
    char variant[64], setting[64];
};

static struct choice choice_of(const qn_plan *plan)
{
    struct choice choice;
    layer_variant(plan, choice.variant);
    layer_setting(plan, choice.setting);
    return choice;
}

/* Makes the kernel of the first choice greedy, `times` times (-1: always). */
static struct choice make_greedy(const struct bench_device *d, int times)
{
    qn_plan *plan = layer_plan(d, &small);
    const struct choice first = choice_of(plan);
    qn_plan_destroy(&plan);
    greedy = strcmp(first.variant, "gpu") == 0 ? "matmul_gpu" : "matmul_cpu";
    refusals = times;
    return first;
}

/* Probes plans of the layer, each with what was found before, until nothing is refused: after
 * `count` plans. Gives what the last one takes, and in *tuning, to be freed, what was found. */
static struct choice probe(struct bench_device *d, int count, char **tuning)
{
    struct layer layer = small;
    struct choice choice = {0};
    *tuning = NULL;
    for (int i = 0; i < count; i++) {
        char *found = NULL;
        int refused = 0;
        layer.tuning = *tuning;
        qn_plan *plan = layer_plan(d, &layer);
        choice = choice_of(plan);
        assert_int_equal(qn_tune_probe(d->device, plan, *tuning, &found, &refused), QN_OK);
        assert_int_equal(refused, i < count - 1);
        qn_plan_destroy(&plan);
        free(*tuning);
        *tuning = found;
    }
    return choice;
}

static void another_setting_is_taken(void **state)
{
    (void)state;
    struct bench_device d;
    char *found;
    bench_device_open(&d, NULL, NULL);
    const struct choice first = make_greedy(&d, 1), last = probe(&d, 2, &found);
    assert_non_null(strstr(d.warnings, "cannot be launched on this device"));
    assert_non_null(strstr(d.warnings, "bytes of local memory, the device has"));
    assert_string_equal(first.variant, last.variant);
    assert_string_equal(first.setting, "large");
    assert_string_equal(last.setting, "small");
    free(found);
    greedy = NULL;
    bench_device_close(&d);
}

/* Plans and tunes in turns until tuning says that the plan would be the same: it can be launched.
 */
static void tuning_goes_on_until_nothing_is_refused(void **state)
{
    (void)state;
    struct bench_device d;
    const char *known = NULL;
    char *found[8] = {0}, *more = NULL;
    qn_tune_result result = {.changed = true};
    int refused = 0, n = 0;
    qn_plan *plan = NULL;
    bench_device_open(&d, NULL, NULL);
    make_greedy(&d, -1);
    for (; result.changed && n < 8; known = found[n++]) {
        struct layer layer = small;
        layer.tuning = known;
        qn_plan_destroy(&plan);
        plan = layer_plan(&d, &layer);
        const qn_tune_params no_search = {.known = known, .seconds = -1};
        assert_int_equal(qn_tune(d.device, plan, &no_search, &found[n], &result), QN_OK);
    }
    assert_false(result.changed);
    assert_non_null(strstr(found[0], "bytes of local memory, the device has"));
    assert_int_equal(qn_tune_probe(d.device, plan, known, &more, &refused), QN_OK);
    assert_int_equal(refused, 0);
    qn_plan_destroy(&plan);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(more);
    greedy = NULL;
    bench_device_close(&d);
}

static void what_cannot_be_launched_is_left_out(void **state)
{
    (void)state;
    struct bench_device d;
    struct layer layer = small;
    char *found, *again = NULL;
    int refused = 0;
    bench_device_open(&d, NULL, NULL);
    const struct choice first = make_greedy(&d, -1), last = probe(&d, 3, &found);
    assert_non_null(strstr(d.warnings, "cannot be launched on this device"));
    assert_null(strstr(d.warnings, "wrong numbers"));
    assert_string_not_equal(first.variant, last.variant);

    char wish[80];
    snprintf(wish, sizeof wish, "linear=%s", greedy + strlen("matmul_"));
    layer.tuning = found;
    layer.variants = wish;
    qn_plan *plan = layer_plan(&d, &layer);
    assert_int_equal(qn_tune_probe(d.device, plan, found, &again, &refused), QN_ERR_BUILD);
    qn_plan_destroy(&plan);
    free(found);

    assert_int_equal(tune(&d, NULL, &found), QN_OK);
    free(found);
    greedy = NULL;
    bench_device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_fails_once_bans_nothing),
        cmocka_unit_test(another_setting_is_taken),
        cmocka_unit_test(tuning_goes_on_until_nothing_is_refused),
        cmocka_unit_test(what_cannot_be_launched_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
