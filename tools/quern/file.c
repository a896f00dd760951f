/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s: %s", path, strerror(errno));
}

static int read_whole(char *text, FILE *file, const char *path, struct failure *failure)
{
    errno = 0;
    size_t length = fread(text, 1, FILE_TEXT_BYTES, file);
    if (ferror(file))
        return fail(path, failure);
    if (length == FILE_TEXT_BYTES)
        return failure_set(failure, CODE_FAILED, "%s: longer than %d bytes", path,
                           FILE_TEXT_BYTES - 1);
    text[length] = 0;
    if (strlen(text) != length)
        return failure_set(failure, CODE_FAILED, "%s: not a text file", path);
    return CODE_DONE;
}

int file_read(char **text, const char *path, struct failure *failure)
{
    *text = malloc(FILE_TEXT_BYTES);
    if (!*text)
        return failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    FILE *file = fopen(path, "rb");
    int code = file ? read_whole(*text, file, path, failure) : fail(path, failure);
    if (file)
        fclose(file);
    if (code) {
        free(*text);
        *text = NULL;
    }
    return code;
}

static bool write_whole(int descriptor, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(descriptor, text, left);
        if (n < 0 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return fsync(descriptor) == 0;
}

int file_replace(const char *path, const char *text, struct failure *failure)
{
    char part[4096];
    mode_t mask = umask(0);
    umask(mask);
    if (snprintf(part, sizeof part, "%s.XXXXXX", path) >= (int)sizeof part)
        return failure_set(failure, CODE_FAILED, "%s: the path is too long", path);
    int descriptor = mkstemp(part);
    if (descriptor < 0)
        return fail(path, failure);
    bool written = write_whole(descriptor, text) && fchmod(descriptor, 0666 & ~mask) == 0;
    written = close(descriptor) == 0 && written && rename(part, path) == 0;
    if (written)
        return CODE_DONE;
    int code = fail(path, failure);
    unlink(part);
    return code;
}

bool file_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}
