/* SPDX-License-Identifier: MIT */
#include "newest.h"
#include "file.h"

enum { ATTEMPTS = 5 };

qn_status newest_open(qn_checkpoint **checkpoint, const char *path, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    qn_status status = QN_ERR_IO;
    for (int i = 0; status == QN_ERR_IO && i < ATTEMPTS; i++) {
        failure_clear(failure);
        status = qn_checkpoint_open(checkpoint, path, &log);
    }
    return status;
}

qn_status newest_load(qn_trainer *trainer, const char *path, struct failure *failure)
{
    qn_checkpoint *checkpoint = NULL;
    qn_status status = QN_ERR_IO;
    if (!file_is_folder(path))
        return qn_weights_load(trainer, path);
    for (int i = 0; status == QN_ERR_IO && i < ATTEMPTS; i++) {
        status = newest_open(&checkpoint, path, failure);
        if (status == QN_OK)
            status = qn_weights_load(trainer, qn_checkpoint_describe(checkpoint)->weights);
        qn_checkpoint_close(&checkpoint);
    }
    return status;
}
