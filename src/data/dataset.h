/* SPDX-License-Identifier: MIT
 *
 * What is behind a qn_dataset: arrays of IDX files, or a folder of images.
 */
#ifndef QN_DATA_DATASET_H
#define QN_DATA_DATASET_H

#include "data/augment.h"
#include "data/image_folder.h"
#include "io/idx.h"

#include <quern/data.h>

struct qn_dataset {
    struct qn_dataset_facts facts;
    struct qn_idx images, labels;
    struct qn_image_folder folder; /* without items: they are the arrays */
    struct qn_fit fit;             /* of the folder's images */
};

/* What reading a sample takes besides its place. A zeroed struct is none. */
struct qn_rooms {
    struct qn_room pixels, passes;
};
void qn_rooms_free(struct qn_rooms *rooms);

/* Puts sample `draw->sample` into `image` (image_bytes) and `label` (label_bytes).
 * Thread-safety: Safe, with rooms for each thread. */
qn_status qn_dataset_read(const struct qn_dataset *dataset, const struct qn_draw *draw,
                          struct qn_rooms *rooms, void *image, void *label,
                          const struct qn_log *log);

/* The same for a folder of images. */
qn_status qn_images_read(const struct qn_dataset *dataset, const struct qn_draw *draw,
                         struct qn_rooms *rooms, void *image, void *label,
                         const struct qn_log *log);

#endif
