/* SPDX-License-Identifier: MIT
 *
 * Parts of a dataset: which samples are in them, and that their rows are those of the whole.
 */
#include <quern/data.h>

#include "../io/scratch.h"

enum { COUNT = 1000, SEED = 5 };

/* Row of each sample: its number, and what it was drawn with. */
static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        ((int32_t *)rows[0])[i] = (int32_t)draws[i].sample;
        ((int32_t *)rows[1])[2 * i] = (int32_t)draws[i].epoch;
        ((int32_t *)rows[1])[2 * i + 1] = (int32_t)draws[i].seed;
    }
    return QN_OK;
}

static qn_dataset *make_whole(struct scratch *scratch)
{
    static const char *const names[] = {"low", "high"};
    static const qn_column columns[] = {
        {.name = "sample", .dtype = QN_I32, .classes = 2, .class_names = names},
        {.name = "draw", .dtype = QN_I32, .shape = {1, {2}}}};
    const qn_function_params params = {
        .log = scratch->log, .count = COUNT, .n_columns = 2, .columns = columns, .fn = make_rows};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_OK);
    return dataset;
}

static qn_dataset *make_part(struct scratch *scratch, const qn_dataset *whole, double fraction,
                             uint64_t seed, qn_split split)
{
    const qn_part_params params = {scratch->log, whole, fraction, seed, split};
    qn_dataset *part = NULL;
    assert_int_equal(qn_dataset_part(&part, &params), QN_OK);
    return part;
}

/* Marks the samples of a part, which come in their order, and closes it. */
static int64_t mark(struct scratch *scratch, qn_dataset *part, bool has[COUNT])
{
    const int64_t count = qn_dataset_describe(part)->count;
    const qn_loader_params params = {
        .log = scratch->log, .seed = 8, .max_samples = count, .sequential = true};
    qn_loader *loader = NULL;
    qn_batch batch;
    int32_t before = -1;
    assert_int_equal(qn_loader_open(&loader, part, &params), QN_OK);
    assert_int_equal(qn_loader_next(loader, count, &batch), QN_OK);
    const int32_t *samples = qn_batch_column(&batch, "sample")->data;
    const int32_t *draws = qn_batch_column(&batch, "draw")->data;
    for (int64_t i = 0; i < count; i++) {
        assert_true(samples[i] > before && samples[i] < COUNT && !has[samples[i]]);
        assert_true(draws[2 * i] == 0 && draws[2 * i + 1] == 8);
        has[before = samples[i]] = true;
    }
    qn_loader_close(&loader);
    qn_dataset_close(&part);
    return count;
}

static void both_parts_are_the_whole(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch);
    bool has[COUNT] = {false};
    assert_int_equal(mark(scratch, make_part(scratch, whole, 0.1, SEED, QN_SPLIT_TEST), has), 100);
    int fives[5] = {0}; /* not from one end */
    for (int i = 0; i < COUNT; i++)
        fives[i / (COUNT / 5)] += has[i];
    for (int i = 0; i < 5; i++)
        assert_in_range(fives[i], 8, 34); /* of 20 on average: 3 standard deviations and some */
    assert_int_equal(mark(scratch, make_part(scratch, whole, 0.1, SEED, QN_SPLIT_TRAIN), has), 900);
    for (int i = 0; i < COUNT; i++)
        assert_true(has[i]);
    qn_dataset_close(&whole);
}

static void the_seed_says_which(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch);
    bool has[3][COUNT] = {{false}};
    uint32_t sums[3];
    int same = 0;
    for (int i = 0; i < 3; i++) {
        qn_dataset *part = make_part(scratch, whole, 0.25, i < 2 ? SEED : SEED + 1, QN_SPLIT_TEST);
        sums[i] = qn_dataset_checksum(part);
        mark(scratch, part, has[i]);
    }
    assert_memory_equal(has[0], has[1], sizeof has[0]);
    assert_int_equal(sums[0], sums[1]);
    assert_true(sums[0] != sums[2] && sums[0] != qn_dataset_checksum(whole));
    for (int i = 0; i < COUNT; i++)
        same += has[0][i] && has[2][i];
    assert_in_range(same, 30, 95); /* of 62.5 on average */
    qn_dataset_close(&whole);
}

static void columns_are_those_of_the_whole(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch);
    qn_dataset *part = make_part(scratch, whole, 0.5, SEED, QN_SPLIT_TRAIN);
    const qn_column *column = qn_dataset_column(part, "sample");
    assert_int_equal(qn_dataset_describe(part)->n_columns, 2);
    assert_int_equal(column->classes, 2);
    assert_string_equal(column->class_names[1], "high");
    assert_null(column->data);
    qn_dataset_close(&part);
    qn_dataset_close(&whole);
}

static void empty_parts_are_refused(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *whole = make_whole(scratch), *part = NULL;
    const double fractions[] = {0, 1, -0.5, 1.5, 0.0004, 0.9996};
    for (int i = 0; i < 6; i++) {
        const qn_part_params params = {scratch->log, whole, fractions[i], SEED, QN_SPLIT_TEST};
        assert_int_equal(qn_dataset_part(&part, &params), QN_ERR_ARGUMENT);
        assert_null(part);
        scratch_said(scratch, i < 4 ? "params->fraction" : "1000 samples", "");
    }
    assert_int_equal(qn_dataset_part(&part, &(qn_part_params){.fraction = 0.5}), QN_ERR_ARGUMENT);
    qn_dataset_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(both_parts_are_the_whole),
        WITH_SCRATCH(the_seed_says_which),
        WITH_SCRATCH(columns_are_those_of_the_whole),
        WITH_SCRATCH(empty_parts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
