/* SPDX-License-Identifier: MIT
 *
 * AdamW (Loshchilov and Hutter 2019), as PyTorch has it: weight decay shrinks the parameter first.
 */
#include "ops/update.h"

QN_ADAM_OPERATOR(adamw, true);
