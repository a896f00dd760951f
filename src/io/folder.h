/* SPDX-License-Identifier: MIT
 *
 * Folders that appear whole or not at all, the link to the last of them, and what writers that were
 * killed left behind.
 */
#ifndef QN_IO_FOLDER_H
#define QN_IO_FOLDER_H

#include <quern/log.h>
#include <stdint.h>

/* A folder being filled under a temporary name, `temp`, beside its own. A zeroed struct is none.
 * Thread-safety: Unsafe. Lifetime: until qn_folder_commit or qn_folder_discard; `log` is borrowed.
 */
struct qn_folder {
    int fd;
    char *path, *temp, *parent;
    const struct qn_log *log;
};

/* Makes PARENT/.NAME.tmp-PID-N; the caller puts files into `temp`. */
qn_status qn_folder_create(struct qn_folder *folder, const char *parent, const char *name,
                           const struct qn_log *log);
/* Brings every file to the disk and gives the folder its name PARENT/NAME. A folder that has the
 * name already is not replaced: that cannot be done in one step everywhere. Ends the folder either
 * way; on failure the temporary one is removed. */
qn_status qn_folder_commit(struct qn_folder *folder);
/* Removes the temporary folder. Does nothing to a zeroed or ended one. */
void qn_folder_discard(struct qn_folder *folder);

/* Makes a folder and those above it that are missing. */
qn_status qn_folder_make(const char *path, const struct qn_log *log);
/* Brings the names in a folder to the disk. */
qn_status qn_folder_sync(const char *path, const struct qn_log *log);

/* Makes the symbolic link FOLDER/NAME point to `target` (relative to FOLDER), in one step. What
 * stands there and is no link is refused. */
qn_status qn_link_replace(const char *folder, const char *name, const char *target,
                          const struct qn_log *log);

/* Called with the path of each leftover; whatever it returns but QN_OK ends the walk. */
typedef qn_status (*qn_leftover_fn)(void *user, const char *path, const struct qn_log *log);
/* Finds the temporary files, folders and links in `folder` that no living writer holds. */
qn_status qn_leftovers_each(const char *folder, qn_leftover_fn fn, void *user,
                            const struct qn_log *log);
/* Removes them; `count`, how many there were, may be NULL. */
qn_status qn_leftovers_remove(const char *folder, int64_t *count, const struct qn_log *log);

#endif
