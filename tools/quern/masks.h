/* SPDX-License-Identifier: MIT
 *
 * Masks as palette PNG in a folder, NAME_mask.png for the picture NAME.jpg.
 */
#ifndef QUERN_TOOL_MASKS_H
#define QUERN_TOOL_MASKS_H

#include "samples.h"

struct masks {
    const struct samples *samples;
    const char *folder;
    const char *mark; /* "_mask" */
    int height, width;
    struct failure *failure;
};

/* Makes the folder if it is missing. CODE_FAILED: two masks would have one name. */
int masks_open(const struct masks *masks);
/* `mask`: (height, width), classes below 256. The file has the size of the sample's picture, if it
 * has one. */
int masks_write(const struct masks *masks, int64_t sample, const uint8_t *mask);

#endif
