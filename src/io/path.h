/* SPDX-License-Identifier: MIT
 *
 * Paths: joining and splitting, the temporary names that writers use, and errors of the system.
 * Thread-safety: Safe.
 */
#ifndef QN_IO_PATH_H
#define QN_IO_PATH_H

#include <quern/log.h>
#include <stdbool.h>

/* FOLDER/NAME; the folder of a path ("." when it names none). The caller frees; NULL: out of
 * memory. */
char *qn_path_join(const char *folder, const char *name);
char *qn_path_folder(const char *path);
/* The part after the last slash, inside `path`. */
const char *qn_path_name(const char *path);

/* FOLDER/.NAME.tmp-PID-ATTEMPT, and whether the last part of a path has that form. The caller
 * frees; NULL: out of memory. */
char *qn_path_temp(const char *folder, const char *name, int attempt);
bool qn_path_is_temp(const char *name);
/* How many attempts at a temporary name are made before giving up. */
enum { QN_TEMP_ATTEMPTS = 100 };

/* Takes the lock that marks a temporary file or folder as being written. The lock ends with the
 * process, so that what nobody holds was left by a writer that died. False: somebody else holds it,
 * or the file is already removed. */
bool qn_temp_claim(int fd);

/* "PATH: cannot ACTION: <text of errno>", QN_ERR_IO. */
qn_status qn_fail_errno(const struct qn_log *log, const char *path, const char *action);
qn_status qn_fail_memory(const struct qn_log *log, const char *path);

#endif
