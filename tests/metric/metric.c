/* SPDX-License-Identifier: MIT
 *
 * Metrics of a few labels, counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../io/scratch.h"

#include <math.h>
#include <quern/metric.h>

/* Four samples of three classes. The largest: 1, 0 (of two equal ones), 2, 0. */
static const float logits[4][3] = {{0, 5, 1}, {7, 7, 2}, {-3, -2, -1}, {9, 8, 7}};
static const int32_t labels[] = {1, 1, 2, 2};

static const qn_column column = {.name = "labels", .dtype = QN_I32, .data = labels};
static const qn_batch batch = {.samples = 4, .n_columns = 1, .columns = &column};

static const qn_metric_params base = {.kind = QN_METRIC_ACCURACY,
                                      .output = "logits",
                                      .shape = {2, {QN_BATCH, 3}},
                                      .labels = "labels"};

static qn_metric *create(qn_metric_params params)
{
    qn_metric *metric = NULL;
    assert_int_equal(qn_metric_create(&metric, &params), QN_OK);
    assert_true(isnan(qn_metric_result(metric)));
    assert_int_equal(qn_metric_count(metric), 0);
    return metric;
}

/* The figure of the four samples. */
static double figure(qn_metric_params params, int64_t count)
{
    qn_metric *metric = create(params);
    assert_int_equal(qn_metric_update(metric, "logits", 0, 4, logits, &batch), QN_OK);
    assert_int_equal(qn_metric_count(metric), count);
    double result = qn_metric_result(metric);
    qn_metric_destroy(&metric);
    assert_null(metric);
    return result;
}

static void accuracy(void **state)
{
    qn_metric_params params = base;
    (void)state;
    assert_true(figure(params, 4) == 2 / 4.0);
    params.top = 2; /* the second of two equal ones is the second; that of sample 3 the third */
    assert_true(figure(params, 4) == 3 / 4.0);
    params.top = 3;
    assert_true(figure(params, 4) == 1);
    params.top = 1;
    params.ignore = true;
    params.ignore_label = 1;
    assert_true(figure(params, 2) == 1 / 2.0);
    params.ignore_label = 7;
    assert_true(figure(params, 4) == 2 / 4.0);
}

/* A NaN is never larger, and never behind. */
static void not_a_number(void **state)
{
    static const float rows[4][3] = {{0, 1, NAN}, {NAN, 9, 1}, {NAN, 0, NAN}, {2, NAN, 1}};
    static const double met[] = {1, 2};
    (void)state;
    for (int top = 1; top <= 2; top++) {
        qn_metric_params params = base;
        params.top = top;
        qn_metric *metric = create(params);
        assert_int_equal(qn_metric_update(metric, "logits", 0, 4, rows, &batch), QN_OK);
        assert_true(qn_metric_result(metric) * 4 == met[top - 1]);
        qn_metric_destroy(&metric);
    }
}

static void confusion(void **state)
{
    static const int64_t counts[] = {0, 0, 0, 1, 1, 0, 1, 0, 1};
    qn_metric_params params = base;
    int64_t classes = 0;
    (void)state;
    params.kind = QN_METRIC_CONFUSION;
    qn_metric *metric = create(params);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(qn_metric_update(metric, "logits", 0, 4, logits, &batch), QN_OK);
        assert_true(qn_metric_result(metric) == 2 / 4.0);
        const int64_t *have = qn_metric_confusion(metric, &classes);
        assert_int_equal(classes, 3);
        for (int c = 0; c < 9; c++)
            assert_int_equal(have[c], i * counts[c]);
    }
    qn_metric_reset(metric);
    assert_true(isnan(qn_metric_result(metric)));
    assert_int_equal(qn_metric_count(metric), 0);
    for (int c = 0; c < 9; c++)
        assert_int_equal(qn_metric_confusion(metric, NULL)[c], 0);
    qn_metric_destroy(&metric);
    metric = create(base);
    assert_null(qn_metric_confusion(metric, NULL));
    qn_metric_destroy(&metric);
}

/* Class 0: none of its two predictions right; 1: one of two labels; 2: one of two labels. */
static void mean_iou(void **state)
{
    qn_metric_params params = base;
    (void)state;
    params.kind = QN_METRIC_MEAN_IOU;
    assert_true(figure(params, 4) == (0 + 1 / 2.0 + 1 / 2.0) / 3);
    params.ignore = true;
    params.ignore_label = 2; /* and 0 is predicted once, for a label of 1 */
    assert_true(figure(params, 2) == (0 + 1 / 2.0) / 2);
}

/* A mask of 2 x 2 pixels and 3 classes: (b, 3, 2, 2) logits and u8 (2, 2) labels. Tokens: (b, 4, 3)
 * logits, as (4b, 3), and 4 labels. The same numbers, turned. */
static void pixels_and_tokens(void **state)
{
    static const uint8_t mask[2][4] = {{1, 1, 2, 2}, {0, 1, 2, 0}};
    static const qn_column masks = {
        .name = "labels", .dtype = QN_U8, .shape = {2, {2, 2}}, .data = mask};
    static const qn_batch pixels = {.samples = 2, .n_columns = 1, .columns = &masks};
    static const qn_shape shapes[] = {
        {4, {QN_BATCH, 3, 2, 2}}, {3, {QN_BATCH, 4, 3}}, {2, {4 * QN_BATCH, 3}}};
    float planes[2][3][4];
    (void)state;
    for (int i = 0; i < 24; i++)
        planes[i / 12][i % 3][i / 3 % 4] = logits[i / 3 % 4][i % 3];
    for (int form = 0; form < 3; form++) {
        qn_metric_params params = base;
        params.shape = shapes[form];
        params.class_dim = form ? 0 : 1;
        for (int kind = QN_METRIC_ACCURACY; kind <= QN_METRIC_MEAN_IOU; kind++) {
            params.kind = (qn_metric_kind)kind;
            qn_metric *metric = create(params);
            for (int i = 0; i < 2; i++)
                assert_int_equal(qn_metric_update(metric, "logits", i, 1,
                                                  form ? (const void *)logits : planes[i], &pixels),
                                 QN_OK);
            /* The largest are 1, 0, 2, 0 in both: right are pixels 0 and 2, then 2 and 3. */
            double iou = (1 / 5.0 + 1 / 4.0 + 2 / 3.0) / 3;
            assert_int_equal(qn_metric_count(metric), 8);
            assert_true(qn_metric_result(metric) == (kind == QN_METRIC_MEAN_IOU ? iou : 4 / 8.0));
            qn_metric_destroy(&metric);
        }
    }
}

/* The mean of 1, 2, 3 and 6, and of those whose label is not 2; in pairs they are two samples. */
static void mean_and_perplexity(void **state)
{
    static const float losses[] = {1, 2, 3, 6};
    qn_metric_params params = {.kind = QN_METRIC_MEAN, .output = "loss"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        params.kind = i % 2 ? QN_METRIC_PERPLEXITY : QN_METRIC_MEAN;
        params.shape = i < 2 ? (qn_shape){0} : (qn_shape){2, {QN_BATCH, 2}};
        qn_metric *metric = create(params);
        assert_int_equal(qn_metric_update(metric, "loss", 0, i < 2 ? 4 : 2, losses, NULL), QN_OK);
        assert_int_equal(qn_metric_count(metric), 4);
        assert_true(qn_metric_result(metric) == (i % 2 ? exp(3) : 3));
        qn_metric_destroy(&metric);
    }
    params = (qn_metric_params){.kind = QN_METRIC_PERPLEXITY,
                                .output = "loss",
                                .labels = "labels",
                                .ignore = true,
                                .ignore_label = 2};
    qn_metric *metric = create(params);
    assert_int_equal(qn_metric_update(metric, "loss", 0, 4, losses, &batch), QN_OK);
    assert_int_equal(qn_metric_count(metric), 2);
    assert_true(qn_metric_result(metric) == exp(1.5));
    qn_metric_destroy(&metric);
}

/* Three samples of two targets each, and what a model says of them. */
static const float said[3][2] = {{1, 4}, {3, -1}, {2, 0.5f}};
static const float targets[3][2] = {{2, 4}, {3, 1}, {4, 1}};
static const qn_column target_column = {
    .name = "targets", .dtype = QN_F32, .shape = {1, {2}}, .data = targets};
static const qn_batch target_batch = {.samples = 3, .n_columns = 1, .columns = &target_column};

/* In two parts of the batch, after a part was counted and forgotten. */
static double figure_of_targets(qn_metric_kind kind, const float rows[3][2])
{
    qn_metric *metric = create((qn_metric_params){
        .kind = kind, .output = "y", .shape = {2, {QN_BATCH, 2}}, .labels = "targets"});
    assert_int_equal(qn_metric_update(metric, "y", 1, 1, rows[0], &target_batch), QN_OK);
    qn_metric_reset(metric);
    assert_true(isnan(qn_metric_result(metric)));
    assert_int_equal(qn_metric_update(metric, "y", 0, 2, rows, &target_batch), QN_OK);
    assert_int_equal(qn_metric_update(metric, "y", 2, 1, rows[2], &target_batch), QN_OK);
    assert_int_equal(qn_metric_count(metric), 6);
    const double result = qn_metric_result(metric);
    qn_metric_destroy(&metric);
    return result;
}

/* Differences are -1, 0, 0, -2, -2, -0.5. The first target's mean is 3, the second's 2: squared
 * deviations of 2 and 6, squared differences of 5 and 4.25. */
static void regression(void **state)
{
    static const float met[3][2] = {{2, 4}, {3, 1}, {4, 1}};
    (void)state;
    assert_true(figure_of_targets(QN_METRIC_SQUARED_ERROR, said) == 9.25 / 6);
    assert_true(figure_of_targets(QN_METRIC_ABSOLUTE_ERROR, said) == 5.5 / 6);
    assert_true(fabs(figure_of_targets(QN_METRIC_R2, said) - (1 - 5 / 2.0 + 1 - 4.25 / 6) / 2) <
                1e-12);
    assert_true(figure_of_targets(QN_METRIC_R2, met) == 1);
}

/* A mean that is large beside the deviations does not drown them; equal targets have none. */
static void deviations_are_exact(void **state)
{
    static const float rows[] = {1 << 20, (1 << 20) + 1, (1 << 20) + 3};
    static const float equal[] = {5, 5, 5}, near[] = {1 << 20, (1 << 20) + 1, (1 << 20) + 2};
    const qn_metric_params params = {.kind = QN_METRIC_R2, .output = "y", .labels = "targets"};
    const float *const given[][2] = {{near, rows}, {equal, equal}, {near, equal}};
    const double wanted[] = {1 - 1 / (14 / 3.0), 1, 0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const qn_column column_ = {.name = "targets", .dtype = QN_F32, .data = given[i][1]};
        const qn_batch batch_ = {.samples = 3, .n_columns = 1, .columns = &column_};
        qn_metric *metric = create(params);
        assert_int_equal(qn_metric_update(metric, "y", 0, 3, given[i][0], &batch_), QN_OK);
        assert_true(fabs(qn_metric_result(metric) - wanted[i]) < 1e-9);
        qn_metric_destroy(&metric);
    }
}

enum { SAMPLES = 60, CLASSES = 3, METRICS = 4 };

/* Beside one metric that counts all rows, several that count some of them and are joined. */
static void join_metrics(const qn_metric_params *params, const float *rows, const qn_batch *all)
{
    qn_metric *whole = create(*params), *joined = create(*params), *parts[METRICS];
    int64_t bytes, classes = 0;
    assert_int_equal(qn_metric_update(whole, "y", 0, SAMPLES, rows, all), QN_OK);
    for (int p = 0; p < METRICS; p++)
        parts[p] = create(*params);
    for (int i = SAMPLES - 1; i >= 0; i--)
        assert_int_equal(
            qn_metric_update(parts[i * i % 7 % METRICS], "y", i, 1, rows + i * CLASSES, all),
            QN_OK);
    for (int p = 0; p < METRICS; p++) {
        const void *counted = qn_metric_state(parts[p], &bytes);
        assert_int_equal(qn_metric_join(joined, counted, bytes - 1), QN_ERR_ARGUMENT);
        assert_int_equal(qn_metric_join(joined, counted, bytes), QN_OK);
        qn_metric_destroy(&parts[p]);
    }
    assert_true(qn_metric_result(joined) == qn_metric_result(whole));
    assert_int_equal(qn_metric_count(joined), qn_metric_count(whole));
    const int64_t *confusion = qn_metric_confusion(whole, &classes);
    if (confusion)
        assert_memory_equal(qn_metric_confusion(joined, NULL), confusion,
                            (size_t)(classes * classes) * sizeof *confusion);
    qn_metric_destroy(&whole);
    qn_metric_destroy(&joined);
}

/* Whoever counted what, and in which order, the figure has the same bits. */
static void joined_figures_are_those_of_one(void **state)
{
    static const qn_metric_kind kinds[] = {QN_METRIC_MEAN_IOU, QN_METRIC_CONFUSION,
                                           QN_METRIC_ACCURACY, QN_METRIC_SQUARED_ERROR,
                                           QN_METRIC_R2,       QN_METRIC_F1};
    float rows[SAMPLES * CLASSES], wanted[SAMPLES * CLASSES];
    int32_t classes_of[SAMPLES];
    (void)state;
    for (int i = 0; i < SAMPLES * CLASSES; i++) {
        rows[i] = 1.0f / (float)(1 + i * i % 101);
        wanted[i] = 1 / ((float)(i * 7 % 13) + 0.3f);
        classes_of[i / CLASSES] = i / CLASSES * i % CLASSES;
    }
    const qn_column columns[] = {
        {.name = "labels", .dtype = QN_I32, .data = classes_of},
        {.name = "targets", .dtype = QN_F32, .shape = {1, {CLASSES}}, .data = wanted}};
    const qn_batch all = {.samples = SAMPLES, .n_columns = 2, .columns = columns};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const qn_metric_params params = {.kind = kinds[k],
                                         .output = "y",
                                         .shape = {2, {QN_BATCH, CLASSES}},
                                         .labels = k < 3 ? "labels" : "targets"};
        join_metrics(&params, rows, &all);
    }
    assert_null(qn_metric_state(NULL, &(int64_t){0}));
}

/* All targets are above 1/2. Logits above 0 are five of six; of none at all nothing is found. */
static void several_classes(void **state)
{
    static const float none[3][2] = {{-1, -1}, {-1, 0}, {-2, NAN}};
    static const float some[3][2] = {{0, 1}, {0.2f, 0.7f}, {1, 0}};
    const qn_column column_ = {.name = "targets", .dtype = QN_F32, .shape = {1, {2}}, .data = some};
    const qn_batch batch_ = {.samples = 3, .n_columns = 1, .columns = &column_};
    qn_metric_params params = {
        .kind = QN_METRIC_F1, .output = "y", .shape = {2, {QN_BATCH, 2}}, .labels = "targets"};
    (void)state;
    assert_true(figure_of_targets(QN_METRIC_BINARY_ACCURACY, said) == 5 / 6.0);
    assert_true(figure_of_targets(QN_METRIC_F1, said) == 10 / 11.0);
    assert_true(figure_of_targets(QN_METRIC_BINARY_ACCURACY, none) == 0);
    assert_true(figure_of_targets(QN_METRIC_F1, none) == 0);
    /* Has 1, 3 and 4, is thought to have 0, 1, 2, 4 and 5. */
    qn_metric *metric = create(params);
    assert_int_equal(qn_metric_update(metric, "y", 0, 3, said, &batch_), QN_OK);
    assert_true(qn_metric_result(metric) == 4 / (4.0 + 4));
    qn_metric_destroy(&metric);
    params.kind = QN_METRIC_BINARY_ACCURACY;
    metric = create(params);
    assert_int_equal(qn_metric_update(metric, "y", 0, 3, said, &batch_), QN_OK);
    assert_true(qn_metric_result(metric) == 2 / 6.0);
    qn_metric_destroy(&metric);
}

static void targets_are_checked(void **state)
{
    const qn_metric_params good = {
        .kind = QN_METRIC_R2, .output = "y", .shape = {2, {QN_BATCH, 2}}, .labels = "targets"};
    qn_metric_params without = good, ignoring = good;
    const qn_column integers = {
        .name = "targets", .dtype = QN_I32, .shape = {1, {2}}, .data = targets};
    const qn_column one = {.name = "targets", .dtype = QN_F32, .data = targets};
    const qn_batch batches[] = {{.samples = 3, .n_columns = 1, .columns = &integers},
                                {.samples = 3, .n_columns = 1, .columns = &one}};
    qn_metric *metric = NULL;
    (void)state;
    without.labels = NULL;
    ignoring.ignore = true;
    assert_int_equal(qn_metric_create(&metric, &without), QN_ERR_ARGUMENT);
    assert_int_equal(qn_metric_create(&metric, &ignoring), QN_ERR_ARGUMENT);
    metric = create(good);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qn_metric_update(metric, "y", 0, 3, said, &batches[i]), QN_ERR_SHAPE);
    assert_int_equal(qn_metric_count(metric), 0);
    qn_metric_destroy(&metric);
}

/* 1, -2, 0.5, the smallest numbers of 16 bits, and infinity. */
static void numbers_of_16_bits(void **state)
{
    static const struct {
        qn_dtype dtype;
        uint16_t bits[5];
        double sum;
    } cases[] = {
        {QN_F16, {0x3c00, 0xc000, 0x3800, 0x0001, 0x0400}, -0.5 + 0x1p-24 + 0x1p-14},
        {QN_BF16, {0x3f80, 0xc000, 0x3f00, 0x0080, 0x0000}, -0.5 + 0x1p-126},
        {QN_F16, {0x3c00, 0x7c00, 0x3800, 0x0001, 0x0400}, INFINITY},
    };
    (void)state;
    for (int i = 0; i < 3; i++) {
        qn_metric *metric = create(
            (qn_metric_params){.kind = QN_METRIC_MEAN, .output = "x", .dtype = cases[i].dtype});
        assert_int_equal(qn_metric_update(metric, "x", 0, 5, cases[i].bits, NULL), QN_OK);
        assert_true(qn_metric_result(metric) == cases[i].sum / 5);
        qn_metric_destroy(&metric);
    }
}

/* What is refused leaves the count as it was. */
static void what_does_not_fit_is_refused(void **state)
{
    struct scratch *scratch = *state;
    static const int32_t bad[] = {1, 3, 0, -1};
    const qn_column columns[] = {
        {.name = "labels", .dtype = QN_I32, .data = bad},
        {.name = "labels", .dtype = QN_F32, .data = bad},
        {.name = "labels", .dtype = QN_I32, .shape = {1, {2}}, .data = bad},
        {.name = "labels", .dtype = QN_I32},
        {.name = "label", .dtype = QN_I32, .data = bad},
    };
    static const struct {
        int column;
        int64_t first, count;
        qn_status status;
        const char *reason;
    } cases[] = {
        {0, 0, 2, QN_ERR_FORMAT, "label 3, but there are 3 classes"},
        {0, 2, 2, QN_ERR_FORMAT, "label -1, but there are 3 classes"},
        {0, 2, 3, QN_ERR_ARGUMENT, "no such column, or not so many samples"},
        {1, 0, 1, QN_ERR_SHAPE, "labels are u8 or i32, not f32"},
        {2, 0, 1, QN_ERR_SHAPE, "2 labels a sample, but logits has 1"},
        {3, 0, 1, QN_ERR_ARGUMENT, "no such column, or not so many samples"},
        {4, 0, 1, QN_ERR_ARGUMENT, "no such column, or not so many samples"},
    };
    qn_metric_params params = base;
    params.log = scratch->log;
    qn_metric *metric = create(params);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_batch wrong = {.samples = 4, .n_columns = 1, .columns = &columns[cases[i].column]};
        assert_int_equal(
            qn_metric_update(metric, "logits", cases[i].first, cases[i].count, logits, &wrong),
            cases[i].status);
        scratch_said(scratch, "accuracy: labels: ", cases[i].reason);
        assert_int_equal(qn_metric_count(metric), 0);
    }
    assert_int_equal(qn_metric_update(metric, "logits", 0, 1, logits, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_metric_update(metric, "loss", 0, 4, logits, &batch), QN_OK);
    assert_int_equal(qn_metric_count(metric), 0);
    qn_metric_destroy(&metric);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    qn_metric *metric = NULL;
    qn_metric_params wrong[9];
    for (int i = 0; i < 9; i++)
        wrong[i] = base;
    wrong[0].kind = (qn_metric_kind)99;
    wrong[1].output = NULL;
    wrong[2].output = "";
    wrong[3].labels = NULL;
    wrong[4].dtype = QN_U8;
    wrong[5].shape.rank = 1;   /* and where are the classes? */
    wrong[6].shape.dim[0] = 3; /* no batch */
    wrong[7].class_dim = 2;    /* there is none */
    wrong[8].shape.dim[1] = 0;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(qn_metric_create(&metric, &wrong[i]), QN_ERR_ARGUMENT);
        assert_null(metric);
    }
    qn_metric_params huge = base;
    huge.kind = QN_METRIC_CONFUSION;
    huge.shape.dim[1] = INT64_C(1) << 40;
    assert_int_equal(qn_metric_create(&metric, &huge), QN_ERR_MEMORY);
    const qn_metric_params ignores = {.output = "loss", .ignore = true};
    assert_int_equal(qn_metric_create(&metric, &ignores), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(confusion),
        cmocka_unit_test(mean_iou),
        cmocka_unit_test(pixels_and_tokens),
        cmocka_unit_test(mean_and_perplexity),
        cmocka_unit_test(regression),
        cmocka_unit_test(deviations_are_exact),
        cmocka_unit_test(joined_figures_are_those_of_one),
        cmocka_unit_test(several_classes),
        cmocka_unit_test(targets_are_checked),
        cmocka_unit_test(numbers_of_16_bits),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, scratch_open, scratch_close),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
