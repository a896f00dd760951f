/* SPDX-License-Identifier: MIT */
#include <quern/image.h>

void qn_class_colour(uint8_t rgb[3], int label)
{
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int bit = 7; bit >= 0; bit--, label >>= 3)
        for (int c = 0; c < 3; c++)
            rgb[c] |= (uint8_t)((label >> c & 1) << bit);
}
