/* SPDX-License-Identifier: MIT
 *
 * What a model says of samples: the most probable classes of each, or of masks the classes with the
 * most pixels, printed for people or programs; beside that a file of all probabilities or masks.
 */
#ifndef QUERN_TOOL_PREDICTIONS_H
#define QUERN_TOOL_PREDICTIONS_H

#include "file.h"
#include "masks.h"
#include "note.h"

enum predictions_form { PREDICTIONS_TABLE, PREDICTIONS_JSON, PREDICTIONS_CSV };

struct predictions {
    /* Filled in by the caller. */
    struct failure *failure;
    const struct samples *samples;
    const struct class_names *names; /* of the first classes; others are numbers */
    enum predictions_form form;
    const char *out;  /* FILE.npy, or a folder for masks; NULL: neither */
    const char *mark; /* of a mask's name: "_mask" */
    qn_dtype dtype;   /* of the logits */
    int classes, top;
    int height, width; /* of a mask; 0, 0: a class for each sample */

    struct file_part array; /* FILE.npy under way */
    bool writes_array, writes_masks;
    double *logits; /* (classes[, height, width]) of the sample at hand */
    double *share;  /* (classes) of the sample at hand: probabilities, or fractions of its pixels */
    int *order;     /* (classes), the largest share first */
    uint8_t *mask;  /* (height, width): the most probable class */
};

/* Prints the head and begins the files. */
int predictions_open(struct predictions *predictions);
/* A qn_result_fn whose user is `predictions`: takes logits (count, classes[, height, width]),
 * samples in their order. */
qn_status predictions_take(void *predictions, const char *output, int64_t first, int64_t count,
                           const void *rows);
/* Gives the file its name if `code` is CODE_DONE, else drops it. Gives `code`, or why the file
 * could not have its name. */
int predictions_close(struct predictions *predictions, int code);

#endif
