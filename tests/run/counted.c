/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counted.h"
#include "support.h"

#include <dlfcn.h>

qn_device *device;
unsigned long long (*largest_since)(void);

int open_device(void **state)
{
    (void)state;
    *(void **)&largest_since = dlsym(RTLD_DEFAULT, "clcount_largest_since");
    print_message("  bytes are %scounted from outside\n", largest_since ? "" : "not ");
    device = test_device();
    return 0;
}

int close_device(void **state)
{
    (void)state;
    qn_device_close(&device);
    return 0;
}
