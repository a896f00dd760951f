/* SPDX-License-Identifier: MIT
 *
 * Attributes of the operator rotary.
 */
#ifndef QN_OP_ROTARY_H
#define QN_OP_ROTARY_H

/* Input 1, the rates, is f32 (n) for heads of n elements: of n / 2 points the turns from one
 * position to the next, then what these numbers lost to rounding. */
struct qn_rotary_attr {
    int heads; /* side by side in a token */
    int still; /* the last so many of them are handed on as they are */
    float base;
};

#endif
