/* SPDX-License-Identifier: MIT */
#include "data/image_folder.h"
#include "base/log.h"
#include "base/text.h"
#include "io/names.h"
#include "io/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

/* A folder in a folder, and so on: deeper ones are a circle of links. */
enum { MOST_DEPTH = 32 };

struct reading {
    struct qn_image_folder *folder;
    const char *path;
    const char *mask;
    bool masks; /* images have one each, else those that are named so are left out */
    const struct qn_log *log;
};

static qn_status out_of_memory(const struct reading *r)
{
    return qn_fail_memory(r->log, r->path);
}

/* PATH/NAME in the folder's own memory; NULL: out of memory. */
static const char *join(const struct reading *r, const char *path, const char *name)
{
    char *joined = qn_path_join(path, name);
    const char *kept = joined ? qn_arena_strdup(&r->folder->arena, joined) : NULL;
    free(joined);
    return kept;
}

/* --- names --- */

/* The ending of an image's name; NULL: it is none. */
static const char *ending(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return dot;
    return NULL;
}

static bool is_mask(const char *name, const char *mask)
{
    const char *dot = ending(name);
    size_t length = dot ? (size_t)(dot - name) : 0, end = strlen(mask);
    return length >= end && memcmp(dot - end, mask, end) == 0;
}

/* NAME_mask.png for NAME.jpg, in the folder's own memory. */
static const char *mask_path(const struct reading *r, const char *path)
{
    struct qn_text text = {0};
    qn_text_add(&text, "%.*s%s.png", (int)(ending(path) - path), path, r->mask);
    char *made = qn_text_take(&text);
    const char *kept = made ? qn_arena_strdup(&r->folder->arena, made) : NULL;
    free(made);
    return kept;
}

/* --- images --- */

static struct qn_image_item *new_item(struct qn_image_folder *folder)
{
    if (folder->count == folder->capacity) {
        int64_t capacity = folder->capacity ? 2 * folder->capacity : 64;
        struct qn_image_item *grown =
            realloc(folder->items, (size_t)capacity * sizeof *folder->items);
        if (!grown)
            return NULL;
        folder->items = grown;
        folder->capacity = capacity;
    }
    struct qn_image_item *item = &folder->items[folder->count++];
    *item = (struct qn_image_item){0};
    return item;
}

static qn_status look_at_mask(const struct reading *r, struct qn_image_item *item)
{
    const struct qn_image_facts *image = &item->facts, *mask = &item->mask_facts;
    item->mask = mask_path(r, item->path);
    if (!item->mask)
        return out_of_memory(r);
    QN_TRY(qn_image_look(&item->mask_facts, item->mask, r->log));
    if (!mask->indices)
        return qn_fail(r->log, QN_ERR_FORMAT,
                       "%s: a mask is a PNG, grey or of a palette, of at most 8 bits", item->mask);
    if (mask->height != image->height || mask->width != image->width)
        return qn_fail(r->log, QN_ERR_FORMAT,
                       "%s: is %d high and %d wide, but its image is %d high and %d wide",
                       item->mask, mask->height, mask->width, image->height, image->width);
    return QN_OK;
}

static qn_status add_image(const struct reading *r, const char *path, int32_t label)
{
    struct qn_image_item *item = path ? new_item(r->folder) : NULL;
    if (!item)
        return out_of_memory(r);
    item->path = path;
    item->label = label;
    QN_TRY(qn_image_look(&item->facts, path, r->log));
    return r->masks ? look_at_mask(r, item) : QN_OK;
}

static qn_status add_names(const struct reading *r, const char *path, const struct qn_names *names,
                           int32_t label)
{
    int64_t before = r->folder->count;
    for (int64_t i = 0; i < names->count; i++) {
        const char *name = names->name[i], *whole = join(r, path, name);
        if (!whole)
            return out_of_memory(r);
        if (qn_is_folder(whole))
            return qn_fail(r->log, QN_ERR_FORMAT, "%s: a folder among images", whole);
        if (ending(name) && !(r->mask && is_mask(name, r->mask)))
            QN_TRY(add_image(r, whole, label));
    }
    if (r->folder->count == before)
        return qn_fail(r->log, QN_ERR_FORMAT, "%s: holds no image (.png, .jpg, .jpeg)", path);
    return QN_OK;
}

/* The images in one folder. */
static qn_status add_folder(const struct reading *r, const char *path, int32_t label)
{
    struct qn_names names;
    QN_TRY(qn_names_read(&names, path, r->log));
    qn_status status = add_names(r, path, &names, label);
    qn_names_free(&names);
    return status;
}

/* --- classes --- */

static qn_status add_class(const struct reading *r, const char *name)
{
    struct qn_image_folder *folder = r->folder;
    const char *path = join(r, r->path, name);
    if (!path)
        return out_of_memory(r);
    if (!qn_is_folder(path))
        return ending(name) ? qn_fail(r->log, QN_ERR_FORMAT,
                                      "%s: an image outside the folders of classes", path)
                            : QN_OK;
    folder->classes[folder->n_classes] = qn_path_name(path);
    return add_folder(r, path, (int32_t)folder->n_classes++);
}

static qn_status add_classes(const struct reading *r, const struct qn_names *names)
{
    struct qn_image_folder *folder = r->folder;
    folder->classes = qn_arena_new(&folder->arena, const char *, (size_t)names->count + 1);
    if (!folder->classes)
        return out_of_memory(r);
    for (int64_t i = 0; i < names->count; i++)
        QN_TRY(add_class(r, names->name[i]));
    if (folder->n_classes == 0)
        return qn_fail(r->log, QN_ERR_FORMAT, "%s: holds no folder of a class", r->path);
    if (folder->n_classes == 1)
        return qn_fail(r->log, QN_ERR_FORMAT, "%s: holds the folder of one class alone: %s",
                       r->path, folder->classes[0]);
    return QN_OK;
}

static qn_status read_classes(const struct reading *r)
{
    struct qn_names names;
    QN_TRY(qn_names_read(&names, r->path, r->log));
    qn_status status = add_classes(r, &names);
    qn_names_free(&names);
    return status;
}

qn_status qn_image_folder_read(struct qn_image_folder *folder, const char *path, const char *mask,
                               const struct qn_log *log)
{
    *folder = (struct qn_image_folder){0};
    const struct reading r = {folder, path, mask, mask != NULL, log};
    qn_status status = mask ? add_folder(&r, path, 0) : read_classes(&r);
    if (status != QN_OK)
        qn_image_folder_free(folder);
    return status;
}

/* --- without labels --- */

static qn_status add_tree(const struct reading *r, const char *path, int depth);

static qn_status add_entries(const struct reading *r, const char *path,
                             const struct qn_names *names, int depth)
{
    for (int64_t i = 0; i < names->count; i++) {
        const char *name = names->name[i], *whole = join(r, path, name);
        if (!whole)
            return out_of_memory(r);
        if (qn_is_folder(whole))
            QN_TRY(add_tree(r, whole, depth + 1));
        else if (ending(name) && !(r->mask && is_mask(name, r->mask)))
            QN_TRY(add_image(r, whole, 0));
    }
    return QN_OK;
}

static qn_status add_tree(const struct reading *r, const char *path, int depth)
{
    struct qn_names names;
    if (depth > MOST_DEPTH)
        return qn_fail(r->log, QN_ERR_FORMAT, "%s: folders within folders, more than %d deep", path,
                       MOST_DEPTH);
    QN_TRY(qn_names_read(&names, path, r->log));
    const qn_status status = add_entries(r, path, &names, depth);
    qn_names_free(&names);
    return status;
}

static qn_status add_path(const struct reading *r, const char *path)
{
    const int64_t before = r->folder->count;
    if (!qn_is_folder(path)) {
        const char *kept = qn_arena_strdup(&r->folder->arena, path);
        return kept ? add_image(r, kept, 0) : out_of_memory(r);
    }
    QN_TRY(add_tree(r, path, 0));
    return r->folder->count > before
               ? QN_OK
               : qn_fail(r->log, QN_ERR_FORMAT, "%s: holds no image (.png, .jpg, .jpeg)", path);
}

qn_status qn_image_folder_list(struct qn_image_folder *folder, const char *const *paths,
                               int64_t count, const char *mask, const struct qn_log *log)
{
    qn_status status = QN_OK;
    *folder = (struct qn_image_folder){0};
    for (int64_t i = 0; status == QN_OK && i < count; i++) {
        const struct reading r = {folder, paths[i], mask, false, log};
        status = add_path(&r, paths[i]);
    }
    if (status != QN_OK)
        qn_image_folder_free(folder);
    return status;
}

void qn_image_folder_free(struct qn_image_folder *folder)
{
    free(folder->items);
    qn_arena_free(&folder->arena);
    *folder = (struct qn_image_folder){0};
}

uint32_t qn_image_folder_checksum(const struct qn_image_folder *folder)
{
    uLong sum = crc32(0, NULL, 0);
    for (int64_t i = 0; i < folder->count; i++) {
        const struct qn_image_item *item = &folder->items[i];
        const char *name = qn_path_name(item->path);
        char numbers[96];
        int length = snprintf(numbers, sizeof numbers, " %" PRId64 " %" PRId64 " %" PRId32 "\n",
                              item->facts.bytes, item->mask_facts.bytes, item->label);
        sum = crc32_z(sum, (const Bytef *)name, strlen(name));
        sum = crc32_z(sum, (const Bytef *)numbers, (z_size_t)length);
    }
    return (uint32_t)sum;
}
