/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of cl/: a log that is kept, devices with it, a folder of kernels.
 */
#ifndef QN_TESTS_CL_SUPPORT_H
#define QN_TESTS_CL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include <quern/device.h>

struct kept {
    char text[1 << 16]; /* all messages, each with its newline */
};

/* A log at debug level that appends to `kept`. */
qn_log kept_log(struct kept *kept);
/* Opens a device without a disk cache, or fails the test. */
qn_device *open_device(struct kept *kept);

/* Writes dir/name. */
void write_text(const char *dir, const char *name, const char *text);
/* Puts the kernels that cl/ itself needs into a folder of kernels. */
void add_own_kernels(const char *dir);

#endif
