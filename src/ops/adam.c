/* SPDX-License-Identifier: MIT
 *
 * Adam (Kingma and Ba 2015), as PyTorch has it: weight decay is added to the gradient.
 */
#include "ops/update.h"

QN_ADAM_OPERATOR(adam, false);
