/* SPDX-License-Identifier: MIT */
#include "io/folder.h"
#include "base/log.h"
#include "io/path.h"
#include "io/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void end_folder(struct qn_folder *folder)
{
    if (folder->path && folder->fd >= 0)
        close(folder->fd);
    free(folder->path);
    free(folder->temp);
    free(folder->parent);
    *folder = (struct qn_folder){0};
}

static qn_status make_temp(struct qn_folder *folder, const char *name)
{
    for (int attempt = 0; attempt < QN_TEMP_ATTEMPTS; attempt++) {
        free(folder->temp);
        folder->temp = qn_path_temp(folder->parent, name, attempt);
        if (!folder->temp)
            return qn_fail_memory(folder->log, folder->path);
        if (mkdir(folder->temp, 0777) != 0) {
            if (errno != EEXIST)
                break;
            continue;
        }
        folder->fd = open(folder->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder->fd >= 0 && qn_temp_claim(folder->fd))
            return QN_OK;
        if (folder->fd >= 0)
            close(folder->fd);
        folder->fd = -1;
    }
    return qn_fail_errno(folder->log, folder->path, "make the folder");
}

qn_status qn_folder_create(struct qn_folder *folder, const char *parent, const char *name,
                           const struct qn_log *log)
{
    *folder = (struct qn_folder){.fd = -1,
                                 .path = qn_path_join(parent, name),
                                 .parent = qn_path_join("", parent),
                                 .log = log};
    qn_status status =
        folder->path && folder->parent ? make_temp(folder, name) : qn_fail_memory(log, parent);
    if (status != QN_OK)
        end_folder(folder);
    return status;
}

/* The new folder stands already: what stays of the old one is a leftover, no failure. */
static void remove_old(const struct qn_folder *folder, const char *old)
{
    if (qn_tree_remove(old, NULL) != QN_OK)
        qn_log_write(folder->log, QN_LOG_WARNING, "%s: cannot remove the older folder %s",
                     folder->path, old);
}

/* Exchanges two names in one step. False: this file system or kernel cannot. */
static bool exchange(const char *a, const char *b)
{
#ifdef SYS_renameat2
    const unsigned flag = 1u << 1; /* RENAME_EXCHANGE */
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, flag) == 0;
#else
    (void)a, (void)b;
    return false;
#endif
}

/* Moves the older folder to a temporary name, so that a death in between loses nothing. */
static qn_status step_aside(struct qn_folder *folder, char **old)
{
    for (int attempt = 0; attempt < QN_TEMP_ATTEMPTS; attempt++) {
        free(*old);
        *old = qn_path_temp(folder->parent, qn_path_name(folder->path), attempt);
        if (!*old)
            return qn_fail_memory(folder->log, folder->path);
        if (strcmp(*old, folder->temp) != 0 && rename(folder->path, *old) == 0)
            return QN_OK;
    }
    return qn_fail_errno(folder->log, folder->path, "replace");
}

static qn_status replace_in_two_steps(struct qn_folder *folder)
{
    char *old = NULL;
    qn_status status = step_aside(folder, &old);
    if (status == QN_OK && rename(folder->temp, folder->path) != 0) {
        status = qn_fail_errno(folder->log, folder->path, "rename to");
        rename(old, folder->path);
    }
    if (status == QN_OK)
        remove_old(folder, old);
    free(old);
    return status;
}

static qn_status take_name(struct qn_folder *folder)
{
    if (rename(folder->temp, folder->path) == 0)
        return QN_OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return qn_fail_errno(folder->log, folder->path, "rename to");
    if (!exchange(folder->temp, folder->path))
        return replace_in_two_steps(folder);
    QN_TRY(qn_folder_sync(folder->parent, folder->log));
    remove_old(folder, folder->temp);
    return QN_OK;
}

qn_status qn_folder_commit(struct qn_folder *folder)
{
    qn_status status = qn_tree_sync(folder->temp, folder->log);
    if (status == QN_OK)
        status = take_name(folder);
    if (status == QN_OK)
        status = qn_folder_sync(folder->parent, folder->log);
    if (status == QN_OK)
        end_folder(folder);
    else
        qn_folder_discard(folder);
    return status;
}

void qn_folder_discard(struct qn_folder *folder)
{
    if (folder->temp)
        qn_tree_remove(folder->temp, NULL);
    end_folder(folder);
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

qn_status qn_folder_make(const char *path, const struct qn_log *log)
{
    if (is_folder(path))
        return QN_OK;
    char *copy = qn_path_join("", path);
    if (!copy)
        return qn_fail_memory(log, path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0777);
        *slash = '/';
    }
    int failed = mkdir(copy, 0777);
    free(copy);
    return failed && !is_folder(path) ? qn_fail_errno(log, path, "make the folder") : QN_OK;
}

qn_status qn_folder_sync(const char *path, const struct qn_log *log)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return qn_fail_errno(log, path, "open the folder");
    /* EINVAL: a file system whose folders cannot be synchronised. */
    bool done = fsync(fd) == 0 || errno == EINVAL;
    qn_status status = done ? QN_OK : qn_fail_errno(log, path, "bring to the disk");
    close(fd);
    return status;
}
