/* SPDX-License-Identifier: MIT
 *
 * Two layers of a Llama-style network, one with q, k and v apart and one with the three packed,
 * over rows of different length: no plan changes a bit of its training, no split its gradients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 12, TOKENS = 4, WIDTH = 16, HEADS = 2, SIZE = WIDTH / HEADS, INNER = 24 };

static const qn_tensor none = {0};

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *layer, const char *name,
                       int64_t out)
{
    char full[32];
    const qn_shape shape = qn_shape_of(graph, x);
    const int64_t in = shape.dim[shape.rank - 1];
    const qn_init init = qn_init_fan_in(in);
    snprintf(full, sizeof full, "%s.%s", layer, name);
    return qn_linear(graph, x, qn_parameter(graph, full, 2, (int64_t[]){out, in}, &init), none);
}

static qn_tensor norm(qn_graph *graph, qn_tensor x, const char *layer, const char *name)
{
    char full[32];
    const qn_init ones = qn_init_constant(1);
    snprintf(full, sizeof full, "%s.%s", layer, name);
    return qn_rms_norm(graph, x, qn_parameter(graph, full, 1, (int64_t[]){WIDTH}, &ones), NULL);
}

/* Both heads of the queries meet one of the keys. */
static const qn_attention_params attending = {.heads = HEADS, .kv_heads = 1, .causal = true};

static qn_tensor attend_apart(qn_graph *graph, qn_tensor x, qn_tensor lengths, const char *layer)
{
    const qn_rotary_params heads = {.heads = HEADS};
    const qn_tensor q = qn_rotary(graph, dense(graph, x, layer, "q", WIDTH), none, &heads);
    const qn_tensor k = qn_rotary(graph, dense(graph, x, layer, "k", SIZE), none, NULL);
    return qn_attention(graph, q, k, dense(graph, x, layer, "v", SIZE), lengths, &attending);
}

static qn_tensor attend_packed(qn_graph *graph, qn_tensor x, qn_tensor lengths, const char *layer)
{
    const qn_rotary_params heads = {.heads = HEADS + 2, .still = 1};
    const qn_tensor all = dense(graph, x, layer, "qkv", WIDTH + 2 * SIZE);
    return qn_attention(graph, qn_rotary(graph, all, none, &heads), none, none, lengths,
                        &attending);
}

static qn_tensor layer_of(qn_graph *graph, qn_tensor x, qn_tensor lengths, const char *layer,
                          bool packed)
{
    qn_tensor (*attend)(qn_graph *, qn_tensor, qn_tensor, const char *) =
        packed ? attend_packed : attend_apart;
    qn_tensor y = attend(graph, norm(graph, x, layer, "norm1"), lengths, layer);
    x = qn_add(graph, x, dense(graph, y, layer, "o", WIDTH));
    y = norm(graph, x, layer, "norm2");
    y = qn_gated(graph, dense(graph, y, layer, "gate", INNER), dense(graph, y, layer, "up", INNER),
                 QN_GATE_SILU);
    return qn_add(graph, x, dense(graph, y, layer, "down", WIDTH));
}

/* The label is the length of the row, too. */
static qn_graph *network(qn_dtype storage)
{
    qn_graph *graph = test_graph(storage);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, TOKENS * WIDTH});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = qn_reshape(graph, x, 3, (int64_t[]){QN_BATCH, TOKENS, WIDTH});
    x = dense(graph, x, "in", "weight", WIDTH);
    x = layer_of(graph, x, labels, "layer0", false);
    x = layer_of(graph, x, labels, "layer1", true);
    x = qn_masked_mean(graph, norm(graph, x, "out", "norm"), labels);
    x = dense(graph, x, "out", "weight", TEST_CLASSES);
    const qn_cross_entropy_params loss = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &loss), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = 4, .optimizer = {.name = "adamw"}};

static int64_t train(const qn_graph *graph, const qn_plan_params *params, float **weights)
{
    struct test_data data;
    const qn_trainer_params trainer = {.seed = 5, .poison = true};
    test_data_make(&data, SAMPLES, TOKENS * WIDTH);
    struct test_run run = test_open(device, graph, params, &trainer);
    const qn_metrics last = test_train(run.trainer, &data, SAMPLES, 3);
    assert_true(isfinite(last.loss) && last.grad_norm > 0 && !last.skipped);
    const int64_t count = test_weights(run.trainer, weights);
    print_message("  plan of %d bytes, %d recomputed steps\n",
                  (int)qn_plan_facts(run.plan)->peak_bytes,
                  qn_plan_facts(run.plan)->recomputed_steps);
    test_close(&run);
    test_data_free(&data);
    return count;
}

static void no_plan_changes_a_bit(void **state)
{
    (void)state;
    static const qn_dtype types[] = {QN_F32, QN_BF16};
    for (int i = 0; i < 2; i++) {
        qn_graph *graph = network(types[i]);
        qn_plan_params all = base, smallest = base;
        float *kept, *other;
        all.recompute = QN_RECOMPUTE_ALL;
        smallest.budget = test_smallest_budget(device, graph, &base);
        const int64_t count = train(graph, &base, &kept);
        const qn_plan_params *const others[] = {&all, &smallest};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(train(graph, others[k], &other), count);
            assert_memory_equal(other, kept, (size_t)count * sizeof *kept);
            free(other);
        }
        free(kept);
        qn_graph_destroy(&graph);
    }
}

static int64_t gradients(const qn_graph *graph, int64_t micro_batch, float **values)
{
    struct test_data data;
    qn_plan_params params = base;
    params.micro_batch = micro_batch;
    test_data_make(&data, SAMPLES, TOKENS * WIDTH);
    struct test_run run = test_open(device, graph, &params, NULL);
    const int64_t count = test_gradients(run.trainer, &data, SAMPLES, values);
    test_close(&run);
    test_data_free(&data);
    return count;
}

static void no_split_changes_the_gradients(void **state)
{
    (void)state;
    qn_graph *graph = network(QN_F32);
    float *whole, *split;
    const int64_t count = gradients(graph, SAMPLES, &whole);
    for (int64_t micro_batch = 1; micro_batch < SAMPLES; micro_batch += 4) {
        assert_int_equal(gradients(graph, micro_batch, &split), count);
        assert_true(test_distance(split, whole, count) < 1e-5);
        free(split);
    }
    free(whole);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_changes_a_bit),
        cmocka_unit_test(no_split_changes_the_gradients),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
