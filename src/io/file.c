/* SPDX-License-Identifier: MIT */
#include "io/file.h"
#include "base/log.h"
#include "io/folder.h"
#include "io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PART_BYTES = 1 << 18, PAGE = 4096, PAGES = 64 };

static void end_file(struct qn_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->temp);
    *file = (struct qn_file){0};
}

static qn_status open_temp(struct qn_file *file, const char *folder)
{
    for (int attempt = 0; attempt < QN_TEMP_ATTEMPTS; attempt++) {
        free(file->temp);
        file->temp = qn_path_temp(folder, qn_path_name(file->path), attempt);
        if (!file->temp)
            return qn_fail_memory(file->log, file->path);
        file->fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0 && qn_temp_claim(file->fd))
            return QN_OK;
        if (file->fd < 0 && errno != EEXIST)
            break;
        if (file->fd >= 0)
            close(file->fd);
        file->fd = -1;
    }
    return qn_fail_errno(file->log, file->path, "write");
}

qn_status qn_file_create(struct qn_file *file, const char *path, const struct qn_log *log)
{
    *file = (struct qn_file){.fd = -1, .path = qn_path_join("", path), .log = log};
    char *folder = qn_path_folder(path);
    qn_status status = file->path && folder ? open_temp(file, folder) : qn_fail_memory(log, path);
    free(folder);
    if (status != QN_OK)
        end_file(file);
    return status;
}

qn_status qn_file_put(struct qn_file *file, int64_t offset, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t done = pwrite(file->fd, at, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return qn_fail_errno(file->log, file->path, "write");
        at += done;
        offset += done;
        size -= (size_t)done;
    }
    return QN_OK;
}

static qn_status publish(struct qn_file *file)
{
    if (fsync(file->fd) != 0)
        return qn_fail_errno(file->log, file->path, "bring to the disk");
    if (rename(file->temp, file->path) != 0)
        return qn_fail_errno(file->log, file->path, "rename to");
    char *folder = qn_path_folder(file->path);
    qn_status status =
        folder ? qn_folder_sync(folder, file->log) : qn_fail_memory(file->log, file->path);
    free(folder);
    return status;
}

qn_status qn_file_commit(struct qn_file *file)
{
    qn_status status = publish(file);
    if (status == QN_OK)
        end_file(file);
    else
        qn_file_discard(file);
    return status;
}

void qn_file_discard(struct qn_file *file)
{
    if (file->temp)
        unlink(file->temp);
    end_file(file);
}

qn_status qn_file_write(const char *path, const void *bytes, size_t size, const struct qn_log *log)
{
    struct qn_file file = {0};
    QN_TRY(qn_file_create(&file, path, log));
    qn_status status = qn_file_put(&file, 0, bytes, size);
    if (status == QN_OK)
        return qn_file_commit(&file);
    qn_file_discard(&file);
    return status;
}

qn_status qn_read_at(int fd, const char *path, int64_t offset, void *bytes, size_t size,
                     const struct qn_log *log)
{
    char *at = bytes;
    while (size) {
        ssize_t done = pread(fd, at, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return qn_fail_errno(log, path, "read");
        if (done == 0)
            return qn_fail(log, QN_ERR_FORMAT, "%s: ends early", path);
        at += done;
        offset += done;
        size -= (size_t)done;
    }
    return QN_OK;
}

qn_status qn_file_open(const char *path, int *fd, int64_t *bytes, const struct qn_log *log)
{
    struct stat facts;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &facts) != 0) {
        qn_status status = qn_fail_errno(log, path, "read");
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return status;
    }
    *bytes = facts.st_size;
    if (S_ISREG(facts.st_mode))
        return QN_OK;
    close(*fd);
    *fd = -1;
    return qn_fail(log, QN_ERR_IO, "%s: not a regular file", path);
}

static qn_status read_whole(int fd, const char *path, int64_t length, char **bytes,
                            const struct qn_log *log)
{
    char *memory = malloc((size_t)length + 1);
    if (!memory)
        return qn_fail_memory(log, path);
    qn_status status = qn_read_at(fd, path, 0, memory, (size_t)length, log);
    if (status != QN_OK) {
        free(memory);
        return status;
    }
    memory[length] = 0;
    *bytes = memory;
    return QN_OK;
}

qn_status qn_file_read(const char *path, int64_t limit, char **bytes, size_t *size,
                       const struct qn_log *log)
{
    int fd;
    int64_t length;
    *bytes = NULL;
    *size = 0;
    QN_TRY(qn_file_open(path, &fd, &length, log));
    qn_status status = length > limit ? qn_fail(log, QN_ERR_FORMAT, "%s: larger than %lld bytes",
                                                path, (long long)limit)
                                      : read_whole(fd, path, length, bytes, log);
    close(fd);
    if (status == QN_OK)
        *size = (size_t)length;
    return status;
}

static qn_status sum_parts(int fd, const char *path, int64_t length, unsigned char *part,
                           uint32_t *crc, const struct qn_log *log)
{
    uLong sum = crc32(0, NULL, 0);
    for (int64_t at = 0; at < length; at += PART_BYTES) {
        size_t size = length - at < PART_BYTES ? (size_t)(length - at) : PART_BYTES;
        QN_TRY(qn_read_at(fd, path, at, part, size, log));
        sum = crc32(sum, part, (uInt)size);
    }
    *crc = (uint32_t)sum;
    return QN_OK;
}

qn_status qn_file_crc32(const char *path, uint32_t *crc, int64_t *bytes, const struct qn_log *log)
{
    int fd;
    int64_t length;
    QN_TRY(qn_file_open(path, &fd, &length, log));
    unsigned char *part = malloc(PART_BYTES);
    qn_status status =
        part ? sum_parts(fd, path, length, part, crc, log) : qn_fail_memory(log, path);
    free(part);
    close(fd);
    if (status == QN_OK && bytes)
        *bytes = length;
    return status;
}

uint32_t qn_file_pages_crc32(int fd, const char *path, int64_t bytes)
{
    const int64_t whole = (bytes + PAGE - 1) / PAGE, pages = whole < PAGES ? whole : PAGES;
    const size_t size = bytes < PAGE ? (size_t)bytes : PAGE;
    uint8_t page[PAGE];
    uLong sum = crc32_z(0, (const Bytef *)&bytes, sizeof bytes);
    for (int64_t i = 0; i < pages; i++) {
        const int64_t at = pages == 1 ? 0 : i * (bytes - PAGE) / (pages - 1);
        if (qn_read_at(fd, path, at, page, size, NULL) == QN_OK)
            sum = crc32_z(sum, page, size);
    }
    return (uint32_t)sum;
}
