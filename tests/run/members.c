/* SPDX-License-Identifier: MIT
 *
 * Members of one cycle: several trainers that compute a share each, add up and go on from the same
 * sums, in one thread by the four calls and in threads by a reduce table. Beside them one trainer
 * that computes the whole cycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 22, WIDTH = 64, MEMBERS = 3, UPDATES = 4, MOST_ARRAYS = 16 };

static struct test_data data;

/* Of each member: samples, which lie one after another in the cycle, and micro-batch. */
static const struct share {
    int64_t samples, micro_batch;
} shares[MEMBERS] = {{12, 8}, {0, 4}, {10, 4}};

static int64_t first_of(int member)
{
    int64_t first = 0;
    for (int m = 0; m < member; m++)
        first += shares[m].samples;
    return first;
}

static const qn_trainer_params training = {.seed = 5, .weight_decay = 0.01, .clip = 0.5};

static struct test_run open_member(qn_device *device, const qn_graph *graph, int64_t samples,
                                   int64_t micro_batch)
{
    const qn_plan_params params = {.budget = 8 << 20,
                                   .batch = {samples ? samples : 4},
                                   .micro_batch = micro_batch,
                                   .optimizer = {.name = "adam"},
                                   .norm_groups = "auto"};
    return test_open(device, graph, &params, &training);
}

/* The weights after some updates of the whole cycle by one trainer. */
static int64_t train_alone(qn_device *device, const qn_graph *graph, float **weights,
                           qn_metrics *last, double *norms)
{
    struct test_run run = open_member(device, graph, SAMPLES, 8);
    *last = test_train(run.trainer, &data, SAMPLES, UPDATES);
    const int64_t count = test_weights(run.trainer, weights);
    assert_in_range(qn_trainer_grad_norms(run.trainer, norms, QN_MAX_NORM_GROUPS), 2, 8);
    test_close(&run);
    return count;
}

static void check_member(qn_trainer *trainer, const float *want, int64_t count, double near)
{
    float *have;
    assert_int_equal(test_weights(trainer, &have), count);
    const double distance = test_distance(have, want, count);
    print_message("  %.3g\n", distance);
    assert_true(distance < near);
    free(have);
}

/* The norms of groups of parameters are those of the sum of all members, as the whole one is. */
static void check_norms(const qn_trainer *trainer, const double *want, double near)
{
    double have[QN_MAX_NORM_GROUPS];
    const int count = qn_trainer_grad_norms(trainer, have, QN_MAX_NORM_GROUPS);
    assert_in_range(count, 2, 8);
    for (int g = 0; g < count; g++)
        assert_true(fabs(have[g] - want[g]) < 10 * near * want[g]);
}

/* --- one thread --- */

static void add_arrays(struct test_run *runs)
{
    int64_t counts[MOST_ARRAYS];
    const int arrays = qn_trainer_arrays(runs[0].trainer, counts, MOST_ARRAYS);
    assert_true(arrays > 1 && arrays <= MOST_ARRAYS);
    for (int a = 0; a < arrays; a++) {
        const qn_reduce_slice slice = {a, 0, counts[a]};
        float *sum = calloc((size_t)counts[a], sizeof *sum);
        float *part = calloc((size_t)counts[a], sizeof *part);
        for (int m = 0; m < MEMBERS; m++) {
            assert_int_equal(qn_trainer_read_slice(runs[m].trainer, &slice, part), QN_OK);
            for (int64_t i = 0; i < counts[a]; i++)
                sum[i] += part[i];
        }
        for (int m = 0; m < MEMBERS; m++)
            assert_int_equal(qn_trainer_write_slice(runs[m].trainer, &slice, sum), QN_OK);
        free(sum);
        free(part);
    }
}

static qn_cycle cycle_of(int member)
{
    return (qn_cycle){.samples = shares[member].samples,
                      .first = first_of(member),
                      .whole = SAMPLES,
                      .lr = 0.05, /* as test_train */
                      .fetch = test_fetch,
                      .user = &data};
}

static void update_together(struct test_run *runs)
{
    double weights[QN_METRICS_LOSSES] = {0}, own[QN_METRICS_LOSSES];
    for (int m = 0; m < MEMBERS; m++) {
        const qn_cycle cycle = cycle_of(m);
        assert_int_equal(qn_trainer_weigh(runs[m].trainer, &cycle, own), QN_OK);
        for (int i = 0; i < QN_METRICS_LOSSES; i++)
            weights[i] += own[i];
    }
    for (int m = 0; m < MEMBERS; m++) {
        const qn_cycle cycle = cycle_of(m);
        assert_int_equal(qn_trainer_run(runs[m].trainer, &cycle, weights), QN_OK);
    }
    add_arrays(runs);
    for (int m = 0; m < MEMBERS; m++) {
        const qn_cycle cycle = cycle_of(m);
        assert_int_equal(qn_trainer_reduce(runs[m].trainer, &cycle), QN_OK);
        assert_int_equal(qn_trainer_update(runs[m].trainer, &cycle, NULL), QN_OK);
    }
}

/* Dropout, batch norm, clipping: all are of the whole cycle. */
static void four_calls(void **state)
{
    (void)state;
    qn_device *device = test_device();
    const struct {
        qn_graph *graph;
        double near;
    } cases[] = {{test_mlp(WIDTH, true), TEST_NEAR},
                 {test_cnn(QN_F32), TEST_NEAR},
                 {test_cnn(QN_F16), TEST_NEAR_F16}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        qn_graph *graph = cases[c].graph;
        const double near = cases[c].near;
        struct test_run runs[MEMBERS];
        qn_metrics want, have[MEMBERS];
        double norms[QN_MAX_NORM_GROUPS];
        float *weights;
        const int64_t count = train_alone(device, graph, &weights, &want, norms);
        for (int m = 0; m < MEMBERS; m++)
            runs[m] = open_member(device, graph, shares[m].samples, shares[m].micro_batch);
        for (int update = 0; update < UPDATES; update++)
            update_together(runs);
        for (int m = 0; m < MEMBERS; m++) {
            assert_int_equal(qn_trainer_finish(runs[m].trainer, &have[m]), QN_OK);
            assert_int_equal(have[m].samples, SAMPLES);
            assert_true(fabs(have[m].loss - want.loss) < near * fabs(want.loss));
            assert_true(have[m].grad_norm == have[0].grad_norm);
            check_member(runs[m].trainer, weights, count, near);
            check_norms(runs[m].trainer, norms, near);
        }
        for (int m = 0; m < MEMBERS; m++)
            test_close(&runs[m]);
        free(weights);
        qn_graph_destroy(&graph);
    }
    qn_device_close(&device);
}

static void calls_have_an_order(void **state)
{
    (void)state;
    const double weights[QN_METRICS_LOSSES] = {SAMPLES};
    qn_device *device = test_device();
    qn_graph *graph = test_mlp(WIDTH, false);
    struct test_run run = open_member(device, graph, SAMPLES, 8);
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 0.01, .fetch = test_fetch, .user = &data};
    assert_int_equal(qn_trainer_reduce(run.trainer, &cycle), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_update(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_run(run.trainer, &cycle, weights), QN_OK);
    assert_int_equal(qn_trainer_run(run.trainer, &cycle, weights), QN_OK);
    assert_int_equal(qn_trainer_update(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_reduce(run.trainer, &cycle), QN_OK);
    assert_int_equal(qn_trainer_update(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_update(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_updates(run.trainer), 1);
    const qn_reduce_slice beyond = {.array = 99};
    float none;
    assert_int_equal(qn_trainer_read_slice(run.trainer, &beyond, &none), QN_ERR_ARGUMENT);
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

/* --- threads --- */

/* What the members of a test share. Each begins its slices in the same order; sums are made in the
 * order of members when all have finished running. */
static struct meeting {
    pthread_barrier_t barrier;
    double weights[MEMBERS][QN_METRICS_LOSSES];
    float *parts[MEMBERS][MOST_ARRAYS];
} meeting;

struct member {
    int number;
    qn_device *device;
    struct test_run run;
    int64_t counts[MOST_ARRAYS], begun; /* numbers of all slices so far */
    int arrays;
    bool ended;
};

static qn_status add_weights(void *user, double *weights, int count)
{
    const struct member *member = user;
    memcpy(meeting.weights[member->number], weights, (size_t)count * sizeof *weights);
    pthread_barrier_wait(&meeting.barrier);
    for (int i = 0; i < count; i++) {
        weights[i] = 0;
        for (int m = 0; m < MEMBERS; m++)
            weights[i] += meeting.weights[m][i];
    }
    pthread_barrier_wait(&meeting.barrier);
    return QN_OK;
}

static qn_status begin_slice(void *user, qn_trainer *trainer, const qn_reduce_slice *slice)
{
    struct member *member = user;
    member->begun += slice->count;
    return qn_trainer_read_slice(trainer, slice,
                                 meeting.parts[member->number][slice->array] + slice->first);
}

static qn_status finish_slices(void *user, qn_trainer *trainer)
{
    struct member *member = user;
    pthread_barrier_wait(&meeting.barrier);
    for (int a = 0; a < member->arrays; a++) {
        const qn_reduce_slice slice = {a, 0, member->counts[a]};
        float *sum = calloc((size_t)slice.count, sizeof *sum);
        for (int m = 0; m < MEMBERS; m++)
            for (int64_t i = 0; i < slice.count; i++)
                sum[i] += meeting.parts[m][a][i];
        const qn_status status = qn_trainer_write_slice(trainer, &slice, sum);
        free(sum);
        if (status != QN_OK)
            return status;
    }
    pthread_barrier_wait(&meeting.barrier);
    return QN_OK;
}

static void *train_member(void *user)
{
    struct member *member = user;
    const qn_reduce reduce = {member, add_weights, begin_slice, finish_slices};
    qn_cycle cycle = cycle_of(member->number);
    struct test_data own = data;
    cycle.reduce = &reduce;
    cycle.user = &own;
    member->ended = true;
    for (int update = 0; update < UPDATES; update++)
        member->ended &= qn_trainer_step(member->run.trainer, &cycle, NULL) == QN_OK;
    member->ended &= qn_trainer_finish(member->run.trainer, NULL) == QN_OK;
    return NULL;
}

static void open_members(const qn_graph *graph, struct member *members)
{
    for (int m = 0; m < MEMBERS; m++) {
        members[m] = (struct member){.number = m, .device = test_device()};
        members[m].run =
            open_member(members[m].device, graph, shares[m].samples, shares[m].micro_batch);
        members[m].arrays =
            qn_trainer_arrays(members[m].run.trainer, members[m].counts, MOST_ARRAYS);
        for (int a = 0; a < members[m].arrays; a++)
            meeting.parts[m][a] = calloc((size_t)members[m].counts[a], sizeof(float));
    }
}

static void close_members(struct member *members)
{
    for (int m = 0; m < MEMBERS; m++) {
        for (int a = 0; a < members[m].arrays; a++)
            free(meeting.parts[m][a]);
        test_close(&members[m].run);
        qn_device_close(&members[m].device);
    }
}

static void a_table_of_functions(void **state)
{
    (void)state;
    struct member members[MEMBERS];
    pthread_t threads[MEMBERS];
    qn_graph *graph = test_cnn(QN_F32);
    qn_metrics want;
    double norms[QN_MAX_NORM_GROUPS];
    float *weights;
    open_members(graph, members);
    const int64_t count = train_alone(members[0].device, graph, &weights, &want, norms);
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, MEMBERS), 0);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, train_member, &members[m]), 0);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(pthread_join(threads[m], NULL), 0);
    for (int m = 0; m < MEMBERS; m++) {
        assert_true(members[m].ended);
        check_member(members[m].run.trainer, weights, count, TEST_NEAR);
        check_norms(members[m].run.trainer, norms, TEST_NEAR);
    }
    /* Blocks have gaps, which nobody begins; all else is begun once an update. */
    assert_int_equal(members[0].begun, members[2].begun);
    assert_int_equal(members[0].begun % UPDATES, 0);
    pthread_barrier_destroy(&meeting.barrier);
    close_members(members);
    free(weights);
    qn_graph_destroy(&graph);
}

static qn_status count_slice(void *user, qn_trainer *trainer, const qn_reduce_slice *slice)
{
    (void)trainer;
    *(int64_t *)user += slice->count;
    return QN_OK;
}

static qn_status finish_nothing(void *user, qn_trainer *trainer)
{
    (void)user;
    (void)trainer;
    return QN_OK;
}

/* Gradients are begun in the last micro-step, all else by the call that follows. */
static void slices_begin_as_gradients_complete(void **state)
{
    (void)state;
    int64_t begun = 0, counts[MOST_ARRAYS], numbers = 0;
    float *weights;
    const qn_reduce reduce = {&begun, NULL, count_slice, finish_nothing};
    const double sums[QN_METRICS_LOSSES] = {SAMPLES};
    qn_device *device = test_device();
    qn_graph *graph = test_mlp(WIDTH, false);
    struct test_run run = open_member(device, graph, SAMPLES, 8);
    const qn_cycle cycle = {
        .samples = SAMPLES, .lr = 0.01, .fetch = test_fetch, .user = &data, .reduce = &reduce};
    const int64_t parameters = test_weights(run.trainer, &weights);
    const int arrays = qn_trainer_arrays(run.trainer, counts, MOST_ARRAYS);
    assert_int_equal(qn_trainer_run(run.trainer, &cycle, sums), QN_OK);
    assert_int_equal(begun, parameters);
    assert_int_equal(qn_trainer_reduce(run.trainer, &cycle), QN_OK);
    for (int a = 1; a < arrays; a++)
        numbers += counts[a];
    assert_int_equal(begun, parameters + numbers);
    free(weights);
    test_close(&run);
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

static int make_data(void **state)
{
    (void)state;
    test_data_make(&data, SAMPLES, WIDTH);
    return 0;
}

static int free_data(void **state)
{
    (void)state;
    test_data_free(&data);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_calls),
        cmocka_unit_test(calls_have_an_order),
        cmocka_unit_test(slices_begin_as_gradients_complete),
        cmocka_unit_test(a_table_of_functions),
    };
    return cmocka_run_group_tests_name("members", tests, make_data, free_data);
}
