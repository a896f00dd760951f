/* SPDX-License-Identifier: MIT */
#include "budget_file.h"
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes what was read, or `wrong` in its place. */
static void take(struct budget_file *file, const char *wrong, int64_t *bytes)
{
    size_t length = strlen(file->text);
    while (length && strchr(" \t\r\n", file->text[length - 1]))
        file->text[--length] = 0;
    const char *reason = wrong ? wrong : value_size(file->text, bytes);
    file->empty = !wrong && !length;
    if (wrong || !reason)
        snprintf(file->why, sizeof file->why, "%s", wrong ? wrong : "");
    else
        snprintf(file->why, sizeof file->why, "'%s' %s", file->text, reason);
}

/* Reads the file: a FIFO would keep its reader waiting. False: it cannot be read, errno says why.
 */
static bool look(struct budget_file *file, int64_t *bytes)
{
    enum { MOST = sizeof file->text - 1 };
    struct stat status;
    const int descriptor = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    const ssize_t length = regular ? read(descriptor, file->text, MOST) : 0;
    const int reason = errno;
    close(descriptor);
    errno = reason;
    if (length < 0)
        return false;
    file->text[length] = 0;
    const bool text = length < MOST && strlen(file->text) == (size_t)length;
    take(file, !regular ? "is not a regular file" : !text ? "holds more than a size" : NULL, bytes);
    return true;
}

int budget_file_open(struct budget_file *file, const char *path, int64_t *bytes,
                     struct failure *failure)
{
    *file = (struct budget_file){.path = path};
    if (!look(file, bytes))
        return failure_set(failure, CODE_USAGE, "--budget-file: %s: %s", path, strerror(errno));
    return *file->why ? failure_set(failure, CODE_USAGE, "--budget-file: %s: %s", path, file->why)
                      : CODE_DONE;
}

bool budget_file_changed(struct budget_file *file, int64_t *bytes)
{
    struct budget_file now = {.path = file->path};
    int64_t size = *bytes;
    if (!file->path || !look(&now, &size) || now.empty ||
        (strcmp(now.text, file->text) == 0 && strcmp(now.why, file->why) == 0))
        return false;
    *file = now;
    *bytes = size;
    return true;
}
