/* SPDX-License-Identifier: MIT
 *
 * A group in several processes beside the same one in this process and beside one trainer:
 * mpirun -n RANKS group MEMBERS, where each rank has MEMBERS members. With "fails" the data of the
 * last member are missing in the second update; every rank tells its line then.
 */
#include "../group/team.h"

#include <mpi.h>
#include <quern/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 24, WIDTH = 64, UPDATES = 4 };

static const double NEAR = 1e-5;
static const double shares[MOST] = {3, 1, 1, 1};
static const qn_trainer_params training = {.seed = 5, .weight_decay = 0.01, .clip = 0.5};

static struct test_data data;
static int own = 1; /* members of this rank */
static int64_t fail_from = SAMPLES;

/* Called by several threads. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct test_data copy = *(const struct test_data *)user;
    return first >= fail_from ? QN_ERR_IO : test_fetch(&copy, input, first, count, rows);
}

static const qn_cycle whole = {.samples = SAMPLES, .lr = 0.05, .fetch = fetch, .user = &data};

/* Members first, first + 1, ... of `all`. */
static struct team open_team(const qn_graph *graph, int first, int count, int all,
                             const qn_transport *transports)
{
    struct team team = {.count = count};
    qn_group_member members[MOST];
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(SAMPLES, UNIT, shares, all, counts), QN_OK);
    for (int i = 0; i < count; i++) {
        const int m = first + i;
        const qn_plan_params params =
            plan_of(counts[m], UNIT, m % 2 ? QN_RECOMPUTE_ALL : QN_RECOMPUTE_NONE);
        team.devices[i] = test_device();
        assert_int_equal(
            qn_plan_create(&team.plans[i], graph, qn_device_facts(team.devices[i]), &params, NULL),
            QN_OK);
        members[i] = (qn_group_member){team.devices[i], team.plans[i], shares[m]};
    }
    const qn_group_params params = {.trainer = training,
                                    .unit = UNIT,
                                    .transports = transports,
                                    .shares = shares,
                                    .log = test_log};
    assert_int_equal(qn_group_open(&team.group, members, count, &params), QN_OK);
    return team;
}

/* What the updates of a team give: the last metrics, and the weights, the same in all members. */
static int64_t train_team(struct team *team, float **weights, qn_metrics *last)
{
    for (int update = 0; update < UPDATES; update++)
        assert_int_equal(qn_group_step(team->group, &whole, NULL), QN_OK);
    assert_int_equal(qn_group_finish(team->group, last), QN_OK);
    const int64_t count = test_weights(qn_group_trainer(team->group, 0), weights);
    for (int m = 1; m < team->count; m++) {
        float *others;
        assert_int_equal(test_weights(qn_group_trainer(team->group, m), &others), count);
        assert_memory_equal(others, *weights, (size_t)count * sizeof *others);
        free(others);
    }
    return count;
}

static int64_t train_alone(const qn_graph *graph, float **weights)
{
    qn_device *device = test_device();
    const qn_plan_params params = plan_of(SAMPLES, 8, QN_RECOMPUTE_NONE);
    struct test_run run = test_open(device, graph, &params, &training);
    test_train(run.trainer, &data, SAMPLES, UPDATES);
    const int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    qn_device_close(&device);
    return count;
}

static struct team open_ranks(const qn_graph *graph, qn_mpi **mpi)
{
    qn_transport transports[MOST];
    const qn_mpi_params params = {.members = own, .timeout = 120, .log = test_log};
    assert_int_equal(qn_mpi_open(mpi, &params), QN_OK);
    assert_in_range(qn_mpi_members(*mpi), 1, MOST);
    for (int m = 0; m < own; m++)
        assert_int_equal(qn_mpi_transport(*mpi, m, &transports[m]), QN_OK);
    return open_team(graph, transports[0].member, own, qn_mpi_members(*mpi), transports);
}

/* Also the same bits on all ranks, as each compares with a group of its own. */
static void compare(qn_graph *graph)
{
    qn_mpi *mpi;
    qn_metrics last, want;
    float *weights, *within, *alone;
    struct team team = open_ranks(graph, &mpi);
    const int64_t count = train_team(&team, &weights, &last);
    struct team hub = open_team(graph, 0, qn_mpi_members(mpi), qn_mpi_members(mpi), NULL);
    assert_int_equal(train_team(&hub, &within, &want), count);
    assert_int_equal(train_alone(graph, &alone), count);
    assert_memory_equal(weights, within, (size_t)count * sizeof *weights);
    assert_true(last.loss == want.loss && last.grad_norm == want.grad_norm);
    assert_true(test_distance(weights, alone, count) < NEAR);
    close_team(&hub);
    close_team(&team);
    qn_mpi_close(&mpi);
    free(weights);
    free(within);
    free(alone);
}

static void same_training(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    compare(graph);
    qn_graph_destroy(&graph);
}

/* MPI is not finalised. mpirun ends all with the first one that goes: each waits for the others. */
static void one_fails_all_end(void **state)
{
    (void)state;
    qn_mpi *mpi;
    qn_graph *graph = test_mlp(WIDTH, true);
    struct team team = open_ranks(graph, &mpi);
    assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_OK);
    const bool last = qn_mpi_rank(mpi) == qn_mpi_ranks(mpi) - 1;
    fail_from = last ? SAMPLES - UNIT : SAMPLES; /* the last member's range */
    const qn_status status = qn_group_step(team.group, &whole, NULL);
    assert_int_equal(status, last ? QN_ERR_IO : QN_ERR_MEMBER);
    char words[64];
    snprintf(words, sizeof words, "member %d%s", qn_mpi_members(mpi) - 1,
             last ? ": labels: " : " (rank 1) has failed");
    assert_non_null(strstr(qn_last_error(), words));
    close_team(&team);
    qn_mpi_close(&mpi);
    qn_graph_destroy(&graph);
    printf("ended: %s\n", words);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const bool fails = argc > 2 && strcmp(argv[2], "fails") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_training)};
    const struct CMUnitTest failing[] = {cmocka_unit_test(one_fails_all_end)};
    own = argc > 1 ? atoi(argv[1]) : 1;
    test_data_make(&data, SAMPLES, WIDTH);
    const int failed = fails ? cmocka_run_group_tests_name("mpi", failing, NULL, NULL)
                             : cmocka_run_group_tests_name("mpi", tests, NULL, NULL);
    test_data_free(&data);
    if (fails)
        _exit(1);
    return failed ? 1 : 0;
}
