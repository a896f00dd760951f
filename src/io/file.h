/* SPDX-License-Identifier: MIT
 *
 * Files that appear whole or not at all, and whole files read and checked.
 */
#ifndef QN_IO_FILE_H
#define QN_IO_FILE_H

#include <quern/log.h>
#include <stddef.h>
#include <stdint.h>

/* A file being written under a temporary name beside its own. A zeroed struct is none.
 * Thread-safety: Unsafe. Lifetime: until qn_file_commit or qn_file_discard; `log` is borrowed. */
struct qn_file {
    int fd;
    char *path, *temp;
    const struct qn_log *log;
};

qn_status qn_file_create(struct qn_file *file, const char *path, const struct qn_log *log);
qn_status qn_file_put(struct qn_file *file, int64_t offset, const void *bytes, size_t size);
/* Brings the bytes to the disk, gives the file its name, replacing what had it, and brings the
 * folder to the disk. Ends the file either way; on failure the temporary file is removed. */
qn_status qn_file_commit(struct qn_file *file);
/* Removes the temporary file. Does nothing to a zeroed or ended one. */
void qn_file_discard(struct qn_file *file);

/* The three at once. */
qn_status qn_file_write(const char *path, const void *bytes, size_t size, const struct qn_log *log);

/* A whole file of at most `limit` bytes, with a NUL behind it that `size` does not count. The
 * caller frees `bytes`. A larger one is QN_ERR_FORMAT. */
qn_status qn_file_read(const char *path, int64_t limit, char **bytes, size_t *size,
                       const struct qn_log *log);

/* Opens a regular file for reading, and its size in bytes. The caller closes `fd`, which is -1 on
 * failure. */
qn_status qn_file_open(const char *path, int *fd, int64_t *bytes, const struct qn_log *log);

/* CRC-32 (zlib's) and size of a file. `bytes` may be NULL. */
qn_status qn_file_crc32(const char *path, uint32_t *crc, int64_t *bytes, const struct qn_log *log);

/* CRC-32 of the size of an open file and of 64 pages of 4096 bytes, evenly spread from the first to
 * the last: of the whole file where it is smaller. A page that cannot be read counts nothing. */
uint32_t qn_file_pages_crc32(int fd, const char *path, int64_t bytes);

/* Reads exactly `size` bytes from `offset` on, or fails: "PATH: ends early". */
qn_status qn_read_at(int fd, const char *path, int64_t offset, void *bytes, size_t size,
                     const struct qn_log *log);

#endif
