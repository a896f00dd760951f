/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "small.h"

#include <stdio.h>

enum { CLASSES = 10, MOST_TENSORS = 16 };

/* A graph in the making. */
struct drawing {
    qn_graph *graph;
    uint64_t seed, drawn;
    int parameters;
};

static int draw(struct drawing *d, int least, int most)
{
    return least + (int)(qn_random_bits(d->seed, 1, d->drawn++) % (uint64_t)(most - least + 1));
}

static int64_t dim_of(const struct drawing *d, qn_tensor x, int dim)
{
    return qn_shape_of(d->graph, x).dim[dim];
}

static qn_tensor parameter(struct drawing *d, int rank, const int64_t *dim)
{
    char name[32];
    snprintf(name, sizeof name, "p%d", d->parameters++);
    return qn_parameter(d->graph, name, rank, dim, NULL);
}

static qn_tensor input(struct drawing *d, int64_t channels, int64_t side)
{
    return qn_input(d->graph, "x", QN_F32, 4, (int64_t[]){QN_BATCH, channels, side, side});
}

/* --- layers --- */

static qn_tensor linear(struct drawing *d, qn_tensor x, int64_t to)
{
    const int64_t dim[] = {to, dim_of(d, x, qn_shape_of(d->graph, x).rank - 1)};
    return qn_linear(d->graph, x, parameter(d, 2, dim), parameter(d, 1, dim));
}

static qn_tensor convolve(struct drawing *d, qn_tensor x, int64_t to, int side)
{
    const int64_t dim[] = {to, dim_of(d, x, 1), side, side};
    return qn_conv2d(d->graph, x, parameter(d, 4, dim), (qn_tensor){0},
                     &(qn_conv2d_params){.padding = {side / 2, side / 2}});
}

static qn_tensor normalise(struct drawing *d, qn_tensor x)
{
    const int64_t channels = dim_of(d, x, 1);
    return qn_batch_norm(d->graph, x, parameter(d, 1, &channels), parameter(d, 1, &channels),
                         &(qn_batch_norm_params){.group = 4});
}

static qn_tensor layer_norm(struct drawing *d, qn_tensor x)
{
    const int64_t width = dim_of(d, x, 2);
    return qn_layer_norm(d->graph, x, parameter(d, 1, &width), parameter(d, 1, &width), NULL);
}

static qn_tensor bend(struct drawing *d, qn_tensor x)
{
    switch (draw(d, 0, 4)) {
    case 0:
        return qn_sigmoid(d->graph, x);
    case 1:
        return qn_gelu(d->graph, x, QN_GELU_TANH);
    case 2:
        return qn_silu(d->graph, x);
    default:
        return qn_relu(d->graph, x);
    }
}

static qn_tensor halve(struct drawing *d, qn_tensor x)
{
    return qn_max_pool2d(d->graph, x, &(qn_pool2d_params){.size = {2, 2}});
}

/* --- losses --- */

static void end_in_pixels(struct drawing *d, qn_tensor x)
{
    const int64_t dim[] = {QN_BATCH, dim_of(d, x, 2), dim_of(d, x, 3)};
    qn_tensor labels = qn_input(d->graph, "labels", QN_U8, 3, dim);
    qn_loss(d->graph,
            qn_softmax_cross_entropy(d->graph, convolve(d, x, CLASSES, 1), labels,
                                     &(qn_cross_entropy_params){.class_dim = 1}),
            "loss", NULL);
}

static void end_in_class(struct drawing *d, qn_tensor x)
{
    qn_tensor labels = qn_input(d->graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    x = linear(d, qn_global_avg_pool2d(d->graph, x), CLASSES);
    qn_loss(d->graph, qn_softmax_cross_entropy(d->graph, x, labels, NULL), "loss", NULL);
}

/* --- graphs --- */

static void chain(struct drawing *d, int length)
{
    qn_tensor x = qn_input(d->graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH * 64, 256});
    for (int i = 0; i < length; i++)
        x = bend(d, linear(d, x, 64 * draw(d, 1, 24)));
    qn_loss(d->graph, qn_mean(d->graph, x, 1), "loss", NULL);
}

static void perceptron(struct drawing *d)
{
    chain(d, 9);
}

static void convnet(struct drawing *d)
{
    qn_tensor x = input(d, 3, 32);
    for (int i = 0; i < 6; i++) {
        x = convolve(d, x, 8 * draw(d, 1, 8), 3);
        x = draw(d, 0, 1) ? qn_relu(d->graph, normalise(d, x)) : bend(d, x);
        if (i == 1 || i == 3)
            x = halve(d, x);
    }
    end_in_class(d, x);
}

static void residual(struct drawing *d)
{
    qn_tensor x = convolve(d, input(d, 3, 32), 32, 3);
    for (int i = 0; i < 3; i++) {
        qn_tensor y = qn_relu(d->graph, normalise(d, convolve(d, x, 8 * draw(d, 1, 8), 3)));
        y = convolve(d, y, 32, draw(d, 0, 1) ? 3 : 1);
        x = qn_relu(d->graph, qn_add(d->graph, x, draw(d, 0, 1) ? normalise(d, y) : y));
    }
    end_in_class(d, x);
}

static void unet(struct drawing *d)
{
    qn_tensor level[2], x = input(d, 3, 32);
    for (int i = 0; i < 2; i++) {
        level[i] = bend(d, convolve(d, x, 8 * draw(d, 1, 4), 3));
        x = halve(d, level[i]);
    }
    x = bend(d, convolve(d, x, 8 * draw(d, 2, 8), 3));
    for (int i = 1; i >= 0; i--) {
        x = qn_upsample2d(d->graph, x, NULL);
        x = qn_concat(d->graph, 2, (const qn_tensor[]){level[i], x}, 1);
        x = convolve(d, x, 8 * draw(d, 1, 4), 3);
        x = i ? bend(d, x) : x;
    }
    end_in_pixels(d, x);
}

static void transformer(struct drawing *d)
{
    const int64_t width = 64, tokens = 64;
    qn_tensor x = qn_input(d->graph, "x", QN_F32, 3, (int64_t[]){QN_BATCH, tokens, width});
    qn_tensor y = layer_norm(d, linear(d, x, width)), q = linear(d, y, width);
    qn_tensor k = linear(d, y, width), v = linear(d, y, width);
    y = qn_attention(d->graph, q, k, v, (qn_tensor){0}, &(qn_attention_params){.heads = 4});
    x = qn_add(d->graph, x, linear(d, y, width));
    y = bend(d, linear(d, layer_norm(d, x), 64 * draw(d, 1, 6)));
    x = bend(d, linear(d, qn_add(d->graph, x, linear(d, y, width)), 64 * draw(d, 1, 6)));
    qn_loss(d->graph, qn_mean(d->graph, x, 1), "loss", NULL);
}

/* Each operator reads one or two of the last few tensors. */
static void tangle(struct drawing *d)
{
    qn_tensor made[MOST_TENSORS];
    int count = 0;
    made[count++] = bend(d, convolve(d, input(d, 3, 16), 16, 3));
    while (count < 8) {
        qn_tensor x = made[count - 1], other = made[draw(d, count > 4 ? count - 4 : 0, count - 1)];
        switch (draw(d, 0, 3)) {
        case 0:
            x = qn_add(d->graph, convolve(d, x, dim_of(d, other, 1), 3), other);
            break;
        case 1:
            x = qn_concat(d->graph, 2, (const qn_tensor[]){bend(d, x), other}, 1);
            break;
        case 2:
            x = normalise(d, convolve(d, x, 8 * draw(d, 1, 6), 1));
            break;
        default:
            x = bend(d, convolve(d, other, 8 * draw(d, 1, 6), 3));
        }
        made[count++] = x;
    }
    end_in_class(d, made[count - 1]);
}

static const struct {
    const char *name;
    void (*build)(struct drawing *d);
} kinds[] = {
#define ENTRY(name) {#name, name},
    TEST_SMALL_KINDS(ENTRY)
#undef ENTRY
};

const char *test_small_name(enum test_small_kind kind)
{
    return kinds[kind].name;
}

static qn_graph *begin(struct drawing *d, uint64_t seed)
{
    *d = (struct drawing){.seed = seed};
    assert_int_equal(qn_graph_create(&d->graph, NULL), QN_OK);
    return d->graph;
}

qn_graph *test_small_graph(enum test_small_kind kind, uint64_t seed)
{
    struct drawing d;
    qn_graph *graph = begin(&d, seed * TEST_SMALL_COUNT + kind);
    kinds[kind].build(&d);
    if (qn_graph_status(graph) != QN_OK)
        fail_msg("%s: %s", kinds[kind].name, qn_graph_error(graph));
    return graph;
}

qn_graph *test_small_chain(int length, uint64_t seed)
{
    struct drawing d;
    qn_graph *graph = begin(&d, seed);
    chain(&d, length);
    return graph;
}
