/* SPDX-License-Identifier: MIT
 *
 * Datasets of image files.
 */
#include "base/log.h"
#include "data/augment.h"
#include "data/image_folder.h"
#include "data/jitter.h"
#include "data/rotate.h"
#include "data/source.h"
#include "io/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 1 << 20, MOST_CLASSES = 256, MOST_RATIO = 1000, MOST_FACTOR = 1000 };

static const struct qn_draw no_draw = {0};

enum column { IMAGES, LABELS, COLUMNS };

/* A folder, and what its images become. */
struct image_set {
    struct qn_dataset base;
    struct qn_image_folder folder;
    struct qn_fit fit;
    struct qn_jitter jitter;
    int size[2];     /* of every image in the end */
    int64_t classes; /* of masks */
};

/* Largest size of its axes together: the products stay countable. */
static bool is_pair(const int pair[2], bool may_be_one)
{
    for (int axis = 0; axis < 2; axis++)
        if (pair[axis] < 0 || pair[axis] > MOST_SIDE)
            return false;
    return !pair[0] == !pair[1] || (may_be_one && pair[0]);
}

/* Both 0, or rising from above 0 to at most `most`. */
static bool is_range(const double range[2], double most)
{
    return (range[0] == 0 && range[1] == 0) ||
           (range[0] > 0 && range[1] >= range[0] && range[1] <= most);
}

static bool is_within(double value, double most)
{
    return value >= 0 && value <= most;
}

/* What is drawn. */
static qn_status check_random(const qn_image_params *params)
{
    const struct qn_log *log = &params->log;
    const double colours[] = {params->brightness, params->contrast, params->saturation};
    QN_REQUIRE(log, !params->random_crop || !params->random_resized_crop);
    QN_REQUIRE(log, !params->random_resized_crop || params->crop[0]);
    QN_REQUIRE(log, is_range(params->scale, 1) && is_range(params->ratio, MOST_RATIO));
    QN_REQUIRE(log, is_within(params->degrees, 360));
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        QN_REQUIRE(log, is_within(colours[i], MOST_FACTOR));
    QN_REQUIRE(log, is_within(params->hue, 0.5));
    return QN_OK;
}

static qn_status check_params(const qn_image_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path || (params->files && params->n_files > 0));
    QN_REQUIRE(log, !params->path || !params->files);
    QN_REQUIRE(log, params->channels == 0 || params->channels == 1 || params->channels == 3);
    QN_REQUIRE(log, is_pair(params->size, true));
    QN_REQUIRE(log, is_pair(params->crop, false));
    QN_REQUIRE(log, !params->mask || params->files ||
                        (params->classes >= 1 && params->classes <= MOST_CLASSES));
    return check_random(params);
}

/* --- opening --- */

static bool fit_item(const struct image_set *set, const struct qn_image_item *item,
                     const struct qn_draw *draw, struct qn_view *view)
{
    const int size[2] = {item->facts.height, item->facts.width};
    return qn_augment(view, &set->fit, size, draw);
}

static qn_status check_item(const struct image_set *set, const struct qn_image_item *item,
                            const struct qn_log *log)
{
    struct qn_view view;
    const struct qn_window *window = &view.window;
    if (!fit_item(set, item, &no_draw, &view))
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: is %d high and %d wide, less than the crop of %d,%d", item->path,
                       window->full[0], window->full[1], set->fit.crop[0], set->fit.crop[1]);
    if (window->size[0] != set->size[0] || window->size[1] != set->size[1])
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: is %d high and %d wide, but %s %d high and %d wide: set data.size or "
                       "data.crop",
                       item->path, window->size[0], window->size[1], set->folder.items[0].path,
                       set->size[0], set->size[1]);
    return QN_OK;
}

/* All images are as the first. */
static qn_status check_items(struct image_set *set, const qn_image_params *params)
{
    struct qn_view first;
    fit_item(set, &set->folder.items[0], &no_draw, &first);
    set->size[0] = first.window.size[0];
    set->size[1] = first.window.size[1];
    for (int64_t i = 0; i < set->folder.count; i++)
        QN_TRY(check_item(set, &set->folder.items[i], &params->log));
    if ((int64_t)set->fit.channels * set->size[0] * set->size[1] > INT_MAX)
        return qn_fail(&params->log, QN_ERR_FORMAT, "%s: images are too large",
                       set->folder.items[0].path);
    return QN_OK;
}

/* One number for each image of a folder of classes; NULL: out of memory. */
static const int32_t *list_labels(struct qn_image_folder *folder)
{
    int32_t *labels = qn_arena_new(&folder->arena, int32_t, (size_t)folder->count);
    for (int64_t i = 0; labels && i < folder->count; i++)
        labels[i] = folder->items[i].label;
    return labels;
}

static qn_status describe(struct image_set *set, const qn_image_params *params)
{
    struct qn_column columns[COLUMNS] = {
        [IMAGES] = {.name = "images",
                    .dtype = QN_U8,
                    .shape = {3, {set->fit.channels, set->size[0], set->size[1]}}},
        [LABELS] = {.name = "labels"},
    };
    struct qn_column *labels = &columns[LABELS];
    labels->dtype = params->mask ? QN_U8 : QN_I32;
    labels->classes = params->mask ? params->classes : set->folder.n_classes;
    if (params->mask) {
        labels->shape = (qn_shape){2, {set->size[0], set->size[1]}};
    } else {
        labels->class_names = set->folder.classes;
        labels->data = list_labels(&set->folder);
        if (!labels->data)
            return qn_fail_memory(&params->log, params->path);
    }
    const qn_dataset_facts facts = {set->folder.count, params->files ? LABELS : COLUMNS, columns};
    return qn_dataset_set(&set->base, &facts, &params->log);
}

static qn_status find_images(struct qn_image_folder *folder, const qn_image_params *params)
{
    if (!params->files)
        return qn_image_folder_read(folder, params->path, params->mask, &params->log);
    return qn_image_folder_list(folder, params->files, params->n_files, params->mask, &params->log);
}

static void set_range(double to[2], const double range[2], double least, double most)
{
    to[0] = range[1] > 0 ? range[0] : least;
    to[1] = range[1] > 0 ? range[1] : most;
}

static void set_fit(struct image_set *set, const qn_image_params *params)
{
    set->fit = (struct qn_fit){.channels = params->channels ? params->channels : 3,
                               .size = {params->size[0], params->size[1]},
                               .crop = {params->crop[0], params->crop[1]},
                               .random_crop = params->random_crop,
                               .flip = params->flip,
                               .random_resized_crop = params->random_resized_crop,
                               .degrees = params->degrees};
    set_range(set->fit.scale, params->scale, 0.08, 1);
    set_range(set->fit.ratio, params->ratio, 3 / 4.0, 4 / 3.0);
    set->jitter = (struct qn_jitter){{[QN_BRIGHTNESS] = params->brightness,
                                      [QN_CONTRAST] = params->contrast,
                                      [QN_SATURATION] = params->saturation,
                                      [QN_HUE] = params->hue}};
}

static qn_status open_folder(struct image_set *set, const qn_image_params *params)
{
    set->classes = params->classes;
    set_fit(set, params);
    QN_TRY(find_images(&set->folder, params));
    QN_TRY(check_items(set, params));
    return describe(set, params);
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

/* The part of a picture that is seen. */
static struct qn_picture part_of(const struct qn_picture *picture, const struct qn_view *view)
{
    const size_t first = (size_t)view->at[0] * (size_t)picture->size[1] + (size_t)view->at[1];
    return (struct qn_picture){picture->pixels + first * (size_t)picture->channels,
                               {view->part[0], view->part[1]},
                               picture->channels,
                               picture->size[1]};
}

/* Where the window is made: at `to`, or from where it is turned to there; NULL: out of memory. */
static uint8_t *make_room(const struct qn_view *view, int channels, uint8_t *to,
                          struct qn_rooms *rooms)
{
    const int *size = view->window.size;
    return view->angle == 0 ? to
                            : qn_room_take(&rooms->turned, (int64_t)channels * size[0] * size[1]);
}

static qn_status read_mask(const struct image_set *set, const struct qn_image_item *item,
                           const struct qn_view *view, struct qn_rooms *rooms, uint8_t *mask,
                           const struct qn_log *log)
{
    struct qn_picture picture = {0};
    QN_TRY(decode(&picture, item->mask, &item->mask_facts, QN_IMAGE_INDEX, rooms, log));
    QN_TRY(check_classes(&picture, item->mask, set->classes, log));
    const struct qn_picture part = part_of(&picture, view);
    uint8_t *made = make_room(view, 1, mask, rooms);
    if (!made)
        return qn_fail_memory(log, item->mask);
    qn_resample_nearest(made, &part, &view->window);
    if (made != mask)
        qn_rotate_nearest(mask, made, view->window.size, view->angle);
    return QN_OK;
}

static qn_status change_colours(const struct image_set *set, const struct qn_draw *draw,
                                struct qn_rooms *rooms, uint8_t *image)
{
    struct qn_tint tint;
    qn_jitter_draw(&tint, &set->jitter, draw);
    return tint.count ? qn_tint_apply(image, set->fit.channels,
                                      (int64_t)set->size[0] * set->size[1], &tint, &rooms->colours)
                      : QN_OK;
}

static qn_status read_image(const struct image_set *set, const struct qn_image_item *item,
                            const struct qn_view *view, struct qn_rooms *rooms, uint8_t *image,
                            const struct qn_log *log)
{
    const int channels = set->fit.channels;
    struct qn_picture picture = {0};
    QN_TRY(decode(&picture, item->path, &item->facts, (enum qn_image_form)channels, rooms, log));
    const struct qn_picture part = part_of(&picture, view);
    uint8_t *made = make_room(view, channels, image, rooms);
    if (!made || qn_resample(made, &part, &view->window, &rooms->passes) != QN_OK)
        return qn_fail_memory(log, item->path);
    if (made != image)
        qn_rotate(image, made, channels, view->window.size, view->angle);
    return QN_OK;
}

static qn_status read_sample(const struct image_set *set, const struct qn_draw *draw,
                             struct qn_rooms *rooms, void *image, void *label,
                             const struct qn_log *log)
{
    const struct qn_image_item *item = &set->folder.items[draw->sample];
    struct qn_view view;
    fit_item(set, item, draw, &view);
    QN_TRY(read_image(set, item, &view, rooms, image, log));
    if (change_colours(set, draw, rooms, image) != QN_OK)
        return qn_fail_memory(log, item->path);
    if (item->mask)
        return read_mask(set, item, &view, rooms, label, log);
    if (label)
        memcpy(label, &item->label, sizeof item->label);
    return QN_OK;
}

static qn_status read_samples(const struct qn_dataset *dataset, const struct qn_draw *draws,
                              int64_t count, void *const *rows, struct qn_rooms *rooms,
                              const struct qn_log *log)
{
    const struct qn_column *columns = dataset->facts.columns;
    const bool labelled = dataset->facts.n_columns == COLUMNS;
    char *image = rows[IMAGES], *label = labelled ? rows[LABELS] : NULL;
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(read_sample((const struct image_set *)dataset, &draws[i], rooms, image, label, log));
        image += qn_column_bytes(&columns[IMAGES]);
        if (label)
            label += qn_column_bytes(&columns[LABELS]);
    }
    return QN_OK;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    return qn_image_folder_checksum(&((const struct image_set *)dataset)->folder);
}

static void free_folder(struct qn_dataset *dataset)
{
    qn_image_folder_free(&((struct image_set *)dataset)->folder);
}

static const char *name(const struct qn_dataset *dataset, int64_t sample)
{
    return ((const struct image_set *)dataset)->folder.items[sample].path;
}

static const struct qn_source source = {read_samples, checksum, free_folder, .name = name};

qn_status qn_dataset_open_images(qn_dataset **dataset, const qn_image_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct image_set *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, open_folder(made, params));
}

/* --- the way back --- */

/* NULL: the sample is made of no picture. */
static const struct qn_image_item *find_item(const qn_dataset *dataset, int64_t sample)
{
    const bool there = dataset && dataset->source == &source && sample >= 0 &&
                       sample < ((const struct image_set *)dataset)->folder.count;
    return there ? &((const struct image_set *)dataset)->folder.items[sample] : NULL;
}

bool qn_image_size(const qn_dataset *dataset, int64_t sample, int size[2])
{
    const struct qn_image_item *item = find_item(dataset, sample);
    if (!item || !size)
        return false;
    size[0] = item->facts.height;
    size[1] = item->facts.width;
    return true;
}

qn_status qn_image_restore_mask(const qn_dataset *dataset, int64_t sample, const uint8_t *mask,
                                uint8_t *restored, const qn_log *log)
{
    const struct image_set *set = (const struct image_set *)dataset;
    const struct qn_image_item *item = find_item(dataset, sample);
    struct qn_view view;
    int size[2];
    QN_REQUIRE(log, item && mask && restored);
    QN_REQUIRE(log, !set->fit.random_crop && !set->fit.random_resized_crop);
    QN_REQUIRE(log, !set->fit.flip && set->fit.degrees == 0);
    fit_item(set, item, &no_draw, &view);
    qn_image_size(dataset, sample, size);
    qn_resample_back(restored, size, mask, &view.window);
    return QN_OK;
}
