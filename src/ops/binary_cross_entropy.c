/* SPDX-License-Identifier: MIT
 *
 * Cross entropy of the sigmoid of logits and of targets in [0, 1], element by element, in f32: with
 * many classes, each of which a sample may have or not.
 */
#include "ops/pair_loss.h"

QN_PAIR_LOSS(binary_cross_entropy)
