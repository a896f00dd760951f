/* SPDX-License-Identifier: MIT */
#include "io/image.h"
#include "base/log.h"
#include "io/image_format.h"
#include "io/orientation.h"
#include "io/path.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Neither format packs more bytes of pixels into one byte: deflate shrinks 1032 times, and a JPEG
 * needs a bit for each 64 pixels. */
enum { MAX_PIXELS = 1 << 27, MAX_RATIO = 1032 };

static const struct format {
    unsigned char mark[8];
    size_t length;
    qn_status (*read)(struct qn_image_job *job);
} formats[] = {
    {{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, 8, qn_image_read_png},
    {{0xff, 0xd8, 0xff}, 3, qn_image_read_jpeg},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool is_same(const struct qn_image_facts *a, const struct qn_image_facts *b)
{
    return a->bytes == b->bytes && a->width == b->width && a->height == b->height &&
           a->channels == b->channels && a->indices == b->indices &&
           a->orientation == b->orientation;
}

/* Of the picture from those of the file, and back. */
static struct qn_image_facts turned(struct qn_image_facts facts)
{
    const int width = facts.width;
    if (qn_orientation_turns(facts.orientation)) {
        facts.width = facts.height;
        facts.height = width;
    }
    return facts;
}

qn_status qn_image_accept(const struct qn_image_job *job)
{
    const struct qn_image_facts *found = &job->facts, *expected = job->expected;
    if (found->width < 1 || found->height < 1)
        return qn_fail(job->log, QN_ERR_FORMAT, "%s: has no pixels", job->path);
    if ((int64_t)found->width * found->height > MAX_PIXELS)
        return qn_fail(job->log, QN_ERR_FORMAT, "%s: is larger than %d pixels", job->path,
                       MAX_PIXELS);
    if (job->packed / MAX_RATIO > found->bytes)
        return qn_fail(job->log, QN_ERR_FORMAT, "%s: more pixels than the file can hold",
                       job->path);
    if (expected && !is_same(found, expected))
        return qn_fail(job->log, QN_ERR_FORMAT, "%s: is not the image that it was", job->path);
    return QN_OK;
}

static qn_status read_as_found(struct qn_image_job *job)
{
    unsigned char mark[sizeof formats->mark] = {0};
    size_t length = fread(mark, 1, sizeof mark, job->file);
    if (fseek(job->file, 0, SEEK_SET) != 0)
        return qn_fail_errno(job->log, job->path, "read");
    for (int i = 0; i < FORMATS; i++)
        if (length >= formats[i].length && memcmp(mark, formats[i].mark, formats[i].length) == 0)
            return formats[i].read(job);
    return qn_fail(job->log, QN_ERR_FORMAT, "%s: neither a PNG nor a JPEG file", job->path);
}

static qn_status read_file(struct qn_image_job *job)
{
    struct stat facts;
    int fd = open(job->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return qn_fail_errno(job->log, job->path, "read");
    bool regular = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
    job->file = regular ? fdopen(fd, "rb") : NULL;
    if (!job->file) {
        close(fd);
        return regular ? qn_fail_memory(job->log, job->path)
                       : qn_fail(job->log, QN_ERR_IO, "%s: not a regular file", job->path);
    }
    job->facts.bytes = facts.st_size;
    qn_status status = read_as_found(job);
    fclose(job->file);
    return status;
}

qn_status qn_image_look(struct qn_image_facts *facts, const char *path, const struct qn_log *log)
{
    struct qn_image_job job = {.path = path, .log = log};
    QN_TRY(read_file(&job));
    *facts = turned(job.facts);
    return QN_OK;
}

/* --- pixels --- */

static int64_t bytes_of_pixel(const struct qn_image_facts *facts, enum qn_image_form form)
{
    return form == QN_IMAGE_INDEX || (form == QN_IMAGE_GREY && facts->channels == 1) ? 1 : 3;
}

int64_t qn_image_bytes(const struct qn_image_facts *facts, enum qn_image_form form)
{
    const int64_t bytes = bytes_of_pixel(facts, form) * facts->width * facts->height;
    return facts->orientation == 1 ? bytes : 2 * bytes;
}

/* ITU-R BT.601 in the integers that Pillow takes. */
static void to_grey(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *rgb = pixels + 3 * i;
        pixels[i] = (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
    }
}

/* From the last to the first: they lie at the beginning of the same memory. */
static void to_rgb(uint8_t *pixels, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--)
        memset(pixels + 3 * i, pixels[i], 3);
}

/* As many channels as are asked for. */
static void convert(uint8_t *pixels, const struct qn_image_facts *facts, enum qn_image_form form)
{
    int64_t count = (int64_t)facts->width * facts->height;
    if (form == QN_IMAGE_GREY && facts->channels == 3)
        to_grey(pixels, count);
    if (form == QN_IMAGE_RGB && facts->channels == 1)
        to_rgb(pixels, count);
}

qn_status qn_image_read(uint8_t *pixels, const char *path, const struct qn_image_facts *facts,
                        enum qn_image_form form, const struct qn_log *log)
{
    const struct qn_image_facts stored = turned(*facts);
    const bool upright = facts->orientation == 1;
    uint8_t *read = upright ? pixels : pixels + qn_image_bytes(facts, form) / 2;
    struct qn_image_job job = {
        .path = path, .log = log, .expected = &stored, .form = form, .pixels = read};
    QN_REQUIRE(log, form != QN_IMAGE_INDEX || facts->indices);
    QN_TRY(read_file(&job));
    convert(read, facts, form);
    if (!upright)
        qn_orientation_apply(pixels, read, stored.height, stored.width,
                             form == QN_IMAGE_RGB ? 3 : 1, facts->orientation);
    return QN_OK;
}
