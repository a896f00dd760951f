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
#include <stdlib.h>
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

/* For scandir: names that a save may have given, in the order of their updates. */
static int may_be_checkpoint(const struct dirent *entry)
{
    return is_update_name(entry->d_name);
}

static int by_update(const struct dirent **a, const struct dirent **b)
{
    char *end[2];
    const int64_t update[] = {strtoll((*a)->d_name + strlen(QN_UPDATE_PREFIX), &end[0], 10),
                              strtoll((*b)->d_name + strlen(QN_UPDATE_PREFIX), &end[1], 10)};
    const int64_t more[] = {strtoll(end[0], NULL, 10), strtoll(end[1], NULL, 10)}; /* -1, -2 */
    return update[0] != update[1] ? (update[0] > update[1]) - (update[0] < update[1])
                                  : (more[0] < more[1]) - (more[0] > more[1]);
}

static void remove_checkpoint(const char *dir, const char *name, const struct qn_log *log)
{
    char path[QN_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (qn_tree_remove(path, NULL) != QN_OK)
        qn_log_write(log, QN_LOG_WARNING, "%s: this older checkpoint cannot be removed", path);
}

/* Removes what no link names, save for the newest `keep`. */
static void prune(const char *dir, int keep, const struct qn_log *log)
{
    struct dirent **entries = NULL;
    const int count = scandir(dir, &entries, may_be_checkpoint, by_update);
    for (int i = count - 1; i >= 0; i--) {
        const char *name = entries[i]->d_name;
        if (is_checkpoint(dir, name) && --keep < 0 && !link_names(dir, "last", name) &&
            !link_names(dir, "best", name))
            remove_checkpoint(dir, name, log);
        free(entries[i]);
    }
    free(entries);
}

qn_status qn_checkpoint_link(const char *dir, const char *name, const struct qn_save_params *params,
                             const struct qn_log *log)
{
    /* What `last` names may know that it is the best so far: then `best` must be there. */
    if (params->best)
        QN_TRY(qn_link_replace(dir, "best", name, log));
    QN_TRY(qn_link_replace(dir, "last", name, log));
    /* The checkpoint stands: what stays of older ones is no failure. */
    prune(dir, params->keep, log);
    if (qn_leftovers_remove(dir, NULL, NULL) != QN_OK)
        qn_log_write(log, QN_LOG_WARNING, "%s: leftovers of a save cannot be removed", dir);
    return QN_OK;
}
