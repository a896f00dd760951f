/* SPDX-License-Identifier: MIT
 *
 * Halves of images: which pixels are in them, from arrays, IDX files and images that are drawn, and
 * as the two sides of pairs.
 */
#include <quern/data.h>

#include "../io/scratch.h"

enum { COUNT = 40, C = 2, H = 3, W = 10, IMAGE = C * H * W };

/* Every pixel of an image is another byte, which the epoch changes, too. */
static uint8_t pixel(int64_t sample, int64_t epoch, int64_t at)
{
    return (uint8_t)(7 * sample + 101 * epoch + at);
}

static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        ((int32_t *)rows[0])[i] = (int32_t)draws[i].sample;
        for (int64_t at = 0; at < IMAGE; at++)
            ((uint8_t *)rows[1])[i * IMAGE + at] = pixel(draws[i].sample, draws[i].epoch, at);
    }
    return QN_OK;
}

static qn_dataset *make_whole(struct scratch *scratch, qn_column images)
{
    const qn_column columns[] = {{.name = "labels", .dtype = QN_I32, .classes = COUNT}, images};
    const qn_function_params params = {
        .log = scratch->log, .count = COUNT, .n_columns = 2, .columns = columns, .fn = make_rows};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_OK);
    return dataset;
}

static const qn_column good = {.name = "images", .dtype = QN_U8, .shape = {3, {C, H, W}}};

static qn_dataset *make_half(struct scratch *scratch, const qn_dataset *whole, bool right)
{
    const qn_half_params params = {scratch->log, whole, right};
    qn_dataset *dataset = NULL;
    if (qn_dataset_halve(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return dataset;
}

static qn_loader *open_loader(struct scratch *scratch, const qn_dataset *dataset, bool sequential)
{
    const qn_loader_params params = {
        .log = scratch->log, .seed = 3, .max_samples = COUNT, .sequential = sequential};
    qn_loader *loader = NULL;
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

/* A half, or a half of a half, that begins at column `first` of the whole. */
static void is_piece(const uint8_t *piece, int64_t sample, int64_t epoch, int first, int width)
{
    for (int line = 0; line < C * H; line++)
        for (int x = 0; x < width; x++)
            assert_int_equal(piece[line * width + x], pixel(sample, epoch, line * W + first + x));
}

static void halves_are_left_and_right(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch, good);
    for (int right = 0; right < 2; right++) {
        qn_dataset *half = make_half(scratch, whole, right);
        qn_loader *loader = open_loader(scratch, half, true);
        const qn_column *images = qn_dataset_column(half, "images");
        qn_batch batch;
        assert_int_equal(qn_dataset_describe(half)->n_columns, 1);
        assert_int_equal(qn_dataset_describe(half)->count, COUNT);
        assert_true(images->dtype == QN_U8 && images->shape.rank == 3);
        assert_true(images->shape.dim[0] == C && images->shape.dim[1] == H);
        assert_int_equal(images->shape.dim[2], W / 2);
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(qn_loader_next(loader, COUNT, &batch), QN_OK);
            for (int64_t i = 0; i < COUNT; i++)
                is_piece((const uint8_t *)batch.columns[0].data + i * IMAGE / 2, i, epoch,
                         right * W / 2, W / 2);
        }
        qn_loader_close(&loader);
        qn_dataset_close(&half);
    }
    qn_dataset_close(&whole);
}

/* Both halves of one image, as it looks in this epoch. */
static void halves_of_an_image_are_a_pair(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch, good), *left = make_half(scratch, whole, false),
               *right = make_half(scratch, whole, true), *pairs = NULL;
    const qn_pair_params params = {.log = scratch->log, .queries = left, .passages = right};
    qn_batch batch;
    assert_int_equal(qn_dataset_pair(&pairs, &params), QN_OK);
    qn_loader *loader = open_loader(scratch, pairs, false);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(qn_loader_next(loader, COUNT, &batch), QN_OK);
        const uint8_t *queries = qn_batch_column(&batch, "query.images")->data,
                      *passages = qn_batch_column(&batch, "passage.images")->data;
        const int32_t *ids = qn_batch_column(&batch, "ids")->data;
        for (int64_t i = 0; i < COUNT; i++) {
            is_piece(queries + i * IMAGE / 2, ids[i], epoch, 0, W / 2);
            is_piece(passages + i * IMAGE / 2, ids[i], epoch, W / 2, W / 2);
        }
    }
    qn_loader_close(&loader);
    qn_dataset_close(&pairs);
    qn_dataset_close(&right);
    qn_dataset_close(&left);
    qn_dataset_close(&whole);
}

/* The inner one reads while the outer one's memory is in use. */
static void halves_have_halves(void **state)
{
    struct scratch *scratch = *state;
    static uint8_t images[COUNT][IMAGE / W * 8];
    const qn_column column = {
        .name = "images", .dtype = QN_U8, .shape = {3, {C, H, 8}}, .data = images};
    const qn_array_params arrays = {
        .log = scratch->log, .count = COUNT, .n_columns = 1, .columns = &column};
    qn_dataset *whole = NULL;
    qn_batch batch;
    for (int64_t i = 0; i < COUNT; i++)
        for (int at = 0; at < C * H * 8; at++)
            images[i][at] = pixel(i, 0, at);
    assert_int_equal(qn_dataset_from_arrays(&whole, &arrays), QN_OK);
    qn_dataset *right = make_half(scratch, whole, true),
               *quarter = make_half(scratch, right, false);
    qn_loader *loader = open_loader(scratch, quarter, true);
    assert_int_equal(qn_loader_next(loader, COUNT, &batch), QN_OK);
    const uint8_t *rows = batch.columns[0].data;
    for (int64_t i = 0; i < COUNT; i++)
        for (int line = 0; line < C * H; line++)
            for (int x = 0; x < 2; x++)
                assert_int_equal(rows[(i * C * H + line) * 2 + x], images[i][line * 8 + 4 + x]);
    qn_loader_close(&loader);
    qn_dataset_close(&quarter);
    qn_dataset_close(&right);
    qn_dataset_close(&whole);
}

static void files_have_halves(void **state)
{
    struct scratch *scratch = *state;
    static const uint8_t bytes[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0,  0,  2,  0,  0,  0,  4,
                                    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint8_t right[] = {3, 4, 7, 8, 11, 12, 15, 16};
    const qn_dataset_params params = {.log = scratch->log,
                                      .images = scratch_put(scratch, "i", bytes, sizeof bytes),
                                      .no_labels = true};
    qn_dataset *whole = NULL;
    qn_batch batch;
    assert_int_equal(qn_dataset_open(&whole, &params), QN_OK);
    qn_dataset *half = make_half(scratch, whole, true), *left = make_half(scratch, whole, false);
    qn_loader *loader = open_loader(scratch, half, true);
    assert_int_equal(qn_loader_next(loader, 2, &batch), QN_OK);
    assert_memory_equal(batch.columns[0].data, right, sizeof right);
    assert_true(qn_dataset_checksum(half) != qn_dataset_checksum(left));
    assert_true(qn_dataset_checksum(half) != qn_dataset_checksum(whole));
    qn_loader_close(&loader);
    qn_dataset_close(&left);
    qn_dataset_close(&half);
    qn_dataset_close(&whole);
}

static void what_has_no_halves_is_refused(void **state)
{
    struct scratch *scratch = *state;
    static const qn_column wrong[] = {
        {.name = "images", .dtype = QN_U8, .shape = {3, {1, 4, 27}}},
        {.name = "images", .dtype = QN_F32, .shape = {3, {1, 4, 4}}},
        {.name = "images", .dtype = QN_U8, .shape = {2, {4, 4}}},
        {.name = "pixels", .dtype = QN_U8, .shape = {3, {1, 4, 4}}},
    };
    qn_dataset *made = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qn_dataset *whole = make_whole(scratch, wrong[i]);
        const qn_half_params params = {.log = scratch->log, .whole = whole};
        assert_int_equal(qn_dataset_halve(&made, &params), QN_ERR_ARGUMENT);
        assert_null(made);
        scratch_said(scratch, i ? "no images of u8" : "a width of 27 has no halves", "");
        qn_dataset_close(&whole);
    }
    assert_int_equal(qn_dataset_halve(&made, &(qn_half_params){0}), QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_halve(&made, NULL), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(halves_are_left_and_right),
        WITH_SCRATCH(halves_of_an_image_are_a_pair),
        WITH_SCRATCH(halves_have_halves),
        WITH_SCRATCH(files_have_halves),
        WITH_SCRATCH(what_has_no_halves_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
