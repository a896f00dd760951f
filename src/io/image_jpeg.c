/* SPDX-License-Identifier: MIT
 *
 * JPEG through libjpeg. Its errors jump to the function that called it, and no further.
 */
#include "base/log.h"
#include "io/image_format.h"
#include "io/orientation.h"

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>
#include <string.h>

/* A progressive file is decoded from coefficients of the whole image, 2 bytes each, and every scan
 * goes over all of them, however few bytes it has: encoders make about ten scans, and a file of a
 * few kilobytes may hold thousands. */
enum { MAX_SCANS = 100, MAX_MIB = 512 };

/* EXIF data are in a segment of this kind, after these bytes. */
enum { EXIF_MARKER = JPEG_APP0 + 1, EXIF_MARK_BYTES = 6, MAX_SEGMENT = 0xffff };
static const char exif_mark[EXIF_MARK_BYTES] = "Exif\0";

struct reading {
    struct qn_image_job *job;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    qn_status status;
    jmp_buf failed;
};

/* Warnings after which pixels are guessed. */
static const int damages[] = {JWRN_ARITH_BAD_CODE, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE,
                              JWRN_JPEG_EOF, JWRN_MUST_RESYNC};
enum { DAMAGES = sizeof damages / sizeof *damages };

static _Noreturn void fail(j_common_ptr jpeg)
{
    struct reading *r = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    bool memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    if (jpeg->err->msg_code == JERR_NO_BACKING_STORE)
        snprintf(text, sizeof text, "takes more than %d MiB to decode", MAX_MIB);
    r->status =
        qn_fail(r->job->log, memory ? QN_ERR_MEMORY : QN_ERR_FORMAT, "%s: %s", r->job->path, text);
    longjmp(r->failed, 1);
}

static void receive(j_common_ptr jpeg, int level)
{
    for (int i = 0; level < 0 && i < DAMAGES; i++)
        if (jpeg->err->msg_code == damages[i])
            fail(jpeg);
}

static void count_scans(j_common_ptr jpeg)
{
    struct reading *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= MAX_SCANS)
        return;
    r->status =
        qn_fail(r->job->log, QN_ERR_FORMAT, "%s: has more than %d scans", r->job->path, MAX_SCANS);
    longjmp(r->failed, 1);
}

/* Of the first segment of EXIF data. */
static int find_orientation(const struct jpeg_decompress_struct *jpeg)
{
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next)
        if (m->data_length > EXIF_MARK_BYTES && memcmp(m->data, exif_mark, EXIF_MARK_BYTES) == 0)
            return qn_orientation_of(m->data + EXIF_MARK_BYTES, m->data_length - EXIF_MARK_BYTES);
    return 1;
}

static void read_header(struct reading *r)
{
    struct qn_image_job *job = r->job;
    jpeg_stdio_src(&r->jpeg, job->file);
    jpeg_save_markers(&r->jpeg, EXIF_MARKER, MAX_SEGMENT);
    jpeg_read_header(&r->jpeg, TRUE);
    job->facts.width = (int)r->jpeg.image_width;
    job->facts.height = (int)r->jpeg.image_height;
    job->facts.channels = r->jpeg.num_components == 1 ? 1 : 3;
    job->facts.orientation = find_orientation(&r->jpeg);
    job->packed = (int64_t)job->facts.width * job->facts.height;
}

/* To what libjpeg can convert; four components stay four. */
static J_COLOR_SPACE space_of(const struct jpeg_decompress_struct *jpeg)
{
    return jpeg->num_components == 1   ? JCS_GRAYSCALE
           : jpeg->num_components == 4 ? JCS_CMYK
                                       : JCS_RGB;
}

/* One row of cyan, magenta, yellow, black. Adobe's programs store what is left of the light. */
static void to_rgb(uint8_t *rgb, const uint8_t *cmyk, int width, bool inverted)
{
    for (int i = 0; i < width; i++, cmyk += 4) {
        for (int c = 0; c < 3; c++) {
            int colour = inverted ? cmyk[c] : 255 - cmyk[c],
                key = inverted ? cmyk[3] : 255 - cmyk[3];
            rgb[3 * i + c] = (uint8_t)((colour * key + 127) / 255);
        }
    }
}

static void read_rows(struct reading *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    const struct qn_image_facts *facts = &r->job->facts;
    size_t row = (size_t)facts->width * (size_t)facts->channels;
    bool cmyk = jpeg->out_color_space == JCS_CMYK;
    JSAMPARRAY four = NULL;
    if (cmyk)
        four = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, 4 * jpeg->image_width, 1);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *at = r->job->pixels + jpeg->output_scanline * row;
        jpeg_read_scanlines(jpeg, cmyk ? four : &at, 1);
        if (cmyk)
            to_rgb(at, four[0], facts->width, jpeg->saw_Adobe_marker);
    }
}

static void read_pixels(struct reading *r)
{
    r->jpeg.out_color_space = space_of(&r->jpeg);
    jpeg_start_decompress(&r->jpeg);
    if (r->jpeg.output_width != (JDIMENSION)r->job->facts.width ||
        r->jpeg.output_components != (r->jpeg.num_components == 4 ? 4 : r->job->facts.channels))
        ERREXIT(&r->jpeg, JERR_CONVERSION_NOTIMPL);
    read_rows(r);
    jpeg_finish_decompress(&r->jpeg);
}

static qn_status read_all(struct reading *r)
{
    if (setjmp(r->failed))
        return r->status;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.mem->max_memory_to_use = (long)MAX_MIB << 20;
    r->jpeg.progress = &r->progress;
    read_header(r);
    QN_TRY(qn_image_accept(r->job));
    if (r->job->pixels)
        read_pixels(r);
    return QN_OK;
}

qn_status qn_image_read_jpeg(struct qn_image_job *job)
{
    struct reading r = {.job = job, .jpeg.client_data = &r};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = fail;
    r.errors.emit_message = receive;
    r.progress.progress_monitor = count_scans;
    qn_status status = read_all(&r);
    jpeg_destroy_decompress(&r.jpeg);
    return status;
}
