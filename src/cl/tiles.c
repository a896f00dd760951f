/* SPDX-License-Identifier: MIT
 *
 * What a CPU's core multiplies factors of bf16 in: tile registers, for which the operating system
 * is asked, and dot products.
 */
#include "cl/private.h"

#if defined(__linux__) && defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FEATURES = 7, BF16_TILES = 1 << 22, BF16_DOTS = 1 << 5 }; /* leaf; bits of edx, 1: eax */
enum { ARCH_REQUEST_PERMISSION = 0x1023, TILE_STATE = 18 };      /* of arch_prctl */

bool qn_tiles_allowed(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & BF16_TILES) &&
           syscall(SYS_arch_prctl, ARCH_REQUEST_PERMISSION, TILE_STATE) == 0;
}

bool qn_has_dots(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, 1, &a, &b, &c, &d) && (a & BF16_DOTS);
}

#else

bool qn_tiles_allowed(void)
{
    return false;
}

bool qn_has_dots(void)
{
    return false;
}

#endif
