/* SPDX-License-Identifier: MIT
 *
 * Which images a folder holds, and what each one is.
 */
#ifndef QN_DATA_IMAGE_FOLDER_H
#define QN_DATA_IMAGE_FOLDER_H

#include "base/arena.h"
#include "io/image.h"

struct qn_image_item {
    const char *path;
    const char *mask; /* NULL: the folder has none */
    int32_t label;    /* of its class; 0 where there is none */
    struct qn_image_facts facts, mask_facts;
};

/* Thread-safety: Safe; nothing changes after reading.
 * Lifetime: until qn_image_folder_free; a zeroed struct is none. */
struct qn_image_folder {
    struct qn_arena arena;
    struct qn_image_item *items; /* by class, then by name */
    int64_t count, capacity;
    const char **classes; /* their names, sorted by bytes; NULL: there are none */
    int64_t n_classes;
};

/* Finds the images of a folder, whose names end with .png, .jpg or .jpeg, and reads the header of
 * each. Without `mask`: those in the folders of `path`, a class each, at least two. With it: those
 * in `path` itself, each with a mask of its size beside it, NAME<mask>.png. QN_ERR_IO: not
 * readable; QN_ERR_FORMAT: the folder or a file in it is not what it should be. */
qn_status qn_image_folder_read(struct qn_image_folder *folder, const char *path, const char *mask,
                               const struct qn_log *log);
/* The same of images without labels: these files, and the images in these folders however deep,
 * those with `mask` before the ending of their names left out (NULL: none). */
qn_status qn_image_folder_list(struct qn_image_folder *folder, const char *const *paths,
                               int64_t count, const char *mask, const struct qn_log *log);
void qn_image_folder_free(struct qn_image_folder *folder);

/* CRC-32 of all names, sizes of files and labels. */
uint32_t qn_image_folder_checksum(const struct qn_image_folder *folder);

#endif
