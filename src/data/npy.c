/* SPDX-License-Identifier: MIT
 *
 * Datasets of npy files, held in memory: samples in one, what is told of them in another.
 */
#include "io/npy.h"
#include "base/log.h"
#include "base/shape.h"
#include "data/source.h"
#include "data/standardize.h"
#include "io/path.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum { MOST_CLASSES = 1 << 24, PART_NUMBERS = 1 << 10 };

struct npy_arrays {
    struct qn_dataset base;
    const qn_npy_params *params; /* while the files are read */
    struct qn_division division;
    void *samples;  /* f32 or u8 */
    float *targets; /* one of the two, or neither */
    int32_t *labels;
    int64_t classes; /* the largest label + 1 */
};

static const struct qn_log *log_of(const struct npy_arrays *made)
{
    return &made->params->log;
}

/* Numbers of a sample. */
static int64_t width_of(const struct qn_npy *npy)
{
    return qn_shape_span(&npy->shape, 1, npy->shape.rank);
}

static qn_status refuse_shape(const struct npy_arrays *made, const struct qn_npy *npy,
                              const char *reason)
{
    char text[128];
    return qn_fail(log_of(made), QN_ERR_FORMAT, "%s: shape: %s: %s", npy->path,
                   qn_shape_text(&npy->shape, text, sizeof text), reason);
}

/* --- numbers, a part of a file after another --- */

/* Takes `count` values of which the first one is number `first` of the file. */
typedef qn_status take_values(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                              int64_t count, const double *values);

static qn_status read_values(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                             int64_t end, take_values *take)
{
    double part[PART_NUMBERS];
    for (; first < end; first += PART_NUMBERS) {
        const int64_t count = end - first < PART_NUMBERS ? end - first : PART_NUMBERS;
        QN_TRY(qn_npy_read(npy, first, count, part, log_of(made)));
        QN_TRY(take(made, npy, first, count, part));
    }
    return QN_OK;
}

/* Those of the split. */
static qn_status read_split(struct npy_arrays *made, const struct qn_npy *npy, take_values *take)
{
    const int64_t first = made->division.first, end = first + made->division.samples;
    return read_values(made, npy, first * width_of(npy), end * width_of(npy), take);
}

static void *make_room(const struct npy_arrays *made, const struct qn_npy *npy, size_t size)
{
    const int64_t numbers = qn_mul(made->division.samples, width_of(npy));
    void *room = numbers < 0 ? NULL : calloc((size_t)numbers, size);
    if (!room)
        qn_fail_memory(log_of(made), npy->path);
    return room;
}

static qn_status refuse_number(const struct npy_arrays *made, const struct qn_npy *npy,
                               int64_t index, double number, const char *reason)
{
    const int64_t width = width_of(npy);
    return qn_fail(log_of(made), QN_ERR_FORMAT, "%s: sample %" PRId64 ": number %" PRId64 ": %g %s",
                   npy->path, index / width, index % width, number, reason);
}

static qn_status take_floats(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                             int64_t count, const double *values, float *to,
                             const struct qn_moments *moments)
{
    const int64_t width = width_of(npy), begin = made->division.first * width;
    for (int64_t i = 0; i < count; i++)
        if (!qn_standardize(&to[first - begin + i], values[i], moments,
                            (size_t)((first + i) % width)))
            return refuse_number(made, npy, first + i, values[i], "is not finite as f32");
    return QN_OK;
}

/* --- samples --- */

static qn_status take_samples(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                              int64_t count, const double *values)
{
    const struct qn_moments moments = {made->params->mean, made->params->deviation};
    return take_floats(made, npy, first, count, values, made->samples, &moments);
}

static qn_status check_samples(const struct npy_arrays *made, const struct qn_npy *npy)
{
    const int64_t wanted = made->params->n_features, bytes = qn_mul(width_of(npy), 4);
    if (npy->shape.rank > 4)
        return refuse_shape(made, npy,
                            "samples are numbers, rows of them, or images (height, width) or "
                            "(channels, height, width)");
    if (bytes > INT_MAX)
        return refuse_shape(made, npy, "samples are too large");
    if (wanted && npy->shape.rank > 2)
        return refuse_shape(made, npy, "images, where rows of numbers are wanted");
    return !wanted || width_of(npy) == wanted
               ? QN_OK
               : qn_fail(log_of(made), QN_ERR_FORMAT,
                         "%s: shape: rows of %" PRId64 " numbers, where %" PRId64 " are wanted",
                         npy->path, width_of(npy), wanted);
}

static struct qn_column describe_samples(const struct npy_arrays *made, const struct qn_npy *npy,
                                         bool bytes)
{
    const struct qn_shape *shape = &npy->shape;
    struct qn_column column = {.name = "features", .dtype = QN_F32, .data = made->samples};
    column.shape = (struct qn_shape){1, {width_of(npy)}};
    if (shape->rank <= 2)
        return column;
    const int64_t *size = &shape->dim[shape->rank - 2];
    column.name = "images";
    column.dtype = bytes ? QN_U8 : QN_F32;
    column.shape = (struct qn_shape){3, {shape->rank == 4 ? shape->dim[1] : 1, size[0], size[1]}};
    return column;
}

/* Images of bytes stay bytes. */
static qn_status read_samples(struct npy_arrays *made, const struct qn_npy *npy,
                              struct qn_column *column)
{
    const struct qn_division *split = &made->division;
    const bool bytes = npy->shape.rank > 2 && npy->kind == QN_NPY_UINT && npy->size == 1;
    const int64_t width = width_of(npy);
    made->samples = make_room(made, npy, bytes ? 1 : sizeof(float));
    if (!made->samples)
        return QN_ERR_MEMORY;
    *column = describe_samples(made, npy, bytes);
    return bytes ? qn_npy_read_bytes(npy, split->first * width, split->samples * width,
                                     made->samples, log_of(made))
                 : read_split(made, npy, take_samples);
}

/* --- what is told of them --- */

static qn_status take_targets(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                              int64_t count, const double *values)
{
    static const struct qn_moments as_they_are = {NULL, NULL};
    for (int64_t i = 0; made->params->binary && i < count; i++)
        if (values[i] != 0 && values[i] != 1)
            return refuse_number(made, npy, first + i, values[i], "is neither 0 nor 1");
    return take_floats(made, npy, first, count, values, made->targets, &as_they_are);
}

static qn_status read_targets(struct npy_arrays *made, const struct qn_npy *npy,
                              struct qn_column *column)
{
    if (npy->shape.rank > 2)
        return refuse_shape(made, npy, "targets are a number or a row of them for each sample");
    if (qn_mul(width_of(npy), 4) > INT_MAX)
        return refuse_shape(made, npy, "rows are too large");
    made->targets = make_room(made, npy, sizeof *made->targets);
    if (!made->targets)
        return QN_ERR_MEMORY;
    *column = (struct qn_column){
        .name = "targets", .dtype = QN_F32, .shape = {1, {width_of(npy)}}, .data = made->targets};
    return read_split(made, npy, take_targets);
}

/* Those of both splits count, those of the one are kept. */
static qn_status take_labels(struct npy_arrays *made, const struct qn_npy *npy, int64_t first,
                             int64_t count, const double *values)
{
    const struct qn_division *split = &made->division;
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = first + i - split->first;
        if (values[i] < 0 || values[i] >= MOST_CLASSES)
            return refuse_number(made, npy, first + i, values[i],
                                 "is no class, of which there are at most 2^24 from 0 on");
        const int32_t label = (int32_t)values[i];
        made->classes = label >= made->classes ? label + 1 : made->classes;
        if (place >= 0 && place < split->samples)
            made->labels[place] = label;
    }
    return QN_OK;
}

static qn_status read_labels(struct npy_arrays *made, const struct qn_npy *npy,
                             struct qn_column *column)
{
    if (width_of(npy) != 1)
        return refuse_shape(made, npy, "labels are one number for each sample");
    if (npy->kind == QN_NPY_FLOAT)
        return qn_fail(log_of(made), QN_ERR_FORMAT,
                       "%s: descr: labels are whole numbers, not floating point", npy->path);
    made->labels = make_room(made, npy, sizeof *made->labels);
    if (!made->labels)
        return QN_ERR_MEMORY;
    QN_TRY(read_values(made, npy, 0, npy->count, take_labels));
    *column = (struct qn_column){
        .name = "labels", .dtype = QN_I32, .classes = made->classes, .data = made->labels};
    return QN_OK;
}

static qn_status read_told(struct npy_arrays *made, const struct qn_npy *npy, int64_t samples,
                           struct qn_column *column)
{
    const qn_npy_params *params = made->params;
    if (npy->shape.dim[0] != samples)
        return qn_fail(log_of(made), QN_ERR_FORMAT,
                       "%s: shape: %" PRId64 " rows for the %" PRId64 " samples of %s", npy->path,
                       npy->shape.dim[0], samples, params->features);
    return params->labels ? read_labels(made, npy, column) : read_targets(made, npy, column);
}

/* --- the dataset --- */

/* The file of samples, then the other, if there is one. */
static qn_status read_files(struct npy_arrays *made, const struct qn_npy *samples,
                            struct qn_column columns[2], int *count)
{
    const qn_npy_params *params = made->params;
    const char *path = params->labels ? params->labels : params->targets;
    struct qn_npy told;
    made->division = (struct qn_division){.path = samples->path,
                                          .rows = "samples",
                                          .count = samples->shape.dim[0],
                                          .held_out = params->held_out,
                                          .split = params->split};
    QN_TRY(check_samples(made, samples));
    QN_TRY(qn_divide(&made->division, log_of(made)));
    *count = path ? 2 : 1;
    if (path) {
        QN_TRY(qn_npy_open(&told, path, log_of(made)));
        const qn_status status = read_told(made, &told, made->division.count, &columns[1]);
        qn_npy_close(&told);
        QN_TRY(status);
    }
    return read_samples(made, samples, &columns[0]);
}

static qn_status open_arrays(struct npy_arrays *made, const qn_npy_params *params)
{
    struct qn_column columns[2];
    struct qn_npy samples;
    int count;
    made->params = params;
    QN_TRY(qn_npy_open(&samples, params->features, &params->log));
    const qn_status status = read_files(made, &samples, columns, &count);
    qn_npy_close(&samples);
    QN_TRY(status);
    const qn_dataset_facts facts = {made->division.samples, count, columns};
    return qn_dataset_set(&made->base, &facts, &params->log);
}

static void free_arrays(struct qn_dataset *dataset)
{
    struct npy_arrays *made = (struct npy_arrays *)dataset;
    free(made->samples);
    free(made->targets);
    free(made->labels);
}

static const struct qn_source source = {qn_arrays_read, qn_arrays_checksum, free_arrays};

static qn_status check_params(const qn_npy_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->features && !(params->targets && params->labels));
    QN_REQUIRE(log, params->held_out >= 0 && params->held_out < 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    QN_REQUIRE(log, params->n_features >= 0 && !params->mean == !params->deviation);
    QN_REQUIRE(log, !params->mean || params->n_features);
    for (int64_t i = 0; params->deviation && i < params->n_features; i++)
        QN_REQUIRE(log, params->deviation[i] > 0);
    return QN_OK;
}

qn_status qn_dataset_open_npy(qn_dataset **dataset, const qn_npy_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct npy_arrays *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, open_arrays(made, params));
}
