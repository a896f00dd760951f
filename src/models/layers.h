/* SPDX-License-Identifier: MIT
 *
 * Layers made of operators and their parameters, named as PyTorch's modules name them
 * ("conv1.weight"). Each takes the name of the layer.
 */
#ifndef QN_MODELS_LAYERS_H
#define QN_MODELS_LAYERS_H

#include <quern/model.h>

/* The u8 images of the data, normalised. */
qn_tensor qn_layer_images(qn_graph *graph, const qn_model_data *data);

/* Convolution of k x k without bias, stride 1, padding k / 2, so that an odd k keeps the size;
 * batch norm; ReLU. NAME.weight and NORM.weight, NORM.bias. */
qn_tensor qn_layer_conv_norm_relu(qn_graph *graph, qn_tensor x, const char *name, const char *norm,
                                  int64_t channels, int kernel, int group);

/* NAME.weight and NAME.bias; the second with ReLU in the same pass. */
qn_tensor qn_layer_linear(qn_graph *graph, qn_tensor x, const char *name, int64_t features);
qn_tensor qn_layer_linear_relu(qn_graph *graph, qn_tensor x, const char *name, int64_t features);

/* Labels, cross entropy, the outputs "logits" and "loss", and the loss. */
void qn_layer_classify(qn_graph *graph, qn_tensor logits, double label_smoothing);

#endif
