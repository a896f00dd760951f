/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

int file_begin(struct file_part *part, const char *path, struct failure *failure)
{
    part->path = path;
    if (snprintf(part->name, sizeof part->name, "%s.XXXXXX", path) >= (int)sizeof part->name)
        return failure_set(failure, CODE_FAILED, "%s: the path is too long", path);
    part->descriptor = mkstemp(part->name);
    return part->descriptor < 0 ? fail(path, failure) : CODE_DONE;
}

int file_add(struct file_part *part, const void *bytes, size_t size, struct failure *failure)
{
    for (const char *at = bytes; size;) {
        const ssize_t n = write(part->descriptor, at, size);
        if (n < 0 && errno != EINTR)
            return fail(part->path, failure);
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return CODE_DONE;
}

/* On the disk, with the mode that the user's mask leaves. */
static bool keep_part(const struct file_part *part)
{
    const mode_t mask = umask(0);
    umask(mask);
    return fsync(part->descriptor) == 0 && fchmod(part->descriptor, 0666 & ~mask) == 0;
}

int file_end(struct file_part *part, int code, struct failure *failure)
{
    bool done = !code && keep_part(part);
    done = close(part->descriptor) == 0 && done && rename(part->name, part->path) == 0;
    if (done)
        return CODE_DONE;
    if (!code)
        code = fail(part->path, failure);
    unlink(part->name);
    return code;
}

void file_drop(struct file_part *part)
{
    close(part->descriptor);
    unlink(part->name);
}

int file_write(const char *path, const void *bytes, size_t size, struct failure *failure)
{
    struct file_part part;
    TRY(file_begin(&part, path, failure));
    return file_end(&part, file_add(&part, bytes, size, failure), failure);
}

int file_replace(const char *path, const char *text, struct failure *failure)
{
    return file_write(path, text, strlen(text), failure);
}

static int map(const void **bytes, size_t *size, int descriptor, const char *path,
               struct failure *failure)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return fail(path, failure);
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, CODE_FAILED, "%s: not a regular file", path);
    if (status.st_size == 0)
        return failure_set(failure, CODE_FAILED, "%s: is empty", path);
    *size = (size_t)status.st_size;
    void *memory = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED)
        return fail(path, failure);
    *bytes = memory;
    return CODE_DONE;
}

int file_map(const void **bytes, size_t *size, const char *path, struct failure *failure)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return fail(path, failure);
    const int code = map(bytes, size, descriptor, path, failure);
    close(descriptor);
    return code;
}

void file_unmap(const void *bytes, size_t size)
{
    munmap((void *)bytes, size);
}

bool file_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

void file_remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}
