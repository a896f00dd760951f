/* SPDX-License-Identifier: MIT
 *
 * The operators. Images are (batch, channels, height, width); all layouts are PyTorch's. Params
 * structs: zero means default, NULL all defaults. A failed call gives no tensor and the graph keeps
 * the error. What depends on the batch has it in dimension 0, and no operator mixes its samples
 * (batch norm alone, within its group): a tensor with the batch in it is refused with QN_ERR_SHAPE
 * as a weight, a bias or a table, and where the result would not hold the batch in dimension 0.
 */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H

#include <quern/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y (.., n) = x (.., k) * w (n, k)^T + b (n). `bias` may be none. */
QN_API qn_tensor qn_linear(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias);
/* linear(x) + residual (.., n), in one pass. */
QN_API qn_tensor qn_linear_residual(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                                    qn_tensor residual);

typedef enum qn_activation {
    QN_ACTIVATION_NONE,
    QN_ACTIVATION_RELU,
    QN_ACTIVATION_LEAKY_RELU,
    QN_ACTIVATION_SIGMOID,
    QN_ACTIVATION_TANH,
} qn_activation;
typedef struct qn_linear_activation_params {
    qn_activation activation; /* any but none */
    double slope;             /* of leaky_relu below 0, in (0, 1] */
} qn_linear_activation_params;
/* y = activation(linear(x)), in one pass and with one tensor kept: the same numbers as the two
 * operators give in f32. */
QN_API qn_tensor qn_linear_activation(qn_graph *graph, qn_tensor x, qn_tensor weight,
                                      qn_tensor bias, const qn_linear_activation_params *params);

typedef struct qn_batch_matmul_params {
    bool transpose_a, transpose_b; /* the last two dimensions are stored the other way round */
} qn_batch_matmul_params;
/* (.., m, n) = a (.., m, k) * b (.., k, n), the dimensions before being the same; or b is one
 * matrix for all products, and a is not transposed. */
QN_API qn_tensor qn_batch_matmul(qn_graph *graph, qn_tensor a, qn_tensor b,
                                 const qn_batch_matmul_params *params);

typedef struct qn_conv2d_params {
    int stride[2], padding[2], dilation[2]; /* height, width; stride and dilation 0: 1 */
    int groups;                             /* 0: 1 */
} qn_conv2d_params;
/* x (b, c, h, w), weight (o, c / groups, kh, kw), bias (o) or none -> (b, o, oh, ow), with
 * oh = (h + 2 padding - dilation (kh - 1) - 1) / stride + 1. */
QN_API qn_tensor qn_conv2d(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                           const qn_conv2d_params *params);
/* The same of qn_concat(a, b) by channels, of which neither value nor gradient is ever stored: a
 * (b, c, h, w), b (b, c', h, w) of one type, weight (o, c + c', kh, kw). There is one group. */
QN_API qn_tensor qn_conv2d_concat(qn_graph *graph, qn_tensor a, qn_tensor b, qn_tensor weight,
                                  qn_tensor bias, const qn_conv2d_params *params);

typedef struct qn_conv_transpose2d_params {
    int stride[2], padding[2], dilation[2]; /* height, width; stride and dilation 0: 1 */
    int output_padding[2]; /* rows and columns more, at the end; below stride or dilation */
    int groups;            /* 0: 1 */
} qn_conv_transpose2d_params;
/* The transpose of conv2d, as PyTorch's ConvTranspose2d: x (b, c, h, w), weight (c, o / groups, kh,
 * kw), bias (o) or none -> (b, o, oh, ow), with
 * oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1. */
QN_API qn_tensor qn_conv_transpose2d(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                                     const qn_conv_transpose2d_params *params);

typedef struct qn_pool2d_params {
    int size[2];          /* window: height, width */
    int stride[2];        /* 0: the window's size */
    int padding[2];       /* at most half the window */
    bool exclude_padding; /* average: divide by the elements inside the image */
} qn_pool2d_params;
/* The first of equal values wins (row by row). */
QN_API qn_tensor qn_max_pool2d(qn_graph *graph, qn_tensor x, const qn_pool2d_params *params);
QN_API qn_tensor qn_avg_pool2d(qn_graph *graph, qn_tensor x, const qn_pool2d_params *params);
/* (b, c, h, w) -> (b, c). */
QN_API qn_tensor qn_global_avg_pool2d(qn_graph *graph, qn_tensor x);

typedef enum qn_upsample_mode { QN_UPSAMPLE_NEAREST, QN_UPSAMPLE_BILINEAR } qn_upsample_mode;
typedef struct qn_upsample2d_params {
    int factor[2]; /* height, width; 0: 2, or by the size */
    int size[2];   /* of the result, in place of a factor */
    qn_upsample_mode mode;
    bool align_corners; /* bilinear: the corners' pixels stay in the corners */
} qn_upsample2d_params;
/* (b, c, h, w) -> (b, c, oh, ow), as PyTorch's interpolate. Pixel i of a side takes the pixel at
 * i h / oh, rounded down (nearest), or a blend of the two around (i + 1/2) h / oh - 1/2, at least
 * 0, or around i (h - 1) / (oh - 1) with corners aligned (bilinear). These places are exact
 * fractions; sides where they need more than 30 bits are refused. A smaller size averages nothing.
 */
QN_API qn_tensor qn_upsample2d(qn_graph *graph, qn_tensor x, const qn_upsample2d_params *params);

typedef struct qn_batch_norm_params {
    int group;       /* samples normalised together with all their rows, part of the model; 0: 16.
                        Micro-batches are multiples of it, and a last short group of a cycle is its
                        own group. Below 8 the graph's log has a warning, once: running averages,
                        with which evaluations normalise, may be far from those of so few */
    double eps;      /* 0: 1e-5 */
    double momentum; /* of the running averages, once per update; 0: 0.1 */
    bool relu;       /* the result goes through max(0, y), in the same pass */
} qn_batch_norm_params;
/* x (b, c, ...); weight and bias (c) or none. Running averages belong to the node and move once per
 * update, with the averages over the whole effective batch (unbiased variance). */
QN_API qn_tensor qn_batch_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                               const qn_batch_norm_params *params);

typedef struct qn_layer_norm_params {
    int dims;   /* the last so many dimensions are normalised together; 0: 1 */
    double eps; /* 0: 1e-5 */
} qn_layer_norm_params;
/* weight and bias have the dimensions that are normalised together, or are none. */
QN_API qn_tensor qn_layer_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                               const qn_layer_norm_params *params);

typedef struct qn_rms_norm_params {
    double eps; /* 0: 1e-6 */
} qn_rms_norm_params;
/* x (b, ..., n) / sqrt(mean of x^2 over the last dimension + eps) * weight; weight (n) or none
 * (Zhang and Sennrich 2019). */
QN_API qn_tensor qn_rms_norm(qn_graph *graph, qn_tensor x, qn_tensor weight,
                             const qn_rms_norm_params *params);

typedef struct qn_group_norm_params {
    int groups; /* that the channels are divided into; 0: 1 */
    double eps; /* 0: 1e-5 */
} qn_group_norm_params;
/* x (b, c, ...); each sample's group of channels is normalised by itself. weight and bias (c) or
 * none. */
QN_API qn_tensor qn_group_norm(qn_graph *graph, qn_tensor x, qn_tensor weight, qn_tensor bias,
                               const qn_group_norm_params *params);

/* Elementwise, of any shape. The gradient of relu at 0 is 0; of leaky_relu at 0 the slope. */
QN_API qn_tensor qn_relu(qn_graph *graph, qn_tensor x);
QN_API qn_tensor qn_leaky_relu(qn_graph *graph, qn_tensor x, double slope /* in (0, 1] */);
QN_API qn_tensor qn_sigmoid(qn_graph *graph, qn_tensor x);
QN_API qn_tensor qn_tanh(qn_graph *graph, qn_tensor x);
/* x times the probability that a normal number is below x; or the approximation of that with tanh,
 * which GPT-2 was trained with. */
typedef enum qn_gelu_form { QN_GELU_EXACT, QN_GELU_TANH } qn_gelu_form;
QN_API qn_tensor qn_gelu(qn_graph *graph, qn_tensor x, qn_gelu_form form);
/* x times sigmoid of x. */
QN_API qn_tensor qn_silu(qn_graph *graph, qn_tensor x);
/* x (x + 3) / 6 between -3 and 3, below 0, above x. The gradient at -3 is 0, at 3 it is 1. */
QN_API qn_tensor qn_hardswish(qn_graph *graph, qn_tensor x);
QN_API qn_tensor qn_scale(qn_graph *graph, qn_tensor x, double factor);
/* Two tensors of one shape. */
QN_API qn_tensor qn_add(qn_graph *graph, qn_tensor a, qn_tensor b);
QN_API qn_tensor qn_multiply(qn_graph *graph, qn_tensor a, qn_tensor b);
/* f(gate) * x, two tensors of one shape (Shazeer 2020, "GLU variants improve Transformer"): SwiGLU
 * with f = silu, GEGLU with f = gelu, exact or by tanh. */
typedef enum qn_gate_form { QN_GATE_SILU, QN_GATE_GELU, QN_GATE_GELU_TANH } qn_gate_form;
QN_API qn_tensor qn_gated(qn_graph *graph, qn_tensor gate, qn_tensor x, qn_gate_form form);
/* Adds bias (c) along dimension 1 of x (b, c, ...). */
QN_API qn_tensor qn_bias(qn_graph *graph, qn_tensor x, qn_tensor bias);
/* A chain of such operators as one: a kernel forward and one backward, with all values between them
 * in registers and only those inputs kept that gradients need (none for the ReLU of a sum). A plan
 * makes chains by itself where one operator alone reads another's result and no more is kept: this
 * function is for those that know better. Values 0 to 4 are in[0] to in[4], of one shape; the
 * first that is none ends them. Value QN_CHAIN_BIAS is in[5] (c), which lies along the last
 * dimension of the others, or none. Value QN_CHAIN_STEP + k is the result of step k; the last one
 * is that of the chain. GELU of x plus a bias: in {x, [5] = bias}, steps
 * {{QN_CHAIN_ADD, 0, QN_CHAIN_BIAS}, {QN_CHAIN_GELU, QN_CHAIN_STEP}}. */
typedef enum qn_chain_op {
    QN_CHAIN_RELU,
    QN_CHAIN_LEAKY_RELU, /* slope: value */
    QN_CHAIN_SIGMOID,
    QN_CHAIN_TANH,
    QN_CHAIN_GELU,
    QN_CHAIN_GELU_TANH,
    QN_CHAIN_SILU,
    QN_CHAIN_SCALE, /* factor: value */
    QN_CHAIN_ADD,   /* a and b, as in the next */
    QN_CHAIN_MULTIPLY,
    QN_CHAIN_HARDSWISH,
} qn_chain_op;
enum { QN_CHAIN_INPUTS = 6, QN_CHAIN_BIAS = 5, QN_CHAIN_STEP = 8, QN_CHAIN_STEPS = 8 };
typedef struct qn_chain_step {
    qn_chain_op op;
    int a, b; /* values */
    double value;
} qn_chain_step;
QN_API qn_tensor qn_chain(qn_graph *graph, const qn_tensor in[QN_CHAIN_INPUTS],
                          const qn_chain_step *steps, int count /* at most QN_CHAIN_STEPS */);
/* Zeroes with probability `rate` in [0, 1), scales the rest by 1 / (1 - rate); identity in
 * evaluation. The mask is drawn from (seed, update, sample, node, element): no plan changes it. */
QN_API qn_tensor qn_dropout(qn_graph *graph, qn_tensor x, double rate);

/* ids u8 or i32 (..), table (rows, n), a parameter -> (.., n): the rows with these numbers. A
 * number that names no row gives zeros and has no gradient. The table may be the weight of a linear
 * layer, too. */
QN_API qn_tensor qn_embedding(qn_graph *graph, qn_tensor ids, qn_tensor table);

/* The same elements in another shape; one dimension may be 0: it is worked out. The batch must stay
 * in dimension 0. */
QN_API qn_tensor qn_reshape(qn_graph *graph, qn_tensor x, int rank, const int64_t *dim);
/* (b, ...) -> (b, rest). */
QN_API qn_tensor qn_flatten(qn_graph *graph, qn_tensor x);

/* The dimensions in another order: dimension i of the result is dimension axes[i] of x. The batch
 * must stay in dimension 0. */
QN_API qn_tensor qn_transpose(qn_graph *graph, qn_tensor x, int rank, const int *axes);

/* 2 to QN_CONCAT_INPUTS tensors of one float type, side by side along dimension `axis`, which is
 * not that of the batch. All their other dimensions are the same. */
enum { QN_CONCAT_INPUTS = 6 };
QN_API qn_tensor qn_concat(qn_graph *graph, int count, const qn_tensor *tensors, int axis);
/* Elements start .. start + length - 1 of dimension `axis`, which is not that of the batch. */
QN_API qn_tensor qn_slice(qn_graph *graph, qn_tensor x, int axis, int64_t start, int64_t length);

/* Images u8 (b, c, h, w) -> (x / 255 - mean[c]) / deviation[c] in the storage type; of images f32
 * (x - mean[c]) / deviation[c]. Arrays of c values; NULL: 0 and 1. */
QN_API qn_tensor qn_normalize(qn_graph *graph, qn_tensor images, const float *mean,
                              const float *deviation);

/* Over the last dimension. */
QN_API qn_tensor qn_softmax(qn_graph *graph, qn_tensor x);

typedef struct qn_rotary_params {
    int heads;   /* side by side in x; 0: 1 */
    int still;   /* the last so many of them stay as they are: the values of a packed tensor */
    double base; /* above 1; 0: 10000 */
    /* Scaling, for texts longer than those a network was first trained with: with only `factor`,
     * position interpolation (Chen et al. 2023), all angles are divided by it; with
     * `original_positions`, too, Llama 3.1's by parts (after Peng et al. 2023): so divided are
     * those of elements that make less than low_freq_factor turns in the original positions, those
     * that make more than high_freq_factor stay, between them the share is linear in the turns. */
    double factor;                            /* at least 1; 0: 1 */
    double low_freq_factor, high_freq_factor; /* above 0, the second above the first */
    int64_t original_positions;               /* 0: none */
} qn_rotary_params;
/* Rotary position embedding (Su et al. 2021) of x (b, t, heads * n), n even, as the Llama models of
 * Hugging Face have it: with r = p / base^(2i / n), elements i and j = i + n / 2 of a head at
 * position p become x[i] cos r - x[j] sin r and x[j] cos r + x[i] sin r. The position of a token is
 * its number in its row of x, or that in `positions` (b, t) in i32. Angles are right to 1e-6 for
 * positions up to 2^24 either side of 0. */
QN_API qn_tensor qn_rotary(qn_graph *graph, qn_tensor x, qn_tensor positions,
                           const qn_rotary_params *params);

typedef struct qn_attention_params {
    int heads;      /* of the queries; 0: 1 */
    int kv_heads;   /* of keys and values, a divisor of heads; 0: heads */
    bool causal;    /* query i sees the keys 0 .. i */
    double scale;   /* of the scores; 0: 1 / sqrt(head size) */
    double dropout; /* of the probabilities, as qn_dropout */
} qn_attention_params;
/* softmax(scale * q k^T) v, head by head, without the matrix of all scores in memory.
 * q (b, t, heads * n), k and v (b, s, kv_heads * n) -> (b, t, heads * n), as qn_linear makes and
 * takes them; head h of q meets head h * kv_heads / heads of k and v. With k and v none, q holds
 * all three side by side: (b, t, (heads + 2 kv_heads) * n). The head size n is a multiple of 8 up
 * to 128. `lengths` (b) in i32, or none: only the first of the keys of a row are seen, the others
 * are padding. A query that sees no key gives 0. */
QN_API qn_tensor qn_attention(qn_graph *graph, qn_tensor q, qn_tensor k, qn_tensor v,
                              qn_tensor lengths, const qn_attention_params *params);

/* Attention of tokens to a cache that all of them share, a cell of keys and values (plan.h), for
 * forward passes alone: there is no gradient. q (b, t, heads * n), cache (rows, 2 * kv_heads * n),
 * each row a token's keys and then its values, positions (b, t) in i32 -> (b, t, heads * n). A
 * token at position p sees the rows 0 .. p. Heads, head size n and scale are as in qn_attention;
 * kv_heads 0: heads. */
QN_API qn_tensor qn_cached_attention(qn_graph *graph, qn_tensor q, qn_tensor cache,
                                     qn_tensor positions, int heads, int kv_heads);

typedef struct qn_cross_entropy_params {
    double label_smoothing; /* in [0, 1) */
    bool ignore;            /* labels that are ignore_label count nothing */
    int ignore_label;
    const float *class_weights; /* one per class, copied; NULL: ones */
    int class_dim;              /* dimension of the logits that holds the classes; 0: the last */
} qn_cross_entropy_params;
/* logits (.., c), labels u8 or i32 (..) -> numerators (..) in f32, for qn_loss; with class_dim 1
 * logits (b, c, h, w) and labels (b, h, w), one a pixel. As PyTorch's CrossEntropyLoss: with mean
 * reduction the sum is divided by the sum of the labels' weights. */
QN_API qn_tensor qn_softmax_cross_entropy(qn_graph *graph, qn_tensor logits, qn_tensor labels,
                                          const qn_cross_entropy_params *params);
/* softmax_cross_entropy(linear(x, weight, bias)) of x (.., k), weight (c, k), bias (c) or none and
 * labels (..), for last layers of many classes: logits of some classes at a time, never those of
 * all. They are computed twice, once forward and once backward; the same numbers as the two
 * operators give in f32. There is no class_dim. */
QN_API qn_tensor qn_linear_cross_entropy(qn_graph *graph, qn_tensor x, qn_tensor weight,
                                         qn_tensor bias, qn_tensor labels,
                                         const qn_cross_entropy_params *params);
/* Losses of two tensors of one shape, element by element, in f32, for qn_loss. (a - b)^2: */
QN_API qn_tensor qn_squared_error(qn_graph *graph, qn_tensor a, qn_tensor b);
/* |a - b|; the gradient is 0 where they are equal. */
QN_API qn_tensor qn_absolute_error(qn_graph *graph, qn_tensor a, qn_tensor b);
/* -t log s - (1 - t) log(1 - s) of s = sigmoid(logits) and targets t in [0, 1]: for samples that
 * may have any of several classes (PyTorch's binary_cross_entropy_with_logits). */
QN_API qn_tensor qn_binary_cross_entropy(qn_graph *graph, qn_tensor logits, qn_tensor targets);

/* Over the dimensions from `first` (at least 1) to the last, which disappear: (b, c, h, w) with
 * first 2 -> (b, c). Over the batch: qn_loss. */
QN_API qn_tensor qn_sum(qn_graph *graph, qn_tensor x, int first);
QN_API qn_tensor qn_mean(qn_graph *graph, qn_tensor x, int first);
/* (b, t, n) -> (b, n): the mean over the first of the t tokens of a row, as many as `lengths` (b)
 * in i32 says, or over all with none. The others are padding, which is not read. No token gives 0.
 */
QN_API qn_tensor qn_masked_mean(qn_graph *graph, qn_tensor x, qn_tensor lengths);

#ifdef __cplusplus
}
#endif
#endif
