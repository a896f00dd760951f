/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG files for tests.
 */
#ifndef QN_TESTS_IO_IMAGE_FILE_H
#define QN_TESTS_IO_IMAGE_FILE_H

#include "scratch.h"

#include <jpeglib.h>
#include <png.h>

struct png_form {
    int type, depth; /* 0: PNG_COLOR_TYPE_GRAY; 0: 8 bits */
    bool interlaced;
    const png_color *palette;
    int colours;
};

/* The path is in the folder of the scratch; `rows` hold the bytes as PNG packs them. */
static inline const char *png_put(struct scratch *scratch, const char *name, int width, int height,
                                  const struct png_form *form, const uint8_t *rows)
{
    const char *path = scratch_path(scratch, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert_non_null(info);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, form->depth ? form->depth : 8,
                 form->type, form->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (form->palette)
        png_set_PLTE(png, info, form->palette, form->colours);
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    size_t row = png_get_rowbytes(png, info);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++)
            png_write_row(png, rows + (size_t)y * row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
    return path;
}

struct jpeg_form {
    J_COLOR_SPACE space;
    bool progressive;
    bool plain; /* without Adobe's marker */
};

static inline int jpeg_channels(J_COLOR_SPACE space)
{
    return space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK ? 4 : 3;
}

static inline void jpeg_put_all(FILE *file, int width, int height, const struct jpeg_form *form,
                                const uint8_t *rows)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = jpeg_channels(form->space);
    jpeg.in_color_space = form->space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    if (form->progressive)
        jpeg_simple_progression(&jpeg);
    jpeg.write_Adobe_marker = !form->plain;
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        uint8_t *row = (uint8_t *)rows + (size_t)(y * width * jpeg.input_components);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
}

static inline const char *jpeg_put(struct scratch *scratch, const char *name, int width, int height,
                                   const struct jpeg_form *form, const uint8_t *rows)
{
    const char *path = scratch_path(scratch, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    jpeg_put_all(file, width, height, form, rows);
    assert_int_equal(fclose(file), 0);
    return path;
}

#endif
