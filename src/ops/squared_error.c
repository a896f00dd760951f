/* SPDX-License-Identifier: MIT
 *
 * The squared difference of two tensors, element by element, in f32.
 */
#include "ops/pair_loss.h"

QN_PAIR_LOSS(squared_error)
