/* SPDX-License-Identifier: MIT */
#include "masks.h"
#include "file.h"

#include <errno.h>
#include <quern/image.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COLOURS = 256 };

/* The file's own name, without a folder, and without its ending if it is the sample's own. */
static int stem(const struct masks *m, char name[SAMPLE_NAME_BYTES], const char **base)
{
    const char *slash = strrchr(name, '/');
    *base = slash ? slash + 1 : name;
    const char *dot = strrchr(*base, '.');
    return dot && !m->samples->file ? (int)(dot - *base) : (int)strlen(*base);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int refuse_twins(const struct masks *m, char **names, int64_t count)
{
    qsort(names, (size_t)count, sizeof *names, compare);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return failure_set(m->failure, CODE_FAILED,
                               "--out: two pictures are called %s: predict their folders one by "
                               "one",
                               names[i]);
    return CODE_DONE;
}

static int check_names(const struct masks *m)
{
    const int64_t count = qn_dataset_describe(m->samples->dataset)->count;
    char name[SAMPLE_NAME_BYTES], **names = calloc((size_t)count, sizeof *names);
    int64_t there = 0;
    for (bool good = names; good && there < count; there += good) {
        const char *base;
        samples_name(m->samples, there, name);
        const int length = stem(m, name, &base);
        names[there] = strndup(base, (size_t)length);
        good = names[there];
    }
    const int code = there == count ? refuse_twins(m, names, count)
                                    : failure_set(m->failure, CODE_FAILED, "out of memory");
    while (there)
        free(names[--there]);
    free(names);
    return code;
}

int masks_open(const struct masks *m)
{
    TRY(check_names(m));
    if (mkdir(m->folder, 0777) != 0 && errno != EEXIST)
        return failure_set(m->failure, CODE_FAILED, "%s: %s", m->folder, strerror(errno));
    return file_is_folder(m->folder)
               ? CODE_DONE
               : failure_set(m->failure, CODE_FAILED, "--out: %s: is no folder", m->folder);
}

static int encode(const struct masks *m, void **bytes, size_t *size, const uint8_t *mask,
                  const int sides[2])
{
    uint8_t palette[3 * COLOURS];
    for (int i = 0; i < COLOURS; i++)
        qn_class_colour(palette + 3 * i, i);
    const qn_png_params params = {.log = failure_log(m->failure),
                                  .pixels = mask,
                                  .height = sides[0],
                                  .width = sides[1],
                                  .channels = 1,
                                  .palette = palette,
                                  .colours = COLOURS};
    TRY_LIBRARY(m->failure, NULL, qn_png_encode(bytes, size, &params));
    return CODE_DONE;
}

static int write_sides(const struct masks *m, const char *path, const uint8_t *mask,
                       const int sides[2])
{
    void *bytes = NULL;
    size_t size = 0;
    TRY(encode(m, &bytes, &size, mask, sides));
    const int code = file_write(path, bytes, size, m->failure);
    qn_free(bytes);
    return code;
}

/* In the size of the sample's picture. */
static int write_restored(const struct masks *m, const char *path, int64_t sample,
                          const uint8_t *mask, const int sides[2])
{
    const qn_log log = failure_log(m->failure);
    uint8_t *restored = malloc((size_t)sides[0] * (size_t)sides[1]);
    if (!restored)
        return failure_set(m->failure, CODE_FAILED, "%s: out of memory", path);
    const qn_status status =
        qn_image_restore_mask(m->samples->dataset, sample, mask, restored, &log);
    const int code = status == QN_OK ? write_sides(m, path, restored, sides)
                                     : failure_library(m->failure, status, path);
    free(restored);
    return code;
}

int masks_write(const struct masks *m, int64_t sample, const uint8_t *mask)
{
    char name[SAMPLE_NAME_BYTES], path[2 * SAMPLE_NAME_BYTES];
    const char *base;
    int sides[2];
    samples_name(m->samples, sample, name);
    const int length = stem(m, name, &base);
    snprintf(path, sizeof path, "%s/%.*s%s.png", m->folder, length, base, m->mark);
    return qn_image_size(m->samples->dataset, sample, sides)
               ? write_restored(m, path, sample, mask, sides)
               : write_sides(m, path, mask, (const int[]){m->height, m->width});
}
