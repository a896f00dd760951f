/* SPDX-License-Identifier: MIT
 *
 * Datasets of image files.
 */
#include "base/log.h"
#include "data/dataset.h"
#include "io/path.h"

#include <limits.h>
#include <stdlib.h>

enum { MOST_SIDE = 1 << 20, MOST_CLASSES = 256 };

static const struct qn_draw no_draw = {0};

/* Largest size of its axes together: the products stay countable. */
static bool is_pair(const int pair[2], bool may_be_one)
{
    for (int axis = 0; axis < 2; axis++)
        if (pair[axis] < 0 || pair[axis] > MOST_SIDE)
            return false;
    return !pair[0] == !pair[1] || (may_be_one && pair[0]);
}

static qn_status check_params(const qn_image_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path);
    QN_REQUIRE(log, params->channels == 0 || params->channels == 1 || params->channels == 3);
    QN_REQUIRE(log, is_pair(params->size, true));
    QN_REQUIRE(log, is_pair(params->crop, false));
    QN_REQUIRE(log, !params->mask || (params->classes >= 1 && params->classes <= MOST_CLASSES));
    return QN_OK;
}

/* --- opening --- */

static bool fit_item(const struct qn_dataset *dataset, const struct qn_image_item *item,
                     const struct qn_draw *draw, struct qn_window *window)
{
    const int size[2] = {item->facts.height, item->facts.width};
    return qn_augment(window, &dataset->fit, size, draw);
}

static qn_status check_item(const struct qn_dataset *dataset, const struct qn_image_item *item,
                            const struct qn_log *log)
{
    const struct qn_dataset_facts *facts = &dataset->facts;
    struct qn_window window;
    if (!fit_item(dataset, item, &no_draw, &window))
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: is %d high and %d wide, less than the crop of %d,%d", item->path,
                       window.full[0], window.full[1], dataset->fit.crop[0], dataset->fit.crop[1]);
    if (window.size[0] != facts->height || window.size[1] != facts->width)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: is %d high and %d wide, but %s %d high and %d wide: set data.size or "
                       "data.crop",
                       item->path, window.size[0], window.size[1], dataset->folder.items[0].path,
                       facts->height, facts->width);
    return QN_OK;
}

static qn_status check_items(const struct qn_dataset *dataset, const struct qn_log *log)
{
    for (int64_t i = 0; i < dataset->folder.count; i++)
        QN_TRY(check_item(dataset, &dataset->folder.items[i], log));
    return QN_OK;
}

/* All images are as the first. */
static void describe(struct qn_dataset *dataset, const qn_image_params *params)
{
    const struct qn_image_folder *folder = &dataset->folder;
    struct qn_dataset_facts *facts = &dataset->facts;
    struct qn_window first;
    fit_item(dataset, &folder->items[0], &no_draw, &first);
    facts->count = folder->count;
    facts->channels = dataset->fit.channels;
    facts->height = first.size[0];
    facts->width = first.size[1];
    facts->image_bytes = (int64_t)facts->channels * facts->height * facts->width;
    facts->label_bytes =
        params->mask ? (int64_t)facts->height * facts->width : (int64_t)sizeof *facts->labels;
    facts->classes = params->mask ? params->classes : folder->n_classes;
    facts->class_names = folder->classes;
}

static qn_status list_labels(struct qn_dataset *dataset, const qn_image_params *params)
{
    struct qn_image_folder *folder = &dataset->folder;
    int32_t *labels = qn_arena_new(&folder->arena, int32_t, (size_t)folder->count);
    if (!labels)
        return qn_fail_memory(&params->log, params->path);
    for (int64_t i = 0; i < folder->count; i++)
        labels[i] = folder->items[i].label;
    dataset->facts.labels = labels;
    return QN_OK;
}

static qn_status open_folder(struct qn_dataset *dataset, const qn_image_params *params)
{
    dataset->fit = (struct qn_fit){.channels = params->channels ? params->channels : 3,
                                   .size = {params->size[0], params->size[1]},
                                   .crop = {params->crop[0], params->crop[1]},
                                   .random_crop = params->random_crop,
                                   .flip = params->flip};
    QN_TRY(qn_image_folder_read(&dataset->folder, params->path, params->mask, &params->log));
    describe(dataset, params);
    QN_TRY(check_items(dataset, &params->log));
    if (dataset->facts.image_bytes > INT_MAX)
        return qn_fail(&params->log, QN_ERR_FORMAT, "%s: images are too large", params->path);
    return params->mask ? QN_OK : list_labels(dataset, params);
}

qn_status qn_dataset_open_images(qn_dataset **dataset, const qn_image_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct qn_dataset *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail(log, QN_ERR_MEMORY, "dataset: out of memory");
    qn_status status = open_folder(made, params);
    if (status == QN_OK)
        *dataset = made;
    else
        qn_dataset_close(&made);
    return status;
}

/* --- samples --- */

/* Decodes a file into the rooms. */
static qn_status decode(struct qn_picture *picture, const char *path,
                        const struct qn_image_facts *facts, enum qn_image_form form,
                        struct qn_rooms *rooms, const struct qn_log *log)
{
    uint8_t *pixels = qn_room_take(&rooms->pixels, qn_image_bytes(facts, form));
    if (!pixels)
        return qn_fail_memory(log, path);
    QN_TRY(qn_image_read(pixels, path, facts, form, log));
    *picture = (struct qn_picture){
        pixels, {facts->height, facts->width}, form == QN_IMAGE_INDEX ? 1 : (int)form};
    return QN_OK;
}

static qn_status check_classes(const struct qn_picture *picture, const char *path, int64_t classes,
                               const struct qn_log *log)
{
    for (int y = 0; y < picture->size[0]; y++) {
        const uint8_t *row = picture->pixels + (size_t)y * (size_t)picture->size[1];
        for (int x = 0; x < picture->size[1]; x++)
            if (row[x] >= classes)
                return qn_fail(log, QN_ERR_FORMAT,
                               "%s: class %d in row %d, column %d, but there are %d classes", path,
                               row[x], y, x, (int)classes);
    }
    return QN_OK;
}

static qn_status read_mask(const struct qn_dataset *dataset, const struct qn_image_item *item,
                           const struct qn_window *window, struct qn_rooms *rooms, void *mask,
                           const struct qn_log *log)
{
    struct qn_picture picture;
    QN_TRY(decode(&picture, item->mask, &item->mask_facts, QN_IMAGE_INDEX, rooms, log));
    QN_TRY(check_classes(&picture, item->mask, dataset->facts.classes, log));
    qn_resample_nearest(mask, &picture, window);
    return QN_OK;
}

qn_status qn_images_read(const struct qn_dataset *dataset, const struct qn_draw *draw,
                         struct qn_rooms *rooms, void *image, void *label, const struct qn_log *log)
{
    const struct qn_image_item *item = &dataset->folder.items[draw->sample];
    struct qn_picture picture;
    struct qn_window window;
    fit_item(dataset, item, draw, &window);
    QN_TRY(decode(&picture, item->path, &item->facts, (enum qn_image_form)dataset->fit.channels,
                  rooms, log));
    if (qn_resample(image, &picture, &window, &rooms->passes) != QN_OK)
        return qn_fail_memory(log, item->path);
    if (item->mask)
        return read_mask(dataset, item, &window, rooms, label, log);
    *(int32_t *)label = item->label;
    return QN_OK;
}
