/* SPDX-License-Identifier: MIT
 *
 * What a model says of samples, printed for people or programs: the most probable classes or tokens
 * of each, of masks the classes with the most pixels, of targets numbers or how probable each of
 * several classes is; beside that a file of all of it.
 */
#ifndef QUERN_TOOL_PREDICTIONS_H
#define QUERN_TOOL_PREDICTIONS_H

#include "file.h"
#include "masks.h"
#include "note.h"

enum predictions_form { PREDICTIONS_TABLE, PREDICTIONS_JSON, PREDICTIONS_CSV };
enum predictions_kind {
    PREDICT_CLASS,
    PREDICT_MASK,
    PREDICT_SEVERAL,
    PREDICT_NUMBERS,
    PREDICT_TOKEN
};

/* One class, target or token, by its number. */
struct told {
    double share;
    int label;
};

struct predictions {
    /* Filled in by the caller. */
    struct failure *failure;
    const struct samples *samples;
    const struct class_names *names; /* of the first classes or targets; others are numbers */
    enum predictions_form form;
    enum predictions_kind kind;
    const char *out;   /* FILE.npy, or a folder for masks; NULL: neither */
    const char *mark;  /* of a mask's name: "_mask" */
    qn_dtype dtype;    /* of the logits */
    int classes, top;  /* or targets, of which all are told */
    int height, width; /* of a mask; else 0 */

    struct file_part array; /* FILE.npy under way */
    bool writes_array, writes_masks;
    double *logits; /* (classes[, height, width]) of the sample at hand */
    double *share;  /* (classes) of the sample at hand: probabilities, fractions of its pixels, or
                       the numbers that targets are told to be */
    struct told *order; /* (classes), unless several or numbers are told the largest share first */
    uint8_t *mask;      /* (height, width): the most probable class */
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
