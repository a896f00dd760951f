/* SPDX-License-Identifier: MIT
 *
 * A file is: struct header, the key, the binary. Numbers are in the byte order of the machine,
 * which the magic number tells.
 */
#include "base/cache.h"

#include "base/log.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <quern/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t magic = UINT64_C(0x51554552434c4231); /* "QUERCLB1" */
enum { VERSION = 1, NAME_BYTES = 64, PATH_BYTES = 4096, ATTEMPTS = 100 };
static const char temporary_start[] = "tmp.";
static const uint64_t largest_binary = UINT64_C(1) << 28, largest_text = UINT64_C(1) << 24;

struct header {
    uint64_t magic, version, key_length, binary_length, binary_hash;
};

static const char *choose_folder(const char *dir, char path[PATH_BYTES])
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (!dir)
        dir = getenv("QN_CACHE_DIR");
    if (dir)
        return dir;
    int length = -1;
    if (base && *base == '/')
        length = snprintf(path, PATH_BYTES, "%s/quern", base);
    else if (home && *home == '/')
        length = snprintf(path, PATH_BYTES, "%s/.cache/quern", home);
    return length > 0 && length < PATH_BYTES ? path : "";
}

/* Makes the folder and those above it. */
static void make_folders(const char *dir)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s", dir);
    for (char *c = path + 1; *c; c++) {
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0700);
            *c = '/';
        }
    }
    mkdir(path, 0700);
}

static const char *why_not(int folder)
{
    struct stat info;
    if (folder < 0 || fstat(folder, &info) != 0)
        return strerror(errno);
    if (info.st_uid != geteuid())
        return "it belongs to another user";
    return info.st_mode & 022 ? "other users may write to it" : NULL;
}

/* tmp.PROCESS.ATTEMPT: the name of a file that is being written; ATTEMPT was a hexadecimal number
 * once. */
static bool is_temporary(const char *name)
{
    const char *process = name + strlen(temporary_start);
    if (strncmp(name, temporary_start, strlen(temporary_start)) != 0)
        return false;
    const char *dot = process + strspn(process, "0123456789"), *attempt = dot + (*dot == '.');
    const char *end = attempt + strspn(attempt, "0123456789abcdef");
    return dot > process && attempt > dot && end > attempt && !*end;
}

/* Removes the file if no writer holds its lock: the lock ends with the process that took it. */
static void remove_abandoned(int folder, const char *name)
{
    struct stat info;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(file);
}

/* What writers that were killed left behind. */
static void clean(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_temporary(entry->d_name))
            remove_abandoned(folder, entry->d_name);
    if (entries)
        closedir(entries);
    else if (again >= 0)
        close(again);
}

int qn_cache_open(const char *dir, const qn_log *log)
{
    char path[PATH_BYTES];
    dir = choose_folder(dir, path);
    if (!*dir || strlen(dir) >= PATH_BYTES)
        return -1;
    make_folders(dir);
    int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *why = why_not(folder);
    if (!why) {
        clean(folder);
        return folder;
    }
    qn_log_write(log, QN_LOG_DEBUG, "%s: not used as a cache: %s", dir, why);
    qn_cache_close(folder);
    return -1;
}

void qn_cache_close(int cache)
{
    if (cache >= 0)
        close(cache);
}

bool qn_cache_folder(char *path, size_t room)
{
    char chosen[PATH_BYTES];
    const char *dir = choose_folder(NULL, chosen);
    const int folder = qn_cache_open(dir, NULL);
    qn_cache_close(folder);
    return folder >= 0 && snprintf(path, room, "%s", dir) < (int)room;
}

static void file_name(char name[NAME_BYTES], const char *key, size_t length)
{
    snprintf(name, NAME_BYTES, "%016" PRIx64 ".bin", qn_hash(QN_HASH_START, key, length));
}

static bool is_private_file(int file, uint64_t *size)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & 022) || info.st_size < 0)
        return false;
    *size = (uint64_t)info.st_size;
    return true;
}

static bool read_all(int file, void *to, size_t size)
{
    for (char *at = to; size > 0;) {
        ssize_t n = read(file, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *from, size_t size)
{
    for (const char *at = from; size > 0;) {
        ssize_t n = write(file, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool read_header(int file, size_t key_length, struct header *header)
{
    uint64_t size;
    return is_private_file(file, &size) && read_all(file, header, sizeof *header) &&
           header->magic == magic && header->version == VERSION &&
           header->key_length == key_length && header->binary_length > 0 &&
           header->binary_length <= largest_binary &&
           size == sizeof *header + key_length + header->binary_length;
}

static bool read_key(int file, const char *key, size_t length)
{
    char *stored = malloc(length + 1);
    bool same = stored && read_all(file, stored, length) && memcmp(stored, key, length) == 0;
    free(stored);
    return same;
}

static bool read_binary(int file, const struct header *header, struct qn_binary *binary)
{
    binary->size = (size_t)header->binary_length;
    binary->bytes = malloc(binary->size);
    if (binary->bytes && read_all(file, binary->bytes, binary->size) &&
        qn_hash(QN_HASH_START, binary->bytes, binary->size) == header->binary_hash)
        return true;
    free(binary->bytes);
    *binary = (struct qn_binary){0};
    return false;
}

bool qn_cache_load(int cache, const char *key, size_t length, struct qn_binary *binary)
{
    *binary = (struct qn_binary){0};
    if (cache < 0)
        return false;
    char name[NAME_BYTES];
    file_name(name, key, length);
    int file = openat(cache, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    struct header header;
    bool good = read_header(file, length, &header) && read_key(file, key, length) &&
                read_binary(file, &header, binary);
    close(file);
    return good;
}

/* Takes the lock that tells `clean` of a living writer. False: `clean` was there first, and the
 * file is gone. A file system without locks is never cleaned. */
static bool claim(int file)
{
    struct stat info;
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(file, &info) == 0 && info.st_nlink > 0;
}

/* Opens a file that does not exist yet, to be renamed once it is whole. */
static int open_temporary(int cache, char name[NAME_BYTES])
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(name, NAME_BYTES, "%s%ld.%d", temporary_start, (long)getpid(), attempt);
        int file = openat(cache, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 && claim(file))
            return file;
        if (file >= 0)
            close(file);
        else if (errno != EEXIST)
            break;
    }
    return -1;
}

/* Closes it and gives it its name, if all went well; otherwise removes it. */
static bool keep_temporary(int cache, int file, const char *temporary, const char *name, bool good)
{
    good = close(file) == 0 && good && renameat(cache, temporary, cache, name) == 0;
    if (!good) {
        const int error = errno;
        unlinkat(cache, temporary, 0);
        errno = error;
    }
    return good;
}

void qn_cache_store(int cache, const char *key, size_t length, const struct qn_binary *binary)
{
    if (cache < 0 || binary->size == 0 || binary->size > largest_binary)
        return;
    char name[NAME_BYTES], temporary[NAME_BYTES];
    file_name(name, key, length);
    int file = open_temporary(cache, temporary);
    if (file < 0)
        return;
    const struct header header = {magic, VERSION, length, binary->size,
                                  qn_hash(QN_HASH_START, binary->bytes, binary->size)};
    bool good = write_all(file, &header, sizeof header) && write_all(file, key, length) &&
                write_all(file, binary->bytes, binary->size);
    keep_temporary(cache, file, temporary, name, good);
}

char *qn_cache_load_text(int cache, const char *name)
{
    int file = cache < 0 ? -1 : openat(cache, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return NULL;
    uint64_t size;
    char *text = NULL;
    if (is_private_file(file, &size) && size <= largest_text)
        text = calloc(size + 1, 1);
    if (text && !read_all(file, text, size)) {
        free(text);
        text = NULL;
    }
    close(file);
    return text;
}

bool qn_cache_store_text(int cache, const char *name, const char *text)
{
    char temporary[NAME_BYTES];
    errno = ENOENT;
    int file = cache < 0 ? -1 : open_temporary(cache, temporary);
    return file >= 0 &&
           keep_temporary(cache, file, temporary, name, write_all(file, text, strlen(text)));
}
