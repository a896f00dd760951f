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

enum { QN_CHECKPOINT_VERSION = 2, QN_PATH_BYTES = 4096, QN_NAME_BYTES = 64, QN_UPDATE_DIGITS = 8 };

/* The most that train.json may have: every other byte of it may become a node of 80 bytes. */
enum { QN_TRAIN_BYTES = 16 << 20 };

/* Counters that the device keeps from update to update. */
struct qn_counters {
    float loss_scale;
    uint32_t good_updates, applied;
    int64_t ring_rows[QN_MAX_CELLS];   /* stored in each ring, in the order of the plan's cells */
    int64_t ring_limits[QN_MAX_CELLS]; /* rows that stay in each; 0: all */
};

struct qn_checkpoint {
    struct qn_log log;
    struct qn_arena arena;
    struct qn_checkpoint_info info;
    struct qn_counters counters;
    /* The same with the plans of members of a group behind the first, which own nothing. */
    struct qn_checkpoint *members;
    int n_members;
};

/* A list of tensors to save or restore: where each lies on the device. */
struct qn_tensor_list {
    struct qn_named *items;
    int64_t *offsets; /* bytes into the value */
    int count;
    /* Of a file: */
    const qn_layout *layout; /* NULL: as the trainer has them */
    bool bare;               /* it leaves the layout's prefix out */
    void *room[2];           /* qn_open_tensors: of the largest, as it is read and as it becomes */
};

/* Parameters and state; the same with averages in the place of parameters that have one; or the
 * optimizer's slots of every trainable parameter, and those parameters. Allocated from `arena`. */
qn_status qn_list_weights(const struct qn_trainer *trainer, struct qn_arena *arena,
                          struct qn_tensor_list *list);
qn_status qn_list_averages(const struct qn_trainer *trainer, struct qn_arena *arena,
                           struct qn_tensor_list *list);
qn_status qn_list_slots(const struct qn_trainer *trainer, struct qn_arena *arena,
                        struct qn_tensor_list *list);

/* A free name in DIR: update-NNNNNNNN, or with -1, -2, ... behind it where that update was saved
 * already. So a save replaces nothing, and what the links name stands whole all the time. */
void qn_checkpoint_name(const char *dir, int64_t update, char name[QN_NAME_BYTES]);

/* Makes the links of DIR name its folder NAME, then removes the checkpoints that none names, save
 * for those that `params` keep. What cannot be removed is a warning. */
qn_status qn_checkpoint_link(const char *dir, const char *name, const struct qn_save_params *params,
                             const struct qn_log *log);

/* train.json. The text is freed by the caller; NULL when out of memory. */
char *qn_train_json(const struct qn_trainer *trainer, const struct qn_save_params *params,
                    const struct qn_counters *counters);
/* What of it a member of a group that does not write it has of its own, an entry of "members": the
 * facts of its device and what its plan was made of. */
char *qn_train_plan_json(const struct qn_trainer *trainer);
/* Fills info, counters and the members' plans from the text; `path` names the file in messages. */
qn_status qn_train_parse(struct qn_checkpoint *checkpoint, const char *path, const char *text);

/* What checksums.txt says of a file beside it. */
struct qn_checksum {
    uint32_t crc;
    int64_t bytes;
    char name[64];
};

/* The text of the list in a folder, freed by the caller; a line of it, false: it is none; and
 * whether a file is what its line says. */
qn_status qn_checksum_read(const struct qn_log *log, const char *folder, char **text);
bool qn_checksum_parse(const char *line, struct qn_checksum *checksum);
qn_status qn_checksum_check(const struct qn_log *log, const char *path,
                            const struct qn_checksum *want);
/* Checks a file, links followed, if a list lies beside it and names it. */
qn_status qn_checksum_check_listed(const struct qn_log *log, const char *path);

/* Leaves in the list what is to be loaded from a file, or, of a NULL one, saved; the rest as for
 * qn_open_tensors. */
qn_status qn_match_tensors(struct qn_tensor_list *list, const struct qn_weights_params *params,
                           const qn_tensors *file, const char *path, const struct qn_log *log);

/* Opens a file to restore a list from and leaves in the list what `params` choose; NULL: all of it
 * in its own types, and the file has no other tensor. What is missing, of another shape or too many
 * is an error, unless `params` allow it. `arena` gives host memory for one tensor. Then restoring
 * fails no more, save for the file or the device. */
qn_status qn_open_tensors(struct qn_tensor_list *list, const char *path,
                          const struct qn_weights_params *params, struct qn_arena *arena,
                          const struct qn_log *log, qn_tensors **file);
qn_status qn_restore_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                             const qn_tensors *file);

/* Writes a file of the list's tensors; `crc` and `bytes` as in qn_tensors_save. */
qn_status qn_save_tensors(struct qn_trainer *trainer, const struct qn_tensor_list *list,
                          const char *path, struct qn_arena *arena, uint32_t *crc, int64_t *bytes);

#endif
