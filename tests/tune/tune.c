/* SPDX-License-Identifier: MIT
 *
 * Tuning on a device: it chooses among variants that compute the right numbers, keeps what it
 * found, and never takes one that does not. Variants for other kinds of devices take part, so that
 * there is a choice wherever this runs.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct layer small = {.batch = 24, .n = 24, .k = 40};
/* Few results of long sums: the sums are split into parts, which no small case of the harness
 * has. */
static const struct layer split = {.batch = 24, .n = 24, .k = 8192};

/* The first variant that fits the device. */
static const char *shape_of(const struct bench_device *d)
{
    return qn_device_facts(d->device)->cpu ? "cpu" : "gpu";
}

static char *tune_some(struct bench_device *d, const struct layer *layer,
                       const qn_tune_params *params, qn_tune_result *result)
{
    char *text = NULL;
    qn_plan *plan = layer_plan(d, layer);
    assert_int_equal(qn_tune(d->device, plan, params, &text, result), QN_OK);
    assert_non_null(text);
    qn_plan_destroy(&plan);
    return text;
}

static char *tune(struct bench_device *d, const struct layer *layer, double seconds,
                  qn_tune_result *result)
{
    const qn_tune_params params = {.known = layer->tuning, .seconds = seconds, .all = true};
    return tune_some(d, layer, &params, result);
}

/* The variant that a plan takes with this tuning. */
static const char *taken(const struct bench_device *d, const struct layer *layer,
                         const char *tuning, char text[64])
{
    struct layer tuned = *layer;
    tuned.tuning = tuning;
    qn_plan *plan = layer_plan(d, &tuned);
    layer_variant(plan, text);
    qn_plan_destroy(&plan);
    return text;
}

static void finds_what_is_new_alone(void **state)
{
    (void)state;
    struct bench_device d;
    struct layer layer = small;
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    char *first = tune(&d, &layer, 0, &result);
    assert_true(result.timed > 0);
    assert_non_null(strstr(first, "linear/forward in0=f32[*,40] in1=f32[24,40]"));
    layer.tuning = first;
    char *second = tune(&d, &layer, 0, &result);
    assert_false(result.changed);
    assert_string_equal(first, second);
    assert_int_equal(d.n_warnings, 0);
    free(first);
    free(second);
    bench_device_close(&d);
}

/* Once for a device, and not for a plan that does not park. */
static void times_transfers_for_a_plan_that_may_park(void **state)
{
    (void)state;
    struct bench_device d;
    struct layer layer = small;
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    layer.tuning = tune(&d, &layer, 0, &result);
    assert_null(strstr(layer.tuning, "transfers"));
    layer.park = true;
    char *more = tune(&d, &layer, 0, &result);
    assert_int_equal(result.timed, 0);
    assert_true(result.changed);
    assert_non_null(strstr(more, "\"transfers\": {\"to_host\": "));
    free((char *)layer.tuning);
    layer.tuning = more;
    char *again = tune(&d, &layer, 0, &result);
    assert_false(result.changed);
    assert_string_equal(again, more);
    free(again);
    free(more);
    bench_device_close(&d);
}

static int count(const char *text, const char *word)
{
    int times = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        times++;
    return times;
}

/* A long search tries what a quick one left out, and its outcome takes the place of the other's. */
static void a_long_search_begins_anew(void **state)
{
    (void)state;
    struct bench_device d;
    struct layer layer = small;
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    char *quick = tune_some(&d, &layer, &(qn_tune_params){.all = false}, &result);
    layer.tuning = quick;
    char *known = tune_some(&d, &layer, &(qn_tune_params){.known = quick}, &result);
    assert_false(result.changed);
    char *full = tune(&d, &layer, 0, &result);
    assert_true(result.timed > 0);
    assert_int_equal(count(full, "\"linear/forward "), 1);
    layer.tuning = full;
    char *again = tune_some(&d, &layer, &(qn_tune_params){.known = full}, &result);
    assert_false(result.changed);
    free(quick);
    free(known);
    free(full);
    free(again);
    bench_device_close(&d);
}

static void without_a_search_times_the_defaults(void **state)
{
    (void)state;
    struct bench_device d;
    char text[64];
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    char *found = tune(&d, &small, -1, &result);
    assert_true(result.timed > 0);
    assert_null(strstr(found, "\"op\"")); /* no self-test ran */
    assert_string_equal(taken(&d, &small, found, text), shape_of(&d));
    free(found);
    bench_device_close(&d);
}

/* --- kernels that are wrong --- */

/* Products instead of sums of products: wrong in every case. */
static void a_miscompiled_variant_is_never_taken(void **state)
{
    (void)state;
    struct bench_device d;
    char text[64], file[64];
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    snprintf(file, sizeof file, "matmul_%s.cl", shape_of(&d));
    bench_device_close(&d);
    bench_device_open(&d, file, "#define fma(a, b, c) ((a) * (b))");
    assert_string_equal(taken(&d, &small, NULL, text), shape_of(&d));
    char *found = tune(&d, &small, 0, &result);
    assert_string_not_equal(taken(&d, &small, found, text), shape_of(&d));
    assert_int_equal(d.n_warnings, 1);
    assert_non_null(strstr(d.warnings, "linear: variant "));
    /* at other sizes, which nobody timed, it is not taken either */
    const struct layer other = {.batch = 32, .n = 32, .k = 48};
    assert_string_not_equal(taken(&d, &other, found, text), shape_of(&d));
    free(found);
    bench_device_close(&d);
}

/* Every part of a split sum reads the first part's terms: right in the small cases of the
 * self-test, which split nothing. The other variants disagree, and the whole harness decides. */
static void a_variant_that_is_wrong_at_one_size_is_found_by_the_others(void **state)
{
    (void)state;
    struct bench_device d;
    char text[64], file[64];
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    snprintf(file, sizeof file, "matmul_%s.cl", shape_of(&d));
    bench_device_close(&d);
    bench_device_open(&d, file, "#define get_group_id(d) (get_group_id(d) * ((d) != 2))");
    char *found = tune(&d, &split, 0, &result);
    assert_non_null(strstr(found, "\"reason\": \"\"")); /* of its self-test */
    assert_string_not_equal(taken(&d, &split, found, text), shape_of(&d));
    assert_true(d.n_warnings >= 1);
    free(found);
    bench_device_close(&d);
}

/* A packed tensor, which gets a gradient. */
static qn_plan *attention_plan(const struct bench_device *d)
{
    enum { TOKENS = 33, HEAD = 32 };
    qn_graph *graph = NULL;
    qn_plan *plan = NULL;
    const int64_t tokens = TOKENS, dim[] = {QN_BATCH, TOKENS, 3 * HEAD};
    const qn_graph_params storage = {.storage = QN_F16};
    const qn_plan_params params = {.budget = 64 << 20, .batch = {1}, .micro_batch = 1};
    assert_int_equal(qn_graph_create(&graph, &storage), QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F16, 3, dim);
    x = qn_bias(graph, x, qn_parameter(graph, "shift", 1, &tokens, NULL));
    x = qn_attention(graph, x, (qn_tensor){0}, (qn_tensor){0}, (qn_tensor){0},
                     &(qn_attention_params){.heads = 1, .causal = true});
    qn_loss(graph, qn_mean(graph, x, 1), "loss", NULL);
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(d->device), &params, NULL),
                     QN_OK);
    qn_graph_destroy(&graph);
    return plan;
}

/* Those for matrix units too, which the device is said to have and the kernel emulates. The
 * statistics of the forward pass are made up, and scores lie above them. */
static void all_shapes_of_attention_agree(void **state)
{
    (void)state;
    struct bench_device d;
    char *found = NULL;
    const qn_tune_params params = {.all = true};
    bench_device_open(&d, "attention_units.cl",
                      "#undef QN_MATRIX_UNITS\n#define QN_MATRIX_UNITS 0");
    qn_facts *facts = (qn_facts *)qn_device_facts(d.device);
    facts->matrix_units = QN_MATRIX_F16;
    facts->matrix_layout = QN_MATRIX_MMA;
    qn_plan *plan = attention_plan(&d);
    assert_int_equal(qn_tune(d.device, plan, &params, &found, NULL), QN_OK);
    assert_non_null(
        strstr(found, "\"variant\": \"units\", \"setting\": \"\", \"storage\": \"f16\""));
    assert_string_equal(d.warnings, "");
    qn_plan_destroy(&plan);
    free(found);
    bench_device_close(&d);
}

/* --- on disk --- */

static void is_kept_for_the_device_and_these_kernels(void **state)
{
    (void)state;
    struct bench_device d, other;
    char *found, *loaded;
    qn_tune_result result = {0};
    bench_device_open(&d, NULL, NULL);
    found = tune(&d, &small, 0, &result);
    assert_int_equal(qn_tuning_load(d.device, &loaded), QN_OK);
    assert_string_equal(loaded, "");
    free(loaded);
    assert_int_equal(qn_tuning_save(d.device, found), QN_OK);
    bench_device_reopen(&d);
    assert_int_equal(qn_tuning_load(d.device, &loaded), QN_OK);
    assert_string_equal(loaded, found);
    free(loaded);

    bench_device_open(&other, "relu.cl", "/* other kernels */");
    assert_int_equal(qn_tuning_save(other.device, found), QN_OK);
    assert_int_equal(qn_tuning_load(other.device, &loaded), QN_OK);
    assert_string_equal(loaded, "");
    free(loaded);
    bench_device_close(&other);

    assert_int_equal(qn_tuning_save(d.device, "{\"quern_tuning\": 1"), QN_OK);
    assert_int_equal(qn_tuning_load(d.device, &loaded), QN_OK);
    assert_string_equal(loaded, "");
    free(loaded);
    free(found);
    bench_device_close(&d);
}

/* --- benchmarks --- */

struct seen {
    int timed, failed, chosen;
    bool sane;
};

static void look(void *user, const qn_bench_record *record)
{
    struct seen *seen = user;
    seen->timed += record->outcome == QN_BENCH_TIMED;
    seen->failed += record->outcome == QN_BENCH_FAILED;
    seen->chosen += record->chosen;
    if (record->outcome == QN_BENCH_TIMED)
        seen->sane = seen->sane && record->seconds > 0 && record->seconds < 60 &&
                     record->bytes > 0 && record->launches > 0;
}

static struct seen bench(struct bench_device *d, bool all)
{
    struct seen seen = {.sane = true};
    const qn_bench_params params = {.all = all, .seconds = 1e-3, .fn = look, .user = &seen};
    qn_plan *plan = layer_plan(d, &small);
    assert_int_equal(qn_bench(d->device, plan, &params), QN_OK);
    qn_plan_destroy(&plan);
    return seen;
}

static void benchmarks_tell_every_variant(void **state)
{
    (void)state;
    struct bench_device d;
    bench_device_open(&d, NULL, NULL);
    const struct seen chosen = bench(&d, false), all = bench(&d, true);
    assert_true(chosen.sane && all.sane);
    assert_int_equal(chosen.timed, chosen.chosen);
    assert_int_equal(all.chosen, chosen.chosen);
    assert_true(all.timed > chosen.timed);
    assert_int_equal(all.failed, 0);
    bench_device_close(&d);
}

static void ceilings_are_those_of_a_computer(void **state)
{
    (void)state;
    struct bench_device d;
    qn_ceilings ceilings;
    bench_device_open(&d, NULL, NULL);
    assert_int_equal(qn_measure_ceilings(d.device, &ceilings), QN_OK);
    assert_true(ceilings.flops > 1e8 && ceilings.flops < 1e16);
    assert_true(ceilings.bytes_per_second > 1e7 && ceilings.bytes_per_second < 1e14);
    assert_true(ceilings.launch_seconds > 0 && ceilings.launch_seconds < 1e-2);
    bench_device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_new_alone),
        cmocka_unit_test(times_transfers_for_a_plan_that_may_park),
        cmocka_unit_test(a_long_search_begins_anew),
        cmocka_unit_test(without_a_search_times_the_defaults),
        cmocka_unit_test(a_miscompiled_variant_is_never_taken),
        cmocka_unit_test(a_variant_that_is_wrong_at_one_size_is_found_by_the_others),
        cmocka_unit_test(all_shapes_of_attention_agree),
        cmocka_unit_test(is_kept_for_the_device_and_these_kernels),
        cmocka_unit_test(benchmarks_tell_every_variant),
        cmocka_unit_test(ceilings_are_those_of_a_computer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
