/* SPDX-License-Identifier: MIT */
#include "logits.h"

#include <math.h>

bool logits_share(double *share, const double *logits, int classes)
{
    double most = -HUGE_VAL, sum = 0;
    for (int c = 0; c < classes; c++) {
        if (!isfinite(logits[c]))
            return false;
        most = fmax(most, logits[c]);
    }
    for (int c = 0; c < classes; c++)
        sum += share[c] = exp(logits[c] - most);
    for (int c = 0; c < classes; c++)
        share[c] /= sum;
    return true;
}

bool logits_each(double *share, const double *logits, int classes)
{
    for (int c = 0; c < classes; c++) {
        if (!isfinite(logits[c]))
            return false;
        share[c] = 1 / (1 + exp(-logits[c]));
    }
    return true;
}

bool logits_mask(uint8_t *mask, const double *logits, int classes, int pixels)
{
    for (int i = 0; i < pixels; i++) {
        int best = 0;
        for (int c = 0; c < classes; c++) {
            const double logit = logits[(int64_t)c * pixels + i];
            if (!isfinite(logit))
                return false;
            best = logit > logits[(int64_t)best * pixels + i] ? c : best;
        }
        mask[i] = (uint8_t)best;
    }
    return true;
}
