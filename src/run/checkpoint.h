/* SPDX-License-Identifier: MIT
 *
 * The parts of a checkpoint, shared by saving and restoring.
 */
#ifndef QN_RUN_CHECKPOINT_H
#define QN_RUN_CHECKPOINT_H

#include "run/trainer.h"
#include <quern/io.h>

#define QN_WEIGHTS_FILE "weights.safetensors"
#define QN_OPTIMIZER_FILE "optimizer.safetensors"
#define QN_TRAIN_FILE "train.json"
#define QN_CHECKSUM_FILE "checksums.txt"
#define QN_UPDATE_PREFIX "update-" /* of a checkpoint's folder, then digits */

enum { QN_CHECKPOINT_VERSION = 1, QN_PATH_BYTES = 4096, QN_NAME_BYTES = 64, QN_UPDATE_DIGITS = 8 };

/* Counters that the device keeps from update to update. */
struct qn_counters {
    float loss_scale;
    uint32_t good_updates, applied;
};

struct qn_checkpoint {
    struct qn_log log;
    struct qn_arena arena;
    struct qn_checkpoint_info info;
    struct qn_counters counters;
};

/* PyTorch's name of an optimizer's slot: "exp_avg". */
const char *qn_optimizer_slot_name(enum qn_optimizer_kind kind, int slot);

/* A list of tensors to save or restore: where each lies on the device. */
struct qn_tensor_list {
    struct qn_named *items;
    int64_t *offsets; /* bytes into the value */
    int count;
};

/* Parameters and state; or the optimizer's slots of every trainable parameter. Allocated from
 * `arena`. */
qn_status qn_list_weights(const struct qn_trainer *trainer, struct qn_arena *arena,
                          struct qn_tensor_list *list);
qn_status qn_list_slots(const struct qn_trainer *trainer, struct qn_arena *arena,
                        struct qn_tensor_list *list);

/* A free name in DIR: update-NNNNNNNN, or with -1, -2, ... behind it where that update was saved
 * already. So a save replaces nothing, and what the links name stands whole all the time. */
void qn_checkpoint_name(const char *dir, int64_t update, char name[QN_NAME_BYTES]);

/* Makes the links of DIR name its folder NAME, then removes the checkpoints that none names. What
 * cannot be removed is a warning. */
qn_status qn_checkpoint_link(const char *dir, const char *name, bool best,
                             const struct qn_log *log);

/* train.json. The text is freed by the caller; NULL when out of memory. */
char *qn_train_json(const struct qn_trainer *trainer, const struct qn_save_params *params,
                    const struct qn_counters *counters);
/* Fills info and counters from the text; `path` names the file in messages. */
qn_status qn_train_parse(struct qn_checkpoint *checkpoint, const char *path, const char *text);

/* Opens a file that has every tensor of the list and no other; what is missing, of another shape or
 * too many is an error. Then it can be written to the device. */
qn_status qn_open_tensors(const struct qn_tensor_list *list, const char *path,
                          const struct qn_log *log, qn_tensors **file);
qn_status qn_restore_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                             const qn_tensors *file);

#endif
