/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG files for tests.
 */
#ifndef QN_TESTS_IO_IMAGE_FILE_H
#define QN_TESTS_IO_IMAGE_FILE_H

#include "scratch.h"

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

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

/* EXIF data that say an orientation alone. */
enum { EXIF_BYTES = 26 };
static inline void exif_make(uint8_t exif[EXIF_BYTES], int orientation, bool little)
{
    static const uint8_t ends[2][EXIF_BYTES] = {
        {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1},
        {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0},
    };
    memcpy(exif, ends[little], EXIF_BYTES);
    exif[little ? 18 : 19] = (uint8_t)orientation;
}

/* Puts a piece between the first `before` bytes of a file and the others. */
static inline void insert_bytes(struct scratch *scratch, const char *name, size_t before,
                                const uint8_t *piece, size_t count)
{
    char *read, *whole;
    size_t size;
    assert_int_equal(qn_file_read(scratch_path(scratch, name), 1 << 20, &read, &size, NULL), QN_OK);
    whole = malloc(size + count);
    assert_non_null(whole);
    memcpy(whole, read, before);
    memcpy(whole + before, piece, count);
    memcpy(whole + before + count, read + before, size - before);
    scratch_put(scratch, name, whole, size + count);
    free(whole);
    free(read);
}

/* Behind the mark that begins a file. */
static inline void jpeg_add_exif(struct scratch *scratch, const char *name, int orientation,
                                 bool little)
{
    uint8_t segment[10 + EXIF_BYTES] = {0xff, 0xe1, 0, 8 + EXIF_BYTES, 'E', 'x', 'i', 'f', 0, 0};
    exif_make(segment + 10, orientation, little);
    insert_bytes(scratch, name, 2, segment, sizeof segment);
}

/* Behind the first chunk. */
static inline void png_add_exif(struct scratch *scratch, const char *name, int orientation,
                                bool little)
{
    uint8_t piece[12 + EXIF_BYTES] = {0, 0, 0, EXIF_BYTES, 'e', 'X', 'I', 'f'};
    exif_make(piece + 8, orientation, little);
    const uLong sum = crc32(0, piece + 4, 4 + EXIF_BYTES);
    for (int i = 0; i < 4; i++)
        piece[8 + EXIF_BYTES + i] = (uint8_t)(sum >> (24 - 8 * i));
    insert_bytes(scratch, name, 8 + 25, piece, sizeof piece);
}

#endif
