/* SPDX-License-Identifier: MIT
 *
 * Public functions that are given NULL for an object: one that gives a status refuses it, one that
 * reads it gives NULL, 0 or nothing, and one that ends it does nothing. Arrays that are missing are
 * errors of the graph.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/log.h"
#include <quern/quern.h>

#include <string.h>

static const qn_tensor none = {0};

/* `status` is that of a call after forget(): it refused NULL, in a line of its own. */
static void assert_refused(const char *call, qn_status status)
{
    if (status != QN_ERR_ARGUMENT || strcmp(qn_last_error(), "an older error") == 0)
        fail_msg("%s: %s: %s", call, qn_status_name(status), qn_last_error());
}

static void forget(void)
{
    qn_log_write(NULL, QN_LOG_ERROR, "an older error");
}

#define REFUSED(call) (forget(), assert_refused(#call, call))

static void nothing_is_opened(void **state)
{
    (void)state;
    int count;
    REFUSED(qn_device_open(NULL, NULL));
    REFUSED(qn_device_list(NULL, 0, NULL, NULL));
    REFUSED(qn_device_list(NULL, 1, &count, NULL));
    REFUSED(qn_graph_create(NULL, NULL));
    REFUSED(qn_plan_create(NULL, NULL, NULL, NULL, NULL));
    REFUSED(qn_plan_create_runs(NULL, NULL, NULL, NULL, NULL));
    REFUSED(qn_trainer_open(NULL, NULL, NULL, NULL));
    REFUSED(qn_checkpoint_open(NULL, NULL, NULL));
    REFUSED(qn_checkpoint_lock(NULL, NULL, NULL));
    REFUSED(qn_dataset_open(NULL, NULL));
    REFUSED(qn_dataset_open_images(NULL, NULL));
    REFUSED(qn_dataset_open_tokens(NULL, NULL));
    REFUSED(qn_dataset_from_arrays(NULL, NULL));
    REFUSED(qn_dataset_from_function(NULL, NULL));
    REFUSED(qn_loader_open(NULL, NULL, NULL));
    REFUSED(qn_metric_create(NULL, NULL));
    REFUSED(qn_tensors_open(NULL, NULL, NULL));
    REFUSED(qn_tensors_create(NULL, NULL, NULL));
    REFUSED(qn_tensors_save(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(qn_place(NULL, 0, NULL, NULL));
}

static void nothing_is_used(void **state)
{
    (void)state;
    char *text;
    REFUSED(qn_graph_status(NULL));
    REFUSED(qn_graph_refuse(NULL, "%s", "a reason"));
    REFUSED(qn_graph_read(NULL, "", NULL));
    REFUSED(qn_graph_load(NULL, "x"));
    REFUSED(qn_model_build(NULL, "mlp", NULL, NULL, 0));
    REFUSED(qn_plan_explain(NULL, "x", &text));
    REFUSED(qn_trainer_step(NULL, NULL, NULL));
    REFUSED(qn_trainer_finish(NULL, NULL));
    REFUSED(qn_trainer_accumulate(NULL, NULL));
    REFUSED(qn_trainer_evaluate(NULL, 1, NULL, NULL, NULL));
    REFUSED(qn_trainer_evaluate_run(NULL, "x", 1, NULL, NULL, NULL));
    REFUSED(qn_trainer_weigh(NULL, NULL, NULL));
    REFUSED(qn_trainer_run(NULL, NULL, NULL));
    REFUSED(qn_trainer_reduce(NULL, NULL));
    REFUSED(qn_trainer_update(NULL, NULL, NULL));
    REFUSED(qn_trainer_read_slice(NULL, NULL, NULL));
    REFUSED(qn_trainer_write_slice(NULL, NULL, NULL));
    REFUSED(qn_trainer_clear_cell(NULL, "x"));
    REFUSED(qn_trainer_set_budget(NULL, 1));
    REFUSED(qn_trainer_read(NULL, "x", NULL, 0));
    REFUSED(qn_trainer_write(NULL, "x", NULL, 0));
    REFUSED(qn_trainer_read_gradient(NULL, "x", NULL, 0));
    REFUSED(qn_checkpoint_save(NULL, "x", NULL));
    REFUSED(qn_checkpoint_plan(NULL, NULL, NULL, NULL));
    REFUSED(qn_checkpoint_plan_runs(NULL, NULL, NULL, NULL));
    REFUSED(qn_checkpoint_restore(NULL, NULL));
    REFUSED(qn_weights_load(NULL, "x"));
    REFUSED(qn_trainer_load_weights(NULL, "x", NULL));
    REFUSED(qn_trainer_save_weights(NULL, "x", NULL));
    REFUSED(qn_abi_compare(NULL, NULL, 1));
    REFUSED(qn_loader_next(NULL, 1, NULL));
    REFUSED(qn_loader_fetch(NULL, "x", 0, 1, NULL));
    REFUSED(qn_batch_fetch(NULL, "x", 0, 1, NULL));
    REFUSED(qn_dataset_fits(NULL, NULL, NULL));
    REFUSED(qn_metric_update(NULL, "x", 0, 1, NULL, NULL));
    REFUSED(qn_tensors_read(NULL, NULL, 0, NULL, 0));
    REFUSED(qn_tensors_write(NULL, 0, NULL, 0));
    REFUSED(qn_tensors_commit(NULL, NULL, NULL));
    REFUSED(qn_check_run(NULL, NULL, NULL));
    REFUSED(qn_tune(NULL, NULL, NULL, NULL, NULL));
    REFUSED(qn_tuning_load(NULL, &text));
    REFUSED(qn_tuning_save(NULL, ""));
    REFUSED(qn_bench(NULL, NULL, NULL));
    REFUSED(qn_measure_ceilings(NULL, NULL));
}

static void nothing_is_read(void **state)
{
    (void)state;
    assert_null(qn_device_facts(NULL));
    assert_null(qn_device_describe(NULL));
    assert_int_equal(qn_shape_of(NULL, none).rank, 0);
    assert_int_equal(qn_dtype_of(NULL, none), QN_DTYPE_NONE);
    assert_non_null(qn_graph_error(NULL));
    assert_null(qn_plan_facts(NULL));
    assert_null(qn_plan_settings(NULL));
    assert_int_equal(qn_plan_frontier(NULL, NULL, 0), 0);
    assert_null(qn_plan_text(NULL));
    assert_null(qn_plan_json(NULL));
    assert_null(qn_plan_variants_json(NULL));
    assert_null(qn_plan_memory_json(NULL));
    assert_null(qn_plan_svg(NULL));
    assert_null(qn_trainer_plan(NULL));
    assert_null(qn_trainer_tensor(NULL, 0, NULL));
    assert_int_equal(qn_trainer_updates(NULL), 0);
    assert_int_equal(qn_trainer_bytes(NULL), 0);
    qn_trainer_profile(NULL, NULL, NULL);
    assert_null(qn_checkpoint_describe(NULL));
    assert_null(qn_graph_input(NULL, 0, NULL));
    assert_null(qn_graph_output(NULL, 0, NULL));
    assert_null(qn_dataset_describe(NULL));
    assert_null(qn_dataset_column(NULL, "x"));
    assert_int_equal(qn_column_bytes(NULL), 0);
    assert_null(qn_batch_column(NULL, "x"));
    assert_int_equal(qn_dataset_checksum(NULL), 0);
    assert_int_equal(qn_loader_position(NULL), 0);
    assert_null(qn_loader_batch(NULL));
    assert_true(qn_metric_result(NULL) != qn_metric_result(NULL)); /* NAN */
    assert_int_equal(qn_metric_count(NULL), 0);
    assert_null(qn_metric_confusion(NULL, NULL));
    qn_metric_reset(NULL);
    assert_int_equal(qn_tensors_count(NULL), 0);
    assert_null(qn_tensors_at(NULL, 0));
    assert_null(qn_tensors_find(NULL, "x"));
    assert_null(qn_tensors_metadata(NULL, "x"));
    assert_non_null(qn_model_help(NULL));
    assert_null(qn_graph_write(NULL, NULL));
    assert_null(qn_model_layout(NULL));
    char hint[QN_NEAREST_BYTES];
    qn_nearest_offer(NULL, "x");
    assert_string_equal(qn_nearest_hint(NULL, hint), "");
}

static void nothing_is_ended(void **state)
{
    (void)state;
    qn_device *device = NULL;
    qn_tensors_writer *writer = NULL;
    qn_device_close(NULL);
    qn_device_close(&device);
    qn_graph_destroy(NULL);
    qn_plan_destroy(NULL);
    qn_trainer_close(NULL);
    qn_checkpoint_close(NULL);
    qn_dataset_close(NULL);
    qn_loader_close(NULL);
    qn_metric_destroy(NULL);
    qn_tensors_close(NULL);
    qn_tensors_discard(NULL);
    qn_tensors_discard(&writer);
}

static void no_graph_gives_no_tensor(void **state)
{
    (void)state;
    static const int64_t dim[] = {QN_BATCH};
    static const float one[] = {1};
    assert_int_equal(qn_input(NULL, "x", QN_F32, 1, dim).id, 0);
    assert_int_equal(qn_parameter(NULL, "x", 0, NULL, NULL).id, 0);
    assert_int_equal(qn_constant(NULL, "x", one, 1).id, 0);
    assert_int_equal(qn_relu(NULL, none).id, 0);
    assert_int_equal(qn_flatten(NULL, none).id, 0);
    assert_int_equal(qn_normalize(NULL, none, one, one).id, 0);
    assert_int_equal(qn_softmax_cross_entropy(NULL, none, none, NULL).id, 0);
    assert_int_equal(qn_tensors_merge(NULL, NULL, NULL, 1), QN_ERR_ARGUMENT);
    qn_freeze(NULL, none);
    qn_no_decay(NULL, none, true);
    assert_false(qn_frozen(NULL, none));
    qn_freeze_named(NULL, "*");
    qn_scale_rate(NULL, "*", 2);
    qn_scale_decay(NULL, NULL, -1);
    assert_null(qn_graph_parameter(NULL, 0, NULL));
    qn_name(NULL, none, "x");
    qn_output(NULL, none, "x");
    qn_recompute(NULL, none);
    qn_loss(NULL, none, "x", NULL);
}

static qn_tensor reshape(qn_graph *graph, qn_tensor x)
{
    return qn_reshape(graph, x, 2, NULL);
}

static qn_tensor transpose(qn_graph *graph, qn_tensor x)
{
    return qn_transpose(graph, x, 2, NULL);
}

static qn_tensor concat(qn_graph *graph, qn_tensor x)
{
    (void)x;
    return qn_concat(graph, 2, NULL, 1);
}

static qn_tensor chain_of_nothing(qn_graph *graph, qn_tensor x)
{
    (void)x;
    return qn_chain(graph, NULL, (const qn_chain_step[]){{QN_CHAIN_RELU, 0, 0, 0}}, 1);
}

static qn_tensor chain_without_steps(qn_graph *graph, qn_tensor x)
{
    return qn_chain(graph, (const qn_tensor[QN_CHAIN_INPUTS]){x}, NULL, 1);
}

static void missing_arrays_are_refused(void **state)
{
    (void)state;
    qn_tensor (*const calls[])(qn_graph *, qn_tensor) = {reshape, transpose, concat,
                                                         chain_of_nothing, chain_without_steps};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        qn_graph *graph;
        assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
        const qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
        assert_int_equal(calls[i](graph, x).id, 0);
        assert_int_not_equal(qn_graph_status(graph), QN_OK);
        qn_graph_destroy(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_opened),        cmocka_unit_test(nothing_is_used),
        cmocka_unit_test(nothing_is_read),          cmocka_unit_test(nothing_is_ended),
        cmocka_unit_test(no_graph_gives_no_tensor), cmocka_unit_test(missing_arrays_are_refused),
    };
    return cmocka_run_group_tests_name("nothing", tests, NULL, NULL);
}
