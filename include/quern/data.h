/* SPDX-License-Identifier: MIT
 *
 * Labelled images, in host memory or in files, and the loader that puts them in a seeded random
 * order and has the next cycles ready.
 */
#ifndef QUERN_DATA_H
#define QUERN_DATA_H

#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qn_split {
    QN_SPLIT_TRAIN,
    QN_SPLIT_TEST,
} qn_split;

typedef struct qn_dataset_params {
    qn_log log;
    const char *name;   /* "fashion-mnist": read from QN_DATA_DIR, else from the folder of the
                           distribution's package. Ignored when one of the following is set, save in
                           messages */
    const char *path;   /* a folder of IDX files under their usual names, such as
                           train-images-idx3-ubyte, t10k-labels-idx1-ubyte, with or without .gz */
    const char *images; /* or one pair of IDX files, both named here; `split` then says nothing */
    const char *labels;
    qn_split split;
} qn_dataset_params;

/* What is in a dataset. The arrays are borrowed from it. */
typedef struct qn_dataset_facts {
    int64_t count; /* samples, at least 1 */
    int channels, height, width;
    int64_t image_bytes;   /* of one image: channels * height * width */
    int64_t label_bytes;   /* of what is to be learnt of one: 4, or height * width of a mask */
    int64_t classes;       /* largest label + 1; with masks, as many as were named */
    const uint8_t *images; /* (count, channels, height, width); NULL: a loader reads the files */
    const int32_t *labels; /* (count), none negative; NULL: each image has a mask */
    const char *const *class_names; /* (classes) of folders; NULL: they have none */
} qn_dataset_facts;

/* Images u8 with one label each, or with a mask: one label u8 for each pixel. IDX files are read
 * whole into host memory when opened; images of a folder are read by loaders.
 * Thread-safety: Safe; nothing changes after opening.
 * Lifetime: until qn_dataset_close; must outlive its loaders. */
typedef struct qn_dataset qn_dataset;

/* Opens a dataset. Images are IDX u8 of 3 dimensions (one channel) or 4 (samples, channels, height,
 * width), labels IDX u8 or i32 of 1 dimension. QN_ERR_IO: a file is missing or not readable;
 * QN_ERR_FORMAT: it is not what it should be, or the counts differ. */
QN_API qn_status qn_dataset_open(qn_dataset **dataset, const qn_dataset_params *params);

/* How the PNG and JPEG files of a folder become images of one size. Pairs are height and width. */
typedef struct qn_image_params {
    qn_log log;
    const char *path; /* holds a folder of images for each class, or, with masks, the images */
    int channels;     /* 3: red, green, blue; 1: grey; 0: 3 */
    int size[2];      /* images are resized to it; width 0: the shorter side becomes the height, the
                         other follows in proportion; both 0: they stay as they are */
    int crop[2];      /* then this much is cut out; both 0: nothing is cut off */
    bool random_crop; /* anywhere, rather than from the middle */
    bool flip;        /* left and right change places, or do not */
    const char *mask; /* "_mask": the file NAME_mask.png beside NAME.jpg holds the class of each of
                         its pixels, grey or as the index in a palette; NULL: no masks */
    int64_t classes;  /* with masks: how many there are, 1 to 256 */
} qn_image_params;

/* Opens a folder of images: files whose names end with .png, .jpg or .jpeg. Classes are its
 * folders, counted from 0 in the order of their names' bytes. The header of every file is read
 * here, the rest by loaders. Images are resized bilinearly, over all pixels that one covers where
 * they shrink (as Pillow's BILINEAR, bit for bit), masks to the nearest pixel; the middle is
 * torchvision's. Where it is cut and whether it is flipped is drawn from (seed, epoch, sample) of
 * the loader, whatever the cycles are. QN_ERR_IO: a file is not readable; QN_ERR_FORMAT: it is not
 * what it should be, or the images have different sizes in the end. */
QN_API qn_status qn_dataset_open_images(qn_dataset **dataset, const qn_image_params *params);

/* Closes and sets to NULL; accepts a pointer to NULL. */
QN_API void qn_dataset_close(qn_dataset **dataset);
/* Borrowed, valid while the dataset is open. */
QN_API const qn_dataset_facts *qn_dataset_describe(const qn_dataset *dataset);
/* CRC-32 of all images, then all labels; of folders, of the names and sizes of files and the
 * labels: tells two datasets apart. */
QN_API uint32_t qn_dataset_checksum(const qn_dataset *dataset);

typedef struct qn_loader_params {
    qn_log log;
    uint64_t seed;
    int64_t position;    /* samples already taken since the start of training */
    int64_t max_samples; /* of the largest cycle, at least 1; the first is prepared in this size */
    int cycles;          /* kept in memory, the one in use included: 2 to 64; 0: 2 */
    bool sequential;     /* every epoch in the order of the files rather than shuffled */
} qn_loader_params;

/* The samples of one cycle. The arrays are borrowed until the next call of qn_loader_next or
 * qn_loader_close. */
typedef struct qn_batch {
    int64_t position; /* of the first sample in the stream */
    int64_t samples;
    const uint8_t *images; /* (samples, channels, height, width) */
    const int32_t *labels; /* (samples); NULL with masks */
    const uint8_t *masks;  /* (samples, height, width); NULL without */
} qn_batch;

/* An endless stream of samples: epoch after epoch, each a permutation drawn from (seed, epoch),
 * without regard to where cycles end. What comes depends on dataset, seed, position and samples
 * alone. A thread gathers the next cycles while the last one is in use; all memory is made by
 * qn_loader_open, except what decoding a file takes. Thread-safety: Unsafe; one thread at a time.
 * Lifetime: until qn_loader_close. */
typedef struct qn_loader qn_loader;

/* Borrows `dataset`. */
QN_API qn_status qn_loader_open(qn_loader **loader, const qn_dataset *dataset,
                                const qn_loader_params *params);
/* The next `samples` samples, 1 to max_samples; waits until they are there. Cycles of one size are
 * prepared ahead; a call with another size waits for its own. QN_ERR_IO, QN_ERR_FORMAT: a file of
 * this cycle cannot be read; the position stays before it. */
QN_API qn_status qn_loader_next(qn_loader *loader, int64_t samples, qn_batch *batch);
/* The position of the sample that comes next: what resuming needs. */
QN_API int64_t qn_loader_position(const qn_loader *loader);
/* Ends the thread, frees, sets to NULL; accepts a pointer to NULL. */
QN_API void qn_loader_close(qn_loader **loader);

#ifdef __cplusplus
}
#endif
#endif
