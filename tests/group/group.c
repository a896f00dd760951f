/* SPDX-License-Identifier: MIT
 *
 * Groups of members in one process beside one trainer that computes the whole cycle: weights,
 * losses and norms; shares, micro-batches and recomputation differ from member to member.
 */
#include "team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 24, WIDTH = 64, UPDATES = 5 };

static const double NEAR = TEST_NEAR, NEAR_16 = TEST_NEAR_F16;

static struct test_data data;

static const qn_trainer_params training = {.seed = 5, .weight_decay = 0.01, .clip = 0.5};

/* Members m have micro-batches of 4, 8, 12 ... samples, and every second one recomputes all.
 * `shared`: each has the optimizer's state of its own parameters alone; `transports`: NULL, or one
 * for each. */
static struct team open_team(const qn_graph *graph, const double *shares, int count, bool shared,
                             const qn_transport *transports)
{
    struct team team = {.count = count};
    qn_group_member members[MOST];
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(SAMPLES, UNIT, shares, count, counts), QN_OK);
    for (int m = 0; m < count; m++) {
        qn_plan_params params =
            plan_of(counts[m], UNIT * (m + 1), m % 2 ? QN_RECOMPUTE_ALL : QN_RECOMPUTE_NONE);
        params.members = shared ? count : 0;
        params.member = shared ? m : 0;
        team.devices[m] = test_device();
        assert_int_equal(
            qn_plan_create(&team.plans[m], graph, qn_device_facts(team.devices[m]), &params, NULL),
            QN_OK);
        members[m] = (qn_group_member){team.devices[m], team.plans[m], shares[m]};
    }
    const qn_group_params params = {.trainer = training,
                                    .unit = UNIT,
                                    .transports = transports,
                                    .shares = transports ? shares : NULL,
                                    .log = test_log};
    assert_int_equal(qn_group_open(&team.group, members, count, &params), QN_OK);
    return team;
}

static const qn_cycle whole = {
    .samples = SAMPLES, .lr = 0.05, .fetch = fetch_beside, .user = &data};

/* The same updates by one trainer. */
static int64_t train_alone(const qn_graph *graph, float **weights, qn_metrics *last)
{
    qn_device *device = test_device();
    const qn_plan_params params = plan_of(SAMPLES, 8, QN_RECOMPUTE_NONE);
    struct test_run run = test_open(device, graph, &params, &training);
    *last = test_train(run.trainer, &data, SAMPLES, UPDATES);
    const int64_t count = test_weights(run.trainer, weights);
    test_close(&run);
    qn_device_close(&device);
    return count;
}

/* Near those of one trainer, and the same bits in all members. */
static void check_weights(const struct team *team, const float *want, int64_t count, double near,
                          float *first)
{
    for (int m = 0; m < team->count; m++) {
        float *have;
        assert_int_equal(test_weights(qn_group_trainer(team->group, m), &have), count);
        assert_true(test_distance(have, want, count) < near);
        if (m == 0)
            memcpy(first, have, (size_t)count * sizeof *first);
        assert_memory_equal(have, first, (size_t)count * sizeof *first);
        free(have);
    }
}

/* Numbers that are summed: gradients, which are array 0 and have gaps there, and all else. */
static int64_t numbers_of(qn_trainer *trainer)
{
    int64_t counts[16];
    float *gradients;
    int64_t numbers = test_read_gradients(trainer, &gradients);
    const int arrays = qn_trainer_arrays(trainer, counts, 16);
    assert_in_range(arrays, 2, 16);
    for (int a = 1; a < arrays; a++)
        numbers += counts[a];
    free(gradients);
    return numbers;
}

/* A member sends all that others own, and what it owns to the others: together m - 1 times all
 * numbers, twice. */
static void check_bytes(const struct team *team)
{
    int64_t sent = 0;
    for (int m = 0; m < team->count; m++) {
        qn_group_figures figures;
        assert_int_equal(qn_group_measure(team->group, m, &figures), QN_OK);
        assert_int_equal(figures.updates, UPDATES);
        assert_true(figures.computed > 0 && figures.waited >= 0);
        sent += figures.bytes_sent;
    }
    const int64_t numbers = numbers_of(qn_group_trainer(team->group, 0));
    assert_int_equal(sent, 2 * (team->count - 1) * numbers * (int64_t)sizeof(float) * UPDATES);
}

/* Timing changes no number of the training around it. */
static void time_members(const struct team *team, const double *shares)
{
    double seconds[MOST];
    assert_int_equal(qn_group_time(team->group, &whole, seconds), QN_OK);
    for (int m = 0; m < team->count; m++)
        assert_int_equal(seconds[m] > 0, shares[m] > 0);
}

/* Twice, to the same bits, whoever has the optimizer's state. */
static void train_team(const qn_graph *graph, const double *shares, int count, double near)
{
    qn_metrics want, have = {0};
    float *weights;
    const int64_t numbers = train_alone(graph, &weights, &want);
    float *first = calloc((size_t)numbers, sizeof *first),
          *again = calloc((size_t)numbers, sizeof *again);
    for (int round = 0; round < 2; round++) {
        struct team team = open_team(graph, shares, count, round, NULL);
        for (int update = 0; update < UPDATES; update++) {
            if (update == round)
                time_members(&team, shares);
            assert_int_equal(qn_group_step(team.group, &whole, &have), QN_OK);
            assert_int_equal(have.valid, update > 0);
        }
        assert_int_equal(qn_group_finish(team.group, &have), QN_OK);
        assert_int_equal(have.samples, SAMPLES);
        assert_true(fabs(have.loss - want.loss) < near * fabs(want.loss));
        assert_true(fabs(have.grad_norm - want.grad_norm) < 10 * near * want.grad_norm);
        check_weights(&team, weights, numbers, near, round ? again : first);
        check_bytes(&team);
        close_team(&team);
    }
    assert_memory_equal(first, again, (size_t)numbers * sizeof *first);
    free(first);
    free(again);
    free(weights);
}

static const struct {
    int count;
    double shares[MOST];
} teams[] = {
    {1, {1}},       {2, {1, 1}},    {2, {3, 1}},       {2, {0, 1}},
    {3, {7, 2, 1}}, {3, {1, 0, 1}}, {4, {1, 1, 1, 1}},
};

enum { TEAMS = sizeof teams / sizeof *teams, SOME_TEAMS = 5, FEW_TEAMS = 3 };

/* By the first `count` teams: each member builds its kernels. */
static void the_same_training(qn_graph *graph, double near, size_t count)
{
    for (size_t t = 0; t < count; t++)
        train_team(graph, teams[t].shares, teams[t].count, near);
    qn_graph_destroy(&graph);
}

/* Labels that are ignored, class weights. */
static void weights_of_all(void **state)
{
    (void)state;
    the_same_training(test_mlp(WIDTH, true), NEAR, TEAMS);
}

/* Batch norm in groups of samples, dropout. */
static void groups_of_samples(void **state)
{
    (void)state;
    the_same_training(test_cnn(QN_F32), NEAR, SOME_TEAMS);
}

static void loss_scale(void **state)
{
    (void)state;
    the_same_training(test_cnn(QN_F16), NEAR_16, FEW_TEAMS);
}

/* --- evaluation --- */

/* Logits of all samples, and how often each was seen. */
struct seen {
    float logits[SAMPLES * TEST_CLASSES];
    int times[SAMPLES];
    int64_t first; /* of the part */
};

static qn_status fetch_part(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct seen *seen = user;
    return fetch_beside(&data, input, seen->first + first, count, rows);
}

static qn_status see(void *user, const char *name, int64_t first, int64_t count, const void *rows)
{
    struct seen *seen = user;
    const int64_t at = seen->first + first;
    assert_string_equal(name, "logits");
    memcpy(seen->logits + at * TEST_CLASSES, rows, (size_t)(count * TEST_CLASSES) * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        seen->times[at + i]++;
    return QN_OK;
}

static qn_status evaluate_part(void *user, const qn_group_part *part)
{
    struct seen *seen = &((struct seen *)user)[part->member];
    seen->first = part->first;
    return qn_trainer_evaluate(part->trainer, part->count, fetch_part, see, seen);
}

/* Each sample is seen once, by the member whose range it is in, as one member sees all. */
static void evaluate_samples(const struct team *team, const double *shares, int64_t samples)
{
    static struct seen parts[MOST], all;
    int64_t counts[MOST] = {1}, member = 0, end = 0;
    memset(parts, 0, sizeof parts);
    memset(&all, 0, sizeof all);
    if (samples == SAMPLES)
        assert_int_equal(qn_group_split(samples, 1, shares, team->count, counts), QN_OK);
    assert_int_equal(
        qn_trainer_evaluate(qn_group_trainer(team->group, 0), samples, fetch_part, see, &all),
        QN_OK);
    assert_int_equal(qn_group_evaluate(team->group, samples, evaluate_part, parts), QN_OK);
    for (int64_t i = 0; i < samples; i++) {
        for (; i == end; member++)
            end += counts[member];
        for (int m = 0; m < team->count; m++)
            assert_int_equal(parts[m].times[i], m == member - 1);
        const float *logits = parts[member - 1].logits + i * TEST_CLASSES;
        assert_true(test_distance(logits, all.logits + i * TEST_CLASSES, TEST_CLASSES) < NEAR);
    }
}

static qn_status fail_part(void *user, const qn_group_part *part)
{
    (void)user;
    return part->member == 1 ? qn_transport_error(QN_ERR_IO, "lost") : QN_OK;
}

/* All samples; of one alone nothing is left for most members. What fails ends the group. */
static void members_evaluate_their_samples(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    for (int t = 1; t < SOME_TEAMS; t++) {
        struct team team = open_team(graph, teams[t].shares, teams[t].count, true, NULL);
        assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_OK);
        evaluate_samples(&team, teams[t].shares, SAMPLES);
        if (teams[t].shares[0] > 0)
            evaluate_samples(&team, teams[t].shares, 1);
        assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_OK);
        assert_int_equal(qn_group_evaluate(team.group, 0, evaluate_part, NULL), QN_ERR_ARGUMENT);
        assert_int_equal(qn_group_evaluate(team.group, SAMPLES, fail_part, NULL), QN_ERR_IO);
        assert_string_equal(qn_last_error(), "member 1: lost");
        assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_ERR_IO);
        close_team(&team);
    }
    qn_graph_destroy(&graph);
}

/* --- failures --- */

/* Fails for samples from `fail_from` on. */
static int64_t fail_from;
static qn_status failing_fetch(void *user, const char *input, int64_t first, int64_t count,
                               void *rows)
{
    return first >= fail_from ? QN_ERR_IO : fetch_beside(user, input, first, count, rows);
}

/* One member's data are missing: the others do not wait for it, and nobody goes on. */
static void one_fails_all_end(void **state)
{
    (void)state;
    static const double shares[] = {1, 1, 1};
    qn_graph *graph = test_mlp(WIDTH, true);
    struct team team = open_team(graph, shares, 3, false, NULL);
    qn_cycle failing = whole;
    failing.fetch = failing_fetch;
    fail_from = SAMPLES;
    assert_int_equal(qn_group_step(team.group, &failing, NULL), QN_OK);
    fail_from = 2 * SAMPLES / 3;
    assert_int_equal(qn_group_step(team.group, &failing, NULL), QN_ERR_IO);
    assert_non_null(strstr(qn_last_error(), "member 2"));
    fail_from = SAMPLES;
    assert_int_equal(qn_group_step(team.group, &failing, NULL), QN_ERR_IO);
    close_team(&team);
    qn_graph_destroy(&graph);
}

/* A transport of a hub whose waits fail from some on, each with a line of its own. */
struct failing {
    qn_transport hub;
    bool fails;
    int failures;
};

static qn_status failing_send(void *user, int to, const void *bytes, int64_t count, void **ticket)
{
    const struct failing *f = user;
    return f->hub.send(f->hub.user, to, bytes, count, ticket);
}

static qn_status failing_receive(void *user, int from, void *bytes, int64_t count, void **ticket)
{
    const struct failing *f = user;
    return f->hub.receive(f->hub.user, from, bytes, count, ticket);
}

static qn_status failing_wait(void *user, void **ticket)
{
    struct failing *f = user;
    char line[32];
    const bool there = *ticket != NULL;
    const qn_status status = f->hub.wait(f->hub.user, ticket);
    snprintf(line, sizeof line, "failure %d", f->failures);
    if (!f->fails || !there)
        return status;
    f->failures++;
    return qn_transport_error(QN_ERR_IO, line);
}

static qn_status failing_gather(void *user, const void *own, int64_t count, void *all)
{
    const struct failing *f = user;
    return f->hub.gather(f->hub.user, own, count, all);
}

static void failing_fail(void *user)
{
    const struct failing *f = user;
    (f->hub.fail)(f->hub.user);
}

/* A member waits for several messages at a time: what is told is why the first one failed. */
static void the_first_failure_is_told(void **state)
{
    (void)state;
    static const double shares[] = {1, 1};
    struct failing failing[2] = {{.fails = false}};
    qn_transport transports[2];
    qn_hub *hub;
    qn_graph *graph = test_mlp(WIDTH, true);
    assert_int_equal(qn_hub_open(&hub, 2, 60), QN_OK);
    for (int m = 0; m < 2; m++) {
        assert_int_equal(qn_hub_transport(hub, m, &failing[m].hub), QN_OK);
        transports[m] = (qn_transport){
            &failing[m],    m,           2, failing_send, failing_receive, failing_wait,
            failing_gather, failing_fail};
    }
    struct team team = open_team(graph, shares, 2, false, transports);
    assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_OK);
    failing[1].fails = true;
    assert_int_equal(qn_group_step(team.group, &whole, NULL), QN_ERR_IO);
    assert_true(failing[1].failures > 1);
    assert_non_null(strstr(qn_last_error(), "member 1: failure 0"));
    close_team(&team);
    qn_hub_close(&hub);
    qn_graph_destroy(&graph);
}

/* Another model, the same device twice, arguments of a member's own. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    qn_graph *graph = test_mlp(WIDTH, true), *other = test_mlp(WIDTH / 2, true);
    qn_device *devices[] = {test_device(), test_device()};
    qn_plan *plans[3];
    qn_group *group;
    const qn_plan_params params = plan_of(SAMPLES / 2, 4, QN_RECOMPUTE_NONE);
    const qn_facts *facts = qn_device_facts(devices[0]);
    assert_int_equal(qn_plan_create(&plans[0], graph, facts, &params, NULL), QN_OK);
    assert_int_equal(qn_plan_create(&plans[1], other, facts, &params, NULL), QN_OK);
    assert_int_equal(qn_plan_create(&plans[2], graph, facts, &params, NULL), QN_OK);
    qn_group_member members[] = {{devices[0], plans[0], 1}, {devices[1], plans[1], 1}};
    assert_int_equal(qn_group_open(&group, members, 2, NULL), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "its model"));
    members[1] = (qn_group_member){devices[0], plans[2], 1};
    assert_int_equal(qn_group_open(&group, members, 2, NULL), QN_ERR_ARGUMENT);
    members[1] = (qn_group_member){devices[1], plans[2], 1};
    assert_int_equal(qn_group_open(&group, members, 2, NULL), QN_OK);
    qn_cycle cycle = whole;
    cycle.first = 1;
    assert_int_equal(qn_group_step(group, &cycle, NULL), QN_ERR_ARGUMENT);
    cycle = whole;
    cycle.samples = 1; /* nothing is left for member 1 */
    assert_int_equal(qn_group_step(group, &cycle, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_step(group, &whole, NULL), QN_OK);
    assert_null(qn_group_trainer(group, 2));
    qn_group_close(&group);
    for (int p = 0; p < 3; p++)
        qn_plan_destroy(&plans[p]);
    for (int d = 0; d < 2; d++)
        qn_device_close(&devices[d]);
    qn_graph_destroy(&graph);
    qn_graph_destroy(&other);
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
        cmocka_unit_test(weights_of_all),
        cmocka_unit_test(groups_of_samples),
        cmocka_unit_test(loss_scale),
        cmocka_unit_test(members_evaluate_their_samples),
        cmocka_unit_test(one_fails_all_end),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("group", tests, make_data, free_data);
}
