/* SPDX-License-Identifier: MIT
 *
 * A binary heap of any type: what comes before all others is taken first.
 */
#ifndef QN_TEXT_HEAP_H
#define QN_TEXT_HEAP_H

#include <stddef.h>

/* Defines push and pop of a heap of `type`, `*count` elements in an array with room for one more.
 * before(a, b), of two pointers, says whether `a` is to be taken before `b`; pop needs an element.
 */
#define QN_HEAP(type, before)                                                                      \
    static void push(type *heap, size_t *count, type element)                                      \
    {                                                                                              \
        size_t at = (*count)++;                                                                    \
        for (; at && before(&element, &heap[(at - 1) / 2]); at = (at - 1) / 2)                     \
            heap[at] = heap[(at - 1) / 2];                                                         \
        heap[at] = element;                                                                        \
    }                                                                                              \
                                                                                                   \
    static type pop(type *heap, size_t *count)                                                     \
    {                                                                                              \
        const type top = heap[0], last = heap[--*count];                                           \
        size_t at = 0;                                                                             \
        for (size_t child; (child = 2 * at + 1) < *count; at = child) {                            \
            if (child + 1 < *count && before(&heap[child + 1], &heap[child]))                      \
                child++;                                                                           \
            if (!before(&heap[child], &last))                                                      \
                break;                                                                             \
            heap[at] = heap[child];                                                                \
        }                                                                                          \
        heap[at] = last;                                                                           \
        return top;                                                                                \
    }

#endif
