/* SPDX-License-Identifier: MIT */
#include "io/folder.h"
#include "base/log.h"
#include "io/names.h"
#include "io/path.h"
#include "io/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static qn_status take_name(const struct qn_folder *folder)
{
    if (rename(folder->temp, folder->path) == 0)
        return QN_OK;
    return qn_fail_errno(folder->log, folder->path, "rename to");
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

/* Makes a folder unless it is there; gives 0 or the reason why it is not. */
static int make_one(const char *path)
{
    const int reason = mkdir(path, 0777) == 0 ? 0 : errno;
    return reason && !qn_is_folder(path) ? reason : 0;
}

qn_status qn_folder_make(const char *path, const struct qn_log *log)
{
    if (qn_is_folder(path))
        return QN_OK;
    char *copy = qn_path_join("", path);
    if (!copy)
        return qn_fail_memory(log, path);
    int reason = 0;
    /* Below a file the next folder says that it is none; below all else the first reason counts. */
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        reason = reason && reason != EEXIST ? reason : make_one(copy);
        *slash = '/';
    }
    reason = reason && reason != EEXIST ? reason : make_one(copy);
    free(copy);
    errno = reason;
    return reason ? qn_fail_errno(log, path, "make the folder") : QN_OK;
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
