/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "io/folder.h"
#include "io/path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool in_the_way(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && !S_ISLNK(facts.st_mode);
}

/* True: done, or failed for good (errno says). A cleaner may remove the temporary link in between:
 * then another attempt is made. */
static bool try_link(const char *temp, const char *path, const char *target)
{
    if (symlink(target, temp) != 0)
        return errno != EEXIST;
    if (rename(temp, path) == 0) {
        errno = 0;
        return true;
    }
    int reason = errno;
    unlink(temp);
    errno = reason;
    return reason != ENOENT;
}

static qn_status link_to(const char *folder, const char *name, const char *path, const char *target,
                         const struct qn_log *log)
{
    for (int attempt = 0; attempt < QN_TEMP_ATTEMPTS; attempt++) {
        char *temp = qn_path_temp(folder, name, attempt);
        if (!temp)
            return qn_fail_memory(log, path);
        bool ended = try_link(temp, path, target);
        int reason = errno;
        free(temp);
        errno = reason;
        if (ended)
            break;
    }
    return errno ? qn_fail_errno(log, path, "make the link") : qn_folder_sync(folder, log);
}

qn_status qn_link_replace(const char *folder, const char *name, const char *target,
                          const struct qn_log *log)
{
    char *path = qn_path_join(folder, name);
    if (!path)
        return qn_fail_memory(log, folder);
    qn_status status = in_the_way(path)
                           ? qn_fail(log, QN_ERR_IO, "%s: is in the way of a link", path)
                           : link_to(folder, name, path, target, log);
    free(path);
    return status;
}
