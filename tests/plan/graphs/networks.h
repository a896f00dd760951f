/* SPDX-License-Identifier: MIT
 *
 * The networks on which published planners were measured, each at a fixed micro-batch: shares of
 * the bytes that keeping everything needs, and the slow-down reached there that a plan has to beat
 * (MONeT, arXiv 2010.14501, for the convolution networks; FastSA's algorithm, arXiv 2309.15692,
 * for GPT-2). NAME.json beside this file has the measured cost of every task (measure.c).
 */
#ifndef QN_TESTS_PLAN_GRAPHS_NETWORKS_H
#define QN_TESTS_PLAN_GRAPHS_NETWORKS_H

#include "network.h"

#define IMAGES(side)                                                                               \
    {                                                                                              \
        .channels = 3, .height = (side), .width = (side), .classes = 1000                          \
    }
#define MASKS(side)                                                                                \
    {                                                                                              \
        .channels = 3, .height = (side), .width = (side), .classes = 2, .masks = true              \
    }
#define TOKENS(length)                                                                             \
    {                                                                                              \
        .channels = 1, .height = 1, .width = (length), .tokens = 50257                             \
    }

static const struct network networks[] = {
    {"resnet50",
     "ResNet-50, 32 x 224^2",
     "resnet",
     {{"depth", "50"}},
     32,
     IMAGES(224),
     false,
     {{53, 5.6, 4.0, 3.7}, {40, 9.3, 8.8, 7.4}, {33, 12.0, 12.8, 9.4}}},
    {"unet",
     "U-Net, 8 x 256^2",
     "unet",
     {{"width", "64"}, {"norm", "batch"}},
     8,
     MASKS(256),
     false,
     {{49, 1.4, 3.1, 2.3}, {35, 11.5, 12.9, 10.8}}},
    {"vgg16",
     "VGG-16, 16 x 224^2",
     "vgg",
     {{"depth", "16"}},
     16,
     IMAGES(224),
     false,
     {{48, 2.0, 33.6, 33.6}, {39, 9.1, 33.6, 33.6}}},
    {"gpt2",
     "GPT-2 124M, 1 x 1024",
     "gpt",
     {{"layers", "12"}, {"heads", "12"}, {"width", "768"}},
     1,
     TOKENS(1024),
     true,
     {{60, 4, 1.6, 1.6}, {40, 12, 5.5, 5.5}, {25, 20, 9.6, 9.6}}},
    {"gpt2_unfused",
     "the same unfused",
     "gpt",
     {{"layers", "12"}, {"heads", "12"}, {"width", "768"}, {"fused", "0"}},
     1,
     TOKENS(1024),
     true,
     {{60, 2.8, 3.7, 3.7}, {40, 9.9, 7.2, 7.2}, {25, 15.4, 14.4, 14.4}}},
};

enum { N_NETWORKS = sizeof networks / sizeof *networks };

#endif
