/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of cl/: a log that is kept, devices with it, a folder of kernels, their
 * texts.
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
/* The same with a folder of kernels, which is made in `dir`: what cl/ itself needs and name, of
 * this text. The test fails if that does not build; close_with_kernel removes the folder, too. */
qn_device *open_with_kernel(struct kept *kept, const char *name, const char *text,
                            char dir[FOLDER_BYTES]);
void close_with_kernel(qn_device *device, const struct kept *kept, const char *dir);

/* Writes dir/name. */
void write_text(const char *dir, const char *name, const char *text);
/* Puts the kernels that cl/ itself needs into a folder of kernels. */
void add_own_kernels(const char *dir);

/* The text of the kernel of this stem with what it includes; the caller frees it. */
char *kernel_text(const char *stem);
/* `text` with `now` in the place of the first `old` behind the first `behind`, or the test fails;
 * the caller frees it. */
char *swapped(const char *text, const char *behind, const char *old, const char *now);

#endif
