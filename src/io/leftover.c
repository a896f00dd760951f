/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "io/folder.h"
#include "io/path.h"
#include "io/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether no writer holds it; then the lock is ours while `fd` is open (-1: a link, which has
 * none). */
static bool abandoned(const char *path, int *fd)
{
    struct stat facts;
    *fd = -1;
    if (lstat(path, &facts) != 0)
        return false;
    if (S_ISLNK(facts.st_mode))
        return true;
    *fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return *fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0;
}

static qn_status give(const char *folder, const char *name, qn_leftover_fn fn, void *user,
                      const struct qn_log *log)
{
    char *path = qn_path_join(folder, name);
    if (!path)
        return qn_fail_memory(log, folder);
    int fd;
    qn_status status = abandoned(path, &fd) ? fn(user, path, log) : QN_OK;
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static qn_status give_all(DIR *entries, const char *folder, qn_leftover_fn fn, void *user,
                          const struct qn_log *log)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (!entry)
            return errno ? qn_fail_errno(log, folder, "list") : QN_OK;
        if (qn_path_is_temp(entry->d_name))
            QN_TRY(give(folder, entry->d_name, fn, user, log));
    }
}

qn_status qn_leftovers_each(const char *folder, qn_leftover_fn fn, void *user,
                            const struct qn_log *log)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return qn_fail_errno(log, folder, "list");
    qn_status status = give_all(entries, folder, fn, user, log);
    closedir(entries);
    return status;
}

static qn_status remove_one(void *user, const char *path, const struct qn_log *log)
{
    int64_t *count = user;
    ++*count;
    return qn_tree_remove(path, log);
}

qn_status qn_leftovers_remove(const char *folder, int64_t *count, const struct qn_log *log)
{
    int64_t removed = 0;
    qn_status status = qn_leftovers_each(folder, remove_one, &removed, log);
    if (count)
        *count = removed;
    return status;
}
