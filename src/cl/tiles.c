/* SPDX-License-Identifier: MIT
 *
 * Asking the operating system for the tile registers of a CPU's core.
 */
#include "cl/private.h"

#if defined(__linux__) && defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FEATURES = 7, BF16_TILES = 1 << 22 };                /* leaf, and bit of edx */
enum { ARCH_REQUEST_PERMISSION = 0x1023, TILE_STATE = 18 }; /* of arch_prctl */

bool qn_tiles_allowed(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & BF16_TILES) &&
           syscall(SYS_arch_prctl, ARCH_REQUEST_PERMISSION, TILE_STATE) == 0;
}

#else

bool qn_tiles_allowed(void)
{
    return false;
}

#endif
