/* SPDX-License-Identifier: MIT
 *
 * What logits say. Each function gives false where a logit is not finite.
 */
#ifndef QUERN_TOOL_LOGITS_H
#define QUERN_TOOL_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

/* Softmax: probabilities of `classes` classes. */
bool logits_share(double *share, const double *logits, int classes);
/* The logistic function: how probable each class is by itself, where a sample may have several. */
bool logits_each(double *share, const double *logits, int classes);
/* The class of each pixel, the first of equal ones, from logits (classes, pixels); at most 256
 * classes. */
bool logits_mask(uint8_t *mask, const double *logits, int classes, int pixels);

#endif
