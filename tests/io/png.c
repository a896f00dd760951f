/* SPDX-License-Identifier: MIT
 *
 * Written images are read again as they were.
 */
#include "io/image.h"

#include "image_file.h"

#include <quern/image.h>

enum { H = 7, W = 5, COLOURS = 256 };

static uint8_t pixels[3 * H * W], again[3 * H * W], palette[3 * COLOURS];

static void write_and_read(struct scratch *scratch, qn_png_params params, enum qn_image_form form)
{
    void *bytes;
    size_t size;
    struct qn_image_facts facts;
    params.log = scratch->log;
    params.pixels = pixels;
    params.height = H;
    params.width = W;
    assert_int_equal(qn_png_encode(&bytes, &size, &params), QN_OK);
    scratch_put(scratch, "x.png", bytes, size);
    qn_free(bytes);
    const char *path = scratch_path(scratch, "x.png");
    assert_int_equal(qn_image_look(&facts, path, &scratch->log), QN_OK);
    assert_int_equal(facts.height, H);
    assert_int_equal(facts.width, W);
    assert_int_equal(qn_image_read(again, path, &facts, form, &scratch->log), QN_OK);
}

static void pixels_are_read_as_written(void **state)
{
    for (int i = 0; i < 3 * H * W; i++)
        pixels[i] = (uint8_t)(i * 37);
    write_and_read(*state, (qn_png_params){.channels = 3}, QN_IMAGE_RGB);
    assert_memory_equal(again, pixels, 3 * H * W);
    write_and_read(*state, (qn_png_params){.channels = 1}, QN_IMAGE_INDEX);
    assert_memory_equal(again, pixels, H * W);
}

static void indices_keep_their_colours(void **state)
{
    static const int counts[] = {2, 3, 16, 17, COLOURS};
    for (int i = 0; i < COLOURS; i++)
        qn_class_colour(palette + 3 * i, i);
    for (int c = 0; c < 5; c++) {
        const qn_png_params params = {.channels = 1, .palette = palette, .colours = counts[c]};
        for (int i = 0; i < H * W; i++)
            pixels[i] = (uint8_t)(i * 37 % counts[c]);
        write_and_read(*state, params, QN_IMAGE_INDEX);
        assert_memory_equal(again, pixels, H * W);
        write_and_read(*state, params, QN_IMAGE_RGB);
        for (int i = 0; i < H * W; i++)
            assert_memory_equal(again + 3 * i, palette + 3 * pixels[i], 3);
    }
}

static void classes_have_the_colours_of_pascal_voc(void **state)
{
    static const struct {
        int label;
        uint8_t rgb[3];
    } known[] = {{0, {0, 0, 0}},        {1, {128, 0, 0}},   {2, {0, 128, 0}},
                 {15, {192, 128, 128}}, {20, {0, 64, 128}}, {255, {224, 224, 192}}};
    uint8_t rgb[3];
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        qn_class_colour(rgb, known[i].label);
        assert_memory_equal(rgb, known[i].rgb, 3);
    }
}

static void arguments_are_checked(void **state)
{
    const qn_png_params good = {.pixels = pixels, .height = H, .width = W, .channels = 1};
    qn_png_params wrong[8] = {good, good, good, good, good, good, good, good};
    void *bytes = NULL;
    size_t size;
    (void)state;
    memset(pixels, 9, sizeof pixels);
    wrong[0].pixels = NULL;
    wrong[1].height = 0;
    wrong[2].width = 1 << 30;
    wrong[3].channels = 2;
    wrong[4].palette = wrong[5].palette = wrong[6].palette = wrong[7].palette = palette;
    wrong[5].colours = COLOURS + 1;
    wrong[6].colours = 9;
    wrong[7].colours = 10;
    wrong[7].channels = 3;
    for (int i = 0; i < 8; i++)
        assert_int_equal(qn_png_encode(&bytes, &size, &wrong[i]), QN_ERR_ARGUMENT);
    assert_null(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(pixels_are_read_as_written),
        WITH_SCRATCH(indices_keep_their_colours),
        cmocka_unit_test(classes_have_the_colours_of_pascal_voc),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
