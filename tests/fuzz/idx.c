/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "io/idx.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

/* The reader takes a path: one file is written over and over. */
static int open_file(void)
{
    static int fd = -1;
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/quern-fuzz-XXXXXX", P_tmpdir);
    fd = mkstemp(path);
    if (fd < 0 || atexit(remove_file) != 0)
        abort();
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct qn_idx idx;
    int fd = open_file();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size)
        abort();
    volatile uint8_t last = 0;
    if (qn_idx_read(&idx, path, NULL) == QN_OK && idx.bytes > 0)
        last = ((const uint8_t *)idx.data)[idx.bytes - 1];
    (void)last;
    qn_idx_free(&idx);
    return 0;
}
