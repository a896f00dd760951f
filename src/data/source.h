/* SPDX-License-Identifier: MIT
 *
 * What is behind a qn_dataset: a source, which says what the columns are and reads rows of them.
 * There is one file for each kind of source: arrays.c, function.c, halves.c, idx_pair.c, images.c,
 * csv.c, json_lines.c, mix.c, npy.c, pairs.c, part.c, tokens.c.
 */
#ifndef QN_DATA_SOURCE_H
#define QN_DATA_SOURCE_H

#include "base/arena.h"
#include "data/room.h"

#include <quern/data.h>

/* Memory that reading takes besides its results. A zeroed struct is none. */
struct qn_rooms {
    struct qn_room pixels, passes, turned, colours, partner, line, whole, aside;
    struct qn_rooms *inner; /* of a dataset that another one reads */
};
void qn_rooms_free(struct qn_rooms *rooms);
/* The inner ones, made when they are first asked for; NULL: out of memory. */
struct qn_rooms *qn_rooms_inner(struct qn_rooms *rooms);

/* What a kind of source can do. */
struct qn_source {
    /* Puts the rows of samples draws[0] .. draws[count - 1] of each column c one after another to
     * rows[c]; logs the reason of a failure. Thread-safety: Safe, with rooms for each thread. */
    qn_status (*read)(const struct qn_dataset *dataset, const struct qn_draw *draws, int64_t count,
                      void *const *rows, struct qn_rooms *rooms, const struct qn_log *log);
    uint32_t (*checksum)(const struct qn_dataset *dataset);
    void (*close)(struct qn_dataset *dataset); /* frees what is the source's own; NULL: nothing */
    int (*bucket)(const struct qn_dataset *dataset,
                  int64_t sample); /* from 0; NULL: all have one */
    const char *(*name)(const struct qn_dataset *dataset, int64_t sample); /* NULL: none has one */
};

/* The first member of what a source keeps. */
struct qn_dataset {
    const struct qn_source *source;
    struct qn_dataset_facts facts;
    struct qn_arena arena; /* the columns and their names */
};

/* A dataset of `size` bytes, zeroed but for its source; NULL: out of memory, which is logged. */
void *qn_dataset_new(const struct qn_source *source, size_t size, const struct qn_log *log);
/* Checks and copies what is in the dataset; the columns' data is borrowed. */
qn_status qn_dataset_set(struct qn_dataset *dataset, const struct qn_dataset_facts *facts,
                         const struct qn_log *log);
/* Hands the dataset over if `status` is QN_OK, else closes it; gives `status`. */
qn_status qn_dataset_give(qn_dataset **dataset, struct qn_dataset *made, qn_status status);

/* Which of the `count` rows of a file are the samples of a split: `held_out` of them, the last, are
 * those of the test, what comes before those of the training. */
struct qn_division {
    const char *path, *rows; /* what messages call them: "lines" */
    int64_t count;
    double held_out; /* in [0, 1) */
    qn_split split;
    int64_t first, samples; /* what comes out */
};
/* QN_ERR_FORMAT: the split is empty, or too large. */
qn_status qn_divide(struct qn_division *division, const struct qn_log *log);

/* `read` and `checksum` of a source whose columns all have data. */
qn_status qn_arrays_read(const struct qn_dataset *dataset, const struct qn_draw *draws,
                         int64_t count, void *const *rows, struct qn_rooms *rooms,
                         const struct qn_log *log);
uint32_t qn_arrays_checksum(const struct qn_dataset *dataset);

#endif
