/* SPDX-License-Identifier: MIT
 *
 * Parameters in bf16 that a slot of their optimizer corrects: operators read the bf16 nearest to
 * what the host reads, writes, saves and loads as f32.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "base/number.h"
#include "base/shape.h"
#include "plan/plan.h"
#include "run/trainer.h"
#include "two_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const qn_plan_params corrected = {.budget = 64 << 20,
                                         .batch = {SAMPLES},
                                         .micro_batch = SAMPLES,
                                         .effort = QN_EFFORT_INSTANT,
                                         .cache_dir = "",
                                         .optimizer = {.name = "flash_adamw"}};
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

/* The large weight: what is stored, and what corrects it. */
struct parts {
    uint16_t stored[MOST_ELEMENTS];
    uint8_t code[MOST_ELEMENTS];
};

static void read_parts(const struct test_run *run, struct parts *parts)
{
    const struct qn_persist *persist = &run->plan->persist;
    const struct qn_parameter *parameter = &persist->parameters[0];
    const int slot = qn_correction_of(persist, parameter);
    const int value = persist->blocks[parameter->block].state[slot];
    const int64_t at = parameter->part[slot].first;
    assert_string_equal(parameter->node->name, parameters[0].name);
    assert_true(slot >= 0 && parameter->working == parameter->value);
    assert_int_equal(qn_trainer_read_value(run->trainer, parameter->value, 0, parts->stored,
                                           sizeof parts->stored),
                     QN_OK);
    assert_int_equal(
        qn_trainer_read_value(run->trainer, value, at, parts->code, sizeof parts->code), QN_OK);
}

static void read_numbers(const struct test_run *run, float *numbers)
{
    assert_int_equal(qn_trainer_read(run->trainer, parameters[0].name, numbers, MOST_ELEMENTS),
                     QN_OK);
}

/* A unit of so many bits at a number. */
static double unit_of(float number, int bits)
{
    return ldexp(1, ilogb((double)number) + 1 - bits);
}

/* --- numbers --- */

static void operators_read_the_nearest(void **state)
{
    (void)state;
    static struct parts parts;
    static float numbers[MOST_ELEMENTS], joined[MOST_ELEMENTS];
    static double stored[MOST_ELEMENTS];
    struct test_data data;
    int apart = 0;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = two_layers(QN_BF16);
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    for (int update = 0; update < UPDATES; update++) {
        read_parts(&run, &parts);
        read_numbers(&run, numbers);
        qn_number_join(parts.stored, parts.code, MOST_ELEMENTS, joined);
        qn_number_decode(QN_BF16, parts.stored, MOST_ELEMENTS, stored);
        assert_memory_equal(numbers, joined, sizeof numbers);
        for (int i = 0; i < MOST_ELEMENTS; i++) {
            assert_true(fabs(stored[i] - (double)numbers[i]) < unit_of(numbers[i], 8) / 2);
            apart += stored[i] != (double)numbers[i];
        }
        test_train(run.trainer, &data, SAMPLES, 1);
    }
    print_message("  %d of %d are not in bf16\n", apart, UPDATES * MOST_ELEMENTS);
    assert_true(apart > UPDATES * MOST_ELEMENTS * 9 / 10);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

static void what_is_written_is_read_in_24_bits(void **state)
{
    (void)state;
    static struct parts before, after;
    static float numbers[MOST_ELEMENTS], back[MOST_ELEMENTS];
    qn_graph *graph = two_layers(QN_BF16);
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    for (int i = 0; i < MOST_ELEMENTS; i++)
        numbers[i] = (float)sin(i + 1.0);
    assert_int_equal(qn_trainer_write(run.trainer, parameters[0].name, numbers, MOST_ELEMENTS),
                     QN_OK);
    read_parts(&run, &before);
    read_numbers(&run, back);
    for (int i = 0; i < MOST_ELEMENTS; i++)
        assert_true(fabs((double)back[i] - (double)numbers[i]) <= unit_of(numbers[i], 16));
    assert_int_equal(qn_trainer_write(run.trainer, parameters[0].name, back, MOST_ELEMENTS), QN_OK);
    read_parts(&run, &after);
    assert_memory_equal(&before, &after, sizeof before);
    test_close(&run);
    qn_graph_destroy(&graph);
}

/* --- files --- */

/* A training by another optimizer in f32 reads the same numbers, and one by the same goes on with
 * the same bits. */
static void files_have_f32(void **state)
{
    (void)state;
    static struct parts before, after;
    static float numbers[MOST_ELEMENTS], other[MOST_ELEMENTS];
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];
    struct test_data data;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = two_layers(QN_BF16), *f32 = two_layers(QN_F32);
    qn_plan_params plain = corrected;
    plain.optimizer.name = "adamw";
    const qn_trainer_params another = {.seed = 12};
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    struct test_run second = test_open(device, graph, &corrected, &another);
    struct test_run third = test_open(device, f32, &plain, &another);
    test_train(run.trainer, &data, SAMPLES, 2);
    read_parts(&run, &before);
    read_numbers(&run, numbers);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    assert_int_equal(qn_trainer_load_weights(second.trainer, path, NULL), QN_OK);
    assert_int_equal(qn_trainer_load_weights(third.trainer, path, NULL), QN_OK);
    read_parts(&second, &after);
    read_numbers(&third, other);
    assert_memory_equal(&before, &after, sizeof before);
    assert_memory_equal(numbers, other, sizeof numbers);
    test_close(&run);
    test_close(&second);
    test_close(&third);
    qn_graph_destroy(&graph);
    qn_graph_destroy(&f32);
    test_data_free(&data);
    remove_folder(folder);
}

/* More than is read, written or saved at once. */
enum { ROWS = 300, COLUMNS = 1024, MANY = ROWS * COLUMNS };

static qn_graph *large_layer(void)
{
    qn_graph *graph;
    const qn_graph_params params = {.log = test_log, .parameter_storage = QN_BF16};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    const qn_init init = qn_init_fan_in(COLUMNS);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, COLUMNS});
    qn_tensor weight = qn_parameter(graph, "weight", 2, (int64_t[]){ROWS, COLUMNS}, &init);
    x = qn_linear(graph, x, weight, (qn_tensor){0});
    qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, ROWS});
    qn_loss(graph, qn_squared_error(graph, x, target), "loss", NULL);
    return graph;
}

static void large_tensors_come_back(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];
    float *numbers = malloc(MANY * sizeof *numbers), *back = malloc(MANY * sizeof *back);
    assert_true(numbers && back);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    qn_graph *graph = large_layer();
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    struct test_run second = test_open(device, graph, &corrected, &trainer_params);
    for (int i = 0; i < MANY; i++)
        numbers[i] = (float)sin(i + 1.0);
    assert_int_equal(qn_trainer_write(run.trainer, "weight", numbers, MANY), QN_OK);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    assert_int_equal(qn_trainer_load_weights(second.trainer, path, NULL), QN_OK);
    assert_int_equal(qn_trainer_read(second.trainer, "weight", back, MANY), QN_OK);
    for (int i = 0; i < MANY; i++)
        assert_true(fabs((double)back[i] - (double)numbers[i]) <= unit_of(numbers[i], 16));
    test_close(&run);
    test_close(&second);
    qn_graph_destroy(&graph);
    remove_folder(folder);
    free(numbers);
    free(back);
}

/* --- skipped updates --- */

/* Trains two updates, with one between them whose gradient is not finite. */
static int64_t train_around(const qn_graph *graph, bool skips, float **weights)
{
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    const float good = data.x[0];
    test_train(run.trainer, &data, SAMPLES, 1);
    if (skips) {
        data.x[0] = NAN;
        assert_true(test_train(run.trainer, &data, SAMPLES, 1).skipped);
        data.x[0] = good;
    }
    assert_false(test_train(run.trainer, &data, SAMPLES, 1).skipped);
    const int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    test_data_free(&data);
    return count;
}

static void a_skipped_update_changes_nothing(void **state)
{
    (void)state;
    float *have, *want;
    qn_graph *graph = two_layers(QN_BF16);
    const int64_t count = train_around(graph, true, &have);
    assert_int_equal(train_around(graph, false, &want), count);
    assert_memory_equal(have, want, (size_t)count * sizeof *have);
    free(have);
    free(want);
    qn_graph_destroy(&graph);
}

/* With a loss scale, too. */
static void an_overflow_skips_one_update(void **state)
{
    (void)state;
    struct test_data data;
    float *before, *after;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = two_layers_of(QN_F16, QN_BF16);
    struct test_run run = test_open(device, graph, &corrected, &trainer_params);
    assert_false(test_train(run.trainer, &data, SAMPLES, 1).skipped);
    const int64_t count = test_weights(run.trainer, &before);
    const float good = data.x[0];
    data.x[0] = INFINITY;
    assert_true(test_train(run.trainer, &data, SAMPLES, 1).skipped);
    test_weights(run.trainer, &after);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    free(after);
    data.x[0] = good;
    assert_false(test_train(run.trainer, &data, SAMPLES, 1).skipped);
    test_weights(run.trainer, &after);
    assert_true(test_distance(after, before, count) > 1e-3);
    free(before);
    free(after);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_read_the_nearest),
        cmocka_unit_test(what_is_written_is_read_in_24_bits),
        cmocka_unit_test(files_have_f32),
        cmocka_unit_test(large_tensors_come_back),
        cmocka_unit_test(a_skipped_update_changes_nothing),
        cmocka_unit_test(an_overflow_skips_one_update),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
