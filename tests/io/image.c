/* SPDX-License-Identifier: MIT */
#include "io/image.h"

#include "image_file.h"

#include <zlib.h>

enum { W = 5, H = 3, ROOM = 1 << 16 };

static uint8_t pixels[ROOM], bytes[ROOM];

static struct qn_image_facts look(struct scratch *scratch, const char *path)
{
    struct qn_image_facts facts = {0};
    assert_int_equal(qn_image_look(&facts, path, &scratch->log), QN_OK);
    assert_int_equal(scratch->lines, 0);
    return facts;
}

/* What `path` becomes, in `pixels`. */
static void read_as(struct scratch *scratch, const char *path, enum qn_image_form form)
{
    struct qn_image_facts facts = look(scratch, path);
    memset(pixels, 0xa5, sizeof pixels);
    int64_t room = qn_image_bytes(&facts, form);
    assert_int_equal(qn_image_read(pixels, path, &facts, form, &scratch->log), QN_OK);
    assert_int_equal(pixels[room], 0xa5);
}

static void colour_is_read_as_it_is(void **state)
{
    struct scratch *scratch = *state;
    uint8_t rgb[3 * W * H];
    for (int i = 0; i < 3 * W * H; i++)
        rgb[i] = (uint8_t)(i * 53);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        const struct png_form form = {.type = PNG_COLOR_TYPE_RGB, .interlaced = interlaced};
        const char *path = png_put(scratch, "c.png", W, H, &form, rgb);
        struct qn_image_facts facts = look(scratch, path);
        assert_int_equal(facts.width, W);
        assert_int_equal(facts.height, H);
        assert_int_equal(facts.channels, 3);
        assert_false(facts.indices);
        read_as(scratch, path, QN_IMAGE_RGB);
        assert_memory_equal(pixels, rgb, sizeof rgb);
    }
}

static void transparency_is_left_out(void **state)
{
    struct scratch *scratch = *state;
    const uint8_t rgba[] = {10, 20, 30, 0, 40, 50, 60, 128}, rgb[] = {10, 20, 30, 40, 50, 60};
    const uint8_t grey_alpha[] = {77, 0, 88, 9};
    png_put(scratch, "a.png", 2, 1, &(struct png_form){.type = PNG_COLOR_TYPE_RGBA}, rgba);
    read_as(scratch, scratch->path, QN_IMAGE_RGB);
    assert_memory_equal(pixels, rgb, sizeof rgb);
    png_put(scratch, "g.png", 2, 1, &(struct png_form){.type = PNG_COLOR_TYPE_GRAY_ALPHA},
            grey_alpha);
    assert_false(look(scratch, scratch->path).indices);
    read_as(scratch, scratch->path, QN_IMAGE_GREY);
    assert_int_equal(pixels[0], 77);
    assert_int_equal(pixels[1], 88);
}

static void sixteen_bits_are_rounded(void **state)
{
    struct scratch *scratch = *state;
    const uint8_t deep[] = {0, 0, 0x7f, 0xff, 0x80, 0x80, 0xff, 0x00, 0xff, 0xff};
    const uint8_t rounded[] = {0, 127, 128, 254, 255};
    png_put(scratch, "d.png", 5, 1, &(struct png_form){.depth = 16}, deep);
    assert_false(look(scratch, scratch->path).indices);
    read_as(scratch, scratch->path, QN_IMAGE_GREY);
    assert_memory_equal(pixels, rounded, sizeof rounded);
}

static void grey_and_colour_become_each_other(void **state)
{
    struct scratch *scratch = *state;
    const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 12, 200, 99};
    const uint8_t grey[] = {76, 150, 29, 255, 132}; /* of Pillow's convert("L") */
    const uint8_t two[] = {7, 250}, six[] = {7, 7, 7, 250, 250, 250};
    png_put(scratch, "c.png", 5, 1, &(struct png_form){.type = PNG_COLOR_TYPE_RGB}, rgb);
    read_as(scratch, scratch->path, QN_IMAGE_GREY);
    assert_memory_equal(pixels, grey, sizeof grey);
    png_put(scratch, "g.png", 2, 1, &(struct png_form){0}, two);
    read_as(scratch, scratch->path, QN_IMAGE_RGB);
    assert_memory_equal(pixels, six, sizeof six);
}

static void indices_and_their_colours(void **state)
{
    struct scratch *scratch = *state;
    const png_color palette[] = {{1, 2, 3}, {40, 50, 60}, {255, 0, 7}};
    const uint8_t packed[] = {0x18}; /* 0, 1, 2, 0 in two bits each */
    const uint8_t index[] = {0, 1, 2}, rgb[] = {1, 2, 3, 40, 50, 60, 255, 0, 7};
    const struct png_form form = {
        .type = PNG_COLOR_TYPE_PALETTE, .depth = 2, .palette = palette, .colours = 3};
    png_put(scratch, "p.png", 3, 1, &form, packed);
    assert_true(look(scratch, scratch->path).indices);
    assert_int_equal(look(scratch, scratch->path).channels, 3);
    read_as(scratch, scratch->path, QN_IMAGE_INDEX);
    assert_memory_equal(pixels, index, sizeof index);
    read_as(scratch, scratch->path, QN_IMAGE_RGB);
    assert_memory_equal(pixels, rgb, sizeof rgb);
}

static void bits_of_grey(void **state)
{
    struct scratch *scratch = *state;
    const uint8_t packed[] = {0xa0}, index[] = {1, 0, 1}, grey[] = {255, 0, 255};
    png_put(scratch, "b.png", 3, 1, &(struct png_form){.depth = 1}, packed);
    read_as(scratch, scratch->path, QN_IMAGE_INDEX);
    assert_memory_equal(pixels, index, sizeof index);
    read_as(scratch, scratch->path, QN_IMAGE_GREY);
    assert_memory_equal(pixels, grey, sizeof grey);
}

/* Flat images lose next to nothing. */
static void jpegs_are_read(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        struct jpeg_form form;
        uint8_t stored[4], rgb[3];
    } cases[] = {
        {{JCS_RGB, false, true}, {200, 40, 90}, {200, 40, 90}},
        {{JCS_RGB, true, true}, {200, 40, 90}, {200, 40, 90}},
        {{JCS_GRAYSCALE, false, true}, {131}, {131, 131, 131}},
        {{JCS_GRAYSCALE, true, true}, {131}, {131, 131, 131}},
        {{JCS_CMYK, false, false}, {200, 100, 50, 128}, {100, 50, 25}},
        {{JCS_CMYK, true, true}, {200, 100, 50, 127}, {28, 78, 103}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int channels = jpeg_channels(cases[i].form.space);
        for (int j = 0; j < 33 * 18 * channels; j++)
            bytes[j] = cases[i].stored[j % channels];
        jpeg_put(scratch, "named.png", 33, 18, &cases[i].form, bytes);
        struct qn_image_facts facts = look(scratch, scratch->path);
        assert_int_equal(facts.width, 33);
        assert_int_equal(facts.height, 18);
        assert_int_equal(facts.channels, channels == 1 ? 1 : 3);
        assert_false(facts.indices);
        read_as(scratch, scratch->path, QN_IMAGE_RGB);
        for (int j = 0; j < 33 * 18 * 3; j++)
            assert_in_range(pixels[j] + 3 - cases[i].rgb[j % 3], 0, 6);
    }
}

/* Where each pixel of 3 x 2 is in the upright picture, as Pillow's exif_transpose has it. */
static const char *const upright[9] = {
    [1] = "abcdef", [2] = "cbafed", [3] = "fedcba", [4] = "defabc",
    [5] = "adbecf", [6] = "daebfc", [7] = "fcebda", [8] = "cfbead",
};

/* The first is as it is, the second has an orientation. */
static void compare_turned(struct scratch *scratch, const char *plain, const char *other,
                           int orientation, enum qn_image_form form)
{
    static uint8_t flat[ROOM];
    struct qn_image_facts facts = look(scratch, scratch_path(scratch, other));
    assert_int_equal(facts.width, orientation > 4 ? 2 : 3);
    assert_int_equal(facts.height, orientation > 4 ? 3 : 2);
    const size_t bytes_ = form == QN_IMAGE_RGB ? 3 : 1;
    read_as(scratch, scratch_path(scratch, plain), form);
    memcpy(flat, pixels, 6 * bytes_);
    read_as(scratch, scratch_path(scratch, other), form);
    for (int i = 0; i < 6; i++)
        assert_memory_equal(pixels + (size_t)i * bytes_,
                            flat + (size_t)(upright[orientation][i] - 'a') * bytes_, bytes_);
}

/* In both formats and byte orders. */
static void pictures_come_upright(void **state)
{
    struct scratch *scratch = *state;
    const struct jpeg_form colour = {JCS_RGB, false, true};
    const struct png_form grey = {.type = PNG_COLOR_TYPE_GRAY};
    for (int i = 0; i < 18; i++)
        bytes[i] = (uint8_t)(i * 83 + 11);
    jpeg_put(scratch, "plain.jpg", 3, 2, &colour, bytes);
    png_put(scratch, "plain.png", 3, 2, &grey, bytes);
    for (int i = 2; i < 18; i++) {
        const int orientation = i / 2;
        jpeg_put(scratch, "x.jpg", 3, 2, &colour, bytes);
        jpeg_add_exif(scratch, "x.jpg", orientation, i % 2);
        png_put(scratch, "x.png", 3, 2, &grey, bytes);
        png_add_exif(scratch, "x.png", orientation, i % 2);
        for (int form = 1; form <= 3; form += 2) {
            compare_turned(scratch, "plain.jpg", "x.jpg", orientation, (enum qn_image_form)form);
            compare_turned(scratch, "plain.png", "x.png", orientation, (enum qn_image_form)form);
        }
        compare_turned(scratch, "plain.png", "x.png", orientation, QN_IMAGE_INDEX);
    }
}

/* The checksum of a chunk, at the end of `size` bytes that begin with its type. */
static void sign(uint8_t *type, size_t size)
{
    uLong sum = crc32(0, type, (uInt)size);
    for (int i = 0; i < 4; i++)
        type[size + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
}

/* EXIF data that are none, or say no orientation: pictures are as they are stored. */
static void broken_exif_is_ignored(void **state)
{
    struct scratch *scratch = *state;
    const struct jpeg_form colour = {JCS_RGB, false, true};
    static const struct {
        int orientation;
        size_t at; /* of a byte of the EXIF data that is changed to `byte` */
        uint8_t byte;
    } broken[] = {{0, 2, 0}, {9, 2, 0}, {6, 0, 'X'}, {6, 1, 'I'}, {6, 4, 0x7f}, {6, 9, 0}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        for (int png = 0; png < 2; png++) {
            const char *name = png ? "x.png" : "x.jpg";
            char *read;
            size_t size;
            if (png)
                png_put(scratch, name, 3, 2, &(struct png_form){0}, bytes);
            else
                jpeg_put(scratch, name, 3, 2, &colour, bytes);
            (png ? png_add_exif : jpeg_add_exif)(scratch, name, broken[i].orientation, false);
            assert_int_equal(qn_file_read(scratch_path(scratch, name), ROOM, &read, &size, NULL),
                             QN_OK);
            uint8_t *exif = (uint8_t *)read + (png ? 8 + 25 + 8 : 2 + 10);
            exif[broken[i].at] = broken[i].byte;
            if (png)
                sign(exif - 4, 4 + EXIF_BYTES);
            scratch_put(scratch, name, read, size);
            free(read);
            struct qn_image_facts facts = look(scratch, scratch->path);
            assert_int_equal(facts.width, 3);
            assert_int_equal(facts.orientation, 1);
            read_as(scratch, scratch->path, QN_IMAGE_RGB);
        }
}

/* Every file cut anywhere is refused in one line by name, and so is most of what is damaged. */
static void damaged_files_are_refused(void **state)
{
    struct scratch *scratch = *state;
    for (int i = 0; i < 32 * 32 * 3; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 50);
    for (int kind = 0; kind < 3; kind++) {
        static char whole[ROOM];
        const struct png_form form = {.type = PNG_COLOR_TYPE_RGB};
        const char *path = kind ? jpeg_put(scratch, "x", 32, 32,
                                           &(struct jpeg_form){JCS_RGB, kind == 2, true}, bytes)
                                : png_put(scratch, "x", 32, 32, &form, bytes);
        struct qn_image_facts facts = look(scratch, path);
        char *read;
        size_t size;
        assert_int_equal(qn_file_read(path, ROOM, &read, &size, NULL), QN_OK);
        memcpy(whole, read, size);
        free(read);
        /* The last chunk of a PNG says nothing. */
        for (size_t length = 0; length < size - (kind ? 0 : 12); length += 1 + size / 300) {
            scratch_put(scratch, "x", whole, length);
            facts.bytes = (int64_t)length;
            assert_int_equal(qn_image_read(pixels, path, &facts, QN_IMAGE_RGB, &scratch->log),
                             QN_ERR_FORMAT);
            scratch_said(scratch, "/x: ", "");
        }
    }
}

static void what_is_no_image_is_refused(void **state)
{
    struct scratch *scratch = *state;
    struct qn_image_facts facts;
    scratch_put(scratch, "t.png", "a text", 6);
    assert_int_equal(qn_image_look(&facts, scratch->path, &scratch->log), QN_ERR_FORMAT);
    scratch_said(scratch, "t.png: ", "neither a PNG nor a JPEG file");
    assert_int_equal(qn_image_look(&facts, scratch_path(scratch, "none"), &scratch->log),
                     QN_ERR_IO);
    scratch_said(scratch, "none: cannot read", "");
    assert_int_equal(qn_image_look(&facts, scratch->folder, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, scratch->folder, "not a regular file");
}

/* A header alone may promise anything: nothing is allocated for it. */
static void sizes_are_bounded(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        uint8_t size[8];
        const char *reason;
    } cases[] = {
        {{0, 0, 0x40, 0, 0, 0, 0x20, 1}, "larger than 134217728 pixels"},
        {{0, 0, 4, 0, 0, 0, 4, 0}, "more pixels than the file can hold"},
        {{0, 0, 0, 0, 0, 0, 0, 1}, ""},
        {{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct qn_image_facts facts;
        char *read;
        size_t size;
        png_put(scratch, "l.png", 1, 1, &(struct png_form){0}, (const uint8_t[]){9});
        assert_int_equal(qn_file_read(scratch->path, ROOM, &read, &size, NULL), QN_OK);
        memcpy(read + 16, cases[i].size, 8);
        sign((uint8_t *)read + 12, 17);
        scratch_put(scratch, "l.png", read, size);
        free(read);
        assert_int_equal(qn_image_look(&facts, scratch->path, &scratch->log), QN_ERR_FORMAT);
        scratch_said(scratch, "l.png: ", cases[i].reason);
    }
}

/* The first of two bytes from `at` on, which is there. */
static size_t find_marker(const uint8_t *jpeg, size_t at, size_t size, uint8_t code)
{
    while (at + 1 < size && (jpeg[at] != 0xff || jpeg[at + 1] != code))
        at++;
    assert_true(at + 1 < size);
    return at;
}

/* Scans cost time and next to no bytes: the last is repeated, to 100 of them and beyond. */
static void scans_are_bounded(void **state)
{
    enum { SCANS = 95, SOS = 0xda };
    struct scratch *scratch = *state;
    const struct jpeg_form form = {JCS_GRAYSCALE, true, true};
    static uint8_t file[ROOM];
    for (int more = SCANS - 6; more <= SCANS; more += 6) {
        char *read;
        size_t size;
        jpeg_put(scratch, "p.jpg", 16, 16, &form, bytes);
        assert_int_equal(qn_file_read(scratch->path, ROOM, &read, &size, NULL), QN_OK);
        memcpy(file, read, size -= 2);
        size_t last = size - 1;
        while (file[last] != 0xff || file[last + 1] != SOS)
            last--;
        const size_t scan = size - last;
        for (int i = 0; i < more; i++, size += scan)
            memcpy(file + size, file + last, scan);
        memcpy(file + size, "\xff\xd9", 2);
        scratch_put(scratch, "p.jpg", file, size + 2);
        free(read);
        struct qn_image_facts facts = look(scratch, scratch->path);
        assert_int_equal(qn_image_read(pixels, scratch->path, &facts, QN_IMAGE_GREY, &scratch->log),
                         more == SCANS ? QN_ERR_FORMAT : QN_OK);
    }
    scratch_said(scratch, "p.jpg: ", "has more than 100 scans");
}

/* A progressive file needs all coefficients of its image at once. */
static void memory_is_bounded(void **state)
{
    struct scratch *scratch = *state;
    static uint8_t file[1 << 18];
    char *read;
    size_t size;
    jpeg_put(scratch, "m.jpg", 16, 16, &(struct jpeg_form){JCS_CMYK, true, true}, bytes);
    assert_int_equal(qn_file_read(scratch->path, ROOM, &read, &size, NULL), QN_OK);
    memcpy(file, read, size);
    free(read);
    memcpy(file + find_marker(file, 0, size, 0xc2) + 5, "\x2d\x40\x2d\x40", 4); /* 11584 squared */
    scratch_put(scratch, "m.jpg", file, sizeof file);
    struct qn_image_facts facts = look(scratch, scratch->path);
    assert_int_equal(facts.width * facts.height, 11584 * 11584);
    assert_int_equal(qn_image_read(pixels, scratch->path, &facts, QN_IMAGE_RGB, &scratch->log),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "m.jpg: ", "takes more than 512 MiB to decode");
}

static void another_image_under_the_name_is_refused(void **state)
{
    struct scratch *scratch = *state;
    png_put(scratch, "s.png", 2, 2, &(struct png_form){0}, (const uint8_t[]){1, 2, 3, 4});
    struct qn_image_facts facts = look(scratch, scratch->path);
    png_put(scratch, "s.png", 3, 1, &(struct png_form){0}, (const uint8_t[]){1, 2, 3});
    assert_int_equal(qn_image_read(pixels, scratch->path, &facts, QN_IMAGE_GREY, &scratch->log),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "s.png: ", "is not the image that it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(colour_is_read_as_it_is),
        WITH_SCRATCH(transparency_is_left_out),
        WITH_SCRATCH(sixteen_bits_are_rounded),
        WITH_SCRATCH(grey_and_colour_become_each_other),
        WITH_SCRATCH(indices_and_their_colours),
        WITH_SCRATCH(bits_of_grey),
        WITH_SCRATCH(jpegs_are_read),
        WITH_SCRATCH(pictures_come_upright),
        WITH_SCRATCH(broken_exif_is_ignored),
        WITH_SCRATCH(damaged_files_are_refused),
        WITH_SCRATCH(what_is_no_image_is_refused),
        WITH_SCRATCH(sizes_are_bounded),
        WITH_SCRATCH(scans_are_bounded),
        WITH_SCRATCH(memory_is_bounded),
        WITH_SCRATCH(another_image_under_the_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
