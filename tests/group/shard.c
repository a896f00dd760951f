/* SPDX-License-Identifier: MIT
 *
 * Members that share the optimizer's work, beside members of whom each has all of it: the same bits
 * in every file of a checkpoint and in evaluations, for optimizers with states, masters and
 * averages of every kind; fewer bytes. With the argument N every N-th optimizer alone.
 */
#include "team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The large weight has two buckets of numbers. */
enum { SAMPLES = 24, WIDTH = 64, HIDDEN = 620, UPDATES = 2 };

static struct test_data data;
static char folder[256];

static const qn_trainer_params training = {.seed = 5, .weight_decay = 0.01, .clip = 0.5};

static const struct subject {
    const char *optimizer;
    qn_dtype stored; /* type of the weights */
    bool no_master;
    double ema;
} subjects[] = {
    {"sgd", QN_F32, false, 0},          {"adamw", QN_F32, false, 0},
    {"adamw", QN_BF16, false, 0},       {"adamw", QN_F16, true, 0},
    {"adamw8", QN_F32, false, 0},       {"adamw8", QN_BF16, false, 0},
    {"flash_adamw", QN_BF16, false, 0}, {"lion", QN_F16, false, 0},
    {"adafactor", QN_F32, false, 0},    {"adafactor", QN_BF16, false, 0},
    {"apollo", QN_F32, false, 0},       {"apollo", QN_F16, true, 0},
    {"adamw", QN_F32, false, 0.75},     {"adamw", QN_BF16, false, 0.75},
    {"adamw", QN_F16, true, 0.75},      {"flash_adamw", QN_BF16, false, 0.75},
    {"adafactor", QN_F32, false, 0.75}, {"apollo", QN_F16, false, 0.75},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, AVERAGED = 12 /* the first that is */ };
static int stride = 1; /* from a subject to the next */

static qn_tensor layer(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    const int64_t dim[] = {out, in};
    const qn_init init = qn_init_fan_in(in), zero = {0};
    char text[2][32];
    snprintf(text[0], sizeof text[0], "%s.weight", name);
    snprintf(text[1], sizeof text[1], "%s.bias", name);
    const qn_tensor weight = qn_parameter(graph, text[0], 2, dim, &init);
    return qn_linear(graph, x, weight, qn_parameter(graph, text[1], 1, &out, &zero));
}

static qn_graph *make_graph(const struct subject *s)
{
    const qn_graph_params how = {.log = test_log, .parameter_storage = s->stored};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &how), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
    x = qn_relu(graph, layer(graph, x, "first", WIDTH, HIDDEN));
    x = qn_relu(graph, layer(graph, x, "second", HIDDEN, HIDDEN));
    x = layer(graph, x, "last", HIDDEN, TEST_CLASSES);
    qn_output(graph, x, "logits");
    const qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, NULL), "loss", NULL);
    return graph;
}

static qn_plan_params params_of(const struct subject *s, int64_t samples)
{
    qn_plan_params params = plan_of(samples, UNIT, QN_RECOMPUTE_NONE);
    params.budget = 64 << 20;
    params.effort = QN_EFFORT_INSTANT;
    params.optimizer = (qn_optimizer){.name = s->optimizer,
                                      .no_master = s->no_master,
                                      .ema = s->ema,
                                      .momentum = strcmp(s->optimizer, "sgd") == 0 ? 0.9 : 0};
    return params;
}

static struct team open_team(const qn_graph *graph, const struct subject *s, int count, bool shared)
{
    static const double shares[MOST] = {2, 1, 1, 1};
    struct team team = {.count = count};
    qn_group_member members[MOST];
    int64_t counts[MOST];
    assert_int_equal(qn_group_split(SAMPLES, UNIT, shares, count, counts), QN_OK);
    for (int m = 0; m < count; m++) {
        qn_plan_params params = params_of(s, counts[m]);
        params.members = shared ? count : 0;
        params.member = shared ? m : 0;
        team.devices[m] = test_device();
        assert_int_equal(
            qn_plan_create(&team.plans[m], graph, qn_device_facts(team.devices[m]), &params, NULL),
            QN_OK);
        members[m] = (qn_group_member){team.devices[m], team.plans[m], shares[m]};
    }
    const qn_group_params params = {.trainer = training, .unit = UNIT, .log = test_log};
    assert_int_equal(qn_group_open(&team.group, members, count, &params), QN_OK);
    return team;
}

static const qn_cycle whole = {
    .samples = SAMPLES, .lr = 0.01, .fetch = fetch_beside, .user = &data};

/* Whatever members keep for themselves, they compute the same. */
static void check_digests(const struct team *team)
{
    uint64_t first, digest;
    assert_int_equal(qn_trainer_digest(qn_group_trainer(team->group, 0), &first), QN_OK);
    for (int m = 1; m < team->count; m++) {
        assert_int_equal(qn_trainer_digest(qn_group_trainer(team->group, m), &digest), QN_OK);
        assert_true(digest == first);
    }
}

static qn_metrics train(const struct team *team)
{
    qn_metrics last;
    for (int update = 0; update < UPDATES; update++)
        assert_int_equal(qn_group_step(team->group, &whole, NULL), QN_OK);
    assert_int_equal(qn_group_finish(team->group, &last), QN_OK);
    check_digests(team);
    return last;
}

/* --- files --- */

static const char *path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static char *read_file(const char *checkpoint, const char *name, long *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/last/%s", folder, checkpoint, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)*size);
    assert_int_equal(fread(bytes, 1, (size_t)*size, file), *size);
    fclose(file);
    return bytes;
}

static void check_same(const char *a, const char *b)
{
    static const char *const files[] = {"weights.safetensors", "optimizer.safetensors"};
    for (int f = 0; f < 2; f++) {
        long sizes[2];
        char *one = read_file(a, files[f], &sizes[0]), *other = read_file(b, files[f], &sizes[1]);
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(one, other, (size_t)sizes[0]);
        free(one);
        free(other);
    }
}

static void save(const struct team *team, const char *name)
{
    char path[512];
    assert_int_equal(qn_group_save(team->group, path_of(name, path), NULL), QN_OK);
}

static void restore(const struct team *team, const char *name)
{
    char path[512];
    qn_checkpoint *checkpoint;
    assert_int_equal(qn_checkpoint_open(&checkpoint, path_of(name, path), &test_log), QN_OK);
    for (int m = 0; m < team->count; m++)
        assert_int_equal(qn_checkpoint_restore(checkpoint, qn_group_trainer(team->group, m)),
                         QN_OK);
    qn_checkpoint_close(&checkpoint);
}

/* A checkpoint knows the plan of each member, which is made again from it. */
static void check_plans(const struct team *team, const qn_graph *graph, const char *name)
{
    char path[512];
    qn_checkpoint *checkpoint;
    assert_int_equal(qn_checkpoint_open(&checkpoint, path_of(name, path), &test_log), QN_OK);
    for (int m = 0; m < team->count; m++) {
        const qn_checkpoint *own = qn_checkpoint_member(checkpoint, m);
        const qn_plan_info *made = qn_plan_facts(team->plans[m]);
        qn_plan *plan;
        assert_non_null(own);
        assert_true(qn_checkpoint_describe(own)->plan_hash == made->hash);
        assert_int_equal(qn_checkpoint_describe(own)->update, UPDATES);
        assert_int_equal(qn_checkpoint_plan(own, graph, team->devices[m], &plan), QN_OK);
        assert_true(qn_plan_facts(plan)->hash == made->hash);
        qn_plan_destroy(&plan);
    }
    assert_true(qn_plan_facts(team->plans[0])->hash != qn_plan_facts(team->plans[1])->hash);
    assert_null(qn_checkpoint_member(checkpoint, team->count));
    assert_null(qn_checkpoint_member(checkpoint, -1));
    qn_checkpoint_close(&checkpoint);
}

static void remove_all(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* --- tests --- */

/* Trains, saves, and goes on from what `from` has saved; the metrics of both trainings. */
static void train_twice(const qn_graph *graph, const struct subject *s, int count, bool shared,
                        const char *name, const char *from, const char *end, qn_metrics metrics[2])
{
    struct team team = open_team(graph, s, count, shared);
    metrics[0] = train(&team);
    save(&team, name);
    check_plans(&team, graph, name);
    close_team(&team);
    team = open_team(graph, s, count, shared);
    restore(&team, from);
    metrics[1] = train(&team);
    save(&team, end);
    close_team(&team);
}

static void check_subject(const struct subject *s, int count)
{
    qn_graph *graph = make_graph(s);
    qn_metrics alone[2], shared[2];
    train_twice(graph, s, count, false, "each", "each", "each-end", alone);
    train_twice(graph, s, count, true, "shared", "each", "shared-end", shared);
    check_same("each", "shared");
    check_same("each-end", "shared-end");
    for (int i = 0; i < 2; i++) {
        assert_true(alone[i].loss == shared[i].loss);
        assert_true(alone[i].grad_norm == shared[i].grad_norm);
    }
    remove_all();
    qn_graph_destroy(&graph);
}

static void the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i += stride) {
        print_message("  %s of %s%s%s\n", subjects[i].optimizer, qn_dtype_name(subjects[i].stored),
                      subjects[i].no_master ? " without masters" : "",
                      subjects[i].ema > 0 ? " with averages" : "");
        check_subject(&subjects[i], 2 + i % (MOST - 1));
    }
}

/* --- evaluations --- */

struct logits {
    float value[SAMPLES * TEST_CLASSES];
};

static qn_status fetch_for(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    return fetch_beside(&data, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct logits *logits = user;
    (void)name;
    memcpy(logits->value + first * TEST_CLASSES, rows,
           (size_t)(count * TEST_CLASSES) * sizeof *logits->value);
    return QN_OK;
}

static qn_status evaluate(const struct team *team, int m, struct logits *logits)
{
    return qn_trainer_evaluate(qn_group_trainer(team->group, m), SAMPLES, fetch_for, receive,
                               logits);
}

/* The averages of all are shown to every member, and nothing else is: the training goes on as if
 * nobody had looked. */
static void check_evaluations(const struct subject *s, int count)
{
    qn_graph *graph = make_graph(s);
    struct team alone = open_team(graph, s, count, false),
                shared = open_team(graph, s, count, true);
    struct logits want, have;
    train(&alone);
    train(&shared);
    assert_int_equal(evaluate(&alone, 0, &want), QN_OK);
    assert_int_equal(evaluate(&shared, 0, &have), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "qn_group_show_averages"));
    assert_int_equal(qn_group_show_averages(shared.group, true), QN_OK);
    assert_int_equal(qn_group_show_averages(shared.group, true), QN_OK);
    for (int m = 0; m < count; m++) {
        memset(&have, 0, sizeof have);
        assert_int_equal(evaluate(&shared, m, &have), QN_OK);
        assert_memory_equal(&have, &want, sizeof have);
    }
    assert_int_equal(qn_group_step(shared.group, &whole, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_save(shared.group, folder, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_group_show_averages(shared.group, false), QN_OK);
    assert_int_equal(qn_group_show_averages(alone.group, true), QN_OK);
    train(&alone);
    train(&shared);
    save(&alone, "each");
    save(&shared, "shared");
    check_same("each", "shared");
    remove_all();
    close_team(&alone);
    close_team(&shared);
    qn_graph_destroy(&graph);
}

static void evaluations_read_all_averages(void **state)
{
    (void)state;
    for (int i = AVERAGED; i < SUBJECTS; i += stride)
        check_evaluations(&subjects[i], 2 + i % (MOST - 1));
}

/* --- bytes --- */

static int64_t bytes_of(const struct team *team, int m, qn_tag tag)
{
    return qn_plan_facts(team->plans[m])->bytes_by_tag[tag];
}

/* States, masters and averages of each of four members, and what is allocated. */
static void fewer_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        const struct subject *s = &subjects[i];
        qn_graph *graph = make_graph(s);
        struct team alone = open_team(graph, s, 1, false), shared = open_team(graph, s, MOST, true);
        const double all = (double)bytes_of(&alone, 0, QN_TAG_OPTIMIZER);
        const double averages = (double)bytes_of(&alone, 0, QN_TAG_AVERAGES);
        double most = 0, most_averages = 0;
        for (int m = 0; m < MOST; m++) {
            most = fmax(most, (double)bytes_of(&shared, m, QN_TAG_OPTIMIZER));
            most_averages = fmax(most_averages, (double)bytes_of(&shared, m, QN_TAG_AVERAGES));
            assert_int_equal(qn_trainer_bytes(qn_group_trainer(shared.group, m)),
                             qn_plan_facts(shared.plans[m])->peak_bytes);
        }
        const bool whole_ones =
            strcmp(s->optimizer, "apollo") == 0 || strcmp(s->optimizer, "adafactor") == 0;
        print_message("  %s of %s: %.3f, averages %.3f\n", s->optimizer, qn_dtype_name(s->stored),
                      most / all, averages > 0 ? most_averages / averages : 0);
        assert_true(whole_ones || most < 0.30 * all);
        assert_true((averages > 0) == (s->ema > 0));
        assert_true(whole_ones || most_averages <= 0.30 * averages);
        close_team(&alone);
        close_team(&shared);
        qn_graph_destroy(&graph);
    }
}

/* Gradients to their owners, parameters to all, each m - 1 times; biases are f32. */
static void as_many_bytes_are_sent(void **state)
{
    (void)state;
    const int64_t weights = (WIDTH + HIDDEN + TEST_CLASSES) * HIDDEN;
    const int64_t biases = HIDDEN + HIDDEN + TEST_CLASSES, f32 = (int64_t)sizeof(float);
    for (int i = 0; i < 3; i++) {
        const struct subject *s = &subjects[i];
        qn_graph *graph = make_graph(s);
        struct team team = open_team(graph, s, 3, true);
        int64_t sent = 0;
        train(&team);
        for (int m = 0; m < 3; m++) {
            qn_group_figures figures;
            assert_int_equal(qn_group_measure(team.group, m, &figures), QN_OK);
            sent += figures.bytes_sent;
        }
        const int64_t each = weights * (f32 + qn_dtype_size(s->stored)) + biases * 2 * f32 +
                             QN_METRICS_LOSSES * 2 * f32;
        assert_int_equal(sent, UPDATES * 2 * each);
        close_team(&team);
        qn_graph_destroy(&graph);
    }
}

/* A plan of another number, or of one alone among those that share; a member by itself. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    qn_graph *graph = make_graph(&subjects[0]);
    qn_device *devices[] = {test_device(), test_device()};
    qn_plan *plans[2];
    qn_group *group;
    qn_plan_params params = params_of(&subjects[0], SAMPLES / 2);
    params.members = 2;
    for (int m = 0; m < 2; m++)
        assert_int_equal(
            qn_plan_create(&plans[m], graph, qn_device_facts(devices[m]), &params, NULL), QN_OK);
    qn_group_member members[] = {{devices[0], plans[0], 1}, {devices[1], plans[1], 1}};
    assert_int_equal(qn_group_open(&group, members, 2, NULL), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "its plan is for member 0 of 2, and it is 1 of 2"));
    qn_trainer *trainer;
    qn_cycle cycle = whole;
    cycle.samples = SAMPLES / 2;
    assert_int_equal(qn_trainer_open(&trainer, devices[0], plans[0], &training), QN_OK);
    assert_int_equal(qn_trainer_step(trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "qn_group_step"));
    qn_trainer_close(&trainer);
    for (int m = 0; m < 2; m++) {
        qn_plan_destroy(&plans[m]);
        qn_device_close(&devices[m]);
    }
    qn_graph_destroy(&graph);
}

/* What each member would have to keep of its own, and a number that there is not. */
static void plans_are_refused(void **state)
{
    (void)state;
    qn_graph *graph = make_graph(&subjects[0]);
    qn_plan *plan;
    qn_facts facts;
    qn_facts_default(&facts, true);
    for (int i = 0; i < 2; i++) {
        qn_plan_params params = params_of(&subjects[0], SAMPLES);
        params.members = 2;
        params.member = i == 0 ? 2 : 0;
        params.early_updates = i == 1;
        assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_ERR_ARGUMENT);
    }
    assert_non_null(strstr(qn_last_error(), "early_updates"));
    qn_graph_destroy(&graph);
}

/* Where the checkpoint cannot be written the group trains on, and can save elsewhere. */
static void a_failed_save_harms_nobody(void **state)
{
    (void)state;
    qn_graph *graph = make_graph(&subjects[1]);
    struct team team = open_team(graph, &subjects[1], 3, true);
    train(&team);
    assert_int_equal(qn_group_save(team.group, "/dev/null/none", NULL), QN_ERR_IO);
    train(&team);
    save(&team, "shared");
    remove_all();
    close_team(&team);
    qn_graph_destroy(&graph);
}

static int make_data(void **state)
{
    (void)state;
    const char *temp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/quern-shard-%d", temp ? temp : "/tmp", getpid());
    test_data_make(&data, SAMPLES, WIDTH);
    return 0;
}

static int free_data(void **state)
{
    (void)state;
    test_data_free(&data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        stride = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(evaluations_read_all_averages),
        cmocka_unit_test(fewer_bytes),
        cmocka_unit_test(as_many_bytes_are_sent),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(plans_are_refused),
        cmocka_unit_test(a_failed_save_harms_nobody),
    };
    return cmocka_run_group_tests_name("shard", tests, make_data, free_data);
}
