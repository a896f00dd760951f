/* SPDX-License-Identifier: MIT
 *
 * The norms of the gradients of groups of parameters: those of the gradients in the accumulators,
 * whatever the plan, and at no bit of the training. Bytes are counted beside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/glob.h"
#include "base/shape.h"
#include "same.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = QN_MAX_NORM_GROUPS, TOKENS = 11, LENGTH = 8 };

/* Convolutions; what of the others has a bias; the rest. */
static const char patterns[] = "conv*.weight, *.bias, *";

static const qn_plan_params base = {.budget = 64 << 20,
                                    .batch = {SAMPLES, FEWER},
                                    .micro_batch = 16,
                                    .effort = QN_EFFORT_INSTANT,
                                    .optimizer = {.name = "adamw"},
                                    .norm_groups = patterns};
static const qn_trainer_params clipped = {.seed = 3, .clip = 0.01};
static const qn_trainer_params plain = {.seed = 3};

/* --- against the gradients --- */

/* The sum of the squares of a gradient; `count` numbers. */
static double square_of(qn_trainer *trainer, const char *name, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    double sum = 0;
    assert_int_equal(qn_trainer_read_gradient(trainer, name, values, count), QN_OK);
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    free(values);
    return sum;
}

/* Whether `name` is what the group is called, or a name below it, or matches it as a pattern. */
static bool is_of(const char *group, const char *name)
{
    const size_t length = strlen(group);
    return qn_glob(group, length, name) ||
           (strncmp(group, name, length) == 0 && (name[length] == '.' || !name[length]));
}

/* The norms of the groups from the accumulators; gives how many groups there are. */
static int expect_norms(const struct test_run *run, double *norms)
{
    const char *name, *group;
    qn_shape shape;
    int count = 0;
    memset(norms, 0, MOST * sizeof *norms);
    for (int i = 0; (name = qn_trainer_tensor(run->trainer, i, &shape)); i++)
        for (int g = 0; !strstr(name, "running") && (group = qn_plan_norm_group(run->plan, g)); g++)
            if (is_of(group, name)) {
                norms[g] += square_of(run->trainer, name, qn_shape_count(&shape));
                break;
            }
    for (; qn_plan_norm_group(run->plan, count); count++)
        norms[count] = sqrt(norms[count]);
    return count;
}

/* One update whose gradients are read before; its norms are all of the whole one. */
static void check_update(const struct test_run *run, const qn_cycle *cycle)
{
    double want[MOST], have[MOST], all = 0;
    qn_metrics metrics;
    assert_int_equal(qn_trainer_accumulate(run->trainer, cycle), QN_OK);
    const int count = expect_norms(run, want);
    assert_int_equal(qn_trainer_step(run->trainer, cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run->trainer, &metrics), QN_OK);
    assert_int_equal(qn_trainer_grad_norms(run->trainer, have, MOST), count);
    for (int g = 0; g < count; g++) {
        assert_true(want[g] > 0 && fabs(have[g] - want[g]) < 1e-5 * want[g]);
        all += have[g] * have[g];
    }
    assert_true(fabs(sqrt(all) - metrics.grad_norm) < 1e-5 * metrics.grad_norm);
}

static void check(const qn_graph *graph, const qn_plan_params *params,
                  const qn_trainer_params *trainer, qn_fetch_fn fetch, void *user, int groups)
{
    struct test_run run = test_open(device, graph, params, trainer);
    assert_int_equal(qn_trainer_grad_norms(run.trainer, NULL, 0), 0);
    for (int i = 0; i < 3; i++) {
        const qn_cycle cycle = {
            .samples = params->batch[i % 2], .lr = 0.01, .fetch = fetch, .user = user};
        check_update(&run, &cycle);
        assert_int_equal(qn_trainer_grad_norms(run.trainer, NULL, 0), groups);
    }
    test_close(&run);
}

/* With micro-steps and a remainder, clipped, in every storage type: the loss scale of f16 doubles
 * never in so few updates, and is divided out. */
static void of_a_network_of_convolutions(void **state)
{
    (void)state;
    static const qn_dtype storages[] = {QN_F32, QN_F16, QN_BF16};
    struct test_data data;
    test_data_make(&data, SAMPLES, WIDTH);
    for (int i = 0; i < 3; i++) {
        qn_graph *graph = test_cnn(storages[i]);
        qn_plan_params params = base;
        check(graph, &params, &clipped, test_fetch, &data, 3);
        params.norm_groups = "auto";
        params.park = true;
        params.micro_batch = 0;
        check(graph, &params, &plain, test_fetch, &data, 4);
        qn_graph_destroy(&graph);
    }
    test_data_free(&data);
}

static qn_status fetch_tokens(void *user, const char *input, int64_t first, int64_t count,
                              void *rows)
{
    int32_t *to = rows;
    (void)user;
    for (int64_t i = 0; i < count * LENGTH; i++)
        to[i] = (int32_t)((first * LENGTH + i + (strcmp(input, "labels") == 0)) * 7 % TOKENS);
    return QN_OK;
}

/* Tied embeddings are one parameter, whose gradients of both uses are one. */
static void of_a_language_model(void **state)
{
    (void)state;
    const qn_model_option options[] = {
        {"layers", "2"}, {"heads", "2"}, {"width", "80"}, {"tied", "1"}};
    const qn_model_data data = {.channels = 1, .height = 1, .width = LENGTH, .tokens = TOKENS};
    qn_graph *graph = test_graph(QN_F32);
    assert_int_equal(qn_model_build(graph, "gpt", &data, options, 4), QN_OK);
    qn_plan_params params = base;
    params.batch[0] = 7;
    params.batch[1] = 5;
    params.micro_batch = 2;
    params.norm_groups = "auto";
    check(graph, &params, &clipped, fetch_tokens, NULL, 5);
    params.norm_groups = "*.h.?.attn.*,*";
    check(graph, &params, &plain, fetch_tokens, NULL, 2);
    qn_graph_destroy(&graph);
}

/* What is frozen is of no group, and there may be parameters of none. */
static void of_some_parameters(void **state)
{
    (void)state;
    struct test_data data;
    double norms[MOST];
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = test_cnn(QN_F32);
    qn_freeze_named(graph, "conv1.*");
    qn_plan_params params = base;
    params.norm_groups = "auto";
    check(graph, &params, &clipped, test_fetch, &data, 3);
    params.norm_groups = "fc.weight, fc.*";
    struct test_run run = test_open(device, graph, &params, &plain);
    const qn_metrics last = test_train(run.trainer, &data, SAMPLES, 2);
    assert_int_equal(qn_trainer_grad_norms(run.trainer, norms, 1), 2);
    assert_true(norms[0] > 0 && norms[0] < 0.999 * last.grad_norm);
    test_close(&run);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* --- with the metrics --- */

/* Norms of every update, as steps give them one update late. */
struct row {
    double norm[MOST], all;
};
static void train_rows(const struct test_run *run, struct test_data *data, struct row *rows)
{
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, data};
    qn_metrics metrics;
    for (int i = 0; i <= UPDATES; i++) {
        assert_int_equal(i < UPDATES ? qn_trainer_step(run->trainer, &cycle, &metrics)
                                     : qn_trainer_finish(run->trainer, &metrics),
                         QN_OK);
        assert_int_equal(metrics.valid, i > 0);
        assert_int_equal(qn_trainer_grad_norms(run->trainer, NULL, MOST), i ? 3 : 0);
        if (i) {
            struct row *row = &rows[i - 1];
            double sum = 0;
            qn_trainer_grad_norms(run->trainer, row->norm, MOST);
            for (int g = 0; g < 3; g++)
                sum += row->norm[g] * row->norm[g];
            row->all = metrics.grad_norm;
            assert_true(fabs(sqrt(sum) - row->all) < 1e-5 * row->all);
        }
    }
}

/* They are of their own update: steps in a row give what each gives when it is waited for. Early
 * updates give the same to the bit. */
static void they_come_with_the_metrics(void **state)
{
    (void)state;
    struct test_data data;
    struct row late[UPDATES] = {0}, early[UPDATES] = {0};
    qn_plan_params params = base;
    params.batch[1] = 0;
    params.micro_batch = SAMPLES;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = test_cnn(QN_F32);
    const qn_plan_params small = smallest_early(graph, &params);
    struct test_run run = test_open(device, graph, &params, &plain);
    train_rows(&run, &data, late);
    test_close(&run);
    run = test_open(device, graph, &small, &plain);
    assert_true(qn_plan_facts(run.plan)->early_updates);
    train_rows(&run, &data, early);
    test_close(&run);
    for (int i = 0; i < UPDATES; i++) {
        assert_true(late[i].all == early[i].all);
        for (int g = 0; g < 3; g++)
            assert_true(late[i].norm[g] == early[i].norm[g]);
        assert_true(i == 0 || late[i].norm[0] != late[i - 1].norm[0]);
    }
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

/* An update that is skipped for its gradient has the norms that say so; one without weight has
 * none. */
static void of_updates_that_change_nothing(void **state)
{
    (void)state;
    static const qn_dtype storages[] = {QN_F32, QN_F16};
    struct test_data data;
    double norms[MOST];
    for (int s = 0; s < 2; s++) {
        qn_graph *graph = test_cnn(storages[s]);
        test_data_make(&data, SAMPLES, WIDTH);
        struct test_run run = test_open(device, graph, &base, &plain);
        data.x[5] = NAN;
        assert_true(test_train(run.trainer, &data, SAMPLES, 1).skipped);
        assert_int_equal(qn_trainer_grad_norms(run.trainer, norms, MOST), 3);
        for (int g = 0; g < 3; g++)
            assert_false(isfinite(norms[g]));
        for (int i = 0; i < SAMPLES; i++)
            data.labels[i] = TEST_IGNORED;
        for (int i = 0; i < 2; i++) {
            assert_true(test_train(run.trainer, &data, SAMPLES, 1).skipped);
            assert_int_equal(qn_trainer_grad_norms(run.trainer, norms, MOST), 3);
            for (int g = 0; g < 3; g++)
                assert_true(norms[g] == 0);
        }
        test_close(&run);
        qn_graph_destroy(&graph);
        test_data_free(&data);
    }
}

/* --- the training --- */

static void no_bit_changes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        qn_graph *graph = test_cnn(i ? QN_F16 : QN_F32);
        qn_plan_params without = base;
        without.norm_groups = NULL;
        struct trained a = train(graph, &base, &clipped, true);
        struct trained b = train(graph, &without, &clipped, true);
        assert_same(&a, &b);
        assert_true(a.info.hash != b.info.hash);
        free(a.weights);
        free(b.weights);
        qn_graph_destroy(&graph);
    }
}

/* Other budgets in the middle, early updates among them, and a checkpoint keep the groups. */
static void they_stay_with_the_training(void **state)
{
    (void)state;
    struct test_data data;
    double norms[MOST];
    qn_plan_params params = base;
    params.batch[1] = 0;
    params.micro_batch = SAMPLES;
    test_data_make(&data, SAMPLES, WIDTH);
    qn_graph *graph = test_cnn(QN_F32);
    check_budgets(graph, &params, &plain);
    check_resumes(graph, &base, &clipped);
    const qn_plan_params small = smallest_early(graph, &params);
    check_resumes(graph, &small, &plain);

    struct test_run first = test_open(device, graph, &params, &plain);
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, &data};
    assert_int_equal(qn_trainer_step(first.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_set_budget(first.trainer, params.budget / 2), QN_OK);
    assert_int_equal(qn_trainer_grad_norms(first.trainer, norms, MOST), 0);
    qn_metrics metrics;
    assert_int_equal(qn_trainer_step(first.trainer, &cycle, &metrics), QN_OK);
    assert_true(metrics.valid);
    assert_int_equal(qn_trainer_grad_norms(first.trainer, norms, MOST), 3);
    const double all = norms[0] * norms[0] + norms[1] * norms[1] + norms[2] * norms[2];
    assert_true(fabs(sqrt(all) - metrics.grad_norm) < 1e-5 * metrics.grad_norm);

    struct test_run second = resume(&first, graph);
    for (int g = 0; g < 3; g++)
        assert_string_equal(qn_plan_norm_group(second.plan, g), qn_plan_norm_group(first.plan, g));
    check_update(&second, &cycle);
    test_close(&first);
    test_close(&second);
    qn_graph_destroy(&graph);
    test_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_network_of_convolutions),
        cmocka_unit_test(of_a_language_model),
        cmocka_unit_test(of_some_parameters),
        cmocka_unit_test(they_come_with_the_metrics),
        cmocka_unit_test(of_updates_that_change_nothing),
        cmocka_unit_test(no_bit_changes),
        cmocka_unit_test(they_stay_with_the_training),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
