/* SPDX-License-Identifier: MIT */
#include "io/tree.h"
#include "base/log.h"
#include "io/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 16 };

/* One walk: `path` is the root, for messages. */
struct walk {
    const char *path;
    const struct qn_log *log;
    qn_status (*visit)(const struct walk *walk, int folder, const char *name, int depth);
};

static int open_in(int folder, const char *name, int flags)
{
    return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
}

static qn_status visit_entries(const struct walk *walk, DIR *entries, int depth)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (!entry)
            return errno ? qn_fail_errno(walk->log, walk->path, "list") : QN_OK;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            QN_TRY(walk->visit(walk, dirfd(entries), entry->d_name, depth));
    }
}

/* Takes `fd`. */
static qn_status visit_folder(const struct walk *walk, int fd, int depth)
{
    if (depth > MAX_DEPTH) {
        close(fd);
        return qn_fail(walk->log, QN_ERR_IO, "%s: folders nested too deeply", walk->path);
    }
    DIR *entries = fdopendir(fd);
    if (!entries) {
        qn_status status = qn_fail_errno(walk->log, walk->path, "list");
        close(fd);
        return status;
    }
    qn_status status = visit_entries(walk, entries, depth);
    closedir(entries);
    return status;
}

static qn_status remove_entry(const struct walk *walk, int folder, const char *name, int depth)
{
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return QN_OK;
    int fd = open_in(folder, name, O_DIRECTORY);
    if (fd < 0)
        return qn_fail_errno(walk->log, walk->path, "remove");
    QN_TRY(visit_folder(walk, fd, depth + 1));
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return QN_OK;
    return qn_fail_errno(walk->log, walk->path, "remove");
}

qn_status qn_tree_remove(const char *path, const struct qn_log *log)
{
    struct walk walk = {path, log, remove_entry};
    return remove_entry(&walk, AT_FDCWD, path, 0);
}

static qn_status sync_open(const struct walk *walk, int fd, int depth)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return qn_fail_errno(walk->log, walk->path, "read");
    if (S_ISDIR(facts.st_mode)) {
        int again = open_in(fd, ".", O_DIRECTORY);
        if (again < 0)
            return qn_fail_errno(walk->log, walk->path, "list");
        QN_TRY(visit_folder(walk, again, depth + 1));
    }
    if ((S_ISDIR(facts.st_mode) || S_ISREG(facts.st_mode)) && fsync(fd) != 0)
        return qn_fail_errno(walk->log, walk->path, "bring to the disk");
    return QN_OK;
}

static qn_status sync_entry(const struct walk *walk, int folder, const char *name, int depth)
{
    int fd = open_in(folder, name, 0);
    if (fd < 0 && errno == ELOOP)
        return QN_OK;
    if (fd < 0)
        return qn_fail_errno(walk->log, walk->path, "bring to the disk");
    qn_status status = sync_open(walk, fd, depth);
    close(fd);
    return status;
}

qn_status qn_tree_sync(const char *path, const struct qn_log *log)
{
    struct walk walk = {path, log, sync_entry};
    return sync_entry(&walk, AT_FDCWD, path, 0);
}
