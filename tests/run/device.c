/* SPDX-License-Identifier: MIT */
#include "device.h"
#include "support.h"

qn_device *device;

int open_device(void **state)
{
    (void)state;
    device = test_device();
    return 0;
}

int close_device(void **state)
{
    (void)state;
    qn_device_close(&device);
    return 0;
}
