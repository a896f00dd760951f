/* SPDX-License-Identifier: MIT
 *
 * For readers that take a path: one file that is written over and over, in TMPDIR if that is set:
 * in memory it goes faster.
 */
#ifndef QN_TESTS_FUZZ_FILE_H
#define QN_TESTS_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_path[4096];

static inline void fuzz_remove(void)
{
    unlink(fuzz_path);
}

static inline int fuzz_open(void)
{
    static int fd = -1;
    const char *folder = getenv("TMPDIR");
    if (fd >= 0)
        return fd;
    snprintf(fuzz_path, sizeof fuzz_path, "%s/quern-fuzz-XXXXXX", folder ? folder : P_tmpdir);
    fd = mkstemp(fuzz_path);
    if (fd < 0 || atexit(fuzz_remove) != 0)
        abort();
    return fd;
}

/* The path of a file of these bytes, until the next call. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t size)
{
    int fd = fuzz_open();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size)
        abort();
    return fuzz_path;
}

#endif
