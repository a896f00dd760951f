/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "shipped.h"

#include <string.h>

#define RESNET(depth)                                                                              \
    {                                                                                              \
        "resnet" #depth, "resnet", {{"depth", #depth}, {"group", "4"}, {"stem", "3"}}, IMAGES      \
    }
#define VGG(depth)                                                                                 \
    {"vgg" #depth, "vgg", {{"depth", #depth}, {"pool", "1"}, {"hidden", "32"}}, IMAGES},           \
    {                                                                                              \
        "vgg" #depth "_bn", "vgg",                                                                 \
            {{"depth", #depth},                                                                    \
             {"pool", "1"},                                                                        \
             {"hidden", "32"},                                                                     \
             {"batch_norm", "1"},                                                                  \
             {"group", "4"}},                                                                      \
            IMAGES                                                                                 \
    }
#define GPT(tied, fused)                                                                           \
    {                                                                                              \
        {"layers", "3"}, {"heads", "2"}, {"width", "48"}, {"tied", #tied},                         \
        {                                                                                          \
            "fused", #fused                                                                        \
        }                                                                                          \
    }

const struct shipped shipped[] = {
    {"mlp", "mlp", {{"hidden1", "96"}, {"hidden2", "64"}, {"dropout", "0.25"}}, IMAGES},
    {"cnn", "cnn", {{"width", "8"}, {"group", "4"}, {"dropout", "0.25"}}, IMAGES},
    RESNET(18),
    RESNET(34),
    RESNET(50),
    RESNET(101),
    RESNET(152),
    VGG(11),
    VGG(13),
    VGG(16),
    VGG(19),
    {"unet", "unet", {{"depth", "4"}, {"width", "8"}, {"group", "4"}, {"norm", "batch"}}, MASKS},
    {"unet_odd", "unet", {{"depth", "3"}, {"width", "5"}, {"group", "2"}}, MASKS},
    {"gpt", "gpt", GPT(0, 1), TEXT},
    {"gpt_tied", "gpt", GPT(1, 1), TEXT},
    {"gpt_steps", "gpt", GPT(1, 0), TEXT},
    {NULL},
};

static int64_t row_of(const struct shipped *network, const char *input)
{
    if (network->data == TEXT)
        return SHIPPED_TOKENS;
    if (strcmp(input, "images") == 0)
        return 3 * SHIPPED_SIDE * SHIPPED_SIDE;
    return network->data == MASKS ? SHIPPED_SIDE * SHIPPED_SIDE : 1;
}

qn_status shipped_fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct shipped *network = user;
    const int64_t row = row_of(network, input);
    const bool bytes = network->data != TEXT && (network->data == MASKS || row > 1);
    for (int64_t i = 0; i < count * row; i++) {
        const int32_t value =
            (int32_t)(qn_random_bits(1, row > 1, (uint64_t)(first * row + i)) % SHIPPED_CLASSES);
        if (bytes)
            ((uint8_t *)rows)[i] = (uint8_t)value;
        else
            ((int32_t *)rows)[i] = value;
    }
    return QN_OK;
}

qn_graph *shipped_build(const struct shipped *network, bool predict)
{
    const bool text = network->data == TEXT;
    const qn_model_data data = {.channels = text ? 1 : 3,
                                .height = text ? 1 : SHIPPED_SIDE,
                                .width = text ? SHIPPED_TOKENS : SHIPPED_SIDE,
                                .classes = text ? 0 : SHIPPED_CLASSES,
                                .tokens = text ? SHIPPED_CLASSES : 0,
                                .masks = network->data == MASKS,
                                .predict = predict};
    qn_graph *graph = test_graph(QN_F32);
    int options = 0;
    while (options < SHIPPED_OPTIONS && network->options[options].key)
        options++;
    assert_int_equal(qn_model_build(graph, network->model, &data, network->options, options),
                     QN_OK);
    return graph;
}
