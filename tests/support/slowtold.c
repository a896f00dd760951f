/* SPDX-License-Identifier: MIT
 *
 * A standard error that takes 5 s for every write, whatever signals come:
 * LD_PRELOAD=./libslowtold.so PROGRAM
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static ssize_t write_late(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    struct timespec left = {.tv_sec = 5};
    while (nanosleep(&left, &left))
        continue;
    return write(STDERR_FILENO, bytes, size);
}

__attribute__((constructor)) static void replace(void)
{
    FILE *late = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_late});
    if (late && setvbuf(late, NULL, _IOLBF, BUFSIZ) == 0)
        stderr = late;
}
