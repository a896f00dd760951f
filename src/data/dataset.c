/* SPDX-License-Identifier: MIT */
#include "data/dataset.h"
#include "base/log.h"
#include "base/shape.h"
#include "base/text.h"
#include "io/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* Datasets known by name, and where their package puts them. */
static const struct known {
    const char *name, *folder, *package;
} known_sets[] = {
    {"fashion-mnist", "/usr/share/datasets/fashion-mnist", "dataset-fashion-mnist"},
};
enum { KNOWN_SETS = sizeof known_sets / sizeof *known_sets };

/* The parts of a file's name, train-images-idx3-ubyte.gz, and its spellings in use. */
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
    if (!params->images || !params->labels)
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "data.images and data.labels: only one of the two is set");
    pair->path[IMAGES] = qn_path_join("", params->images);
    pair->path[LABELS] = qn_path_join("", params->labels);
    return pair->path[IMAGES] && pair->path[LABELS] ? QN_OK
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

static qn_status read_images(struct qn_dataset *dataset, const char *path, const struct qn_log *log)
{
    QN_TRY(qn_idx_read(&dataset->images, path, log));
    const struct qn_shape *shape = &dataset->images.shape;
    if (dataset->images.dtype != QN_U8)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: images are u8", path);
    if (shape->rank < 3)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: images have 3 or 4 dimensions, not %d", path,
                       shape->rank);
    if (shape->dim[0] == 0)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: there is no image", path);
    struct qn_dataset_facts *facts = &dataset->facts;
    const int64_t *size = &shape->dim[shape->rank - 2];
    int64_t channels = shape->rank == 4 ? shape->dim[1] : 1;
    facts->image_bytes = qn_shape_span(shape, 1, shape->rank);
    if (facts->image_bytes < 1 || facts->image_bytes > INT_MAX)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: images are empty or too large", path);
    facts->count = shape->dim[0];
    facts->label_bytes = sizeof *facts->labels;
    facts->channels = (int)channels;
    facts->height = (int)size[0];
    facts->width = (int)size[1];
    facts->images = dataset->images.data;
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

static qn_status count_classes(struct qn_dataset_facts *facts, const char *path,
                               const struct qn_log *log)
{
    for (int64_t i = 0; i < facts->count; i++) {
        int64_t label = facts->labels[i];
        if (label < 0)
            return qn_fail(log, QN_ERR_FORMAT, "%s: data: label %lld is negative", path,
                           (long long)i);
        facts->classes = label >= facts->classes ? label + 1 : facts->classes;
    }
    return QN_OK;
}

static qn_status read_labels(struct qn_dataset *dataset, const struct pair *pair,
                             const struct qn_log *log)
{
    const char *path = pair->path[LABELS];
    QN_TRY(qn_idx_read(&dataset->labels, path, log));
    const struct qn_shape *shape = &dataset->labels.shape;
    if (shape->rank != 1)
        return qn_fail(log, QN_ERR_FORMAT, "%s: magic: labels have 1 dimension, not %d", path,
                       shape->rank);
    if (shape->dim[0] != dataset->facts.count)
        return qn_fail(log, QN_ERR_FORMAT, "%s: sizes: %lld labels for the %lld images of %s", path,
                       (long long)shape->dim[0], (long long)dataset->facts.count,
                       pair->path[IMAGES]);
    QN_TRY(widen(&dataset->labels, path, log));
    dataset->facts.labels = dataset->labels.data;
    return count_classes(&dataset->facts, path, log);
}

static qn_status read_pair(struct qn_dataset *dataset, const struct qn_dataset_params *params)
{
    struct pair pair = {0};
    qn_status status = find_pair(&pair, params);
    if (status == QN_OK)
        status = read_images(dataset, pair.path[IMAGES], &params->log);
    if (status == QN_OK)
        status = read_labels(dataset, &pair, &params->log);
    free_pair(&pair);
    return status;
}

qn_status qn_dataset_open(qn_dataset **dataset, const qn_dataset_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    *dataset = NULL;
    struct qn_dataset *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    qn_status status = read_pair(made, params);
    if (status == QN_OK)
        *dataset = made;
    else
        qn_dataset_close(&made);
    return status;
}

void qn_dataset_close(qn_dataset **dataset)
{
    if (!dataset || !*dataset)
        return;
    qn_idx_free(&(*dataset)->images);
    qn_idx_free(&(*dataset)->labels);
    qn_image_folder_free(&(*dataset)->folder);
    free(*dataset);
    *dataset = NULL;
}

uint32_t qn_dataset_checksum(const qn_dataset *dataset)
{
    if (!dataset)
        return 0;
    const struct qn_dataset_facts *facts = &dataset->facts;
    if (!facts->images)
        return qn_image_folder_checksum(&dataset->folder);
    size_t count = (size_t)facts->count;
    uLong sum = crc32_z(0, facts->images, count * (size_t)facts->image_bytes);
    return (uint32_t)crc32_z(sum, (const Bytef *)facts->labels, count * sizeof *facts->labels);
}

const qn_dataset_facts *qn_dataset_describe(const qn_dataset *dataset)
{
    return dataset ? &dataset->facts : NULL;
}

void qn_rooms_free(struct qn_rooms *rooms)
{
    qn_room_free(&rooms->pixels);
    qn_room_free(&rooms->passes);
}

qn_status qn_dataset_read(const struct qn_dataset *dataset, const struct qn_draw *draw,
                          struct qn_rooms *rooms, void *image, void *label,
                          const struct qn_log *log)
{
    const struct qn_dataset_facts *facts = &dataset->facts;
    if (!facts->images)
        return qn_images_read(dataset, draw, rooms, image, label, log);
    memcpy(image, facts->images + draw->sample * facts->image_bytes, (size_t)facts->image_bytes);
    memcpy(label, facts->labels + draw->sample, sizeof *facts->labels);
    return QN_OK;
}
