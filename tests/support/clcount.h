/* SPDX-License-Identifier: MIT
 *
 * The two halves of clcount: memory (clcount.c) and all other objects (clobjects.c).
 */
#ifndef QN_TESTS_SUPPORT_CLCOUNT_H
#define QN_TESTS_SUPPORT_CLCOUNT_H

#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

/* The function of that name behind this library; never NULL. */
void *clcount_next(const char *name);
/* Declares `real`, the function that stands behind the one of this name. */
#define NEXT(name)                                                                                 \
    __typeof__(name) *real;                                                                        \
    *(void **)&real = clcount_next(#name)

/* The most bytes that were alive at one moment since the last call; tests find it by its name. */
unsigned long long clcount_largest_since(void);

/* References to objects of each kind that were taken and not given back. */
enum clcount_kind { CONTEXTS, QUEUES, PROGRAMS, KERNELS, EVENTS, KINDS };
long clcount_alive(enum clcount_kind kind);

#endif
