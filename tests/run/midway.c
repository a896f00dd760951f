/* SPDX-License-Identifier: MIT
 *
 * A budget that changes, or weights that are loaded, and something fails in the middle of it: the
 * linker (--wrap) puts functions that can refuse before those that give memory and write to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "../support/refuse.h"
#include "run/trainer.h"
#include "same.h"

#include <CL/cl.h>

#include <string.h>

static int writes, refused_write; /* 0: none */
static long calls_of_change;      /* of those that give memory */

cl_mem __real_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error);
cl_mem __wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error);

cl_mem __wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                             cl_int *error)
{
    if (!refuse())
        return __real_clCreateBuffer(context, flags, size, host, error);
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

cl_int __real_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                   size_t offset, size_t size, const void *from, cl_uint n_before,
                                   const cl_event *before, cl_event *event);
cl_int __wrap_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                   size_t offset, size_t size, const void *from, cl_uint n_before,
                                   const cl_event *before, cl_event *event);

cl_int __wrap_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                                   size_t offset, size_t size, const void *from, cl_uint n_before,
                                   const cl_event *before, cl_event *event)
{
    if (++writes == refused_write)
        return CL_OUT_OF_RESOURCES;
    return __real_clEnqueueWriteBuffer(queue, memory, blocks, offset, size, from, n_before, before,
                                       event);
}

enum { MICRO = 8 };
static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = MICRO, .effort = QN_EFFORT_INSTANT};
static const qn_trainer_params trainer_params = {.seed = 11};

/* --- a device that is lost --- */

/* Nothing works any more, and everything says so; the plan is still the one that it was. */
static void assert_lost(const struct test_run *run, struct test_data *data,
                        const qn_checkpoint *checkpoint)
{
    qn_trainer *trainer = run->trainer;
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, data};
    float value;
    assert_ptr_equal(qn_trainer_plan(trainer), run->plan);
    assert_non_null(qn_trainer_tensor(trainer, 0, NULL));
    assert_int_equal(qn_trainer_bytes(trainer), 0);
    assert_int_equal(qn_trainer_read(NULL, "x", &value, 1), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_step(trainer, &cycle, NULL), QN_ERR_DEVICE);
    assert_non_null(strstr(qn_last_error(), "device failed in an earlier call"));
    assert_int_equal(qn_trainer_accumulate(trainer, &cycle), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_finish(trainer, NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_evaluate(trainer, SAMPLES, test_fetch, NULL, data), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_read(trainer, qn_trainer_tensor(trainer, 0, NULL), &value, 1),
                     QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_set_budget(trainer, base.budget), QN_ERR_DEVICE);
    assert_int_equal(qn_trainer_clear_cell(trainer, "x"), QN_ERR_DEVICE);
    assert_int_equal(qn_checkpoint_save(trainer, "/nowhere", NULL), QN_ERR_DEVICE);
    assert_int_equal(qn_checkpoint_restore(checkpoint, trainer), QN_ERR_DEVICE);
    assert_int_equal(qn_weights_load(trainer, qn_checkpoint_describe(checkpoint)->weights),
                     QN_ERR_DEVICE);
}

/* The device refuses the write of this number; gives whether there was one. */
static bool lose(const qn_graph *graph, int64_t budget, struct test_data *data, int number)
{
    char folder[FOLDER_BYTES];
    qn_checkpoint *checkpoint;
    struct test_run run = test_open(device, graph, &base, &trainer_params);
    make_folder(folder);
    test_train(run.trainer, data, SAMPLES, 1);
    assert_int_equal(qn_checkpoint_save(run.trainer, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    writes = 0;
    refused_write = number;
    const qn_status status = qn_trainer_set_budget(run.trainer, budget);
    const bool lost = writes >= number;
    refused_write = 0;
    assert_int_equal(status, lost ? QN_ERR_DEVICE : QN_OK);
    if (lost)
        assert_lost(&run, data, checkpoint);
    test_close(&run);
    qn_checkpoint_close(&checkpoint);
    remove_folder(folder);
    return lost;
}

static void a_device_that_is_lost_while_a_budget_changes(void **state)
{
    (void)state;
    struct test_data data;
    qn_graph *graph = test_cnn(QN_F32);
    const int64_t less = test_smallest_budget(device, graph, &base);
    int lost = 0;
    test_data_make(&data, SAMPLES, WIDTH);
    while (lose(graph, less, &data, lost + 1))
        lost++;
    assert_true(lost > 3);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* --- memory that is refused --- */

/* Of the change's calls some that plan, and the last ones, which open the new plan. */
enum { PLANNING = 20, OPENING = 60 };

/* From the fastest plan to the one of the fewest bytes, which parks and updates early, and back;
 * what is refused of the first change leaves the training as it was. Gives the weights. */
static float *change(const qn_graph *graph, const qn_plan_params *params, long refused)
{
    struct test_data data;
    float *weights;
    qn_plan_params fast = *params;
    fast.budget = base.budget;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &fast, &trainer_params);
    test_train(run.trainer, &data, SAMPLES, 1);
    refuse_call(refused);
    const qn_status status = qn_trainer_set_budget(run.trainer, params->budget);
    calls_of_change = calls_made();
    refuse_call(0);
    assert_true(status == QN_OK || (refused && status == QN_ERR_MEMORY));
    if (status != QN_OK)
        assert_ptr_equal(qn_trainer_plan(run.trainer), run.plan);
    else if (!refused)
        assert_true(qn_plan_facts(qn_trainer_plan(run.trainer))->parked_bytes > 0);
    test_train(run.trainer, &data, SAMPLES, 1);
    assert_int_equal(qn_trainer_set_budget(run.trainer, base.budget), QN_OK);
    test_train(run.trainer, &data, SAMPLES, 1);
    test_weights(run.trainer, &weights);
    test_close(&run);
    test_data_free(&data);
    return weights;
}

static long after(long n, long total)
{
    const long last = total - OPENING, next = n + total / PLANNING + 1;
    return n >= last ? n + 1 : next < last ? next : last;
}

static void memory_that_is_refused_while_a_budget_changes(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    float *weights;
    qn_plan_params params = base;
    params.early_updates = params.park = true;
    params.micro_batch = SAMPLES;
    params.budget = test_smallest_budget(device, graph, &params);
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    const size_t bytes = (size_t)test_weights(run.trainer, &weights) * sizeof *weights;
    free(weights);
    test_close(&run);
    float *want = change(graph, &params, 0);
    const long total = calls_of_change;
    assert_true(total > OPENING);
    for (long n = 1; n <= total; n = after(n, total)) {
        float *have = change(graph, &params, n);
        assert_memory_equal(have, want, bytes);
        free(have);
    }
    free(want);
    qn_graph_destroy(&graph);
}

/* The device has all of it, or what it had. */
static void assert_whole(qn_trainer *trainer, qn_status status, const float *had,
                         const float *loaded, size_t bytes)
{
    float *have;
    test_weights(trainer, &have);
    assert_true(status == QN_OK || status == QN_ERR_MEMORY);
    assert_memory_equal(have, status == QN_OK ? loaded : had, bytes);
    free(have);
}

static void memory_that_is_refused_while_weights_load(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    qn_checkpoint *checkpoint;
    qn_graph *graph = test_cnn(QN_F32);
    float *loaded, *had;
    struct test_run saved = test_open(device, graph, &base, &(qn_trainer_params){.seed = 5});
    const size_t bytes = (size_t)test_weights(saved.trainer, &loaded) * sizeof *loaded;
    make_folder(folder);
    assert_int_equal(qn_checkpoint_save(saved.trainer, folder, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
    const char *weights = qn_checkpoint_describe(checkpoint)->weights;
    long calls[2] = {0, 0};
    for (int whole = 0; whole <= 1; whole++)
        for (long n = 0; n <= calls[whole]; n++) { /* in the first nothing is refused */
            struct test_run run = test_open(device, graph, &base, &trainer_params);
            test_weights(run.trainer, &had);
            refuse_call(n);
            const qn_status status = whole ? qn_checkpoint_restore(checkpoint, run.trainer)
                                           : qn_weights_load(run.trainer, weights);
            calls[whole] = n ? calls[whole] : calls_made();
            refuse_call(0);
            assert_true(n > 0 || status == QN_OK);
            assert_whole(run.trainer, status, had, loaded, bytes);
            free(had);
            test_close(&run);
        }
    assert_true(calls[0] > 3 && calls[1] > calls[0]);
    qn_checkpoint_close(&checkpoint);
    remove_folder(folder);
    free(loaded);
    test_close(&saved);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_is_lost_while_a_budget_changes),
        cmocka_unit_test(memory_that_is_refused_while_a_budget_changes),
        cmocka_unit_test(memory_that_is_refused_while_weights_load),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
