/* SPDX-License-Identifier: MIT
 *
 * What is shown of a plan: text, SVG, JSON that adds up, and where one tensor lives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((int64_t)1 << 20)

static int count_text(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

static int recomputed_writes(const struct qn_phase_run *phase)
{
    int count = 0;
    for (int i = 0; i < phase->n_steps; i++)
        if (phase->steps[i].recomputed)
            count += phase->problem->tasks[phase->steps[i].task].n_writes;
    return count;
}

/* What recomputed steps write begins to live again; nothing else does. One micro-step, so that
 * nothing of it is told by another. */
static void explains_what_is_recomputed(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 1000 * MIB, .batch = {64}, .micro_batch = 64};
    qn_plan *plan = test_plan(graph, &params);
    params.budget = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    plan = test_plan(graph, &params);
    int again = 0;
    for (int n = 0; n < plan->graphs[0]->n_nodes; n++) {
        char *text;
        const qn_status status = qn_plan_explain(plan, plan->graphs[0]->nodes[n].name, &text);
        again += text ? count_text(text, "  made again in step ") : 0;
        assert_true(status == QN_OK ? *text : !text);
        free(text);
    }
    assert_true(again > 0);
    assert_int_equal(again, recomputed_writes(&plan->program.phases[0]));
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void assert_says(const char *text, const char *const *parts)
{
    for (; *parts; text += strlen(*parts++)) {
        text = strstr(text, *parts);
        if (!text)
            fail_msg("does not say '%s', or not there", *parts);
    }
}

/* Every phase in turn, and who reads it there. */
static void explains_every_phase(void **state)
{
    (void)state;
    static const char *const activation[] = {
        "first micro-step:\n  conv1, kept activations: f32 16 x 32 x 28 x 28, 1.53 MiB\n    made "
        "in ",
        "conv1: forward; pool 0 at byte ",
        "used in ",
        "bn1: statistics\n",
        "given up for ",
        "made again in ",
        "used in ",
        "activation gradients",
        "later micro-steps: as in first micro-step\nremainder:\n  conv1, kept activations: f32 10 "
        "x",
        "made in ",
        "evaluation:\n",
        "used in ",
        "bn1: normalise (running averages)\n",
        NULL};
    static const char *const parameter[] = {"conv1.weight, parameters: ",
                                            " during the whole run",
                                            "conv1.weight, gradients: ",
                                            "first micro-step:\n  conv1.weight, parameters: ",
                                            "conv1: forward\n",
                                            "gradients: ",
                                            "    added to in step ",
                                            "conv1: weight gradient\n",
                                            "later micro-steps: as in first micro-step\n",
                                            "remainder:\n",
                                            "\nupdate:\n",
                                            "    written in step ",
                                            "sgd: step\n",
                                            "evaluation:\n",
                                            "conv1: forward\n",
                                            NULL};
    static const char *const kept[] = {"fc, kept activations", "kept through ",
                                       "; making it again would cost ", NULL};
    qn_graph *graph = test_model("cnn", NULL, 0);
    qn_plan_params params = {.budget = 1000 * MIB, .batch = {250}, .micro_batch = 16};
    qn_plan *plan = test_plan(graph, &params);
    params.budget = plan->info.smallest_budget;
    qn_plan_destroy(&plan);
    plan = test_plan(graph, &params);
    static const char *const names[] = {"conv1", "conv1.weight", "fc"};
    static const char *const *const wanted[] = {activation, parameter, kept};
    for (int i = 0; i < 3; i++) {
        char *text;
        assert_int_equal(qn_plan_explain(plan, names[i], &text), QN_OK);
        assert_says(text, wanted[i]);
        free(text);
    }
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void explains_no_tensor_that_is_not_there(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    const qn_plan_params params = {.budget = 400 * MIB, .batch = {256}};
    qn_plan *plan = test_plan(graph, &params);
    char *text;
    assert_int_equal(qn_plan_explain(plan, "nobody", &text), QN_ERR_ARGUMENT);
    assert_null(text);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void prints(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params params = {.budget = 16 * MIB, .batch = {256}};
    qn_plan *plan = test_plan(graph, &params);
    char *texts[] = {qn_plan_text(plan), qn_plan_json(plan), qn_plan_svg(plan),
                     qn_plan_variants_json(plan)};
    const char *const wanted[] = {"planned peak", "\"peak_bytes_planned\"", "</svg>", "conv2d"};
    for (int tag = 0; tag < QN_TAG_COUNT; tag++)
        if (plan->info.bytes_by_tag[tag])
            assert_non_null(strstr(texts[0], qn_tag_name((qn_tag)tag)));
    for (int i = 0; i < 4; i++) {
        assert_non_null(texts[i]);
        assert_non_null(strstr(texts[i], wanted[i]));
        free(texts[i]);
    }
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

/* Names that a caller gives stand in JSON and SVG as they are. */
static void names_are_escaped(void **state)
{
    (void)state;
    static const char name[] = "a \"b\" \\ <c> & d\n", device[] = "\"GPU\" \\ <1>";
    qn_graph *graph = test_model("mlp", NULL, 0);
    const qn_run runs[] = {{.graph = graph, .what = QN_RUN_TRAIN},
                           {.name = name, .graph = graph, .what = QN_RUN_EVALUATE}};
    const qn_run_list list = {.runs = runs, .n_runs = 2};
    const qn_plan_params params = {.budget = 64 * MIB, .batch = {64}};
    qn_facts facts;
    qn_plan *plan;
    qn_facts_default(&facts, true);
    snprintf(facts.name, sizeof facts.name, "%s", device);
    assert_int_equal(qn_plan_create_runs(&plan, &list, &facts, &params, NULL), QN_OK);
    char *text = qn_plan_json(plan), *variants = qn_plan_variants_json(plan);
    char *svg = qn_plan_svg(plan), *memory = qn_plan_memory_json(plan);
    cJSON *json = cJSON_Parse(text), *table = cJSON_Parse(variants), *bytes = cJSON_Parse(memory);
    const cJSON *phase;
    int shown = 0;
    cJSON_ArrayForEach(phase, cJSON_GetObjectItemCaseSensitive(json, "phases")) shown +=
        strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(phase, "name")), name) == 0;
    assert_non_null(table);
    assert_non_null(bytes);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "device")),
                        device);
    assert_int_equal(shown, 1);
    assert_non_null(strstr(svg, "&#60;c&#62; &#38; d?"));
    assert_null(strstr(svg, "<c>"));
    cJSON_Delete(json);
    cJSON_Delete(table);
    cJSON_Delete(bytes);
    free(text);
    free(variants);
    free(svg);
    free(memory);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static int64_t number_at(const cJSON *list, int index)
{
    const cJSON *item = cJSON_GetArrayItem(list, index);
    assert_true(cJSON_IsNumber(item));
    return (int64_t)item->valuedouble;
}

/* An array of the map. */
struct area {
    int64_t first, last, bytes, pool, offset;
};

static struct area area_of(const cJSON *array)
{
    return (struct area){number_at(array, 2), number_at(array, 3), number_at(array, 4),
                         number_at(array, 5), number_at(array, 6)};
}

/* Whether two have a byte in common at some step. */
static bool collide(const struct area *a, const struct area *b)
{
    return a->pool == b->pool && a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Every array has its own bytes within its pool, and together they are what is alive: up to what
 * each is rounded up by. */
static void assert_maps(const qn_plan *plan, const cJSON *map)
{
    const cJSON *arrays = cJSON_GetObjectItem(map, "arrays"),
                *live = cJSON_GetObjectItem(map, "live");
    const cJSON *pools = cJSON_GetObjectItem(map, "pools");
    const int peak = plan->program.peak_at;
    struct area *areas = calloc((size_t)cJSON_GetArraySize(arrays), sizeof *areas), *area = areas;
    int64_t alive = plan->program.blas_temp, count = 0;
    for (const cJSON *a = arrays->child; a; a = a->next, area++) {
        *area = area_of(a);
        assert_true(area->offset + area->bytes <= number_at(pools, (int)area->pool));
        assert_true(area->first <= area->last && area->last < plan->program.length);
        assert_true(*cJSON_GetStringValue(cJSON_GetArrayItem(a, 7)));
        for (const struct area *b = areas; b < area; b++)
            assert_false(collide(area, b));
        const bool there = area->first <= peak && peak <= area->last;
        alive += there ? area->bytes : 0;
        count += there;
    }
    free(areas);
    assert_int_equal(cJSON_GetArraySize(live), plan->program.length);
    assert_int_equal(number_at(live, peak), plan->info.live_bytes);
    assert_true(alive <= plan->info.live_bytes && alive + 512 * count >= plan->info.live_bytes);
}

/* "what" of the array of this name and tag. */
static const char *why_in(const cJSON *map, const char *name, qn_tag tag)
{
    const cJSON *arrays = cJSON_GetObjectItem(map, "arrays");
    for (const cJSON *a = arrays->child; a; a = a->next)
        if (strcmp(cJSON_GetStringValue(cJSON_GetArrayItem(a, 0)), name) == 0 &&
            number_at(a, 1) == (int64_t)tag)
            return cJSON_GetStringValue(cJSON_GetArrayItem(a, 7));
    return "";
}

static void maps_every_array(void **state)
{
    (void)state;
    static const int64_t budgets[] = {9, 24};
    qn_graph *graph = test_model("cnn", NULL, 0);
    for (int i = 0; i < 2; i++) {
        const qn_plan_params params = {.budget = budgets[i] * MIB,
                                       .batch = {60},
                                       .micro_batch = 16,
                                       .optimizer = {.name = "adam"}};
        qn_plan *plan = test_plan(graph, &params);
        char *text = qn_plan_memory_json(plan);
        cJSON *map = cJSON_Parse(text);
        assert_non_null(map);
        assert_maps(plan, map);
        assert_string_equal(why_in(map, "conv2.weight", QN_TAG_PARAMETERS),
                            "during the whole training: every update goes on from it");
        assert_string_equal(why_in(map, "conv2.weight", QN_TAG_GRADIENTS),
                            "from its first sum to the update: micro-steps add to it");
        const char *const kept[] = {"made in step ", ", conv1: forward; last used in step ",
                                    "; kept through ", " steps, since making it again would cost ",
                                    NULL};
        if (i)
            assert_says(why_in(map, "conv1", QN_TAG_KEPT), kept);
        else
            assert_non_null(strstr(text, "\"made again in step "));
        cJSON_Delete(map);
        free(text);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

static double number_in(const cJSON *from, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static double sum_of(const cJSON *list)
{
    double sum = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) sum += item->valuedouble;
    return sum;
}

/* Gradients and Adam's two moments are spared. */
static void says_what_is_frozen(void **state)
{
    (void)state;
    qn_graph *graph = test_model("mlp", NULL, 0);
    const qn_plan_params params = {
        .budget = 16 * MIB, .batch = {64}, .optimizer = {.name = "adam"}};
    qn_plan *plan = test_plan(graph, &params);
    char *texts[] = {qn_plan_text(plan), qn_plan_json(plan)};
    cJSON *json = cJSON_Parse(texts[1]);
    assert_null(strstr(texts[0], "frozen"));
    assert_true(number_in(json, "frozen_parameters") == 0);
    const int64_t before = plan->info.peak_bytes;
    qn_plan_destroy(&plan);
    cJSON_Delete(json);
    qn_freeze_named(graph, "fc1.weight, fc.bias");
    plan = test_plan(graph, &params);
    char *frozen = qn_plan_text(plan), *frozen_json = qn_plan_json(plan);
    json = cJSON_Parse(frozen_json);
    const double count = number_in(json, "frozen_parameters");
    const double bytes = number_in(json, "frozen_bytes");
    assert_true(number_in(json, "frozen_tensors") == 2);
    assert_true(bytes >= 3 * 4 * count && bytes <= 3 * 4 * count + 6 * 512);
    assert_true((double)(before - plan->info.peak_bytes) >= bytes);
    char line[120];
    snprintf(line, sizeof line, "\nfrozen: %.0f parameters in 2 tensors, saves ", count);
    assert_non_null(strstr(frozen, line));
    cJSON_Delete(json);
    for (int i = 0; i < 2; i++)
        free(texts[i]);
    free(frozen);
    free(frozen_json);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static int count_recomputed(const cJSON *steps)
{
    int count = 0;
    const cJSON *step;
    cJSON_ArrayForEach(step, steps)
    {
        assert_true(cJSON_GetArraySize(step) == 2 || cJSON_GetArraySize(step) == 3);
        count += cJSON_GetArraySize(step) == 3;
    }
    return count;
}

static void json_adds_up(void **state)
{
    (void)state;
    qn_graph *graph = test_model("cnn", NULL, 0);
    const qn_plan_params params = {.budget = 8 * MIB, .batch = {250}};
    qn_plan *plan = test_plan(graph, &params);
    char *text = qn_plan_json(plan), *variants = qn_plan_variants_json(plan);
    cJSON *json = cJSON_Parse(text), *table = cJSON_Parse(variants);
    assert_non_null(json);
    assert_true(cJSON_IsArray(table) && cJSON_GetArraySize(table) > 50);
    const cJSON *phases = cJSON_GetObjectItemCaseSensitive(json, "phases");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(phases, 0), "steps");
    assert_int_equal(cJSON_GetArraySize(phases), plan->program.n_phases);
    assert_int_equal(cJSON_GetArraySize(steps), number_in(json, "steps"));
    assert_true(number_in(json, "recomputed_steps") > 0);
    assert_int_equal(count_recomputed(steps), number_in(json, "recomputed_steps"));
    assert_true(sum_of(cJSON_GetObjectItemCaseSensitive(json, "bytes_by_tag")) ==
                number_in(json, "live_bytes"));
    assert_true(sum_of(cJSON_GetObjectItemCaseSensitive(json, "pools")) +
                    number_in(json, "clblast_bytes") ==
                number_in(json, "peak_bytes_planned"));
    assert_true(number_in(json, "micro_batch") * number_in(json, "micro_steps") +
                    number_in(json, "remainder") ==
                number_in(json, "batch"));
    cJSON_Delete(json);
    cJSON_Delete(table);
    free(text);
    free(variants);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_what_is_recomputed),
        cmocka_unit_test(explains_every_phase),
        cmocka_unit_test(explains_no_tensor_that_is_not_there),
        cmocka_unit_test(maps_every_array),
        cmocka_unit_test(prints),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(says_what_is_frozen),
        cmocka_unit_test(json_adds_up),
    };
    return cmocka_run_group_tests_name("shown", tests, NULL, NULL);
}
