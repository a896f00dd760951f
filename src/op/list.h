/* SPDX-License-Identifier: MIT
 *
 * The one list of operators. X(name): src/ops/name.c defines `const struct qn_op qn_op_name`, and
 * src/check/ops/name.c `const struct qn_check_op qn_check_name`. The build reads this file too: one
 * name a line, nothing else after it.
 */
#define QN_OP_LIST(X)                                                                              \
    X(relu)                                                                                        \
    X(batch_norm)                                                                                  \
    X(layer_norm)                                                                                  \
    X(rms_norm)                                                                                    \
    X(group_norm)                                                                                  \
    X(max_pool2d)                                                                                  \
    X(avg_pool2d)                                                                                  \
    X(global_avg_pool2d)                                                                           \
    X(upsample2d)                                                                                  \
    X(softmax)                                                                                     \
    X(softmax_cross_entropy)                                                                       \
    X(squared_error)                                                                               \
    X(absolute_error)                                                                              \
    X(binary_cross_entropy)                                                                        \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(masked_mean)                                                                                 \
    X(info_nce)                                                                                    \
    X(bank_entry)                                                                                  \
    X(bank_table)                                                                                  \
    X(loss)                                                                                        \
    X(leaky_relu)                                                                                  \
    X(sigmoid)                                                                                     \
    X(tanh)                                                                                        \
    X(gelu)                                                                                        \
    X(silu)                                                                                        \
    X(hardswish)                                                                                   \
    X(scale)                                                                                       \
    X(add)                                                                                         \
    X(multiply)                                                                                    \
    X(gated)                                                                                       \
    X(bias)                                                                                        \
    X(chain)                                                                                       \
    X(dropout)                                                                                     \
    X(embedding)                                                                                   \
    X(reshape)                                                                                     \
    X(transpose)                                                                                   \
    X(concat)                                                                                      \
    X(slice)                                                                                       \
    X(normalize)                                                                                   \
    X(conv2d)                                                                                      \
    X(conv_transpose2d)                                                                            \
    X(linear)                                                                                      \
    X(linear_activation)                                                                           \
    X(linear_cross_entropy)                                                                        \
    X(batch_matmul)                                                                                \
    X(rotary)                                                                                      \
    X(attention)                                                                                   \
    X(cached_attention)                                                                            \
    X(cast)                                                                                        \
    X(zero)                                                                                        \
    X(cell_store)                                                                                  \
    X(cell_load)                                                                                   \
    X(gradient_norm_partial)                                                                       \
    X(gradient_norm)                                                                               \
    X(gradient_norm_groups)                                                                        \
    X(gradient_finite)                                                                             \
    X(sgd)                                                                                         \
    X(adam)                                                                                        \
    X(adamw)                                                                                       \
    X(lion)                                                                                        \
    X(adamw8)                                                                                      \
    X(flash_adamw)                                                                                 \
    X(adafactor)                                                                                   \
    X(apollo)                                                                                      \
    X(weight_average)                                                                              \
    /* end of the list */
