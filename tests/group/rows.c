/* SPDX-License-Identifier: MIT
 *
 * A contrastive loss over the samples of all members: GradCache beside one trainer, and what of
 * contrastive training needs the order of one device.
 */
#include "team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 20, WIDE = 24, CODE = 8, NEGATIVES = 2, UPDATES = 4 };

static const double NEAR = TEST_NEAR;

static const qn_trainer_params training = {.seed = 5, .clip = 0.7};

/* --- data and towers --- */

static double number_at(int64_t sample, int64_t i)
{
    return sin(0.7 * (double)(sample * 31 + i * 17 % 23) + 0.3 * (double)i);
}

/* Passages are "y" or, with hard negatives, "all". Every fifth sample has the id of the one before:
 * they are no negatives of each other. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    const int64_t other = strcmp(input, "x") == 0 ? 0 : 5000;
    const int64_t width = strcmp(input, "all") == 0 ? (1 + NEGATIVES) * WIDE : WIDE;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(input, "ids") == 0)
            ((int32_t *)rows)[i] = (int32_t)(first + i - ((first + i) % 5 == 4));
        else
            for (int64_t k = 0; k < width; k++)
                ((float *)rows)[i * width + k] = (float)number_at(first + i + other, k);
    return QN_OK;
}

static qn_tensor tower(qn_graph *graph, const char *input, int64_t rows, const char *name)
{
    const int64_t dim[] = {CODE, WIDE};
    const qn_init init = qn_init_fan_in(WIDE);
    const qn_tensor x = qn_input(graph, input, QN_F32, 2, (int64_t[]){rows * QN_BATCH, WIDE});
    const qn_tensor weight = qn_parameter(graph, name, 2, dim, &init);
    return qn_dropout(graph, qn_tanh(graph, qn_linear(graph, x, weight, (qn_tensor){0})), 0.2);
}

static qn_status towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    const bool negatives = user;
    *queries = tower(graph, "x", 1, "query");
    *passages = tower(graph, negatives ? "all" : "y", negatives ? 1 + NEGATIVES : 1, "passage");
    return QN_OK;
}

static int hard; /* its address asks `towers` for hard negatives */
static const qn_contrastive_params plain = {.temperature = 0.5};
static const qn_contrastive_params rich = {
    .temperature = 0.25, .learned = true, .symmetric = true, .duplicates = true};

static qn_contrastive *open_mode(qn_contrastive_mode mode, const qn_contrastive_params *how)
{
    qn_contrastive_params params = *how;
    qn_contrastive *contrastive;
    params.mode = mode;
    params.towers = towers;
    params.graph.log = test_log;
    assert_int_equal(qn_contrastive_create(&contrastive, &params), QN_OK);
    return contrastive;
}

/* --- members --- */

static qn_plan_params params_of(int64_t samples, int64_t micro_batch)
{
    qn_plan_params params = plan_of(samples, micro_batch, QN_RECOMPUTE_AUTO);
    params.effort = QN_EFFORT_INSTANT;
    return params;
}

struct trained {
    float *weights;
    int64_t count;
    qn_metrics metrics[UPDATES];
};

static struct trained train_alone(const qn_run_list *program, int64_t micro_batch)
{
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 0.05, .fetch = fetch};
    const qn_plan_params params = params_of(SAMPLES, micro_batch);
    struct trained trained = {0};
    qn_device *device = test_device();
    qn_plan *plan;
    qn_trainer *trainer;
    assert_int_equal(qn_plan_create_runs(&plan, program, qn_device_facts(device), &params, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&trainer, device, plan, &training), QN_OK);
    for (int u = 0; u < UPDATES; u++) {
        assert_int_equal(qn_trainer_step(trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(trainer, &trained.metrics[u]), QN_OK);
    }
    trained.count = test_weights(trainer, &trained.weights);
    qn_trainer_close(&trainer);
    qn_plan_destroy(&plan);
    qn_device_close(&device);
    return trained;
}

static struct team open_team(const qn_run_list *program, const double *shares, int count,
                             int64_t micro_batch, bool shared)
{
    struct team team = {.count = count};
    qn_group_member members[MOST];
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(SAMPLES, UNIT, shares, count, counts), QN_OK);
    for (int m = 0; m < count; m++) {
        qn_plan_params params = params_of(counts[m], micro_batch ? micro_batch : 3 + 2 * m);
        params.whole[0] = SAMPLES;
        params.members = shared ? count : 0;
        params.member = shared ? m : 0;
        team.devices[m] = test_device();
        assert_int_equal(qn_plan_create_runs(&team.plans[m], program,
                                             qn_device_facts(team.devices[m]), &params, NULL),
                         QN_OK);
        members[m] = (qn_group_member){team.devices[m], team.plans[m], shares[m]};
    }
    const qn_group_params params = {.trainer = training, .unit = UNIT, .log = test_log};
    assert_int_equal(qn_group_open(&team.group, members, count, &params), QN_OK);
    return team;
}

static void check_team(const struct team *team, const struct trained *want)
{
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 0.05, .fetch = fetch};
    for (int u = 0; u < UPDATES; u++) {
        qn_metrics have;
        assert_int_equal(qn_group_step(team->group, &cycle, NULL), QN_OK);
        assert_int_equal(qn_group_finish(team->group, &have), QN_OK);
        assert_true(fabs(have.loss - want->metrics[u].loss) < NEAR * fabs(want->metrics[u].loss));
        assert_true(fabs(have.grad_norm - want->metrics[u].grad_norm) <
                    10 * NEAR * want->metrics[u].grad_norm);
    }
    for (int m = 0; m < team->count; m++) {
        float *weights;
        assert_int_equal(test_weights(qn_group_trainer(team->group, m), &weights), want->count);
        assert_true(test_distance(weights, want->weights, want->count) < NEAR);
        free(weights);
    }
}

static const struct {
    int count;
    double shares[MOST];
} teams[] = {
    {2, {1, 1}}, {2, {4, 1}}, {3, {1, 3, 1}}, {2, {0, 1}}, {3, {0, 3, 2}}, {4, {2, 0, 1, 2}},
};

static void check_teams(qn_contrastive_mode mode, const qn_contrastive_params *how,
                        int64_t micro_batch)
{
    qn_contrastive *contrastive = open_mode(mode, how);
    const qn_run_list *program = qn_contrastive_program(contrastive);
    struct trained want = train_alone(program, micro_batch ? micro_batch : 6);
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
        struct team team =
            open_team(program, teams[t].shares, teams[t].count, micro_batch, t % 2 == 0);
        check_team(&team, &want);
        close_team(&team);
    }
    free(want.weights);
    qn_contrastive_destroy(&contrastive);
}

/* Every member computes the loss over the vectors of all. */
static void gradcache(void **state)
{
    (void)state;
    check_teams(QN_CONTRASTIVE_GRADCACHE, &plain, 0);
}

/* A temperature that is learned counts once, duplicates lie with other members. */
static void all_there_is(void **state)
{
    (void)state;
    check_teams(QN_CONTRASTIVE_GRADCACHE, &rich, 0);
}

/* Each sample has rows of its own for the passages that are hard for it. */
static void hard_negatives(void **state)
{
    (void)state;
    qn_contrastive_params how = rich;
    how.user = &hard;
    check_teams(QN_CONTRASTIVE_GRADCACHE, &how, 0);
}

/* Negatives of micro-steps, which shares have whole. */
static void accumulate(void **state)
{
    (void)state;
    check_teams(QN_CONTRASTIVE_ACCUMULATE, &rich, UNIT);
}

static void refuse(qn_contrastive_mode mode, const qn_contrastive_params *how, const char *why)
{
    qn_contrastive *contrastive = open_mode(mode, how);
    qn_device *device = test_device();
    const qn_plan_params params = params_of(SAMPLES, mode == QN_CONTRASTIVE_WHOLE ? SAMPLES : UNIT);
    qn_plan *plan;
    qn_group *group;
    assert_int_equal(qn_plan_create_runs(&plan, qn_contrastive_program(contrastive),
                                         qn_device_facts(device), &params, NULL),
                     QN_OK);
    const qn_group_member member = {device, plan, 1};
    assert_int_equal(qn_group_open(&group, &member, 1, NULL), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), why));
    qn_plan_destroy(&plan);
    qn_device_close(&device);
    qn_contrastive_destroy(&contrastive);
}

static void what_one_device_trains(void **state)
{
    (void)state;
    qn_contrastive_params banks = plain;
    banks.bank = 2 * SAMPLES;
    refuse(QN_CONTRASTIVE_CONTACCUM, &banks, "a bank takes rows in the order");
    refuse(QN_CONTRASTIVE_WHOLE, &plain, "all samples of a cycle at once");
}

/* A plan for another cycle than that which the members share. */
static void another_cycle(void **state)
{
    (void)state;
    static const double shares[] = {1, 1};
    const qn_cycle cycle = {.samples = SAMPLES - UNIT, .lr = 0.05, .fetch = fetch};
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_GRADCACHE, &plain);
    struct team team = open_team(qn_contrastive_program(contrastive), shares, 2, 0, false);
    assert_int_equal(qn_group_step(team.group, &cycle, NULL), QN_ERR_ARGUMENT);
    close_team(&team);
    qn_contrastive_destroy(&contrastive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradcache),
        cmocka_unit_test(all_there_is),
        cmocka_unit_test(hard_negatives),
        cmocka_unit_test(accumulate),
        cmocka_unit_test(what_one_device_trains),
        cmocka_unit_test(another_cycle),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
