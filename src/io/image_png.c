/* SPDX-License-Identifier: MIT
 *
 * PNG through libpng. Its errors jump to the function that called it, and no further.
 */
#include "base/log.h"
#include "io/image_format.h"
#include "io/orientation.h"

#include <png.h>
#include <setjmp.h>

struct reading {
    struct qn_image_job *job;
    png_structp png;
    png_infop info;
    jmp_buf failed;
};

static PNG_NORETURN void fail(png_structp png, png_const_charp text)
{
    struct reading *r = png_get_error_ptr(png);
    qn_fail(r->job->log, QN_ERR_FORMAT, "%s: %s", r->job->path, text);
    longjmp(r->failed, 1);
}

static void ignore(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep bytes, size_t size)
{
    const struct reading *r = png_get_io_ptr(png);
    if (fread(bytes, 1, size, r->job->file) != size)
        png_error(png, "the file ends early");
}

static int find_orientation(struct reading *r)
{
    int orientation = 1;
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif;
    png_uint_32 size;
    if (png_get_eXIf_1(r->png, r->info, &size, &exif) == PNG_INFO_eXIf)
        orientation = qn_orientation_of(exif, size);
#endif
    return orientation;
}

static void read_header(struct reading *r)
{
    struct qn_image_facts *facts = &r->job->facts;
    png_read_info(r->png, r->info);
    int type = png_get_color_type(r->png, r->info), depth = png_get_bit_depth(r->png, r->info);
    bool palette = type == PNG_COLOR_TYPE_PALETTE, grey = !(type & PNG_COLOR_MASK_COLOR);
    facts->width = (int)png_get_image_width(r->png, r->info);
    facts->height = (int)png_get_image_height(r->png, r->info);
    facts->channels = grey ? 1 : 3;
    facts->indices = palette || (type == PNG_COLOR_TYPE_GRAY && depth <= 8);
    facts->orientation = find_orientation(r);
    r->job->packed = (int64_t)png_get_rowbytes(r->png, r->info) * facts->height;
}

/* Asks for 8 bits a channel without transparency, or for the values as they are. */
static void choose_form(struct reading *r)
{
    if (r->job->form == QN_IMAGE_INDEX) {
        png_set_packing(r->png);
        return;
    }
    png_set_scale_16(r->png);
    png_set_strip_alpha(r->png);
    if (png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    else
        png_set_expand_gray_1_2_4_to_8(r->png);
}

static void read_pixels(struct reading *r)
{
    const struct qn_image_facts *facts = &r->job->facts;
    size_t pixel = r->job->form == QN_IMAGE_INDEX ? 1 : (size_t)facts->channels;
    size_t row = pixel * (size_t)facts->width;
    choose_form(r);
    int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != row)
        png_error(r->png, "its pixels are of an unknown form");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < facts->height; y++)
            png_read_row(r->png, r->job->pixels + (size_t)y * row, NULL);
}

static qn_status read_all(struct reading *r)
{
    if (setjmp(r->failed))
        return QN_ERR_FORMAT;
    png_set_read_fn(r->png, r, read_bytes);
    read_header(r);
    QN_TRY(qn_image_accept(r->job));
    if (r->job->pixels)
        read_pixels(r);
    return QN_OK;
}

qn_status qn_image_read_png(struct qn_image_job *job)
{
    struct reading r = {.job = job};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, ignore);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    qn_status status =
        r.info ? read_all(&r) : qn_fail(job->log, QN_ERR_MEMORY, "%s: out of memory", job->path);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return status;
}
