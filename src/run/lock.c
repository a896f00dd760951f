/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "io/folder.h"
#include "io/path.h"
#include <quern/train.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

qn_status qn_checkpoint_lock(const char *dir, int *descriptor, const qn_log *log)
{
    QN_REQUIRE(log, dir && *dir && descriptor);
    *descriptor = -1;
    QN_TRY(qn_folder_make(dir, log));
    int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return qn_fail_errno(log, dir, "open the folder");
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(folder);
        return qn_fail(log, QN_ERR_IO, "%s: another training saves here", dir);
    }
    *descriptor = folder; /* without a lock where the file system has none */
    return QN_OK;
}
