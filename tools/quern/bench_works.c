/* SPDX-License-Identifier: MIT */
#include "bench_works.h"

#include <string.h>

/* Room for any single operator: what is measured is time. */
static const int64_t plenty = INT64_C(16) << 30;

bool work_is_update(const struct work *work)
{
    return strcmp(work->op, "update") == 0;
}

qn_plan_params work_plan(const struct work *work)
{
    if (work_is_update(work))
        return (qn_plan_params){.budget = work->size[1] << 20,
                                .batch = {work->size[0]},
                                .optimizer = {.name = "adamw"}};
    return (qn_plan_params){.budget = plenty,
                            .batch = {work->size[0]},
                            .micro_batch = work->size[0],
                            .recompute = QN_RECOMPUTE_NONE,
                            .optimizer = {.name = "adamw"}};
}

/* An input that stands for activations: in their storage type. */
static qn_tensor values(qn_graph *graph, const char *name, int rank, const int64_t *dim)
{
    return qn_input(graph, name, qn_graph_storage(graph), rank, dim);
}

/* Values of `x` that need a gradient: an input plus a parameter. */
static qn_tensor wanted(qn_graph *graph, qn_tensor x, int64_t channels)
{
    return qn_bias(graph, x, qn_parameter(graph, "shift", 1, &channels, NULL));
}

/* Makes a training of it: the mean of all elements is minimised. */
static void minimise(qn_graph *graph, qn_tensor y)
{
    qn_loss(graph, qn_mean(graph, y, 1), "loss", NULL);
}

/* size: rows, outputs, terms */
static void linear(qn_graph *graph, const struct work *work)
{
    const int64_t n = work->size[1], k = work->size[2];
    const qn_init init = qn_init_fan_in(k);
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, k});
    qn_tensor weight = qn_parameter(graph, "weight", 2, (int64_t[]){n, k}, &init);
    qn_tensor bias = qn_parameter(graph, "bias", 1, &n, NULL);
    minimise(graph, qn_linear(graph, wanted(graph, x, k), weight, bias));
}

/* size: images, channels, height and width, output channels, kernel, stride, groups (0: 1) */
static void conv2d(qn_graph *graph, const struct work *work)
{
    const int64_t c = work->size[1], side = work->size[2], o = work->size[3], k = work->size[4];
    const int stride = (int)work->size[5], groups = work->size[6] ? (int)work->size[6] : 1;
    const int padding = (int)(k / 2);
    const qn_init init = qn_init_fan_in(c / groups * k * k);
    qn_tensor x = values(graph, "x", 4, (int64_t[]){QN_BATCH, c, side, side});
    qn_tensor weight = qn_parameter(graph, "weight", 4, (int64_t[]){o, c / groups, k, k}, &init);
    minimise(graph, qn_conv2d(graph, wanted(graph, x, c), weight, (qn_tensor){0},
                              &(qn_conv2d_params){.stride = {stride, stride},
                                                  .padding = {padding, padding},
                                                  .groups = groups}));
}

/* Of two images. size: images, channels of both, height and width, output channels, kernel */
static void conv2d_of_two(qn_graph *graph, const struct work *work)
{
    const int64_t c = work->size[1], side = work->size[2], o = work->size[3], k = work->size[4];
    const int64_t half = c / 2, dim[] = {QN_BATCH, half, side, side};
    const int padding = (int)(k / 2);
    const qn_init init = qn_init_fan_in(c * k * k);
    qn_tensor x = values(graph, "x", 4, dim), y = values(graph, "y", 4, dim);
    qn_tensor weight = qn_parameter(graph, "weight", 4, (int64_t[]){o, c, k, k}, &init);
    y = qn_bias(graph, y, qn_parameter(graph, "shift of y", 1, &half, NULL));
    minimise(graph, qn_conv2d_concat(graph, wanted(graph, x, half), y, weight, (qn_tensor){0},
                                     &(qn_conv2d_params){.padding = {padding, padding}}));
}

/* size: images, channels, height and width, output channels, kernel and stride */
static void conv_transpose2d(qn_graph *graph, const struct work *work)
{
    const int64_t c = work->size[1], side = work->size[2], o = work->size[3], k = work->size[4];
    const qn_init init = qn_init_fan_in(o * k * k);
    qn_tensor x = values(graph, "x", 4, (int64_t[]){QN_BATCH, c, side, side});
    qn_tensor weight = qn_parameter(graph, "weight", 4, (int64_t[]){c, o, k, k}, &init);
    minimise(graph, qn_conv_transpose2d(graph, wanted(graph, x, c), weight, (qn_tensor){0},
                                        &(qn_conv_transpose2d_params){.stride = {(int)k, (int)k}}));
}

/* size: samples, tokens, heads, head size; causal, queries, keys and values side by side */
static void attention(qn_graph *graph, const struct work *work)
{
    const int64_t tokens = work->size[1], width = 3 * work->size[2] * work->size[3];
    qn_tensor x = values(graph, "x", 3, (int64_t[]){QN_BATCH, tokens, width});
    qn_tensor shift = qn_parameter(graph, "shift", 1, &tokens, NULL);
    minimise(graph,
             qn_attention(graph, qn_bias(graph, x, shift), (qn_tensor){0}, (qn_tensor){0},
                          (qn_tensor){0},
                          &(qn_attention_params){.heads = (int)work->size[2], .causal = true}));
}

/* size: rows, columns */
static void layer_norm(qn_graph *graph, const struct work *work)
{
    const int64_t n = work->size[1];
    const qn_init ones = qn_init_constant(1);
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, n});
    qn_tensor weight = qn_parameter(graph, "weight", 1, &n, &ones);
    qn_tensor bias = qn_parameter(graph, "bias", 1, &n, NULL);
    minimise(graph, qn_layer_norm(graph, wanted(graph, x, n), weight, bias, NULL));
}

/* size: rows, columns */
static void rms_norm(qn_graph *graph, const struct work *work)
{
    const int64_t n = work->size[1];
    const qn_init ones = qn_init_constant(1);
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, n});
    qn_tensor weight = qn_parameter(graph, "weight", 1, &n, &ones);
    minimise(graph, qn_rms_norm(graph, wanted(graph, x, n), weight, NULL));
}

/* SwiGLU. size: rows, columns */
static void gated(qn_graph *graph, const struct work *work)
{
    const int64_t n = work->size[1], dim[] = {QN_BATCH, n};
    qn_tensor gate = values(graph, "gate", 2, dim), x = values(graph, "x", 2, dim);
    gate = qn_bias(graph, gate, qn_parameter(graph, "shift of the gate", 1, &n, NULL));
    minimise(graph, qn_gated(graph, gate, wanted(graph, x, n), QN_GATE_SILU));
}

/* size: samples, tokens, heads, head size */
static void rotary(qn_graph *graph, const struct work *work)
{
    const int64_t tokens = work->size[1], width = work->size[2] * work->size[3];
    qn_tensor x = values(graph, "x", 3, (int64_t[]){QN_BATCH, tokens, width});
    minimise(graph, qn_rotary(graph, wanted(graph, x, tokens), (qn_tensor){0},
                              &(qn_rotary_params){.heads = (int)work->size[2]}));
}

/* GELU of x plus a bias. size: rows, columns */
static void gelu(qn_graph *graph, const struct work *work)
{
    static const qn_chain_step steps[] = {{QN_CHAIN_ADD, 0, QN_CHAIN_BIAS, 0},
                                          {QN_CHAIN_GELU_TANH, QN_CHAIN_STEP, 0, 0}};
    const int64_t n = work->size[1];
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, n});
    qn_tensor in[QN_CHAIN_INPUTS] = {wanted(graph, x, n)};
    in[QN_CHAIN_BIAS] = qn_parameter(graph, "bias", 1, &n, NULL);
    minimise(graph, qn_chain(graph, in, steps, 2));
}

/* size: rows, classes */
static void cross_entropy(qn_graph *graph, const struct work *work)
{
    const int64_t classes = work->size[1];
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, classes});
    qn_tensor labels = qn_input(graph, "labels", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_loss(graph, qn_softmax_cross_entropy(graph, wanted(graph, x, classes), labels, NULL), "loss",
            NULL);
}

/* size: images, classes, height and width */
static void cross_entropy_of_pixels(qn_graph *graph, const struct work *work)
{
    const int64_t classes = work->size[1], side = work->size[2];
    qn_tensor x = values(graph, "x", 4, (int64_t[]){QN_BATCH, classes, side, side});
    qn_tensor labels = qn_input(graph, "labels", QN_U8, 3, (int64_t[]){QN_BATCH, side, side});
    qn_loss(graph,
            qn_softmax_cross_entropy(graph, wanted(graph, x, classes), labels,
                                     &(qn_cross_entropy_params){.class_dim = 1}),
            "loss", NULL);
}

/* size: images, channels, height and width */
static void batch_norm(qn_graph *graph, const struct work *work)
{
    const int64_t c = work->size[1], side = work->size[2];
    const qn_init ones = qn_init_constant(1);
    qn_tensor x = values(graph, "x", 4, (int64_t[]){QN_BATCH, c, side, side});
    qn_tensor weight = qn_parameter(graph, "weight", 1, &c, &ones);
    qn_tensor bias = qn_parameter(graph, "bias", 1, &c, NULL);
    minimise(graph, qn_batch_norm(graph, wanted(graph, x, c), weight, bias,
                                  &(qn_batch_norm_params){.group = (int)work->size[0]}));
}

/* size: rows, parameters: rows x columns */
static void adamw(qn_graph *graph, const struct work *work)
{
    const int64_t n = work->size[1], k = work->size[2];
    qn_tensor x = values(graph, "x", 2, (int64_t[]){QN_BATCH, k});
    qn_tensor weight = qn_parameter(graph, "weight", 2, (int64_t[]){n, k}, NULL);
    minimise(graph, qn_linear(graph, x, weight, (qn_tensor){0}));
}

static const qn_model_data grey = {1, 28, 28, 10, {0.2860f}, {0.3530f}};
static const qn_model_data coloured = {3, 32, 32, 10, {0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}};

static const qn_model_data masked = {1, 128, 128, 11, {0.3f}, {0.25f}, .masks = true};
/* 256 tokens a sample, of as many kinds as GPT-2's. */
static const qn_model_data text = {.channels = 1, .height = 1, .width = 256, .tokens = 50257};

/* size: images, budget in MiB */
static void demonstration(qn_graph *graph, const struct work *work)
{
    qn_model_build(graph, "cnn", work->data, NULL, 0);
}

static void resnet18(qn_graph *graph, const struct work *work)
{
    static const qn_model_option stem = {"stem", "3"};
    qn_model_build(graph, "resnet", work->data, &stem, 1);
}

static void unet(qn_graph *graph, const struct work *work)
{
    static const qn_model_option options[] = {{"depth", "5"}, {"width", "16"}};
    qn_model_build(graph, "unet", work->data, options, 2);
}

static void gpt(qn_graph *graph, const struct work *work)
{
    static const qn_model_option options[] = {
        {"layers", "6"}, {"heads", "6"}, {"width", "384"}, {"logits", "0"}};
    qn_model_build(graph, "gpt", work->data, options, 4);
}

const struct work works[] = {
    {"linear", "512", {512, 512, 512}, linear},
    {"linear", "1024", {1024, 1024, 1024}, linear},
    {"linear", "2048", {2048, 2048, 2048}, linear},
    {"linear", "gpt2 qkv", {256, 2304, 768}, linear},
    {"linear", "gpt2 projection", {256, 768, 768}, linear},
    {"linear", "gpt2 up", {256, 3072, 768}, linear},
    {"linear", "gpt2 down", {256, 768, 3072}, linear},
    {"linear", "gpt2 vocabulary", {256, 50257, 768}, linear},
    {"linear", "thin 1 row", {1, 3072, 768}, linear},
    {"linear", "thin 16 rows", {16, 3072, 768}, linear},
    {"linear", "thin 16 outputs", {768, 16, 3072}, linear},
    {"linear", "thin 16 terms", {768, 3072, 16}, linear},
    {"conv2d", "demo 1", {64, 1, 28, 32, 3, 1}, conv2d},
    {"conv2d", "demo 2", {64, 32, 28, 32, 3, 1}, conv2d},
    {"conv2d", "demo 3", {64, 32, 14, 64, 3, 1}, conv2d},
    {"conv2d", "demo 4", {64, 64, 14, 64, 3, 1}, conv2d},
    {"conv2d", "demo 5", {64, 64, 7, 128, 3, 1}, conv2d},
    {"conv2d", "resnet stem 7x7/2 3-64 224", {8, 3, 224, 64, 7, 2}, conv2d},
    {"conv2d", "resnet 3x3 64-64 56", {8, 64, 56, 64, 3, 1}, conv2d},
    {"conv2d", "resnet 3x3/2 64-128 56", {8, 64, 56, 128, 3, 2}, conv2d},
    {"conv2d", "resnet 3x3 128-128 28", {8, 128, 28, 128, 3, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 64-128 56", {8, 64, 56, 128, 1, 2}, conv2d},
    {"conv2d", "resnet 3x3/2 128-256 28", {8, 128, 28, 256, 3, 2}, conv2d},
    {"conv2d", "resnet 3x3 256-256 14", {8, 256, 14, 256, 3, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 128-256 28", {8, 128, 28, 256, 1, 2}, conv2d},
    {"conv2d", "resnet 3x3/2 256-512 14", {8, 256, 14, 512, 3, 2}, conv2d},
    {"conv2d", "resnet 3x3 512-512 7", {8, 512, 7, 512, 3, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 256-512 14", {8, 256, 14, 512, 1, 2}, conv2d},
    {"conv2d", "resnet 1x1 64-64 56", {8, 64, 56, 64, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1 64-256 56", {8, 64, 56, 256, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1 256-64 56", {8, 256, 56, 64, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1 256-128 56", {8, 256, 56, 128, 1, 1}, conv2d},
    {"conv2d", "resnet 3x3/2 128-128 56", {8, 128, 56, 128, 3, 2}, conv2d},
    {"conv2d", "resnet 1x1 128-512 28", {8, 128, 28, 512, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 256-512 56", {8, 256, 56, 512, 1, 2}, conv2d},
    {"conv2d", "resnet 1x1 512-128 28", {8, 512, 28, 128, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1 512-256 28", {8, 512, 28, 256, 1, 1}, conv2d},
    {"conv2d", "resnet 3x3/2 256-256 28", {8, 256, 28, 256, 3, 2}, conv2d},
    {"conv2d", "resnet 1x1 256-1024 14", {8, 256, 14, 1024, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 512-1024 28", {8, 512, 28, 1024, 1, 2}, conv2d},
    {"conv2d", "resnet 1x1 1024-256 14", {8, 1024, 14, 256, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1 1024-512 14", {8, 1024, 14, 512, 1, 1}, conv2d},
    {"conv2d", "resnet 3x3/2 512-512 14", {8, 512, 14, 512, 3, 2}, conv2d},
    {"conv2d", "resnet 1x1 512-2048 7", {8, 512, 7, 2048, 1, 1}, conv2d},
    {"conv2d", "resnet 1x1/2 1024-2048 14", {8, 1024, 14, 2048, 1, 2}, conv2d},
    {"conv2d", "resnet 1x1 2048-512 7", {8, 2048, 7, 512, 1, 1}, conv2d},
    {"conv2d", "depthwise 3x3 32 112", {8, 32, 112, 32, 3, 1, 32}, conv2d},
    {"conv2d", "depthwise 3x3/2 64 112", {8, 64, 112, 64, 3, 2, 64}, conv2d},
    {"conv2d", "depthwise 3x3 128 56", {8, 128, 56, 128, 3, 1, 128}, conv2d},
    {"conv2d", "depthwise 3x3/2 256 28", {8, 256, 28, 256, 3, 2, 256}, conv2d},
    {"conv2d", "depthwise 3x3 512 14", {8, 512, 14, 512, 3, 1, 512}, conv2d},
    {"conv2d", "depthwise 5x5 256 14", {8, 256, 14, 256, 5, 1, 256}, conv2d},
    {"conv2d", "depthwise 7x7 384 14", {8, 384, 14, 384, 7, 1, 384}, conv2d},
    {"conv2d", "two images 3x3 32-16 512", {2, 32, 512, 16, 3}, conv2d_of_two},
    {"conv2d", "two images 3x3 128-64 128", {2, 128, 128, 64, 3}, conv2d_of_two},
    {"conv2d", "two images 3x3 512-256 32", {2, 512, 32, 256, 3}, conv2d_of_two},
    {"conv_transpose2d", "2x2/2 32-16 256", {2, 32, 256, 16, 2}, conv_transpose2d},
    {"conv_transpose2d", "2x2/2 128-64 64", {2, 128, 64, 64, 2}, conv_transpose2d},
    {"conv_transpose2d", "2x2/2 512-256 16", {2, 512, 16, 256, 2}, conv_transpose2d},
    {"attention", "8 heads of 64, 256 tokens", {1, 256, 8, 64}, attention},
    {"attention", "8 heads of 64, 512 tokens", {1, 512, 8, 64}, attention},
    {"attention", "8 heads of 64, 1024 tokens", {1, 1024, 8, 64}, attention},
    {"attention", "8 heads of 64, 2048 tokens", {1, 2048, 8, 64}, attention},
    {"layer_norm", "64 MiB", {16384, 1024}, layer_norm},
    {"rms_norm", "64 MiB", {16384, 1024}, rms_norm},
    {"gated", "SwiGLU, 64 MiB", {16384, 1024}, gated},
    {"rotary", "16 heads of 64, 64 MiB", {64, 256, 16, 64}, rotary},
    {"chain", "GELU and bias, 64 MiB", {16384, 1024}, gelu},
    {"batch_norm", "64 MiB", {16, 64, 128}, batch_norm},
    {"softmax_cross_entropy", "64 MiB", {16384, 1024}, cross_entropy},
    {"softmax_cross_entropy", "pixels, 64 MiB", {4, 16, 512}, cross_entropy_of_pixels},
    {"adamw", "64 MiB", {8, 4096, 4096}, adamw},
    {"update", "demonstration, batch 256", {256, 32}, demonstration, &grey},
    {"update", "resnet18 32x32, batch 64", {64, 512}, resnet18, &coloured},
    {"update", "unet 128x128, batch 4", {4, 512}, unet, &masked},
    {"update", "gpt 6 x 384, 256 tokens, batch 4", {4, 1024}, gpt, &text},
    {0},
};
