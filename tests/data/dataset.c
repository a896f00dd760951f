/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/idx_file.h"

static unsigned char bytes[4096];

static void put_part(struct scratch *scratch, const char *name, unsigned char type, int rank,
                     const uint32_t *dim, size_t size)
{
    unsigned char data[2048];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(type == 0x08 ? i % 5 : i % 4 == 3 ? i / 4 : 0);
    size_t length = idx_build(bytes, type, rank, dim, data, size);
    if (strstr(name, ".gz"))
        idx_put_gzip(scratch, name, bytes, length);
    else
        scratch_put(scratch, name, bytes, length);
}

static void put_images(struct scratch *scratch, const char *name, uint32_t count)
{
    put_part(scratch, name, 0x08, 3, (const uint32_t[]){count, 3, 4}, count * 12);
}

static void put_labels(struct scratch *scratch, const char *name, uint32_t count)
{
    put_part(scratch, name, 0x08, 1, &count, count);
}

/* Images and labels, and nothing else. */
static void check_columns(const qn_dataset *dataset, int64_t count, int64_t channels,
                          int64_t height, int64_t width, int64_t classes)
{
    const qn_dataset_facts *facts = qn_dataset_describe(dataset);
    const qn_column *images = &facts->columns[0], *labels = &facts->columns[1];
    assert_int_equal(facts->count, count);
    assert_int_equal(facts->n_columns, 2);
    assert_string_equal(images->name, "images");
    assert_ptr_equal(images, qn_dataset_column(dataset, "images"));
    assert_int_equal(images->dtype, QN_U8);
    assert_int_equal(images->shape.rank, 3);
    assert_int_equal(images->shape.dim[0], channels);
    assert_int_equal(images->shape.dim[1], height);
    assert_int_equal(images->shape.dim[2], width);
    assert_int_equal(images->classes, 0);
    assert_int_equal(qn_column_bytes(images), channels * height * width);
    assert_string_equal(labels->name, "labels");
    assert_int_equal(labels->dtype, QN_I32);
    assert_int_equal(labels->shape.rank, 0);
    assert_int_equal(labels->classes, classes);
    assert_null(labels->class_names);
    assert_int_equal(qn_column_bytes(labels), 4);
    assert_null(qn_dataset_column(dataset, "masks"));
}

static void names_in_a_folder_are_found(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *images, *labels;
        qn_split split;
    } cases[] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", QN_SPLIT_TRAIN},
        {"train-images-idx3-ubyte.gz", "train-labels.idx1-ubyte", QN_SPLIT_TRAIN},
        {"t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte.gz", QN_SPLIT_TEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_dataset *dataset = NULL;
        qn_dataset_params params = {
            .log = scratch->log, .path = scratch->folder, .split = cases[i].split};
        put_images(scratch, cases[i].images, 7);
        put_labels(scratch, cases[i].labels, 7);
        assert_int_equal(qn_dataset_open(&dataset, &params), QN_OK);
        check_columns(dataset, 7, 1, 3, 4, 5);
        const uint8_t *images = qn_dataset_column(dataset, "images")->data;
        const int32_t *labels = qn_dataset_column(dataset, "labels")->data;
        for (int j = 0; j < 7 * 12; j++)
            assert_int_equal(images[j], j % 5);
        for (int j = 0; j < 7; j++)
            assert_int_equal(labels[j], j % 5);
        qn_dataset_close(&dataset);
        qn_dataset_close(&dataset);
        assert_int_equal(unlink(scratch_path(scratch, cases[i].images)), 0);
        assert_int_equal(unlink(scratch_path(scratch, cases[i].labels)), 0);
    }
}

static qn_status open_pair(struct scratch *scratch, qn_dataset **dataset)
{
    char images[512], labels[512];
    snprintf(images, sizeof images, "%s", scratch_path(scratch, "i"));
    snprintf(labels, sizeof labels, "%s", scratch_path(scratch, "l"));
    qn_dataset_params params = {.log = scratch->log, .images = images, .labels = labels};
    return qn_dataset_open(dataset, &params);
}

static void a_named_pair_is_read(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *dataset = NULL;
    put_part(scratch, "i", 0x08, 4, (const uint32_t[]){6, 3, 2, 5}, 180);
    put_part(scratch, "l", 0x0c, 1, (const uint32_t[]){6}, 24);
    assert_int_equal(open_pair(scratch, &dataset), QN_OK);
    check_columns(dataset, 6, 3, 2, 5, 6);
    const Bytef *images = qn_dataset_column(dataset, "images")->data;
    const int32_t *labels = qn_dataset_column(dataset, "labels")->data;
    assert_int_equal(labels[5], 5);
    uLong sum = crc32(crc32(0, images, 180), (const Bytef *)labels, 24);
    assert_int_equal(qn_dataset_checksum(dataset), sum);
    qn_dataset_close(&dataset);
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(scratch, "i"));
    qn_dataset_params params = {.log = scratch->log, .images = path, .no_labels = true};
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_OK);
    assert_int_equal(qn_dataset_describe(dataset)->n_columns, 1);
    assert_int_equal(qn_dataset_describe(dataset)->count, 6);
    qn_dataset_close(&dataset);
    params.images = NULL;
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_ERR_ARGUMENT);
}

static void pairs_that_do_not_fit_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        unsigned char type[2];
        int rank[2];
        uint32_t dim[2][4];
        const char *reason;
    } cases[] = {
        {{0x08, 0x08}, {3, 1}, {{6, 2, 2}, {5}}, "sizes: 5 labels for the 6 images of"},
        {{0x08, 0x08}, {3, 2}, {{6, 2, 2}, {6, 1}}, "labels have 1 dimension, not 2"},
        {{0x08, 0x08}, {2, 1}, {{6, 4}, {6}}, "images have 3 or 4 dimensions, not 2"},
        {{0x0c, 0x08}, {3, 1}, {{6, 1, 1}, {6}}, "images are u8"},
        {{0x08, 0x08}, {3, 1}, {{0, 2, 2}, {0}}, "there is no image"},
        {{0x08, 0x08}, {3, 1}, {{6, 0, 2}, {6}}, "images are empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_dataset *dataset = NULL;
        for (int part = 0; part < 2; part++) {
            size_t size = cases[i].type[part] == 0x08 ? 1 : 4;
            for (int d = 0; d < cases[i].rank[part]; d++)
                size *= cases[i].dim[part][d];
            put_part(scratch, part ? "l" : "i", cases[i].type[part], cases[i].rank[part],
                     cases[i].dim[part], size);
        }
        assert_int_equal(open_pair(scratch, &dataset), QN_ERR_FORMAT);
        assert_null(dataset);
        scratch_said(scratch, scratch->folder, cases[i].reason);
    }
}

/* The number of classes is one more than the largest label, and an int. */
static void labels_that_are_no_class_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        unsigned char labels[8];
        const char *reason;
    } cases[] = {
        {{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}, "data: label 1 is negative"},
        {{0x7f, 0xff, 0xff, 0xfe, 0x7f, 0xff, 0xff, 0xff},
         "data: label 1 is 2147483647, the largest is 2147483646"},
    };
    put_images(scratch, "i", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_dataset *dataset = NULL;
        scratch_put(scratch, "l", bytes,
                    idx_build(bytes, 0x0c, 1, (const uint32_t[]){2}, cases[i].labels,
                              sizeof cases[i].labels));
        assert_int_equal(open_pair(scratch, &dataset), QN_ERR_FORMAT);
        scratch_said(scratch, "/l", cases[i].reason);
    }
}

static void what_is_missing_is_said(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *dataset = NULL;
    const qn_dataset_params wrong[] = {
        {.log = scratch->log},
        {.log = scratch->log, .name = "mnist-fashion"},
        {.log = scratch->log, .images = "a"},
        {.log = scratch->log, .labels = "a"},
    };
    static const char *const said[] = {"neither is set", "mnist-fashion", "only one of the two",
                                       "only one of the two"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(qn_dataset_open(&dataset, &wrong[i]), QN_ERR_ARGUMENT);
        scratch_said(scratch, "data.", said[i]);
    }
    qn_dataset_params params = {.log = scratch->log, .path = scratch->folder};
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_ERR_IO);
    scratch_said(scratch, "train-images-idx3-ubyte: missing", "set data.path");
    put_images(scratch, "train-images-idx3-ubyte", 3);
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_ERR_IO);
    scratch_said(scratch, "train-labels-idx1-ubyte: missing", "set data.path");
    assert_int_equal(setenv("QN_DATA_DIR", scratch->folder, 1), 0);
    params =
        (qn_dataset_params){.log = scratch->log, .name = "fashion-mnist", .split = QN_SPLIT_TEST};
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_ERR_IO);
    scratch_said(scratch, "t10k-images-idx3-ubyte.gz: missing",
                 "install the package dataset-fashion-mnist or set data.path");
    params.split = QN_SPLIT_TRAIN;
    put_labels(scratch, "train-labels-idx1-ubyte", 3);
    assert_int_equal(qn_dataset_open(&dataset, &params), QN_OK);
    assert_int_equal(qn_dataset_describe(dataset)->count, 3);
    qn_dataset_close(&dataset);
    assert_int_equal(unsetenv("QN_DATA_DIR"), 0);
}

static void fashion_mnist_is_what_it_is(void **state)
{
    struct scratch *scratch = *state;
    if (access("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", R_OK) != 0)
        skip();
    for (int split = 0; split < 2; split++) {
        qn_dataset *dataset = NULL;
        qn_dataset_params params = {
            .log = scratch->log, .name = "fashion-mnist", .split = (qn_split)split};
        assert_int_equal(qn_dataset_open(&dataset, &params), QN_OK);
        int64_t count = split ? 10000 : 60000, of_class[10] = {0};
        check_columns(dataset, count, 1, 28, 28, 10);
        const int32_t *labels = qn_dataset_column(dataset, "labels")->data;
        for (int64_t i = 0; i < count; i++)
            of_class[labels[i]]++;
        for (int i = 0; i < 10; i++)
            assert_int_equal(of_class[i], count / 10);
        qn_dataset_close(&dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(names_in_a_folder_are_found),
        WITH_SCRATCH(a_named_pair_is_read),
        WITH_SCRATCH(pairs_that_do_not_fit_are_refused),
        WITH_SCRATCH(labels_that_are_no_class_are_refused),
        WITH_SCRATCH(what_is_missing_is_said),
        WITH_SCRATCH(fashion_mnist_is_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
