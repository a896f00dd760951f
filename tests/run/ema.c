/* SPDX-License-Identifier: MIT
 *
 * Moving averages of parameters: what they are after some updates, who reads them, their bytes, and
 * that trainings with them are the same to the bit with early updates, from a checkpoint on, and
 * when the budget changes.
 */
#include "../support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shape.h"
#include "two_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DECAY = 0.75;

/* Types of the weights, with masters, without, and with corrections. */
static const struct subject {
    const char *optimizer;
    qn_dtype stored;
    bool no_master;
} subjects[] = {{"adamw", QN_F32, false},
                {"adamw", QN_BF16, false},
                {"adamw", QN_BF16, true},
                {"flash_adamw", QN_BF16, false}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

static qn_plan_params params_of(const struct subject *s)
{
    return (qn_plan_params){
        .budget = 64 << 20,
        .batch = {SAMPLES},
        .micro_batch = SAMPLES,
        .effort = QN_EFFORT_INSTANT,
        .cache_dir = "",
        .optimizer = {.name = s->optimizer, .no_master = s->no_master, .ema = DECAY}};
}

/* --- what a file of weights holds --- */

/* The trainer's tensors as it saves them, one after another in f32; freed by the caller. */
static float *saved_weights(qn_trainer *trainer, int64_t *count)
{
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 16];
    qn_tensors *file;
    float *values;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/weights", folder);
    assert_int_equal(qn_trainer_save_weights(trainer, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_open(&file, path, &test_log), QN_OK);
    *count = test_weights(trainer, &values);
    int64_t at = 0;
    const char *name;
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, NULL)); i++) {
        const qn_tensors_entry *entry = qn_tensors_find(file, name);
        assert_int_equal(entry->dtype, QN_F32);
        const int64_t size = qn_shape_count(&entry->shape);
        assert_int_equal(qn_tensors_read(file, entry, 0, values + at, size * 4), QN_OK);
        at += size;
    }
    assert_int_equal(at, *count);
    qn_tensors_close(&file);
    remove_folder(folder);
    return values;
}

static void follow(double *average, const float *now, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        average[i] = DECAY * average[i] + (1 - DECAY) * (double)now[i];
}

/* They begin as the parameters do, and follow them update by update. */
static void averages_follow(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        const qn_plan_params params = params_of(&subjects[s]);
        struct test_run run = test_open(device, graph, &params, &trainer_params);
        int64_t count;
        float *now, *saved = saved_weights(run.trainer, &count);
        double *average = malloc((size_t)count * sizeof *average);
        for (int64_t i = 0; i < count; i++)
            average[i] = (double)saved[i];
        for (int u = 0; u < UPDATES; u++) {
            test_train(run.trainer, &data, SAMPLES, 1);
            test_weights(run.trainer, &now);
            follow(average, now, count);
            free(saved);
            saved = saved_weights(run.trainer, &count);
            for (int64_t i = 0; i < count; i++)
                assert_true(fabs((double)saved[i] - average[i]) <= 1e-6 * fabs(average[i]) + 1e-8);
            assert_true(test_distance(saved, now, count) > 1e-4);
            free(now);
        }
        free(saved);
        free(average);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    test_data_free(&data);
}

/* --- who reads them --- */

struct logits {
    float value[SAMPLES * TEST_CLASSES];
};

struct feed {
    struct test_data *data;
    struct logits logits;
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return test_fetch(((struct feed *)user)->data, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct feed *feed = user;
    (void)name;
    memcpy(feed->logits.value + first * TEST_CLASSES, rows,
           (size_t)(count * TEST_CLASSES) * sizeof *feed->logits.value);
    return QN_OK;
}

static struct logits evaluate(qn_trainer *trainer, struct test_data *data)
{
    struct feed feed = {.data = data};
    assert_int_equal(qn_trainer_evaluate(trainer, SAMPLES, fetch, receive, &feed), QN_OK);
    return feed.logits;
}

/* Another trainer, without averages, that loads the file gives the same logits to the bit. */
static void evaluations_read_them(void **state)
{
    (void)state;
    struct test_data data;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 16];
    test_data_make(&data, SAMPLES, WIDTH);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/weights", folder);
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        qn_plan_params params = params_of(&subjects[s]), plain = params;
        plain.optimizer.ema = 0;
        struct test_run run = test_open(device, graph, &params, &trainer_params);
        struct test_run other = test_open(device, graph, &plain, &trainer_params);
        test_train(run.trainer, &data, SAMPLES, UPDATES);
        test_train(other.trainer, &data, SAMPLES, UPDATES);
        const struct logits have = evaluate(run.trainer, &data),
                            last = evaluate(other.trainer, &data);
        assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
        assert_int_equal(qn_weights_load(other.trainer, path), QN_OK);
        const struct logits want = evaluate(other.trainer, &data);
        assert_memory_equal(&have, &want, sizeof have);
        assert_true(test_distance(have.value, last.value, SAMPLES * TEST_CLASSES) > 1e-4);
        test_close(&run);
        test_close(&other);
        qn_graph_destroy(&graph);
    }
    remove_folder(folder);
    test_data_free(&data);
}

/* What is written to a parameter is its average, too. */
static void they_begin_anew(void **state)
{
    (void)state;
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        const qn_plan_params params = params_of(&subjects[s]);
        struct test_run run = test_open(device, graph, &params, &trainer_params);
        test_train(run.trainer, &data, SAMPLES, 1);
        float written[HIDDEN], *saved;
        for (int i = 0; i < HIDDEN; i++)
            written[i] = (float)i / 64;
        int64_t count;
        assert_int_equal(qn_trainer_write(run.trainer, "in.bias", written, HIDDEN), QN_OK);
        saved = saved_weights(run.trainer, &count);
        assert_memory_equal(saved + HIDDEN * WIDTH, written, sizeof written);
        free(saved);
        test_close(&run);
        qn_graph_destroy(&graph);
    }
    test_data_free(&data);
}

/* --- bytes --- */

static void bytes_are_told(void **state)
{
    (void)state;
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        const qn_plan_params params = params_of(&subjects[s]);
        struct trained end = train(graph, &params, &trainer_params, false);
        const int64_t large = HIDDEN * WIDTH + TEST_CLASSES * HIDDEN;
        const int64_t rounded = subjects[s].stored == QN_F32 ? 0 : 2 * large;
        assert_in_range(end.info.bytes_by_tag[QN_TAG_AVERAGES], 4 * end.count + rounded,
                        4 * end.count + rounded + PARAMETERS * 4 * stored_bytes(1));
        free(end.weights);
        qn_graph_destroy(&graph);
    }
}

/* --- the same training --- */

/* The parameters are those of a training without averages. */
static void nothing_else_changes(void **state)
{
    (void)state;
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        const qn_plan_params params = params_of(&subjects[s]);
        qn_plan_params plain = params;
        plain.optimizer.ema = 0;
        struct trained a = train(graph, &params, &trainer_params, false);
        struct trained b = train(graph, &plain, &trainer_params, false);
        assert_same(&a, &b);
        assert_true(a.info.hash != b.info.hash);
        free(a.weights);
        free(b.weights);
        qn_graph_destroy(&graph);
    }
}

/* Saved averages after two halves of a training, with `between` done in its middle. */
static float *halves(const qn_graph *graph, const qn_plan_params *params,
                     void (*between)(struct test_run *run, const qn_graph *graph), int64_t *count)
{
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, params, &trainer_params);
    test_train(run.trainer, &data, SAMPLES, UPDATES / 2);
    if (between)
        between(&run, graph);
    test_train(run.trainer, &data, SAMPLES, UPDATES / 2);
    float *saved = saved_weights(run.trainer, count);
    test_close(&run);
    test_data_free(&data);
    return saved;
}

static void go_on(struct test_run *run, const qn_graph *graph)
{
    const struct test_run second = resume(run, graph);
    test_close(run);
    *run = second;
}

static void change_budget(struct test_run *run, const qn_graph *graph)
{
    (void)graph;
    assert_int_equal(qn_trainer_set_budget(run->trainer, 48 << 20), QN_OK);
}

static void the_averages_are_the_same(void **state)
{
    (void)state;
    for (int s = 0; s < SUBJECTS; s++) {
        qn_graph *graph = two_layers(subjects[s].stored);
        const qn_plan_params params = params_of(&subjects[s]);
        const qn_plan_params early = smallest_early(graph, &params);
        int64_t count;
        float *want = halves(graph, &params, NULL, &count);
        float *have[] = {halves(graph, &params, go_on, &count),
                         halves(graph, &params, change_budget, &count),
                         halves(graph, &early, NULL, &count), halves(graph, &early, go_on, &count)};
        for (size_t i = 0; i < sizeof have / sizeof *have; i++) {
            assert_memory_equal(have[i], want, (size_t)count * sizeof *want);
            free(have[i]);
        }
        check_resumes(graph, &params, &trainer_params);
        free(want);
        qn_graph_destroy(&graph);
    }
}

static void no_decay_of_one(void **state)
{
    (void)state;
    const double bad[] = {1, -0.5, NAN};
    qn_graph *graph = two_layers(QN_F32);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_plan *plan;
        qn_plan_params params = params_of(&subjects[0]);
        params.optimizer.ema = bad[i];
        assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &params, NULL),
                         QN_ERR_ARGUMENT);
    }
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_follow),      cmocka_unit_test(evaluations_read_them),
        cmocka_unit_test(they_begin_anew),      cmocka_unit_test(bytes_are_told),
        cmocka_unit_test(nothing_else_changes), cmocka_unit_test(the_averages_are_the_same),
        cmocka_unit_test(no_decay_of_one),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
