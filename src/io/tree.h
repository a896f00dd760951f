/* SPDX-License-Identifier: MIT
 *
 * Whole folder trees. Symbolic links are never followed.
 * Thread-safety: Safe, when nobody else changes the tree.
 */
#ifndef QN_IO_TREE_H
#define QN_IO_TREE_H

#include <quern/log.h>

/* Removes a file, a link, or a folder with all that is in it; nothing there is no error. Folders
 * nested deeper than those of this library are refused. */
qn_status qn_tree_remove(const char *path, const struct qn_log *log);

/* Brings all regular files and folders of a tree to the disk. */
qn_status qn_tree_sync(const char *path, const struct qn_log *log);

#endif
