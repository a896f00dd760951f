/* SPDX-License-Identifier: MIT
 *
 * A disk that takes 5 s for every file of more than 64 KiB: LD_PRELOAD=./libslowdisk.so PROGRAM
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd)
{
    int (*real)(int);
    struct stat facts;
    void *symbol = dlsym(RTLD_NEXT, "fsync");
    memcpy(&real, &symbol, sizeof real);
    if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 1 << 16)
        nanosleep(&(struct timespec){.tv_sec = 5}, NULL);
    return real(fd);
}
