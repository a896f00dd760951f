/* SPDX-License-Identifier: MIT
 *
 * Networks that ship beside PyTorch's (tools/golden/networks.py): torchvision's weights load by
 * name, and the same data gives the same logits, loss, gradients and running averages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 2026, SAMPLES = 4, SQUARE = 8, OPTIONS = 6 };

/* Streams of random numbers: tensor i has i and PROBE + i. */
static const uint64_t PROBE = UINT64_C(1) << 32, INPUT = UINT64_C(1) << 33,
                      LABELS = (UINT64_C(1) << 33) + 1, LOGITS = (UINT64_C(1) << 33) + 2;

/* A line of PyTorch's state_dict; of rank 0 it is a counter. */
struct golden_tensor {
    const char *name;
    qn_shape shape;
    double norm, probe;
};

struct golden_network {
    const char *name, *model;
    qn_model_option options[OPTIONS];
    int n_options;
    int size[3]; /* channels, height, width of the data */
    int classes, labels /* of one sample */;
    double logits[2] /* norm, probe */, loss;
    const struct golden_tensor *tensors;
    int count;
};

#include "../golden/networks.h"

/* Rounding, in parts of the number's norm; and where kinks of ReLU and of max pooling decide: in
 * gradients, where in single precision PyTorch is as far from itself. */
static const double NEAR = 2e-5, NEAR_KINKS = 3e-2;

/* What runs, and what came back. */
struct trial {
    const struct golden_network *network;
    float *logits;
};

/* Their classes are tokens. */
static bool has_tokens(const struct golden_network *network)
{
    return strcmp(network->model, "gpt") == 0;
}

static bool has_masks(const struct golden_network *network)
{
    return strcmp(network->model, "unet") == 0;
}

/* --- numbers that both sides make --- */

static double uniform(uint64_t stream, int64_t index)
{
    return 2 * qn_random_uniform(SEED, stream, (uint64_t)index) - 1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), rest = strlen(end);
    return length >= rest && strcmp(text + length - rest, end) == 0;
}

static int64_t elements(const qn_shape *shape, int first)
{
    int64_t count = 1;
    for (int i = first; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

/* value = base + scale * u */
static void scale_of(const struct golden_tensor *tensor, double *base, double *scale)
{
    *base = 0;
    *scale = 0.1;
    if (ends_with(tensor->name, "running_var")) {
        *base = 1;
        *scale = 0.5;
    } else if (tensor->shape.rank > 1) {
        *scale = sqrt(6 / (double)elements(&tensor->shape, 1));
    } else if (ends_with(tensor->name, "weight")) {
        double last = strstr(tensor->name, "bn3") ? 0.2 : 1;
        *base = 0.5 * last;
        *scale = 0.2 * last;
    }
}

static float *start(const struct golden_tensor *tensor, uint64_t stream)
{
    double base, scale;
    int64_t count = elements(&tensor->shape, 0);
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    scale_of(tensor, &base, &scale);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(base + scale * uniform(stream, i));
    return values;
}

static void fill_images(const int size[3], int64_t first, int64_t count, uint8_t *to)
{
    const int64_t height = size[1], width = size[2], pixels = size[0] * height * width;
    for (int64_t i = first * pixels; i < (first + count) * pixels; i++) {
        int64_t y = i / width % height, x = i % width;
        int64_t corner = i - y % SQUARE * width - x % SQUARE;
        uint64_t colour = qn_random_bits(SEED, INPUT, (uint64_t)corner) % 256;
        uint64_t noise = qn_random_bits(SEED, INPUT, (uint64_t)i) % 256;
        *to++ = (uint8_t)((7 * colour + noise) / 8);
    }
}

static void fill_integers(uint64_t stream, int64_t first, int64_t count, int below, int32_t *to)
{
    for (int64_t i = first; i < first + count; i++)
        *to++ = (int32_t)(qn_random_bits(SEED, stream, (uint64_t)i) % (uint64_t)below);
}

static void fill_mask(int64_t first, int64_t count, int below, uint8_t *to)
{
    for (int64_t i = first; i < first + count; i++)
        *to++ = (uint8_t)(qn_random_bits(SEED, LABELS, (uint64_t)i) % (uint64_t)below);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct golden_network *n = ((const struct trial *)user)->network;
    const int length = strcmp(input, "labels") == 0 ? n->labels : n->size[2];
    if (strcmp(input, "images") == 0)
        fill_images(n->size, first, count, rows);
    else if (has_masks(n))
        fill_mask(first * length, count * length, n->classes, rows);
    else
        fill_integers(strcmp(input, "labels") == 0 ? LABELS : INPUT, first * length, count * length,
                      n->classes, rows);
    return QN_OK;
}

/* --- a file as the safetensors package writes it --- */

static void write_header(FILE *file, const struct golden_network *network)
{
    char *header = NULL;
    size_t size = 0;
    int64_t at = 0;
    FILE *text = open_memstream(&header, &size);
    assert_non_null(text);
    fprintf(text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < network->count; i++) {
        const struct golden_tensor *tensor = &network->tensors[i];
        int64_t bytes = tensor->shape.rank ? 4 * elements(&tensor->shape, 0) : 8;
        fprintf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", tensor->name,
                tensor->shape.rank ? "F32" : "I64");
        for (int d = 0; d < tensor->shape.rank; d++)
            fprintf(text, "%s%lld", d ? "," : "", (long long)tensor->shape.dim[d]);
        fprintf(text, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + bytes));
        at += bytes;
    }
    fprintf(text, "}");
    assert_int_equal(fclose(text), 0);
    assert_int_equal(fwrite(&(uint64_t){size}, 8, 1, file), 1);
    assert_int_equal(fwrite(header, 1, size, file), size);
    free(header);
}

static void write_weights(const char *path, const struct golden_network *network)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    write_header(file, network);
    for (int i = 0; i < network->count; i++) {
        const struct golden_tensor *tensor = &network->tensors[i];
        bool counter = tensor->shape.rank == 0;
        size_t bytes = counter ? 8 : (size_t)elements(&tensor->shape, 0) * sizeof(float);
        void *values = counter ? calloc(1, bytes) : start(tensor, (uint64_t)i);
        assert_int_equal(fwrite(values, 1, bytes, file), bytes);
        free(values);
    }
    assert_int_equal(fclose(file), 0);
}

static qn_status load(qn_trainer *trainer, const struct golden_network *network)
{
    char path[] = "networks-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    write_weights(path, network);
    qn_status status = qn_weights_load(trainer, path);
    remove(path);
    return status;
}

/* --- comparing --- */

static void assert_near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.9g, PyTorch has %.9g", what, got, want);
}

/* norm, probe */
static void summarise(const float *values, int64_t count, uint64_t stream, double sums[2])
{
    double square = 0;
    sums[1] = 0;
    for (int64_t i = 0; i < count; i++) {
        square += (double)values[i] * (double)values[i];
        sums[1] += (double)values[i] * uniform(stream, i);
    }
    sums[0] = sqrt(square);
}

static qn_status take_logits(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    struct trial *trial = user;
    const int64_t row = (int64_t)trial->network->labels * trial->network->classes;
    if (strcmp(name, "logits") == 0)
        memcpy(trial->logits + first * row, rows, (size_t)(count * row) * sizeof *trial->logits);
    return QN_OK;
}

static void compare_logits(qn_trainer *trainer, struct trial *trial)
{
    const struct golden_network *n = trial->network;
    const int64_t count = (int64_t)SAMPLES * n->labels * n->classes;
    double got[2];
    trial->logits = calloc((size_t)count, sizeof *trial->logits);
    assert_non_null(trial->logits);
    assert_int_equal(qn_trainer_evaluate(trainer, SAMPLES, fetch, take_logits, trial), QN_OK);
    summarise(trial->logits, count, LOGITS, got);
    free(trial->logits);
    assert_near("logits", got[0], n->logits[0], NEAR * n->logits[0]);
    assert_near("logits", got[1], n->logits[1], NEAR * n->logits[0]);
}

typedef qn_status (*read_fn)(qn_trainer *, const char *, float *, int64_t);

static void compare_tensor(qn_trainer *trainer, read_fn read, const struct golden_tensor *tensor,
                           uint64_t stream, double tolerance)
{
    const int64_t count = elements(&tensor->shape, 0);
    float *values = malloc((size_t)count * sizeof *values);
    double got[2];
    assert_non_null(values);
    assert_int_equal(read(trainer, tensor->name, values, count), QN_OK);
    summarise(values, count, stream, got);
    free(values);
    assert_near(tensor->name, got[0], tensor->norm, tolerance);
    assert_near(tensor->name, got[1], tensor->probe, tolerance);
}

static bool is_state(const struct golden_tensor *tensor)
{
    return strstr(tensor->name, ".running_") != NULL;
}

static bool is_parameter(const struct golden_tensor *tensor)
{
    return tensor->shape.rank > 0 && !is_state(tensor);
}

/* The gradient of a bias before batch norm is nothing but rounding: what is small beside the
 * largest of all may be. */
static void compare_gradients(qn_trainer *trainer, const struct golden_network *network)
{
    const bool shallow = has_tokens(network) || has_masks(network);
    const double near = shallow ? NEAR : NEAR_KINKS;
    double largest = 0;
    for (int i = 0; i < network->count; i++)
        if (is_parameter(&network->tensors[i]))
            largest = fmax(largest, network->tensors[i].norm);
    for (int i = 0; i < network->count; i++)
        if (is_parameter(&network->tensors[i]))
            compare_tensor(trainer, qn_trainer_read_gradient, &network->tensors[i],
                           PROBE + (uint64_t)i, near * network->tensors[i].norm + NEAR * largest);
}

static void compare_state(qn_trainer *trainer, const struct golden_network *network)
{
    for (int i = 0; i < network->count; i++)
        if (is_state(&network->tensors[i]))
            compare_tensor(trainer, qn_trainer_read, &network->tensors[i], PROBE + (uint64_t)i,
                           NEAR * network->tensors[i].norm);
}

static struct test_run open_network(qn_device *device, const struct golden_network *network)
{
    const bool tokens = has_tokens(network);
    const qn_model_data data = {.channels = network->size[0],
                                .height = network->size[1],
                                .width = network->size[2],
                                .tokens = tokens ? network->classes : 0,
                                .classes = tokens ? 0 : network->classes,
                                .masks = has_masks(network),
                                .mean = {0.485f, 0.456f, 0.406f},
                                .deviation = {0.229f, 0.224f, 0.225f}};
    const qn_plan_params params = {.budget = INT64_C(2) << 30, .batch = {SAMPLES}};
    qn_graph *graph = test_graph(QN_F32);
    assert_int_equal(
        qn_model_build(graph, network->model, &data, network->options, network->n_options), QN_OK);
    struct test_run run = test_open(device, graph, &params, NULL);
    qn_graph_destroy(&graph);
    return run;
}

static void compare(qn_device *device, const struct golden_network *network)
{
    struct trial trial = {.network = network};
    const qn_cycle cycle = {SAMPLES, 0, fetch, &trial};
    qn_metrics metrics;
    struct test_run run = open_network(device, network);
    assert_int_equal(load(run.trainer, network), QN_OK);
    compare_logits(run.trainer, &trial);
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    compare_gradients(run.trainer, network);
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
    assert_near("loss", metrics.loss, network->loss, NEAR * network->loss);
    compare_state(run.trainer, network);
    test_close(&run);
}

/* Arguments: the networks to compare; none: all. */
static char **chosen;

static void equal_pytorch(void **state)
{
    (void)state;
    qn_device *device = test_device();
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        if (!test_chosen(chosen, networks[i].name))
            continue;
        print_message("  %s\n", networks[i].name);
        compare(device, &networks[i]);
    }
    qn_device_close(&device);
}

/* A counter is left unread only where batch norm has one. */
static void refuses_other_counters(void **state)
{
    (void)state;
    qn_device *device = test_device();
    struct golden_network network = networks[0];
    const size_t size = (size_t)network.count * sizeof *network.tensors;
    struct golden_tensor *tensors = malloc(size + sizeof *tensors);
    assert_non_null(tensors);
    memcpy(tensors, network.tensors, size);
    tensors[network.count++] = (struct golden_tensor){.name = "fc.num_batches_tracked"};
    network.tensors = tensors;
    struct test_run run = open_network(device, &network);
    assert_int_equal(load(run.trainer, &network), QN_ERR_FORMAT);
    test_close(&run);
    free(tensors);
    qn_device_close(&device);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_pytorch),
                                       cmocka_unit_test(refuses_other_counters)};
    chosen = argv + 1;
    return cmocka_run_group_tests_name("networks", tests, NULL, NULL);
}
