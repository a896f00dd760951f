/* SPDX-License-Identifier: MIT
 *
 * Datasets from arrays and from a function, their batches, and whether they fit a graph.
 */
#include <quern/data.h>

#include "../io/scratch.h"
#include "data/order.h"

#include <string.h>
#include <zlib.h>

enum { COUNT = 37, SEED = 11 };

/* Of sample i: x = {i, i / 2}, tokens of i and its epoch, a label. */
static float x[COUNT][2];
static uint8_t tokens[COUNT][3];
static int32_t label[COUNT];
static const char *const names[] = {"low", "high"};

static qn_column columns[] = {
    {.name = "x", .dtype = QN_F32, .shape = {1, {2}}, .data = x},
    {.name = "tokens", .dtype = QN_U8, .shape = {2, {3, 1}}, .data = tokens},
    {.name = "label", .dtype = QN_I32, .classes = 2, .class_names = names, .data = label},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static int fill(void **state)
{
    for (int i = 0; i < COUNT; i++) {
        x[i][0] = (float)i;
        x[i][1] = (float)i / 2;
        for (int j = 0; j < 3; j++)
            tokens[i][j] = (uint8_t)(7 * i + j);
        label[i] = i % 2;
    }
    return scratch_open(state);
}

/* The same rows, but for the first token: it tells the draw. */
static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    const int64_t *fails = user;
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = draws[i].sample;
        if (sample == *fails)
            return QN_ERR_IO;
        memcpy((float *)rows[0] + 2 * i, x[sample], sizeof *x);
        memcpy((uint8_t *)rows[1] + 3 * i, tokens[sample], sizeof *tokens);
        memcpy((int32_t *)rows[2] + i, &label[sample], sizeof *label);
        *((uint8_t *)rows[1] + 3 * i) = (uint8_t)(draws[i].seed + (uint64_t)draws[i].epoch);
    }
    return QN_OK;
}

static qn_dataset *from_arrays(struct scratch *scratch)
{
    qn_dataset *dataset = NULL;
    const qn_array_params params = {scratch->log, COUNT, COLUMNS, columns};
    assert_int_equal(qn_dataset_from_arrays(&dataset, &params), QN_OK);
    return dataset;
}

static qn_dataset *from_function(struct scratch *scratch, int64_t *fails)
{
    qn_dataset *dataset = NULL;
    qn_column bare[COLUMNS];
    memcpy(bare, columns, sizeof bare);
    for (int c = 0; c < COLUMNS; c++)
        bare[c].data = NULL;
    const qn_function_params params = {scratch->log, COUNT, COLUMNS, bare, make_rows, fails};
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_OK);
    memset(bare, 0xff, sizeof bare);
    return dataset;
}

static qn_loader *open_loader(struct scratch *scratch, const qn_dataset *dataset)
{
    qn_loader *loader = NULL;
    const qn_loader_params params = {.log = scratch->log, .seed = SEED, .max_samples = 50};
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

static void columns_are_described(void **state)
{
    int64_t fails = -1;
    qn_dataset *datasets[] = {from_arrays(*state), from_function(*state, &fails)};
    for (int i = 0; i < 2; i++) {
        const qn_dataset_facts *facts = qn_dataset_describe(datasets[i]);
        const qn_column *labels = qn_dataset_column(datasets[i], "label");
        assert_int_equal(facts->count, COUNT);
        assert_int_equal(facts->n_columns, COLUMNS);
        assert_string_equal(facts->columns[1].name, "tokens");
        assert_int_equal(facts->columns[1].shape.rank, 2);
        assert_int_equal(qn_column_bytes(&facts->columns[0]), 8);
        assert_int_equal(qn_column_bytes(&facts->columns[1]), 3);
        assert_ptr_equal(labels, &facts->columns[2]);
        assert_int_equal(labels->classes, 2);
        assert_ptr_not_equal(labels->class_names, names);
        assert_string_equal(labels->class_names[1], "high");
        assert_ptr_equal(labels->data, i ? NULL : label);
        assert_null(qn_dataset_column(datasets[i], "labels"));
        assert_null(qn_dataset_column(datasets[i], NULL));
    }
    qn_dataset_close(&datasets[0]);
    qn_dataset_close(&datasets[1]);
}

/* 200 cycles in the order of the loader, whose epochs end within them. */
static void rows_are_those_of_their_samples(void **state)
{
    int64_t fails = -1;
    qn_dataset *datasets[] = {from_arrays(*state), from_function(*state, &fails)};
    for (int i = 0; i < 2; i++) {
        qn_loader *loader = open_loader(*state, datasets[i]);
        struct qn_order order;
        assert_int_equal(qn_order_make(&order, SEED, COUNT, false, NULL), QN_OK);
        for (int cycle = 0; cycle < 200; cycle++) {
            qn_batch batch;
            assert_int_equal(qn_loader_next(loader, 1 + cycle / 4, &batch), QN_OK);
            const float *row = qn_batch_column(&batch, "x")->data;
            const uint8_t *token = qn_batch_column(&batch, "tokens")->data;
            const int32_t *number = qn_batch_column(&batch, "label")->data;
            for (int64_t j = 0; j < batch.samples; j++) {
                int64_t at = batch.position + j, sample = qn_order_at(&order, at);
                assert_memory_equal(row + 2 * j, x[sample], sizeof *x);
                assert_memory_equal(token + 3 * j + 1, tokens[sample] + 1, 2);
                assert_int_equal(token[3 * j],
                                 i ? (uint8_t)(SEED + at / COUNT) : tokens[sample][0]);
                assert_int_equal(number[j], label[sample]);
            }
        }
        qn_order_free(&order);
        qn_loader_close(&loader);
        qn_dataset_close(&datasets[i]);
    }
}

static void a_function_that_fails_is_told(void **state)
{
    struct scratch *scratch = *state;
    int64_t fails = 21;
    qn_dataset *dataset = from_function(scratch, &fails);
    qn_loader *loader = open_loader(scratch, dataset);
    qn_batch batch;
    assert_int_equal(qn_loader_next(loader, COUNT, &batch), QN_ERR_IO);
    scratch_said(scratch, "samples ", "of epoch 0: the function failed");
    assert_int_equal(qn_loader_position(loader), 0);
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void a_batch_is_fetched_by_name(void **state)
{
    float row[3][2] = {{0}};
    qn_batch batch = {.samples = COUNT, .n_columns = COLUMNS, .columns = columns};
    const qn_column empty = {.name = "x", .dtype = QN_F32};
    (void)state;
    assert_int_equal(qn_batch_fetch(&batch, "x", 5, 3, row), QN_OK);
    assert_memory_equal(row, x[5], sizeof row);
    assert_int_equal(qn_batch_fetch(&batch, "x", COUNT - 3, 3, row), QN_OK);
    assert_memory_equal(row, x[COUNT - 3], sizeof row);
    assert_int_equal(qn_batch_fetch(&batch, "x", COUNT - 2, 3, row), QN_ERR_ARGUMENT);
    assert_int_equal(qn_batch_fetch(&batch, "x", -1, 1, row), QN_ERR_ARGUMENT);
    assert_int_equal(qn_batch_fetch(&batch, "x", 1, -1, row), QN_ERR_ARGUMENT);
    assert_int_equal(qn_batch_fetch(&batch, "y", 0, 1, row), QN_ERR_ARGUMENT);
    assert_int_equal(qn_batch_fetch(&batch, "x", 0, 1, NULL), QN_ERR_ARGUMENT);
    batch.columns = &empty;
    batch.n_columns = 1;
    assert_int_equal(qn_batch_fetch(&batch, "x", 0, 1, row), QN_ERR_ARGUMENT);
}

static void columns_that_cannot_be_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const char *const none[] = {"a"};
    char long_name[102] = {0};
    memset(long_name, 'n', 101);
    const struct {
        int64_t count;
        int n;
        qn_column column[2];
        const char *one, *other;
    } cases[] = {
        {0, 1, {{.name = "x", .dtype = QN_F32, .data = x}}, "dataset: 0 samples", "at least 1"},
        {1, 0, {{.name = "x", .dtype = QN_F32, .data = x}}, "dataset: 0 columns", "1 to 16"},
        {1, 17, {{.name = "x", .dtype = QN_F32, .data = x}}, "dataset: 17 columns", "1 to 16"},
        {1, 1, {{.dtype = QN_F32, .data = x}}, "column 0: ", "a name has 1 to 100 bytes"},
        {1, 1, {{.name = "", .dtype = QN_F32, .data = x}}, "column 0: ", "1 to 100 bytes"},
        {1, 1, {{.name = long_name, .dtype = QN_F32, .data = x}}, "column 0: ", "1 to 100 bytes"},
        {1, 1, {{.name = "x", .data = x}}, "x: dtype: ", "0 is none"},
        {1, 1, {{.name = "x", .dtype = (qn_dtype)99, .data = x}}, "x: dtype: ", "99 is none"},
        {1, 1, {{.name = "x", .dtype = QN_F32, .shape = {1, {0}}, .data = x}}, "x: shape", ""},
        {1, 1, {{.name = "x", .dtype = QN_F32, .shape = {1, {-1}}, .data = x}}, "x: shape", ""},
        {1, 1, {{.name = "x", .dtype = QN_F32, .shape = {7, {1}}, .data = x}}, "x: shape", ""},
        {INT64_MAX / 4 + 1, 1, {{.name = "x", .dtype = QN_F32, .data = x}}, "x: shape", "counted"},
        {1, 1, {{.name = "x", .dtype = QN_F32}}, "x: data: ", "missing"},
        {1, 1, {{.name = "x", .dtype = QN_I32, .classes = -1, .data = x}}, "x: classes: ", ""},
        {1, 1, {{.name = "x", .dtype = QN_I32, .class_names = none, .data = x}}, "x: classes", ""},
        {1,
         2,
         {{.name = "x", .dtype = QN_F32, .data = x}, {.name = "x", .dtype = QN_F32}},
         "x: ",
         "two columns have this name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_dataset *dataset = NULL;
        const qn_array_params params = {scratch->log, cases[i].count, cases[i].n, cases[i].column};
        assert_int_equal(qn_dataset_from_arrays(&dataset, &params), QN_ERR_ARGUMENT);
        assert_null(dataset);
        scratch_said(scratch, cases[i].one, cases[i].other);
    }
    qn_dataset *dataset = NULL;
    qn_function_params params = {scratch->log, COUNT, COLUMNS, columns, make_rows, NULL};
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_ERR_ARGUMENT);
    scratch_said(scratch, "x: ", "has data, and a function too");
    params.fn = NULL;
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_ERR_ARGUMENT);
}

/* Datasets differ by a byte of their data, or by a name. */
static void checksums_tell_data_apart(void **state)
{
    int64_t fails = -1;
    uint32_t sum[3], made[2];
    for (int i = 0; i < 3; i++) {
        qn_dataset *dataset = from_arrays(*state);
        sum[i] = qn_dataset_checksum(dataset);
        qn_dataset_close(&dataset);
        label[COUNT - 1] ^= 1;
    }
    label[COUNT - 1] ^= 1;
    uLong whole = crc32(crc32(0, (const Bytef *)x, sizeof x), (const Bytef *)tokens, sizeof tokens);
    assert_int_equal(sum[0], crc32(whole, (const Bytef *)label, sizeof label));
    assert_int_not_equal(sum[0], sum[1]);
    assert_int_equal(sum[0], sum[2]);
    for (int i = 0; i < 2; i++) {
        columns[0].name = i ? "y" : "x";
        qn_dataset *dataset = from_function(*state, &fails);
        made[i] = qn_dataset_checksum(dataset);
        qn_dataset_close(&dataset);
    }
    columns[0].name = "x";
    assert_int_not_equal(made[0], made[1]);
}

static void a_graph_says_what_it_wants(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *name;
        qn_dtype dtype;
        int rank;
        int64_t dim[3];
        const char *reason; /* NULL: it fits */
    } cases[] = {
        {"x", QN_F32, 2, {QN_BATCH, 2}, NULL},
        {"x", QN_F32, 1, {2 * QN_BATCH}, NULL},
        {"x", QN_F32, 3, {QN_BATCH, 1, 2}, NULL},
        {"tokens", QN_U8, 1, {3 * QN_BATCH}, NULL},
        {"label", QN_I32, 1, {QN_BATCH}, NULL},
        {"label", QN_I32, 2, {QN_BATCH, 1}, NULL},
        {"labels", QN_I32, 1, {QN_BATCH}, "has no column for this input"},
        {"label", QN_U8, 1, {QN_BATCH}, "has rows of i32 (), the input wants u8 (b)"},
        {"x", QN_F32, 2, {QN_BATCH, 3}, "has rows of f32 (2), the input wants f32 (b, 3)"},
        {"x", QN_F32, 2, {2 * QN_BATCH, 2}, "the input wants f32 (2b, 2)"},
    };
    qn_dataset *dataset = from_arrays(scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph;
        assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
        qn_tensor first, first_again, second;
        first = qn_input(graph, "label", QN_I32, 1, (int64_t[]){QN_BATCH});
        if (strcmp(cases[i].name, "label") == 0) {
            qn_graph_destroy(&graph);
            assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
        } else {
            assert_string_equal(qn_graph_input(graph, 0, &first_again), "label");
            assert_int_equal(first_again.id, first.id);
        }
        qn_input(graph, cases[i].name, cases[i].dtype, cases[i].rank, cases[i].dim);
        assert_int_equal(qn_graph_status(graph), QN_OK);
        assert_null(qn_graph_input(graph, 2, &second));
        assert_int_equal(qn_dataset_fits(dataset, graph, &scratch->log),
                         cases[i].reason ? QN_ERR_SHAPE : QN_OK);
        if (cases[i].reason)
            scratch_said(scratch, cases[i].name, cases[i].reason);
        qn_graph_destroy(&graph);
    }
    qn_dataset_close(&dataset);
}

#define WITH_ROWS(test) cmocka_unit_test_setup_teardown(test, fill, scratch_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROWS(columns_are_described),
        WITH_ROWS(rows_are_those_of_their_samples),
        WITH_ROWS(a_function_that_fails_is_told),
        WITH_ROWS(a_batch_is_fetched_by_name),
        WITH_ROWS(columns_that_cannot_be_are_refused),
        WITH_ROWS(checksums_tell_data_apart),
        WITH_ROWS(a_graph_says_what_it_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
