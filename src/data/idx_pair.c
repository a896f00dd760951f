/* SPDX-License-Identifier: MIT
 *
 * Datasets of two IDX files: images and their labels.
 */
#include "base/log.h"
#include "base/shape.h"
#include "base/text.h"
#include "data/source.h"
#include "io/idx.h"
#include "io/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Datasets known by name, and where their package puts them. */
static const struct known {
    const char *name, *folder, *package;
} known_sets[] = {
    {"fashion-mnist", "/usr/share/datasets/fashion-mnist", "dataset-fashion-mnist"},
};
enum { KNOWN_SETS = sizeof known_sets / sizeof *known_sets };

/* The parts of a file's name, train-images-idx3-ubyte.gz, and its spellings in use. The name of a
 * part is that of its column, too. */
static const char *const split_names[] = {[QN_SPLIT_TRAIN] = "train", [QN_SPLIT_TEST] = "t10k"};
enum part { IMAGES, LABELS, PARTS };
static const struct {
    const char *name;
    int rank;
} parts[PARTS] = {{"images", 3}, {"labels", 1}};
static const struct {
    const char *separator, *ending;
} spellings[] = {{"-", ""}, {"-", ".gz"}, {".", ""}, {".", ".gz"}};
enum { SPELLINGS = sizeof spellings / sizeof *spellings };

/* Which files to read. */
struct pair {
    char *path[PARTS];
};

static void free_pair(struct pair *pair)
{
    for (int part = 0; part < PARTS; part++)
        free(pair->path[part]);
}

static char *spell(const char *folder, qn_split split, enum part part, int spelling)
{
    struct qn_text text = {0};
    qn_text_add(&text, "%s-%s%sidx%d-ubyte%s", split_names[split], parts[part].name,
                spellings[spelling].separator, parts[part].rank, spellings[spelling].ending);
    char *name = qn_text_take(&text);
    char *path = name ? qn_path_join(folder, name) : NULL;
    free(name);
    return path;
}

static qn_status missing(const char *path, const struct known *known, const struct qn_log *log)
{
    if (known)
        return qn_fail(log, QN_ERR_IO, "%s: missing: install the package %s or set data.path", path,
                       known->package);
    return qn_fail(log, QN_ERR_IO,
                   "%s: missing, with .gz too: set data.path to a folder of IDX files", path);
}

/* Finds one file under any of its spellings. `known` says which package has it, or is NULL. */
static qn_status find_file(char **path, const char *folder, const struct qn_dataset_params *params,
                           enum part part, const struct known *known)
{
    for (int i = 0; i < SPELLINGS; i++) {
        free(*path);
        *path = spell(folder, params->split, part, i);
        if (!*path)
            return qn_fail_memory(&params->log, folder);
        if (access(*path, F_OK) == 0)
            return QN_OK;
    }
    free(*path);
    *path = spell(folder, params->split, part, known ? 1 : 0);
    return *path ? missing(*path, known, &params->log) : qn_fail_memory(&params->log, folder);
}

static qn_status find_in_folder(struct pair *pair, const char *folder,
                                const struct qn_dataset_params *params, const struct known *known)
{
    QN_TRY(find_file(&pair->path[IMAGES], folder, params, IMAGES, known));
    return find_file(&pair->path[LABELS], folder, params, LABELS, known);
}

static qn_status find_known(struct pair *pair, const struct qn_dataset_params *params)
{
    const char *folder = getenv("QN_DATA_DIR");
    for (int i = 0; i < KNOWN_SETS; i++)
        if (strcmp(known_sets[i].name, params->name) == 0)
            return find_in_folder(pair, folder && *folder ? folder : known_sets[i].folder, params,
                                  &known_sets[i]);
    return qn_fail(&params->log, QN_ERR_ARGUMENT,
                   "data.name: no dataset is called %s (fashion-mnist is); or set data.path",
                   params->name);
}

static qn_status take_named(struct pair *pair, const struct qn_dataset_params *params)
{
    if (!params->images || (!params->labels && !params->no_labels))
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "data.images and data.labels: only one of the two is set");
    const bool labelled = !params->no_labels;
    pair->path[IMAGES] = qn_path_join("", params->images);
    pair->path[LABELS] = labelled ? qn_path_join("", params->labels) : NULL;
    return pair->path[IMAGES] && (pair->path[LABELS] || !labelled)
               ? QN_OK
               : qn_fail_memory(&params->log, params->images);
}

static qn_status find_pair(struct pair *pair, const struct qn_dataset_params *params)
{
    if (params->images || params->labels)
        return take_named(pair, params);
    if (params->path)
        return find_in_folder(pair, params->path, params, NULL);
    if (params->name)
        return find_known(pair, params);
    return qn_fail(&params->log, QN_ERR_ARGUMENT, "data.name, data.path: neither is set");
}

/* --- reading --- */

struct idx_pair {
    struct qn_dataset base;
    struct qn_idx images, labels;
};

static qn_status read_images(struct idx_pair *made, const char *path, struct qn_column *column,
                             const struct qn_log *log)
{
    QN_TRY(qn_idx_read(&made->images, path, log));
    const struct qn_shape *shape = &made->images.shape;
    if (made->images.dtype != QN_U8)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: images are u8", path);
    if (shape->rank < 3)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: images have 3 or 4 dimensions, not %d", path,
                       shape->rank);
    if (shape->dim[0] == 0)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: there is no image", path);
    const int64_t bytes = qn_shape_span(shape, 1, shape->rank);
    if (bytes < 1 || bytes > INT_MAX)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: images are empty or too large", path);
    const int64_t *size = &shape->dim[shape->rank - 2];
    *column = (struct qn_column){
        .name = parts[IMAGES].name,
        .dtype = QN_U8,
        .shape = {3, {shape->rank == 4 ? shape->dim[1] : 1, size[0], size[1]}},
        .data = made->images.data,
    };
    return QN_OK;
}

/* Labels of u8 become i32. */
static qn_status widen(struct qn_idx *labels, const char *path, const struct qn_log *log)
{
    if (labels->dtype == QN_I32)
        return QN_OK;
    int64_t count = labels->bytes;
    int32_t *wide = calloc((size_t)count, sizeof *wide);
    if (!wide)
        return qn_fail_memory(log, path);
    for (int64_t i = 0; i < count; i++)
        wide[i] = ((const uint8_t *)labels->data)[i];
    free(labels->data);
    labels->data = wide;
    labels->dtype = QN_I32;
    labels->bytes = count * (int64_t)sizeof *wide;
    return QN_OK;
}

static qn_status count_classes(int64_t *classes, const struct qn_idx *labels, const char *path,
                               const struct qn_log *log)
{
    for (int64_t i = 0; i < labels->shape.dim[0]; i++) {
        int64_t label = ((const int32_t *)labels->data)[i];
        if (label < 0)
            return qn_fail(log, QN_ERR_FORMAT, "%s: data: label %lld is negative", path,
                           (long long)i);
        if (label == INT32_MAX)
            return qn_fail(log, QN_ERR_FORMAT, "%s: data: label %lld is %lld, the largest is %lld",
                           path, (long long)i, (long long)label, (long long)label - 1);
        *classes = label >= *classes ? label + 1 : *classes;
    }
    return QN_OK;
}

static qn_status read_labels(struct idx_pair *made, const struct pair *pair,
                             struct qn_column *column, const struct qn_log *log)
{
    const char *path = pair->path[LABELS];
    const int64_t count = made->images.shape.dim[0];
    QN_TRY(qn_idx_read(&made->labels, path, log));
    const struct qn_shape *shape = &made->labels.shape;
    if (shape->rank != 1)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: labels have 1 dimension, not %d", path,
                       shape->rank);
    if (shape->dim[0] != count)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: %lld labels for the %lld images of %s", path,
                       (long long)shape->dim[0], (long long)count, pair->path[IMAGES]);
    QN_TRY(widen(&made->labels, path, log));
    *column =
        (struct qn_column){.name = parts[LABELS].name, .dtype = QN_I32, .data = made->labels.data};
    return count_classes(&column->classes, &made->labels, path, log);
}

static qn_status read_pair(struct idx_pair *made, const struct qn_dataset_params *params)
{
    struct pair pair = {0};
    struct qn_column columns[PARTS];
    qn_status status = find_pair(&pair, params);
    if (status == QN_OK)
        status = read_images(made, pair.path[IMAGES], &columns[IMAGES], &params->log);
    if (status == QN_OK && !params->no_labels)
        status = read_labels(made, &pair, &columns[LABELS], &params->log);
    free_pair(&pair);
    if (status != QN_OK)
        return status;
    const int n_columns = params->no_labels ? LABELS : PARTS;
    const qn_dataset_facts facts = {made->images.shape.dim[0], n_columns, columns};
    return qn_dataset_set(&made->base, &facts, &params->log);
}

static void free_arrays(struct qn_dataset *dataset)
{
    struct idx_pair *made = (struct idx_pair *)dataset;
    qn_idx_free(&made->images);
    qn_idx_free(&made->labels);
}

static const struct qn_source source = {qn_arrays_read, qn_arrays_checksum, free_arrays};

qn_status qn_dataset_open(qn_dataset **dataset, const qn_dataset_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    QN_REQUIRE(log, !params->no_labels || params->images);
    *dataset = NULL;
    struct idx_pair *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, read_pair(made, params));
}
