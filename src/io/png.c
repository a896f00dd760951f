/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "io/path.h"

#include <png.h>
#include <quern/image.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 27, MOST_COLOURS = 256 };

static qn_status check(const qn_png_params *params)
{
    const qn_log *log = &params->log;
    QN_REQUIRE(log, params->pixels);
    QN_REQUIRE(log, params->height > 0 && params->width > 0);
    QN_REQUIRE(log, params->height <= MOST_PIXELS / params->width);
    QN_REQUIRE(log, params->channels == 1 || (params->channels == 3 && !params->palette));
    QN_REQUIRE(log, !params->palette || (params->colours > 0 && params->colours <= MOST_COLOURS));
    for (int64_t i = 0; params->palette && i < (int64_t)params->height * params->width; i++)
        QN_REQUIRE(log, params->pixels[i] < params->colours);
    return QN_OK;
}

static qn_status encode(void **bytes, size_t *size, png_image *image, const qn_png_params *params)
{
    const void *pixels = params->pixels, *palette = params->palette;
    png_alloc_size_t room = 0;
    int done = png_image_write_to_memory(image, NULL, &room, 0, pixels, 0, palette);
    void *memory = done ? malloc(room) : NULL;
    if (done && !memory)
        return qn_fail_memory(&params->log, "PNG");
    done = done && png_image_write_to_memory(image, memory, &room, 0, pixels, 0, palette);
    if (!done) {
        free(memory);
        return qn_fail(&params->log, QN_ERR_INTERNAL, "PNG: %s", image->message);
    }
    *bytes = memory;
    *size = room;
    return QN_OK;
}

qn_status qn_png_encode(void **bytes, size_t *size, const qn_png_params *params)
{
    QN_REQUIRE(params ? &params->log : NULL, bytes && size && params);
    QN_TRY(check(params));
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)params->width,
        .height = (png_uint_32)params->height,
        .format = params->palette         ? PNG_FORMAT_RGB_COLORMAP
                  : params->channels == 3 ? PNG_FORMAT_RGB
                                          : PNG_FORMAT_GRAY,
        .colormap_entries = (png_uint_32)params->colours,
    };
    const qn_status status = encode(bytes, size, &image, params);
    png_image_free(&image);
    return status;
}
