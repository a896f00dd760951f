/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counted.h"

#include <dlfcn.h>

unsigned long long (*largest_since)(void);

int open_counted(void **state)
{
    *(void **)&largest_since = dlsym(RTLD_DEFAULT, "clcount_largest_since");
    print_message("  bytes are %scounted from outside\n", largest_since ? "" : "not ");
    return open_device(state);
}
