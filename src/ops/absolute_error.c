/* SPDX-License-Identifier: MIT
 *
 * The absolute difference of two tensors, element by element, in f32. Its gradient is 0 where they
 * are equal.
 */
#include "ops/pair_loss.h"

QN_PAIR_LOSS(absolute_error)
