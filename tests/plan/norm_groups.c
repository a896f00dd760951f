/* SPDX-License-Identifier: MIT
 *
 * Groups of parameters of whose gradients a plan has the norms: which parameters they have, what
 * they are called, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"
#include <quern/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qn_plan_params params_of(const char *norm_groups)
{
    return (qn_plan_params){.budget = (int64_t)1 << 30,
                            .batch = {64},
                            .micro_batch = 32,
                            .effort = QN_EFFORT_INSTANT,
                            .norm_groups = norm_groups};
}

static qn_plan *plan_of(const qn_graph *graph, const char *norm_groups)
{
    const qn_plan_params params = params_of(norm_groups);
    return test_plan(graph, &params);
}

/* The group of a parameter by name; NULL: none. */
static const char *group_of(const qn_plan *plan, const char *name)
{
    for (int p = 0; p < plan->persist.n_parameters; p++)
        if (strcmp(plan->persist.parameters[p].node->name, name) == 0)
            return qn_plan_norm_group(plan, plan->persist.groups.of[p]);
    fail_msg("there is no parameter %s", name);
    return NULL;
}

static int count_of(const qn_plan *plan)
{
    int count = 0;
    while (qn_plan_norm_group(plan, count))
        count++;
    return count;
}

/* --- layers --- */

static qn_graph *build(const char *name, int tokens, const qn_model_option *options, int n_options)
{
    const qn_model_data data = {.channels = tokens ? 1 : 3,
                                .height = tokens ? 1 : 32,
                                .width = tokens ? 8 : 32,
                                .classes = tokens ? 0 : 10,
                                .tokens = tokens};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    if (qn_model_build(graph, name, &data, options, n_options) != QN_OK)
        fail_msg("%s: %s", name, qn_graph_error(graph));
    return graph;
}

static const qn_model_option two_layers[] = {
    {"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"inner", "8"}};
static const struct model {
    const char *name;
    int tokens;
    const qn_model_option *options;
    int n_options;
    const char *parameter[4], *group[4];
} models[] = {
    {"mlp", 0, NULL, 0, {"fc1.weight", "fc1.bias"}, {"fc1", "fc1"}},
    {"cnn", 0, NULL, 0, {"conv1.weight", "fc.bias"}, {"conv1", "fc"}},
    {"resnet",
     0,
     (const qn_model_option[]){{"depth", "18"}},
     1,
     {"conv1.weight", "layer1.0.conv1.weight", "layer2.0.downsample.1.weight", "fc.bias"},
     {"conv1", "layer1.0", "layer2.0", "fc"}},
    {"vgg",
     0,
     (const qn_model_option[]){{"pool", "1"}},
     1,
     {"features.0.weight", "features.2.weight"},
     {"features.0", "features.2"}},
    {"gpt",
     11,
     two_layers,
     3,
     {"transformer.wte.weight", "transformer.h.1.attn.c_attn.weight", "transformer.ln_f.bias"},
     {"transformer.wte", "transformer.h.1", "transformer.ln_f"}},
    {"llama",
     11,
     two_layers,
     4,
     {"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "model.norm.weight"},
     {"model.embed_tokens", "model.layers.0", "model.norm"}},
    {"bert",
     11,
     two_layers,
     4,
     {"bert.embeddings.LayerNorm.weight", "bert.encoder.layer.1.output.dense.bias"},
     {"bert.embeddings.LayerNorm", "bert.encoder.layer.1"}},
};

static void layers_have_the_names_of_people(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const struct model *model = &models[m];
        qn_graph *graph = build(model->name, model->tokens, model->options, model->n_options);
        qn_plan *plan = plan_of(graph, "auto");
        for (int i = 0; i < 4 && model->parameter[i]; i++)
            assert_string_equal(group_of(plan, model->parameter[i]), model->group[i]);
        for (int p = 0; p < plan->persist.n_parameters; p++)
            assert_int_equal(plan->persist.groups.of[p] >= 0,
                             plan->persist.parameters[p].trainable);
        test_invariants(plan);
        test_interpret(plan);
        qn_plan_destroy(&plan);
        qn_graph_destroy(&graph);
    }
}

/* A network of `length` linear layers whose parameters are called by `form` and a number. */
static qn_graph *tower(const char *form, int length)
{
    char name[64];
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    for (int i = 0; i < length; i++) {
        snprintf(name, sizeof name, form, i);
        qn_tensor w = qn_parameter(graph, name, 2, (int64_t[]){4, 4}, NULL);
        x = qn_linear(graph, x, w, (qn_tensor){0});
    }
    qn_output(graph, x, "y");
    qn_loss(graph, x, "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* As many as there may be, and one more. */
static void many_layers_are_told_coarser(void **state)
{
    (void)state;
    static const struct {
        const char *form, *coarse;
    } towers[] = {{"net.blocks.%d.weight", "net.blocks"},
                  {"%d.weight", "*"},
                  {"w%d", "*"},
                  {"net.part%d.dense.weight", "net"},
                  {"net.a.b.part%d.dense.weight", "net.a.b"}};
    for (int i = 0; i < 5; i++) {
        qn_graph *graph = tower(towers[i].form, QN_MAX_NORM_GROUPS);
        qn_plan *plan = plan_of(graph, "auto");
        const bool finer = i < 3;
        assert_int_equal(count_of(plan), QN_MAX_NORM_GROUPS);
        assert_true(finer || strstr(qn_plan_norm_group(plan, 63), "part63.dense"));
        qn_plan_destroy(&plan);
        qn_graph_destroy(&graph);
        graph = tower(towers[i].form, QN_MAX_NORM_GROUPS + 1);
        plan = plan_of(graph, "auto");
        assert_int_equal(count_of(plan), 1);
        assert_string_equal(qn_plan_norm_group(plan, 0), towers[i].coarse);
        for (int p = 0; p < plan->persist.n_parameters; p++)
            assert_int_equal(plan->persist.groups.of[p], 0);
        qn_plan_destroy(&plan);
        qn_graph_destroy(&graph);
    }
}

/* --- patterns --- */

static void the_first_pattern_has_it(void **state)
{
    (void)state;
    qn_graph *graph = build("cnn", 0, NULL, 0);
    qn_plan *plan = plan_of(graph, " conv1.* ,*.weight, fc.* ");
    assert_int_equal(count_of(plan), 3);
    assert_string_equal(qn_plan_norm_group(plan, 0), "conv1.*");
    assert_string_equal(group_of(plan, "conv1.weight"), "conv1.*");
    assert_string_equal(group_of(plan, "conv2.weight"), "*.weight");
    assert_string_equal(group_of(plan, "fc.weight"), "*.weight");
    assert_string_equal(group_of(plan, "fc.bias"), "fc.*");
    assert_null(group_of(plan, "bn2.bias"));
    assert_null(qn_plan_norm_group(plan, 3));
    assert_null(qn_plan_norm_group(plan, -1));
    assert_null(qn_plan_norm_group(NULL, 0));
    char *json = qn_plan_json(plan);
    assert_non_null(strstr(json, "\"norm_groups\": [\"conv1.*\", \"*.weight\", \"fc.*\"]"));
    free(json);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static char said[300];
static void keep(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(said, sizeof said, "%s", text);
}

static void assert_refused(const qn_graph *graph, const char *norm_groups, const char *why)
{
    const struct qn_facts facts = test_facts();
    const qn_plan_params params = params_of(norm_groups);
    qn_plan *plan;
    *said = 0;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_ERR_ARGUMENT);
    assert_null(plan);
    if (!strstr(said, why))
        fail_msg("'%s' does not say '%s'", said, why);
}

static void what_is_left_nothing_is_refused(void **state)
{
    (void)state;
    char many[2 * QN_MAX_NORM_GROUPS + 3], longer[200];
    qn_graph *graph;
    const qn_graph_params with_log = {.log = {keep, NULL, QN_LOG_ERROR}};
    assert_int_equal(qn_graph_create(&graph, &with_log), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_tensor a = qn_parameter(graph, "a.weight", 2, (int64_t[]){4, 4}, NULL);
    qn_tensor b = qn_parameter(graph, "b.weight", 2, (int64_t[]){4, 4}, NULL);
    qn_parameter(graph, "unused", 2, (int64_t[]){4, 4}, NULL);
    qn_loss(graph, qn_linear(graph, qn_linear(graph, x, a, (qn_tensor){0}), b, (qn_tensor){0}),
            "loss", NULL);
    qn_freeze(graph, a);
    assert_refused(graph, "b.*, c.*", "norm_groups: 'c.*' matches no trained parameter");
    assert_refused(graph, "a.*", "'a.*' matches no trained parameter");
    assert_refused(graph, "unused", "'unused' matches no trained parameter");
    assert_refused(graph, "*, b.*", "'b.*' matches no trained parameter that no pattern before");
    assert_refused(graph, ",", "'' matches no trained parameter");
    for (int i = 0; i <= QN_MAX_NORM_GROUPS; i++)
        memcpy(many + 2 * i, "?,", 3);
    assert_refused(graph, many, "'?' matches no trained parameter");
    memset(longer, '*', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_refused(graph, longer, "longer than the 100 bytes");
    qn_graph_destroy(&graph);

    char patterns[16 * QN_MAX_NORM_GROUPS + 32] = "";
    graph = tower("w%d", QN_MAX_NORM_GROUPS + 1);
    for (int i = 0; i <= QN_MAX_NORM_GROUPS; i++)
        sprintf(patterns + strlen(patterns), "%sw%d", i ? "," : "", i);
    const struct qn_facts facts = test_facts();
    const qn_plan_params params = params_of(patterns);
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_ERR_ARGUMENT);
    qn_graph_destroy(&graph);
}

/* --- the plan --- */

static void without_groups_nothing_changes(void **state)
{
    (void)state;
    qn_graph *graph = build("cnn", 0, NULL, 0);
    qn_plan *none = plan_of(graph, NULL), *empty = plan_of(graph, "");
    qn_plan *layers = plan_of(graph, "auto"), *all = plan_of(graph, "*");
    char *a = qn_plan_json(none), *b = qn_plan_json(empty);
    assert_string_equal(a, b);
    assert_null(strstr(a, "norm_groups"));
    assert_int_equal(count_of(none), 0);
    assert_true(qn_plan_question(none) == qn_plan_question(empty));
    assert_true(qn_plan_question(none) != qn_plan_question(layers));
    assert_true(qn_plan_training(none) == qn_plan_training(layers));
    assert_true(none->info.hash != layers->info.hash && layers->info.hash != all->info.hash);
    assert_string_equal(qn_plan_settings(layers)->norm_groups, "auto");
    assert_int_equal(layers->program.phases[layers->program.update].n_steps,
                     none->program.phases[none->program.update].n_steps + 1);
    assert_true(layers->info.bytes_by_tag[QN_TAG_STATE] > none->info.bytes_by_tag[QN_TAG_STATE]);
    free(a);
    free(b);
    qn_plan_destroy(&none);
    qn_plan_destroy(&empty);
    qn_plan_destroy(&layers);
    qn_plan_destroy(&all);
    qn_graph_destroy(&graph);
}

/* The step of an operator in the update. */
static int step_of(const qn_plan *plan, const char *op)
{
    const struct qn_phase_run *update = &plan->program.phases[plan->program.update];
    int step = 0;
    while (step < update->n_steps &&
           strcmp(update->problem->tasks[update->steps[step].task].op->name, op) != 0)
        step++;
    assert_in_range(step, 0, update->n_steps - 1);
    return step;
}

/* The loss scale that the gradient has is what gradient_norm finds and perhaps changes. */
static void they_are_taken_before_the_loss_scale_moves(void **state)
{
    (void)state;
    qn_graph *graph;
    const qn_graph_params half = {.storage = QN_F16};
    const qn_model_data data = {.channels = 1, .height = 28, .width = 28, .classes = 10};
    assert_int_equal(qn_graph_create(&graph, &half), QN_OK);
    assert_int_equal(qn_model_build(graph, "cnn", &data, NULL, 0), QN_OK);
    qn_plan *plan = plan_of(graph, "auto");
    assert_true(step_of(plan, "gradient_norm_partial") < step_of(plan, "gradient_norm_groups"));
    assert_true(step_of(plan, "gradient_norm_groups") < step_of(plan, "gradient_norm"));
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* Parameters that no run trains have no norms. */
static void what_trains_nothing_has_none(void **state)
{
    (void)state;
    qn_graph *graph = tower("w%d", 2);
    const qn_run run = {.graph = graph, .what = QN_RUN_EVALUATE};
    const qn_run_list list = {.runs = &run, .n_runs = 1};
    const struct qn_facts facts = test_facts();
    qn_plan_params params = params_of("auto");
    qn_plan *plan;
    assert_int_equal(qn_plan_create_runs(&plan, &list, &facts, &params, NULL), QN_OK);
    assert_int_equal(count_of(plan), 0);
    qn_plan_destroy(&plan);
    params.norm_groups = "w0, nobody";
    assert_int_equal(qn_plan_create_runs(&plan, &list, &facts, &params, NULL), QN_OK);
    assert_int_equal(count_of(plan), 0);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_the_names_of_people),
        cmocka_unit_test(many_layers_are_told_coarser),
        cmocka_unit_test(the_first_pattern_has_it),
        cmocka_unit_test(what_is_left_nothing_is_refused),
        cmocka_unit_test(without_groups_nothing_changes),
        cmocka_unit_test(they_are_taken_before_the_loss_scale_moves),
        cmocka_unit_test(what_trains_nothing_has_none),
    };
    return cmocka_run_group_tests_name("norm_groups", tests, NULL, NULL);
}
