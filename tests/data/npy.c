/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/npy_file.h"

#include <math.h>

static const float table[] = {1, 5, 3, 5, 5, 5, 9, 7}; /* (4, 2) */

/* Puts the array and gives its path, which stays. */
static const char *put(struct scratch *scratch, const char *name, const char *descr,
                       const char *shape, const void *data, size_t size)
{
    static char paths[3][512];
    char *path = paths[*name - 'x'];
    strcpy(path, npy_put(scratch, name, descr, shape, data, size));
    return path;
}

static qn_dataset *open_arrays(struct scratch *scratch, qn_npy_params params)
{
    qn_dataset *dataset = NULL;
    params.log = scratch->log;
    if (qn_dataset_open_npy(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    assert_int_equal(scratch->lines, 0);
    return dataset;
}

static void refuse(struct scratch *scratch, qn_npy_params params, const char *file,
                   const char *line)
{
    qn_dataset *dataset = NULL;
    params.log = scratch->log;
    if (qn_dataset_open_npy(&dataset, &params) != QN_ERR_FORMAT)
        fail_msg("not refused: %s", line);
    assert_null(dataset);
    scratch_said(scratch, file, line);
}

static void check_column(const qn_dataset *dataset, const char *name, qn_dtype dtype,
                         const qn_shape *shape, const void *wanted)
{
    const qn_column *column = qn_dataset_column(dataset, name);
    const int64_t count = qn_dataset_describe(dataset)->count;
    assert_non_null(column);
    assert_int_equal(column->dtype, dtype);
    assert_int_equal(column->shape.rank, shape->rank);
    for (int i = 0; i < shape->rank; i++)
        assert_int_equal(column->shape.dim[i], shape->dim[i]);
    assert_memory_equal(column->data, wanted, (size_t)(count * qn_column_bytes(column)));
}

static void rows_and_targets_are_read(void **state)
{
    struct scratch *scratch = *state;
    static const double told[] = {1, -2, 3, 1e-3};
    static const float told_f32[] = {1, -2, 3, 1e-3F};
    const qn_npy_params params = {.features =
                                      put(scratch, "x", "<f4", "(4, 2)", table, sizeof table),
                                  .targets = put(scratch, "y", "<f8", "(4,)", told, sizeof told)};
    qn_dataset *d = open_arrays(scratch, params);
    assert_int_equal(qn_dataset_describe(d)->count, 4);
    assert_int_equal(qn_dataset_describe(d)->n_columns, 2);
    check_column(d, "features", QN_F32, &(qn_shape){1, {2}}, table);
    check_column(d, "targets", QN_F32, &(qn_shape){1, {1}}, told_f32);
    assert_null(qn_csv_feature(d, 0));
    qn_dataset_close(&d);
    d = open_arrays(scratch, (qn_npy_params){.features = params.features});
    assert_int_equal(qn_dataset_describe(d)->n_columns, 1);
    qn_dataset_close(&d);
}

/* Bytes that are no images become numbers as all else does. */
static void one_number_may_be_a_sample(void **state)
{
    struct scratch *scratch = *state;
    static const float wanted[] = {3, 0, 255};
    qn_dataset *d = open_arrays(
        scratch, (qn_npy_params){.features = put(scratch, "x", "|u1", "(3,)", "\3\0\xff", 3)});
    check_column(d, "features", QN_F32, &(qn_shape){1, {1}}, wanted);
    qn_dataset_close(&d);
}

/* Labels of a column of one; images of bytes stay bytes, others become f32. */
static void images_and_labels_are_read(void **state)
{
    struct scratch *scratch = *state;
    static const int64_t labels[] = {2, 0};
    static const float floats[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    unsigned char pixels[12];
    for (int i = 0; i < 12; i++)
        pixels[i] = (unsigned char)i;
    const char *y = put(scratch, "y", "<i8", "(2, 1)", labels, sizeof labels);
    const char *x = put(scratch, "x", "|u1", "(2, 3, 2)", pixels, sizeof pixels);
    qn_dataset *d = open_arrays(scratch, (qn_npy_params){.features = x, .labels = y});
    const qn_column *column = qn_dataset_column(d, "labels");
    check_column(d, "images", QN_U8, &(qn_shape){3, {1, 3, 2}}, pixels);
    check_column(d, "labels", QN_I32, &(qn_shape){0}, (int32_t[]){2, 0});
    assert_int_equal(column->classes, 3);
    assert_null(column->class_names);
    qn_dataset_close(&d);
    x = put(scratch, "x", "<f4", "(2, 3, 1, 2)", floats, sizeof floats);
    d = open_arrays(scratch, (qn_npy_params){.features = x, .labels = y});
    check_column(d, "images", QN_F32, &(qn_shape){3, {3, 1, 2}}, floats);
    qn_dataset_close(&d);
}

/* The last samples are held out; classes are those of both splits; moments come from one. */
static void splits_are_parts(void **state)
{
    struct scratch *scratch = *state;
    qn_npy_params params = {.features = put(scratch, "x", "<f4", "(4, 2)", table, sizeof table),
                            .labels = put(scratch, "y", "|u1", "(4,)", "\0\1\0\4", 4),
                            .held_out = 0.25};
    float mean[2], deviation[2];
    qn_dataset *d = open_arrays(scratch, params);
    assert_int_equal(qn_dataset_describe(d)->count, 3);
    check_column(d, "labels", QN_I32, &(qn_shape){0}, (int32_t[]){0, 1, 0});
    assert_int_equal(qn_dataset_column(d, "labels")->classes, 5);
    assert_int_equal(qn_dataset_moments(d, "features", mean, deviation, NULL), QN_OK);
    assert_true(mean[0] == 3 && mean[1] == 5 && deviation[1] == 1);
    const uint32_t sum = qn_dataset_checksum(d);
    qn_dataset_close(&d);
    params.split = QN_SPLIT_TEST;
    params.n_features = 2;
    params.mean = (float[]){5, 3};
    params.deviation = (float[]){4, 2};
    d = open_arrays(scratch, params);
    check_column(d, "features", QN_F32, &(qn_shape){1, {2}}, (float[]){1, 2});
    check_column(d, "labels", QN_I32, &(qn_shape){0}, (int32_t[]){4});
    assert_int_equal(qn_dataset_column(d, "labels")->classes, 5);
    assert_true(qn_dataset_checksum(d) != sum);
    qn_dataset_close(&d);
    params.held_out = 0.2;
    refuse(scratch, params, "/x: ", "of 4 samples none is held out");
}

/* More numbers than are read at a time: each is standardised by its own place in the row. */
static void long_files_are_standardised(void **state)
{
    struct scratch *scratch = *state;
    enum { ROWS = 1200, WIDTH = 3 };
    static unsigned char data[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        data[i] = (unsigned char)(10 * (i % WIDTH) + i / WIDTH % 7);
    const qn_npy_params params = {.features =
                                      put(scratch, "x", "|u1", "(1200, 3)", data, sizeof data),
                                  .held_out = 0.9,
                                  .split = QN_SPLIT_TEST,
                                  .n_features = WIDTH,
                                  .mean = (float[]){0, 10, 20},
                                  .deviation = (float[]){1, 2, 4}};
    qn_dataset *d = open_arrays(scratch, params);
    const float *value = qn_dataset_column(d, "features")->data;
    assert_int_equal(qn_dataset_describe(d)->count, 1080);
    for (int i = 0; i < 1080 * WIDTH; i++)
        assert_true(value[i] == (float)((i / WIDTH + 120) % 7) / (float)(1 << i % WIDTH));
    qn_dataset_close(&d);
}

static void bad_samples_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const double large[] = {0, 1, 2, 1e39}, none[] = {0, NAN, 2, 3};
    const char *x = put(scratch, "x", "<f8", "(2, 2)", large, sizeof large);
    refuse(scratch, (qn_npy_params){.features = x},
           "/x: ", "sample 1: number 1: 1e+39 is not finite as f32");
    x = put(scratch, "x", "<f8", "(4,)", none, sizeof none);
    refuse(scratch, (qn_npy_params){.features = x},
           "/x: ", "sample 1: number 0: nan is not finite as f32");
    x = put(scratch, "x", "|u1", "(1, 1, 1, 2, 2)", "data", 4);
    refuse(scratch, (qn_npy_params){.features = x},
           "/x: ", "shape: (1, 1, 1, 2, 2): samples are numbers, rows of them, or images");
    x = put(scratch, "x", "|u1", "(1, 2, 2)", "data", 4);
    refuse(scratch, (qn_npy_params){.features = x, .n_features = 4},
           "/x: ", "shape: (1, 2, 2): images, where rows of numbers are wanted");
    x = put(scratch, "x", "|u1", "(1, 4)", "data", 4);
    refuse(scratch, (qn_npy_params){.features = x, .n_features = 3},
           "/x: ", "shape: rows of 4 numbers, where 3 are wanted");
}

static void bad_targets_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const float targets[] = {0, 1, 0.5F, NAN};
    static const int32_t negative[] = {0, -1}, large[] = {1 << 24, 0};
    qn_npy_params params = {.features = put(scratch, "x", "<f4", "(2, 4)", table, sizeof table)};
    params.targets = put(scratch, "y", "<f4", "(2, 2)", targets, sizeof targets);
    refuse(scratch, params, "/y: ", "sample 1: number 1: nan is not finite as f32");
    params.binary = true;
    refuse(scratch, params, "/y: ", "sample 1: number 0: 0.5 is neither 0 nor 1");
    params.targets = put(scratch, "y", "<f4", "(4,)", targets, sizeof targets);
    refuse(scratch, params, "/y: ", "shape: 4 rows for the 2 samples of ");
    params.targets = put(scratch, "y", "<f4", "(2, 1, 2)", targets, sizeof targets);
    refuse(scratch, params, "/y: ", "shape: (2, 1, 2): targets are a number or a row of them");
    params.targets = NULL;
    params.labels = put(scratch, "y", "<f4", "(2,)", targets, 8);
    refuse(scratch, params, "/y: ", "descr: labels are whole numbers, not floating point");
    params.labels = put(scratch, "y", "<f4", "(2, 2)", targets, sizeof targets);
    refuse(scratch, params, "/y: ", "shape: (2, 2): labels are one number for each sample");
    params.labels = put(scratch, "y", "<i4", "(2,)", negative, sizeof negative);
    refuse(scratch, params, "/y: ", "sample 1: number 0: -1 is no class");
    params.labels = put(scratch, "y", "<i4", "(2,)", large, sizeof large);
    refuse(scratch, params, "/y: ", "sample 0: number 0: 1.67772e+07 is no class");
    params.labels = put(scratch, "y", "|O", "(2,)", large, 2);
    refuse(scratch, params, "/y: ", "descr: '|O' are Python's objects");
}

static void bad_params_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const float one[] = {1, 1}, none[] = {1, 0};
    const char *x = put(scratch, "x", "<f4", "(4, 2)", table, sizeof table);
    const qn_npy_params bad[] = {
        {.labels = x},
        {.features = x, .targets = x, .labels = x},
        {.features = x, .held_out = 1},
        {.features = x, .split = (qn_split)2},
        {.features = x, .n_features = -1},
        {.features = x, .mean = one, .deviation = one},
        {.features = x, .n_features = 2, .mean = one},
        {.features = x, .n_features = 2, .mean = one, .deviation = none},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_npy_params params = bad[i];
        qn_dataset *dataset = NULL;
        params.log = scratch->log;
        assert_int_equal(qn_dataset_open_npy(&dataset, &params), QN_ERR_ARGUMENT);
        assert_null(dataset);
        scratch_said(scratch, "not true: ", "");
    }
    assert_int_equal(qn_dataset_open_npy(NULL, NULL), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(rows_and_targets_are_read),   WITH_SCRATCH(one_number_may_be_a_sample),
        WITH_SCRATCH(images_and_labels_are_read),  WITH_SCRATCH(splits_are_parts),
        WITH_SCRATCH(long_files_are_standardised), WITH_SCRATCH(bad_samples_are_refused),
        WITH_SCRATCH(bad_targets_are_refused),     WITH_SCRATCH(bad_params_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
