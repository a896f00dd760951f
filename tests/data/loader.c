/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/idx_file.h"
#include "data/order.h"

enum { COUNT = 103, IMAGE = 6, SEED = 5 };

struct fixture {
    struct scratch *scratch;
    qn_dataset *dataset;
    struct qn_order order;
};

static int open_fixture(void **state)
{
    static unsigned char bytes[4096], images[COUNT * IMAGE], labels[COUNT];
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char paths[2][512];
    for (int i = 0; i < COUNT * IMAGE; i++)
        images[i] = (unsigned char)(i * 31 + i / 7);
    for (int i = 0; i < COUNT; i++)
        labels[i] = (unsigned char)i;
    void *scratch;
    scratch_open(&scratch);
    fixture->scratch = scratch;
    size_t size = idx_build(bytes, 0x08, 3, (const uint32_t[]){COUNT, 2, 3}, images, sizeof images);
    snprintf(paths[0], sizeof paths[0], "%s", scratch_put(fixture->scratch, "i", bytes, size));
    size = idx_build(bytes, 0x08, 1, (const uint32_t[]){COUNT}, labels, sizeof labels);
    snprintf(paths[1], sizeof paths[1], "%s", scratch_put(fixture->scratch, "l", bytes, size));
    qn_dataset_params params = {
        .log = fixture->scratch->log, .images = paths[0], .labels = paths[1]};
    assert_int_equal(qn_dataset_open(&fixture->dataset, &params), QN_OK);
    assert_int_equal(qn_order_make(&fixture->order, SEED, COUNT, false, NULL), QN_OK);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    qn_order_free(&fixture->order);
    qn_dataset_close(&fixture->dataset);
    void *scratch = fixture->scratch;
    int failed = scratch_close(&scratch);
    free(fixture);
    return failed;
}

static qn_loader *open_loader(struct fixture *fixture, int64_t position, int64_t most, int cycles)
{
    qn_loader *loader = NULL;
    qn_loader_params params = {.log = fixture->scratch->log,
                               .seed = SEED,
                               .position = position,
                               .max_samples = most,
                               .cycles = cycles};
    assert_int_equal(qn_loader_open(&loader, fixture->dataset, &params), QN_OK);
    return loader;
}

/* The next cycle is what the order and the dataset say. */
static void check_next(struct fixture *fixture, qn_loader *loader, int64_t samples)
{
    const uint8_t *images = qn_dataset_column(fixture->dataset, "images")->data;
    const int32_t *labels = qn_dataset_column(fixture->dataset, "labels")->data;
    int64_t position = qn_loader_position(loader);
    qn_batch batch;
    assert_int_equal(qn_loader_next(loader, samples, &batch), QN_OK);
    assert_int_equal(batch.position, position);
    assert_int_equal(batch.samples, samples);
    assert_int_equal(qn_loader_position(loader), position + samples);
    assert_memory_equal(qn_loader_batch(loader), &batch, sizeof batch);
    const uint8_t *image = qn_batch_column(&batch, "images")->data;
    const int32_t *label = qn_batch_column(&batch, "labels")->data;
    for (int64_t i = 0; i < samples; i++) {
        int64_t sample = qn_order_at(&fixture->order, position + i);
        assert_int_equal(label[i], labels[sample]);
        assert_memory_equal(image + i * IMAGE, images + sample * IMAGE, IMAGE);
    }
}

static void cycles_are_what_the_order_says(void **state)
{
    static const struct {
        int64_t samples;
        int cycles;
    } cases[] = {{1, 0}, {16, 2}, {16, 5}, {COUNT, 2}, {COUNT + 1, 3}, {5 * COUNT, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        qn_loader *loader = open_loader(*state, 0, cases[c].samples, cases[c].cycles);
        for (int i = 0; i < 40; i++)
            check_next(*state, loader, cases[c].samples);
        qn_loader_close(&loader);
        qn_loader_close(&loader);
    }
}

static void the_size_may_change(void **state)
{
    qn_loader *loader = open_loader(*state, 0, 300, 3);
    for (int i = 0; i < 500; i++)
        check_next(*state, loader, 1 + i * i % 300);
    for (int i = 0; i < 100; i++)
        check_next(*state, loader, 1 + i / 10);
    qn_loader_close(&loader);
}

static void a_position_is_resumed(void **state)
{
    static const int64_t positions[] = {1, COUNT - 1, COUNT, 777, INT64_MAX - 400};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        qn_loader *loader = open_loader(*state, positions[i], 50, 2);
        for (int j = 0; j < 8; j++)
            check_next(*state, loader, 50);
        qn_loader_close(&loader);
    }
}

static void the_end_of_positions_is_refused(void **state)
{
    struct fixture *fixture = *state;
    qn_loader *loader = open_loader(fixture, INT64_MAX - 100, 60, 2);
    qn_batch batch;
    check_next(fixture, loader, 60);
    assert_int_equal(qn_loader_next(loader, 60, &batch), QN_ERR_ARGUMENT);
    check_next(fixture, loader, 40);
    qn_loader_close(&loader);
}

static void arguments_are_checked(void **state)
{
    struct fixture *fixture = *state;
    qn_loader *loader = open_loader(fixture, 0, 60, 2);
    qn_batch batch;
    assert_int_equal(qn_loader_next(loader, 0, &batch), QN_ERR_ARGUMENT);
    assert_int_equal(qn_loader_next(loader, 61, &batch), QN_ERR_ARGUMENT);
    assert_int_equal(qn_loader_next(loader, -1, &batch), QN_ERR_ARGUMENT);
    assert_int_equal(qn_loader_next(loader, 1, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_loader_position(loader), 0);
    qn_loader_close(&loader);
    const qn_loader_params wrong[] = {
        {.max_samples = 0},
        {.max_samples = 1, .position = -1},
        {.max_samples = 1, .cycles = 1},
        {.max_samples = 1, .cycles = -2},
    };
    for (int i = 0; i < 4; i++)
        assert_int_equal(qn_loader_open(&loader, fixture->dataset, &wrong[i]), QN_ERR_ARGUMENT);
    const qn_loader_params huge = {.max_samples = INT64_MAX / 4};
    assert_int_equal(qn_loader_open(&loader, fixture->dataset, &huge), QN_ERR_MEMORY);
    assert_null(loader);
}

/* Closing at any moment, most often while the thread gathers. */
static void closing_ends_a_gather(void **state)
{
    for (int i = 0; i < 200; i++) {
        qn_loader *loader = open_loader(*state, i, 20000, 2);
        if (i % 3 == 1)
            check_next(*state, loader, 7);
        if (i % 3 == 2)
            usleep((useconds_t)i);
        qn_loader_close(&loader);
    }
}

static void sequential_epochs_follow_the_file(void **state)
{
    struct fixture *fixture = *state;
    const int32_t *labels = qn_dataset_column(fixture->dataset, "labels")->data;
    qn_loader_params params = {.max_samples = 40, .sequential = true, .position = 90};
    qn_loader *loader = NULL;
    assert_int_equal(qn_loader_open(&loader, fixture->dataset, &params), QN_OK);
    for (int i = 0; i < 5; i++) {
        qn_batch batch;
        assert_int_equal(qn_loader_next(loader, 40, &batch), QN_OK);
        const int32_t *label = qn_batch_column(&batch, "labels")->data;
        for (int64_t j = 0; j < 40; j++)
            assert_int_equal(label[j], labels[(batch.position + j) % COUNT]);
    }
    qn_loader_close(&loader);
}

/* --- ranges --- */

/* Samples of each cycle that are wanted: share / 8 of it from the second quarter on. */
struct wanted {
    int share;
    int64_t read[COUNT]; /* how often, by sample; the loader has been closed when it is looked at */
};

static qn_status read_counted(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    struct wanted *wanted = user;
    for (int64_t i = 0; i < count; i++) {
        wanted->read[draws[i].sample]++;
        ((int64_t *)rows[0])[i] = draws[i].epoch * COUNT + draws[i].sample;
    }
    return QN_OK;
}

static void take_share(void *user, int64_t samples, int64_t *first, int64_t *count)
{
    *first = samples / 4;
    *count = samples * ((struct wanted *)user)->share / 8;
}

static const qn_column drawn = {.name = "drawn", .dtype = QN_I32, .shape = {1, {2}}};

/* Two loaders of one dataset side by side, of all samples and of some: the rows that are there are
 * the same, and the others are refused. */
static int64_t compare_ranges(struct wanted *wanted, qn_loader *all, qn_loader *some,
                              int64_t samples)
{
    qn_batch whole, part;
    int64_t row, first, count;
    assert_int_equal(qn_loader_next(all, samples, &whole), QN_OK);
    assert_int_equal(qn_loader_next(some, samples, &part), QN_OK);
    take_share(wanted, samples, &first, &count);
    assert_int_equal(part.position, whole.position);
    assert_int_equal(part.before, first);
    assert_int_equal(part.samples - part.after, first + count);
    for (int64_t i = 0; i < samples; i++) {
        const bool there = i >= first && i < first + count;
        assert_int_equal(qn_batch_has(&part, i, 1), there);
        assert_int_equal(qn_batch_choose(&part, i, 1), there ? 0 : -1);
        assert_int_equal(qn_batch_fetch(&part, "drawn", i, 1, &row),
                         there ? QN_OK : QN_ERR_ARGUMENT);
        const int64_t *want = whole.columns[0].data;
        assert_true(!there || row == want[i]);
    }
    return count;
}

static void a_range_alone_is_read(void **state)
{
    struct fixture *fixture = *state;
    static const int64_t sizes[] = {40, 40, 7, 1, 64, 64, 64, 33};
    enum { CYCLES = sizeof sizes / sizeof *sizes };
    for (int share = 0; share <= 6; share++) {
        struct wanted reads[2] = {{8}, {share}};
        int64_t wanted = 0, read = 0;
        qn_dataset *datasets[2];
        qn_loader *loaders[2];
        for (int l = 0; l < 2; l++) {
            const qn_function_params params = {
                .count = COUNT, .n_columns = 1, .columns = &drawn, read_counted, &reads[l]};
            const qn_loader_params how = {.log = fixture->scratch->log,
                                          .seed = SEED,
                                          .max_samples = 64,
                                          .range = l ? take_share : NULL,
                                          .user = &reads[l]};
            assert_int_equal(qn_dataset_from_function(&datasets[l], &params), QN_OK);
            assert_int_equal(qn_loader_open(&loaders[l], datasets[l], &how), QN_OK);
        }
        for (int c = 0; c < CYCLES; c++)
            wanted += compare_ranges(&reads[1], loaders[0], loaders[1], sizes[c]);
        for (int l = 0; l < 2; l++) {
            qn_loader_close(&loaders[l]);
            qn_dataset_close(&datasets[l]);
        }
        for (int i = 0; i < COUNT; i++)
            read += reads[1].read[i];
        /* what was prepared ahead in the size before, two cycles at most each time */
        assert_in_range(read, wanted, wanted + (CYCLES + 1) * 2 * 64 * share / 8);
        assert_true(share || !read);
    }
}

static void take_more(void *user, int64_t samples, int64_t *first, int64_t *count)
{
    *first = *(int64_t *)user;
    *count = samples - *first + 1;
}

static void a_range_outside_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static int64_t firsts[] = {-1, 0, 5, 11, 12};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        qn_loader *loader;
        qn_batch batch;
        const qn_loader_params params = {.log = fixture->scratch->log,
                                         .max_samples = 10,
                                         .range = take_more,
                                         .user = &firsts[i]};
        assert_int_equal(qn_loader_open(&loader, fixture->dataset, &params), QN_OK);
        assert_int_equal(qn_loader_next(loader, 10, &batch), QN_ERR_ARGUMENT);
        assert_non_null(strstr(qn_last_error(), "loader: range: "));
        assert_int_equal(qn_loader_position(loader), 0);
        qn_loader_close(&loader);
    }
}

/* As an evaluation fetches: the inputs of one micro-batch after another, the last one shorter. */
static void micro_batches_are_fetched(void **state)
{
    enum { MICRO = 10, SAMPLES = 34 };
    struct fixture *fixture = *state;
    const qn_column *images = qn_dataset_column(fixture->dataset, "images");
    const qn_column *labels = qn_dataset_column(fixture->dataset, "labels");
    const qn_loader_params params = {.max_samples = MICRO, .sequential = true};
    qn_loader *loader = NULL;
    uint8_t image[MICRO * IMAGE];
    int32_t label[MICRO];
    assert_int_equal(qn_loader_open(&loader, fixture->dataset, &params), QN_OK);
    assert_null(qn_loader_batch(loader));
    assert_int_equal(qn_loader_fetch(loader, "labels", 1, 1, label), QN_ERR_ARGUMENT);
    for (int64_t first = 0; first < SAMPLES; first += MICRO) {
        int64_t count = SAMPLES - first < MICRO ? SAMPLES - first : MICRO;
        assert_int_equal(qn_loader_fetch(loader, "images", first, count, image), QN_OK);
        assert_int_equal(qn_loader_fetch(loader, "labels", first, count, label), QN_OK);
        assert_memory_equal(image, (const uint8_t *)images->data + first * IMAGE, count * IMAGE);
        assert_memory_equal(label, (const int32_t *)labels->data + first, count * 4);
        assert_int_equal(qn_loader_batch(loader)->position, first);
        assert_int_equal(qn_loader_batch(loader)->samples, count);
    }
    assert_int_equal(qn_loader_fetch(loader, "images", 0, MICRO, image), QN_ERR_ARGUMENT);
    assert_int_equal(qn_loader_fetch(loader, "masks", 30, 4, image), QN_ERR_ARGUMENT);
    qn_loader_close(&loader);
}

/* Two loaders over one dataset do not disturb each other. */
static void loaders_live_side_by_side(void **state)
{
    qn_loader *a = open_loader(*state, 0, 30, 2), *b = open_loader(*state, 500, 17, 4);
    for (int i = 0; i < 50; i++) {
        check_next(*state, a, 30);
        check_next(*state, b, 17);
    }
    qn_loader_close(&a);
    check_next(*state, b, 3);
    qn_loader_close(&b);
}

#define WITH_DATA(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DATA(cycles_are_what_the_order_says),
        WITH_DATA(the_size_may_change),
        WITH_DATA(a_position_is_resumed),
        WITH_DATA(the_end_of_positions_is_refused),
        WITH_DATA(arguments_are_checked),
        WITH_DATA(closing_ends_a_gather),
        WITH_DATA(sequential_epochs_follow_the_file),
        WITH_DATA(a_range_alone_is_read),
        WITH_DATA(a_range_outside_is_refused),
        WITH_DATA(micro_batches_are_fetched),
        WITH_DATA(loaders_live_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
