/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/shape.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_log(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    print_message("  log: %s\n", text);
}

const qn_log test_log = {print_log, NULL, QN_LOG_WARNING};

void test_data_make(struct test_data *data, int64_t samples, int64_t width)
{
    *data = (struct test_data){.samples = samples, .width = width};
    data->x = malloc((size_t)(samples * width) * sizeof *data->x);
    data->labels = malloc((size_t)samples * sizeof *data->labels);
    data->target = malloc((size_t)samples * sizeof *data->target);
    for (int64_t i = 0; i < samples * width; i++)
        data->x[i] = (float)qn_random_normal(5, 1, (uint64_t)i);
    for (int64_t i = 0; i < samples; i++) {
        uint64_t bits = qn_random_bits(5, 2, (uint64_t)i);
        data->labels[i] = bits % 7 == 0 ? TEST_IGNORED : (int32_t)(bits / 7 % TEST_CLASSES);
        data->target[i] = (float)qn_random_normal(5, 3, (uint64_t)i);
    }
}

void test_data_free(struct test_data *data)
{
    free(data->x);
    free(data->labels);
    free(data->target);
}

qn_status test_fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct test_data *data = user;
    if (++data->fetched == data->fail_at)
        return QN_ERR_IO;
    assert_true(first >= 0 && count > 0 && first + count <= data->samples);
    if (strcmp(input, "x") == 0)
        memcpy(rows, data->x + first * data->width,
               (size_t)(count * data->width) * sizeof *data->x);
    else if (strcmp(input, "labels") == 0)
        memcpy(rows, data->labels + first, (size_t)count * sizeof *data->labels);
    else if (strcmp(input, "target") == 0)
        memcpy(rows, data->target + first, (size_t)count * sizeof *data->target);
    else
        return QN_ERR_ARGUMENT;
    return QN_OK;
}

qn_device *test_device(void)
{
    qn_device *device;
    const qn_device_params params = {.log = test_log};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    return device;
}

qn_graph *test_graph(qn_dtype storage)
{
    qn_graph *graph;
    const qn_graph_params params = {.log = test_log, .storage = storage};
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    return graph;
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *weight, const char *bias,
                       int64_t in, int64_t out)
{
    const qn_init init = qn_init_fan_in(in);
    qn_tensor w = qn_parameter(graph, weight, 2, (int64_t[]){out, in}, &init);
    return qn_linear(graph, x, w, qn_parameter(graph, bias, 1, &out, &init));
}

qn_graph *test_mlp(int64_t width, bool weighted)
{
    static const float class_weights[TEST_CLASSES] = {0.5f, 1, 2, 1.5f, 0.25f};
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, width});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = qn_tanh(graph, dense(graph, x, "w1", "b1", width, 33));
    x = qn_sigmoid(graph, dense(graph, x, "w2", "b2", 33, 17));
    x = dense(graph, x, "w3", "b3", 17, TEST_CLASSES);
    const qn_cross_entropy_params params = {.ignore = true,
                                            .ignore_label = TEST_IGNORED,
                                            .label_smoothing = weighted ? 0.1 : 0,
                                            .class_weights = weighted ? class_weights : NULL};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static qn_tensor conv_norm(qn_graph *graph, qn_tensor x, const char *conv, const char *name,
                           int64_t in, int64_t out)
{
    char weight[32];
    snprintf(weight, sizeof weight, "%s.weight", conv);
    const qn_init init = qn_init_he(9 * in);
    qn_tensor w = qn_parameter(graph, weight, 4, (int64_t[]){out, in, 3, 3}, &init);
    x = qn_conv2d(graph, x, w, (qn_tensor){0}, &(qn_conv2d_params){.padding = {1, 1}});
    qn_name(graph, x, conv);
    x = qn_batch_norm(graph, x, (qn_tensor){0}, (qn_tensor){0},
                      &(qn_batch_norm_params){.group = 4});
    qn_name(graph, x, name);
    return qn_relu(graph, x);
}

qn_graph *test_cnn(qn_dtype storage)
{
    qn_graph *graph = test_graph(storage);
    qn_tensor x = qn_input(graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, 1, 8, 8});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor a = conv_norm(graph, x, "conv1", "bn1", 1, 6);
    qn_tensor b = qn_dropout(graph, conv_norm(graph, a, "conv2", "bn2", 6, 6), 0.3);
    x = qn_leaky_relu(graph, qn_add(graph, a, b), 0.1); /* a has two readers: gradients add up */
    x = qn_max_pool2d(graph, x, &(qn_pool2d_params){.size = {2, 2}});
    x = conv_norm(graph, x, "conv3", "bn3", 6, 8);
    x = qn_dropout(graph, qn_flatten(graph, x), 0.2);
    x = dense(graph, x, "fc.weight", "fc.bias", 128, TEST_CLASSES);
    qn_output(graph, x, "logits");
    const qn_cross_entropy_params params = {.ignore = true, .ignore_label = TEST_IGNORED};
    qn_loss(graph, qn_softmax_cross_entropy(graph, x, labels, &params), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

int64_t test_smallest_budget(const qn_device *device, const qn_graph *graph,
                             const qn_plan_params *params)
{
    qn_plan *plan;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), params, NULL), QN_OK);
    const int64_t least = qn_plan_facts(plan)->smallest_budget;
    qn_plan_destroy(&plan);
    return least;
}

struct test_run test_open(qn_device *device, const qn_graph *graph, const qn_plan_params *plan,
                          const qn_trainer_params *trainer)
{
    struct test_run run;
    assert_int_equal(qn_plan_create(&run.plan, graph, qn_device_facts(device), plan, NULL), QN_OK);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, trainer), QN_OK);
    assert_int_equal(qn_trainer_bytes(run.trainer), qn_plan_facts(run.plan)->peak_bytes);
    return run;
}

struct test_run test_restore(qn_device *device, const qn_graph *graph,
                             const qn_checkpoint *checkpoint)
{
    struct test_run run;
    const qn_trainer_params *params = &qn_checkpoint_describe(checkpoint)->trainer;
    assert_int_equal(qn_checkpoint_plan(checkpoint, graph, device, &run.plan), QN_OK);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, params), QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, run.trainer), QN_OK);
    return run;
}

void test_close(struct test_run *run)
{
    qn_trainer_close(&run->trainer);
    qn_plan_destroy(&run->plan);
}

qn_metrics test_train(qn_trainer *trainer, struct test_data *data, int64_t samples, int updates)
{
    qn_metrics last;
    const qn_cycle cycle = {samples, 0.05, test_fetch, data};
    for (int i = 0; i < updates; i++)
        assert_int_equal(qn_trainer_step(trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(trainer, &last), QN_OK);
    return last;
}

typedef qn_status (*read_fn)(qn_trainer *, const char *, float *, int64_t);

/* `all`: a tensor that cannot be read is a failure; otherwise it is left out. */
static int64_t read_tensors(qn_trainer *trainer, read_fn read, bool all, float **values)
{
    int64_t total = 0;
    qn_shape shape;
    const char *name;
    *values = NULL;
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, &shape)); i++) {
        bool state = strstr(name, "running") != NULL;
        if (!all && state)
            continue;
        int64_t count = qn_shape_count(&shape);
        *values = realloc(*values, (size_t)(total + count) * sizeof **values);
        assert_int_equal(read(trainer, name, *values + total, count), QN_OK);
        total += count;
    }
    return total;
}

int64_t test_weights(qn_trainer *trainer, float **values)
{
    return read_tensors(trainer, qn_trainer_read, true, values);
}

int64_t test_read_gradients(qn_trainer *trainer, float **values)
{
    return read_tensors(trainer, qn_trainer_read_gradient, false, values);
}

int64_t test_gradients(qn_trainer *trainer, struct test_data *data, int64_t samples, float **values)
{
    const qn_cycle cycle = {samples, 0, test_fetch, data};
    assert_int_equal(qn_trainer_accumulate(trainer, &cycle), QN_OK);
    return test_read_gradients(trainer, values);
}

bool test_chosen(char **names, const char *name)
{
    bool found = !*names;
    for (; *names; names++)
        found |= strcmp(*names, name) == 0;
    return found;
}

double test_distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}
