/* SPDX-License-Identifier: MIT
 *
 * A batch norm with its ReLU gives the bits of the two apart, in every storage type: three
 * networks, one that asks for it, one whose plan makes it, one where it cannot, are trained and
 * evaluated alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, CHANNELS = 6, SAMPLES = 22 };

static const qn_tensor none = {0};

enum way { JOINED, FUSED, ALONE, WAYS };

struct net {
    qn_graph *graph;
    enum way way;
};

/* What is an output of the graph stays. All but the first of the ReLUs, of which bn1 has one, bn2
 * two and so on, change nothing. */
static qn_tensor norm_relu(struct net net, qn_tensor x, const char *name, qn_tensor weight,
                           qn_tensor bias)
{
    const qn_batch_norm_params params = {.group = 4, .relu = net.way == JOINED};
    qn_tensor y = qn_batch_norm(net.graph, x, weight, bias, &params);
    qn_name(net.graph, y, name);
    if (net.way == ALONE)
        qn_output(net.graph, y, NULL);
    for (int relus = name[2] - '0'; net.way != JOINED && relus > 0; relus--)
        y = qn_relu(net.graph, y);
    return y;
}

static qn_tensor conv(struct net net, qn_tensor x, const char *name, int64_t in)
{
    const qn_init init = qn_init_he(9 * in);
    qn_tensor w = qn_parameter(net.graph, name, 4, (int64_t[]){CHANNELS, in, 3, 3}, &init);
    return qn_conv2d(net.graph, x, w, none, &(qn_conv2d_params){.padding = {1, 1}});
}

static qn_tensor row(struct net net, const char *name, qn_init init)
{
    return qn_parameter(net.graph, name, 1, (int64_t[]){CHANNELS}, &init);
}

/* The second norm gives numbers of which about a part becomes 0 where they are stored. */
static qn_graph *network(qn_dtype storage, enum way way)
{
    const struct net net = {test_graph(storage), way};
    const qn_init init = qn_init_fan_in(CHANNELS * SIDE * SIDE);
    const double tiny = storage == QN_F16 ? 3e-8 : 5e-41;
    qn_tensor x = qn_input(net.graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 1, SIDE, SIDE});
    qn_tensor labels = qn_input(net.graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = norm_relu(net, conv(net, x, "conv1", 1), "bn1", row(net, "w1", qn_init_fan_in(1)),
                  row(net, "b1", qn_init_fan_in(1)));
    qn_tensor y = norm_relu(net, x, "bn2", row(net, "w2", qn_init_constant(tiny)), none);
    x = norm_relu(net, conv(net, qn_add(net.graph, x, y), "conv2", CHANNELS), "bn3", none, none);
    qn_tensor w =
        qn_parameter(net.graph, "fc", 2, (int64_t[]){TEST_CLASSES, CHANNELS * SIDE * SIDE}, &init);
    x = norm_relu(net, qn_flatten(net.graph, x), "bn4", none, none);
    x = qn_linear(net.graph, x, w, none);
    qn_output(net.graph, x, "logits");
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(net.graph, qn_softmax_cross_entropy(net.graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(net.graph), QN_OK);
    return net.graph;
}

/* What a training leaves behind. */
struct result {
    struct test_data *data; /* first, for test_fetch */
    float *weights;
    int64_t count;
    int steps;
    size_t row; /* bytes of a sample's logits, which are of the storage type */
    unsigned char logits[SAMPLES][TEST_CLASSES * sizeof(float)];
};

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    return test_fetch(((struct result *)user)->data, input, first, count, rows);
}

static qn_status receive(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct result *result = user;
    for (int64_t i = 0; strcmp(name, "logits") == 0 && i < count; i++)
        memcpy(result->logits[first + i], (const char *)rows + (size_t)i * result->row,
               result->row);
    return QN_OK;
}

static void train(qn_device *device, qn_dtype storage, enum way way, struct result *result)
{
    qn_graph *graph = network(storage, way);
    const qn_plan_params plan = {.budget = INT64_C(1) << 24,
                                 .batch = {SAMPLES},
                                 .micro_batch = 8,
                                 .recompute = way == FUSED ? QN_RECOMPUTE_ALL : QN_RECOMPUTE_NONE};
    const qn_trainer_params trainer = {.seed = 5};
    struct test_run run = test_open(device, graph, &plan, &trainer);
    test_train(run.trainer, result->data, SAMPLES, 4);
    result->count = test_weights(run.trainer, &result->weights);
    result->steps = qn_plan_facts(run.plan)->steps;
    float *pixel = &result->data->x[3 * SIDE * SIDE], kept = *pixel;
    *pixel = NAN;
    assert_int_equal(qn_trainer_evaluate(run.trainer, SAMPLES, fetch, receive, result), QN_OK);
    *pixel = kept;
    test_close(&run);
    qn_graph_destroy(&graph);
}

static void assert_same_bits(const struct result *a, const struct result *b)
{
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        if (memcmp(a->weights + i, b->weights + i, sizeof *a->weights) != 0)
            fail_msg("weight %lld of %lld: %.9g in one, %.9g apart", (long long)i,
                     (long long)a->count, (double)a->weights[i], (double)b->weights[i]);
    for (int i = 0; i < SAMPLES; i++)
        assert_memory_equal(a->logits[i], b->logits[i], a->row);
}

/* Of logits in f32. */
static bool is_nan(const struct result *result, int sample)
{
    float logits[TEST_CLASSES];
    memcpy(logits, result->logits[sample], sizeof logits);
    return isnan(logits[0]);
}

static void compare(qn_dtype storage)
{
    qn_device *device = test_device();
    struct test_data data;
    test_data_make(&data, SAMPLES, SIDE * SIDE);
    struct result results[WAYS];
    for (enum way way = JOINED; way < WAYS; way++) {
        results[way] =
            (struct result){.data = &data, .row = TEST_CLASSES * (size_t)qn_dtype_size(storage)};
        train(device, storage, way, &results[way]);
    }
    assert_same_bits(&results[JOINED], &results[ALONE]);
    assert_same_bits(&results[FUSED], &results[ALONE]);
    assert_true(results[JOINED].steps < results[ALONE].steps);
    if (storage == QN_F32) /* the pixel is seen at the end, of its sample alone */
        assert_true(is_nan(&results[FUSED], 3) && !is_nan(&results[FUSED], 4));
    for (enum way way = JOINED; way < WAYS; way++)
        free(results[way].weights);
    test_data_free(&data);
    qn_device_close(&device);
}

static void same_bits_f32(void **state)
{
    (void)state;
    compare(QN_F32);
}

static void same_bits_f16(void **state)
{
    (void)state;
    compare(QN_F16);
}

static void same_bits_bf16(void **state)
{
    (void)state;
    compare(QN_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_f32),
        cmocka_unit_test(same_bits_f16),
        cmocka_unit_test(same_bits_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
