/* SPDX-License-Identifier: MIT */
#include "overlap.h"

void overlap_add(struct overlap *overlap, uint8_t label, uint8_t predicted)
{
    overlap->labelled[label]++;
    overlap->predicted[predicted]++;
    overlap->both[label] += label == predicted;
}

double overlap_mean(const struct overlap *overlap)
{
    double sum = 0;
    int classes = 0;
    for (int c = 0; c < OVERLAP_CLASSES; c++) {
        int64_t both = overlap->both[c];
        int64_t either = overlap->labelled[c] + overlap->predicted[c] - both;
        if (!either)
            continue;
        sum += (double)both / (double)either;
        classes++;
    }
    return classes ? sum / classes : 0;
}
