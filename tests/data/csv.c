/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/scratch.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>

static const char *const ys[] = {"y"}, *const yz[] = {"z", "y"}, *const xs[] = {"b", "a"};

static qn_csv_params in_file(struct scratch *scratch, const char *text, qn_csv_params params)
{
    params.log = scratch->log;
    params.path = scratch_put(scratch, "t", text, strlen(text));
    return params;
}

static qn_dataset *open_table(struct scratch *scratch, const char *text, qn_csv_params params)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, text, params);
    if (qn_dataset_open_csv(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    assert_int_equal(scratch->lines, 0);
    return dataset;
}

static void refuse(struct scratch *scratch, const char *text, qn_csv_params params,
                   const char *line)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, text, params);
    if (qn_dataset_open_csv(&dataset, &params) != QN_ERR_FORMAT)
        fail_msg("not refused: %s", line);
    assert_null(dataset);
    scratch_said(scratch, "/t: ", line);
}

static void check_numbers(const qn_dataset *dataset, const char *name, int64_t width,
                          const float *wanted)
{
    const qn_column *column = qn_dataset_column(dataset, name);
    const int64_t count = qn_dataset_describe(dataset)->count;
    assert_non_null(column);
    assert_int_equal(column->shape.rank, 1);
    assert_int_equal(column->shape.dim[0], width);
    assert_memory_equal(column->data, wanted, (size_t)(count * width) * sizeof *wanted);
}

static void check_labels(const qn_dataset *dataset, const int32_t *wanted)
{
    const qn_column *column = qn_dataset_column(dataset, "labels");
    const int64_t count = qn_dataset_describe(dataset)->count;
    assert_memory_equal(column->data, wanted, (size_t)count * sizeof *wanted);
}

static const qn_csv_params to_y = {.n_targets = 1, .targets = ys};

/* Named targets in their order, all other columns in the file's; blanks, CRLF, no newline. */
static void columns_are_told_by_names(void **state)
{
    const qn_csv_params params = {.n_targets = 2, .targets = yz};
    qn_dataset *d = open_table(*state, "a, y ,b,z\r\n1,2,3,4\r\n\r\n 5\t,-.5e1,+7.,8", params);
    assert_int_equal(qn_dataset_describe(d)->count, 2);
    assert_int_equal(qn_dataset_describe(d)->n_columns, 2);
    check_numbers(d, "features", 2, (float[]){1, 3, 5, 7});
    check_numbers(d, "targets", 2, (float[]){4, 2, 8, -5});
    assert_string_equal(qn_csv_feature(d, 1), "b");
    assert_null(qn_csv_feature(d, 2));
    assert_null(qn_csv_feature(d, -1));
    qn_dataset_close(&d);
}

/* What nobody asks for may be any text; without targets there are features alone. */
static void features_may_be_named(void **state)
{
    const qn_csv_params params = {.n_features = 2, .features = xs};
    qn_dataset *d = open_table(*state, "a,note,b\n1,none of it,2\n3,,4\n", params);
    assert_int_equal(qn_dataset_describe(d)->n_columns, 1);
    check_numbers(d, "features", 2, (float[]){2, 1, 4, 3});
    qn_dataset_close(&d);
}

/* Commas, quotes and ends of lines, in names too, behind the mark of UTF-8. */
static void quotes_hold_anything(void **state)
{
    static const char text[] =
        "\xef\xbb\xbf\"x\",\"a,\"\"b\"\"\n\"\n\"1\",\"two\r\nlines\"\r\n2,\"\"\"\"\n";
    qn_dataset *d = open_table(*state, text, (qn_csv_params){.label = "a,\"b\"\n"});
    const qn_column *labels = qn_dataset_column(d, "labels");
    check_numbers(d, "features", 1, (float[]){1, 2});
    assert_string_equal(labels->class_names[0], "\"");
    assert_string_equal(labels->class_names[1], "two\r\nlines");
    qn_dataset_close(&d);
}

/* Classes are counted in the order of their bytes over both splits; a name keeps its bytes. */
static void labels_are_names(void **state)
{
    static const char *const given[] = {"new", "b,\"2\"", "old"};
    static const char text[] = "x,k\n1,old\n2,\"b,\"\"2\"\"\"\n3,old\n4,new\n";
    qn_dataset *d = open_table(*state, text, (qn_csv_params){.label = "k", .held_out = 0.5});
    const qn_column *labels = qn_dataset_column(d, "labels");
    assert_int_equal(labels->classes, 3);
    assert_string_equal(labels->class_names[0], "b,\"2\"");
    assert_string_equal(labels->class_names[1], "new");
    check_labels(d, (int32_t[]){2, 0});
    qn_dataset_close(&d);
    d = open_table(*state, text,
                   (qn_csv_params){.label = "k",
                                   .held_out = 0.5,
                                   .split = QN_SPLIT_TEST,
                                   .classes = 3,
                                   .class_names = given});
    check_labels(d, (int32_t[]){2, 0});
    check_numbers(d, "features", 1, (float[]){3, 4});
    assert_string_equal(qn_dataset_column(d, "labels")->class_names[2], "old");
    qn_dataset_close(&d);
    refuse(*state, "x,k\n1,other\n",
           (qn_csv_params){.label = "k", .classes = 3, .class_names = given},
           "line 2: k: 'other' is none of the 3 names");
}

/* Moments are those of a split; given, they are what another one is standardised with. */
static void features_are_standardised(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] = "a,b,y\n1,5,0\n3,5,1\n5,5,0\n9,7,1\n";
    qn_csv_params params = {.n_targets = 1, .targets = ys, .held_out = 0.25};
    float mean[2], deviation[2];
    qn_dataset *d = open_table(scratch, text, params);
    assert_int_equal(qn_dataset_moments(d, "features", mean, deviation, NULL), QN_OK);
    assert_true(mean[0] == 3 && mean[1] == 5 && deviation[1] == 1);
    assert_true(fabs((double)deviation[0] - sqrt(8.0 / 3)) < 1e-6);
    assert_int_equal(qn_dataset_moments(d, "labels", mean, deviation, &scratch->log),
                     QN_ERR_ARGUMENT);
    scratch_said(scratch, "labels: no such column of f32", "");
    qn_dataset_close(&d);
    params.split = QN_SPLIT_TEST;
    params.n_features = 2;
    params.features = xs;
    params.mean = (float[]){5, 3};
    params.deviation = (float[]){4, 2};
    d = open_table(scratch, text, params);
    check_numbers(d, "features", 2, (float[]){0.5F, 3});
    check_numbers(d, "targets", 1, (float[]){1});
    qn_dataset_close(&d);
}

static void checksums_tell_apart(void **state)
{
    static const char *const texts[] = {"x,y\n1,2\n", "x,y\n1,3\n", "x,y\n2,2\n"};
    uint32_t sums[3];
    for (int i = 0; i < 3; i++) {
        qn_dataset *d = open_table(*state, texts[i], to_y);
        sums[i] = qn_dataset_checksum(d);
        qn_dataset_close(&d);
    }
    assert_true(sums[0] != sums[1] && sums[0] != sums[2] && sums[1] != sums[2]);
}

static void bad_files_are_refused(void **state)
{
    static const struct {
        const char *text, *line;
    } files[] = {
        {"", "is empty"},
        {"\n\r\n", "is empty"},
        {"x,y\n", "no row behind the first line"},
        {"x,y\n1,2\n\n3\n", "line 4: y: is missing: the row has 1 cells, the first line 2"},
        {"x,y\n1,2,3\n", "line 2: cell 3: has no column: the first line has 2"},
        {"x,y\n1,2\n1,two\n", "line 3: y: 'two' is no number"},
        {"x,y\n1,\n", "line 2: y: is empty"},
        {"x,y\n  ,1\n", "line 2: x: is empty"},
        {"x,y\n\"1\n\n2\",1\n", "line 2: x: '1"},
        {"x,y\n1,1\n\"a\nb\",1\n3,x\n", "line 3: x: 'a"},
        {"x,y\n\"a\nb\n", "line 2: cell 1: a quote that nothing ends"},
        {"x,y\n1,2\"\n", "line 2: cell 2: a quote in a cell that does not begin with one"},
        {"x,y\n\"1\" ,2\n", "line 2: cell 1: characters behind the closing quote"},
        {"x,z\n1,2\n", "line 1: y: no such column"},
        {"x,yy\n1,2\n", "line 1: y: no such column; did you mean yy?"},
        {"x,y, x\n1,2,3\n", "line 1: x: two columns have this name"},
        {"x,,y\n1,2,3\n", "line 1: cell 2: the name of a column has 1 to 1000 bytes"},
        {"y\n1\n", "line 1: no column is a feature"},
        {"x,y\n1,nan\n", "'nan' is no number"},
        {"x,y\ninf,1\n", "'inf' is no number"},
        {"x,y\n0x1,1\n", "'0x1' is no number"},
        {"x,y\n1 2,1\n", "'1 2' is no number"},
        {"x,y\n1e,1\n", "'1e' is no number"},
        {"x,y\n.,1\n", "'.' is no number"},
        {"x,y\n\"1,5\",1\n", "'1,5' is no number"},
        {"x,y\n1e39,1\n", "line 2: x: '1e39' is too large for f32"},
        {"x,y\n1e999,1\n", "line 2: x: '1e999' is too large for f32"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refuse(*state, files[i].text, to_y, files[i].line);
    qn_csv_params params = to_y;
    params.binary = true;
    refuse(*state, "x,y\n2,1\n2,0\n2,0.5\n", params, "line 4: y: '0.5' is neither 0 nor 1");
    params.held_out = 0.3;
    params.split = QN_SPLIT_TEST;
    refuse(*state, "x,y\n2,1\n2,0\n2,0\n", params, "of 3 rows none is held out");
    params = (qn_csv_params){.n_targets = 1, .targets = ys, .n_features = 1, .features = ys};
    refuse(*state, "x,y\n1,2\n", params, "line 1: y: is asked for twice");
    refuse(*state, "x,k\n1,\n", (qn_csv_params){.label = "k"},
           "line 2: k: the name of a class has 1 to 1000 bytes");
}

static void a_byte_0_is_refused(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] = "x,y\n1,2\n1\0,2\n";
    qn_csv_params params = to_y;
    qn_dataset *dataset = NULL;
    params.log = scratch->log;
    params.path = scratch_put(scratch, "t", text, sizeof text - 1);
    assert_int_equal(qn_dataset_open_csv(&dataset, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "/t: line 3: cell 1: has a character 0", "");
}

static void bad_params_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const float one[] = {1}, none[] = {0};
    const qn_csv_params bad[] = {
        {.n_targets = 1},
        {.n_targets = 1, .targets = ys, .label = "x"},
        {.held_out = 1},
        {.mean = one, .deviation = one},
        {.n_features = 1, .features = ys, .mean = one},
        {.n_features = 1, .features = ys, .mean = one, .deviation = none},
        {.class_names = ys},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const qn_csv_params params = in_file(scratch, "x,y\n1,2\n", bad[i]);
        qn_dataset *dataset = NULL;
        assert_int_equal(qn_dataset_open_csv(&dataset, &params), QN_ERR_ARGUMENT);
        scratch->lines = 0;
    }
    qn_dataset *dataset = NULL;
    const qn_csv_params nowhere = {.path = "/nonesuch/t", .log = scratch->log};
    assert_int_equal(qn_dataset_open_csv(&dataset, &nowhere), QN_ERR_IO);
    scratch_said(scratch, "/nonesuch/t: cannot read", "");
}

/* Compiles such a locale if the machine has none. */
static bool use_comma(struct scratch *scratch)
{
    char command[3 * FOLDER_BYTES];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             scratch->folder, scratch->folder);
    return system(command) == 0 && setenv("LOCPATH", scratch->folder, 1) == 0 &&
           setlocale(LC_ALL, "de_DE.UTF-8");
}

/* Where the locale has a comma a point is read all the same. */
static void points_are_points(void **state)
{
    static const char text[] = "x,y\n1.25,-.5\n2.5e-1,3.\n";
    if (!use_comma(*state))
        skip();
    double number = 0;
    const bool good = qn_text_read_number("-12.5e1", &number);
    const bool comma = qn_text_read_number("12,5", &(double){0});
    qn_dataset *d = open_table(*state, text, to_y);
    setlocale(LC_ALL, "C");
    assert_true(good && number == -125 && !comma);
    check_numbers(d, "features", 1, (float[]){1.25F, 0.25F});
    check_numbers(d, "targets", 1, (float[]){-0.5F, 3});
    qn_dataset_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(columns_are_told_by_names), WITH_SCRATCH(features_may_be_named),
        WITH_SCRATCH(quotes_hold_anything),      WITH_SCRATCH(labels_are_names),
        WITH_SCRATCH(features_are_standardised), WITH_SCRATCH(checksums_tell_apart),
        WITH_SCRATCH(bad_files_are_refused),     WITH_SCRATCH(a_byte_0_is_refused),
        WITH_SCRATCH(bad_params_are_refused),    WITH_SCRATCH(points_are_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
