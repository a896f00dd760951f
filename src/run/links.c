/* SPDX-License-Identifier: MIT
 *
 * The links that name checkpoints, and checkpoints that no link names any more.
 */
#include "base/log.h"
#include "io/folder.h"
#include "io/tree.h"
#include "run/checkpoint.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char DIGITS[] = "0123456789";

static bool link_names(const char *dir, const char *link, const char *folder)
{
    char path[QN_PATH_BYTES], target[256];
    snprintf(path, sizeof path, "%s/%s", dir, link);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = 0;
    return strcmp(target, folder) == 0;
}

void qn_checkpoint_name(const char *dir, int64_t update, char name[QN_NAME_BYTES])
{
    char path[QN_PATH_BYTES];
    struct stat status;
    int length =
        snprintf(name, QN_NAME_BYTES, "%s%0*" PRId64, QN_UPDATE_PREFIX, QN_UPDATE_DIGITS, update);
    for (int more = 1;; more++) {
        snprintf(path, sizeof path, "%s/%s", dir, name);
        if (lstat(path, &status) != 0)
            return;
        snprintf(name + length, (size_t)(QN_NAME_BYTES - length), "-%d", more);
    }
}

/* update-NNNNNNNN or update-NNNNNNNN-N. */
static bool is_update_name(const char *name)
{
    const char *number = name + strlen(QN_UPDATE_PREFIX);
    if (strncmp(name, QN_UPDATE_PREFIX, strlen(QN_UPDATE_PREFIX)) != 0)
        return false;
    const char *end = number + strspn(number, DIGITS);
    if (end - number < QN_UPDATE_DIGITS)
        return false;
    size_t more = *end == '-' ? strspn(end + 1, DIGITS) : 0;
    return !end[more ? more + 1 : 0];
}

/* Whether a save made it: the folder is the user's, and may hold files of theirs. */
static bool is_checkpoint(const char *dir, const char *name)
{
    char path[QN_PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!is_update_name(name) || lstat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return false;
    snprintf(path, sizeof path, "%s/%s/%s", dir, name, QN_CHECKSUM_FILE);
    return lstat(path, &status) == 0;
}

static void prune(const char *dir, const struct qn_log *log)
{
    DIR *open = opendir(dir);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        char path[QN_PATH_BYTES];
        const char *name = entry->d_name;
        if (!is_checkpoint(dir, name) || link_names(dir, "last", name) ||
            link_names(dir, "best", name))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, name);
        if (qn_tree_remove(path, NULL) != QN_OK)
            qn_log_write(log, QN_LOG_WARNING, "%s: this older checkpoint cannot be removed", path);
    }
    if (open)
        closedir(open);
}

qn_status qn_checkpoint_link(const char *dir, const char *name, bool best, const struct qn_log *log)
{
    /* What `last` names may know that it is the best so far: then `best` must be there. */
    if (best)
        QN_TRY(qn_link_replace(dir, "best", name, log));
    QN_TRY(qn_link_replace(dir, "last", name, log));
    /* The checkpoint stands: what stays of older ones is no failure. */
    prune(dir, log);
    if (qn_leftovers_remove(dir, NULL, NULL) != QN_OK)
        qn_log_write(log, QN_LOG_WARNING, "%s: leftovers of a save cannot be removed", dir);
    return QN_OK;
}
