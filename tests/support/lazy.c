/* SPDX-License-Identifier: MIT
 *
 * Preloaded before a simulator of devices: large fresh memory is zero already, so that filling it
 * with zeros touches nothing. Buffers of many gigabytes, of which a test uses a few pages, then
 * cost those pages alone.
 */
#include <stddef.h>
#include <stdint.h>

void *memset(void *memory, int byte, size_t size);

/* Allocations of this size are always pages of their own from the kernel. */
static const size_t huge = (size_t)1 << 30;

void *memset(void *memory, int byte, size_t size)
{
    volatile uint8_t *at = memory;
    if (byte == 0 && size >= huge)
        return memory;
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)byte;
    return memory;
}
