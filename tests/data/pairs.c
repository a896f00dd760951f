/* SPDX-License-Identifier: MIT
 *
 * Pairs of datasets: which rows are side by side, in which order they may come, and what does not
 * match.
 */
#include <quern/data.h>

#include "../io/scratch.h"

enum { COUNT = 150, WIDTH = 3, HARD = 2, MOST_DRAWN = 64 };

/* Rows of a dataset begin with its mark and tell what they were drawn with. */
static qn_status make_rows(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t *row = (int32_t *)rows[1] + i * WIDTH;
        ((uint8_t *)rows[0])[i] = (uint8_t)draws[i].sample;
        row[0] = *(const int32_t *)user + (int32_t)draws[i].sample;
        row[1] = (int32_t)draws[i].epoch;
        row[2] = (int32_t)draws[i].seed;
    }
    return QN_OK;
}

static int32_t query_mark = 10000, passage_mark = 20000, negative_mark = 30000;

static const char *const kinds[] = {"low", "high"};
static const qn_column columns[] = {
    {.name = "labels", .dtype = QN_U8, .classes = 2, .class_names = kinds},
    {.name = "rows", .dtype = QN_I32, .shape = {1, {WIDTH}}},
};

static qn_dataset *make(struct scratch *scratch, int64_t count, int32_t *mark)
{
    const qn_function_params params = {.log = scratch->log,
                                       .count = count,
                                       .n_columns = 2,
                                       .columns = columns,
                                       .fn = make_rows,
                                       .user = mark};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_from_function(&dataset, &params), QN_OK);
    return dataset;
}

/* The datasets behind some pairs, and the pairs. */
struct setting {
    qn_dataset *queries, *passages, *negatives, *pairs;
};

static struct setting make_pairs(struct scratch *scratch, int64_t negatives, qn_pair_params params)
{
    struct setting s = {make(scratch, COUNT, &query_mark), make(scratch, COUNT, &passage_mark),
                        negatives ? make(scratch, negatives, &negative_mark) : NULL, NULL};
    params.log = scratch->log;
    params.queries = s.queries;
    params.passages = s.passages;
    params.negatives = s.negatives;
    if (qn_dataset_pair(&s.pairs, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return s;
}

static void end(struct setting *s)
{
    qn_dataset_close(&s->pairs);
    qn_dataset_close(&s->negatives);
    qn_dataset_close(&s->passages);
    qn_dataset_close(&s->queries);
}

static qn_loader *open_loader(struct scratch *scratch, const qn_dataset *dataset, int64_t position,
                              bool sequential)
{
    const qn_loader_params params = {.log = scratch->log,
                                     .seed = 6,
                                     .position = position,
                                     .max_samples = MOST_DRAWN,
                                     .sequential = sequential};
    qn_loader *loader = NULL;
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    return loader;
}

static const int32_t *numbers_of(const qn_batch *batch, const char *name)
{
    const qn_column *column = qn_batch_column(batch, name);
    assert_non_null(column);
    return column->data;
}

static void is_row(const int32_t *row, int32_t mark, int64_t sample, int64_t epoch)
{
    assert_int_equal(row[0], mark + sample);
    assert_int_equal(row[1], epoch);
    assert_int_equal(row[2], 6);
}

/* Whatever the order, a row of `hard` negatives each is of one number; gives the batch's ids. */
static const int32_t *check_batch(const qn_batch *batch, int64_t hard, int64_t epoch)
{
    const int32_t *ids = numbers_of(batch, "ids");
    const int32_t *queries = numbers_of(batch, "query.rows"),
                  *passages = numbers_of(batch, "passage.rows");
    const uint8_t *labels = qn_batch_column(batch, "query.labels")->data,
                  *others = qn_batch_column(batch, "passage.labels")->data;
    for (int64_t i = 0; i < batch->samples; i++) {
        const int32_t *group = passages + i * (1 + hard) * WIDTH;
        is_row(queries + i * WIDTH, query_mark, ids[i], epoch);
        is_row(group, passage_mark, ids[i], epoch);
        assert_int_equal(labels[i], (uint8_t)ids[i]);
        assert_int_equal(others[i * (1 + hard)], (uint8_t)ids[i]);
        for (int64_t j = 0; j < hard; j++) {
            is_row(group + (1 + j) * WIDTH, negative_mark, ids[i] * hard + j, epoch);
            assert_int_equal(others[i * (1 + hard) + 1 + j], (uint8_t)(ids[i] * hard + j));
        }
    }
    return ids;
}

static void pairs_stay_together(void **state)
{
    for (int64_t hard = 0; hard <= HARD; hard++) {
        struct setting s = make_pairs(*state, hard * COUNT, (qn_pair_params){0});
        for (int sequential = 0; sequential < 2; sequential++) {
            qn_loader *loader = open_loader(*state, s.pairs, 0, sequential);
            qn_batch batch;
            int times[COUNT] = {0}, in_place = 0;
            for (int64_t at = 0; at < 2 * COUNT; at += 50) {
                assert_int_equal(qn_loader_next(loader, 50, &batch), QN_OK);
                const int32_t *ids = check_batch(&batch, hard, at / COUNT);
                for (int64_t i = 0; i < 50; i++) {
                    times[ids[i]]++;
                    in_place += ids[i] == (at + i) % COUNT;
                }
            }
            for (int i = 0; i < COUNT; i++)
                assert_int_equal(times[i], 2);
            assert_true(sequential ? in_place == 2 * COUNT : in_place < COUNT / 4);
            qn_loader_close(&loader);
        }
        end(&s);
    }
}

/* Any range of samples, whatever came before it. */
static void ranges_are_those_of_the_whole(void **state)
{
    struct setting s = make_pairs(*state, HARD * COUNT, (qn_pair_params){0});
    static const int64_t firsts[] = {0, 1, 17, 149, 150, 170, 31};
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        qn_loader *loader = open_loader(*state, s.pairs, firsts[f], true);
        qn_batch batch;
        for (int64_t count = 1, at = firsts[f]; count <= 37; at += count, count *= 6) {
            assert_int_equal(qn_loader_next(loader, count, &batch), QN_OK);
            const int32_t *ids = numbers_of(&batch, "ids");
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(ids[i], (at + i) % COUNT);
        }
        qn_loader_close(&loader);
    }
    end(&s);
}

static void parts_keep_the_ids(void **state)
{
    struct scratch *scratch = *state;
    struct setting s = make_pairs(scratch, HARD * COUNT, (qn_pair_params){0});
    bool seen[COUNT] = {false};
    for (int split = 0; split < 2; split++) {
        const qn_part_params params = {scratch->log, s.pairs, 0.3, 4,
                                       split ? QN_SPLIT_TEST : QN_SPLIT_TRAIN};
        qn_dataset *part = NULL;
        qn_batch batch;
        assert_int_equal(qn_dataset_part(&part, &params), QN_OK);
        qn_loader *loader = open_loader(scratch, part, 0, false);
        for (int64_t left = qn_dataset_describe(part)->count; left; left -= batch.samples) {
            assert_int_equal(qn_loader_next(loader, left < 35 ? left : 35, &batch), QN_OK);
            const int32_t *ids = check_batch(&batch, HARD, 0);
            for (int64_t i = 0; i < batch.samples; i++) {
                assert_false(seen[ids[i]]);
                seen[ids[i]] = true;
            }
        }
        qn_loader_close(&loader);
        qn_dataset_close(&part);
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(seen[i]);
    end(&s);
}

/* Samples in any order, more than are read at once. */
static void samples_are_gathered_by_their_numbers(void **state)
{
    struct scratch *scratch = *state;
    struct setting s = make_pairs(scratch, HARD * COUNT, (qn_pair_params){0});
    int32_t samples[COUNT], ids[COUNT], rows[COUNT][1 + HARD][WIDTH];
    for (int32_t i = 0; i < COUNT; i++)
        samples[i] = (i * 7 + 3) % COUNT;
    assert_int_equal(qn_dataset_gather(s.pairs, "ids", samples, COUNT, ids), QN_OK);
    assert_memory_equal(ids, samples, sizeof ids);
    assert_int_equal(qn_dataset_gather(s.pairs, "passage.rows", samples, COUNT, rows), QN_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        assert_int_equal(rows[i][0][0], passage_mark + samples[i]);
        assert_int_equal(rows[i][HARD][0], negative_mark + samples[i] * HARD + HARD - 1);
        assert_true(rows[i][0][1] == 0 && rows[i][0][2] == 0);
    }
    samples[COUNT - 1] = COUNT;
    assert_int_equal(qn_dataset_gather(s.pairs, "ids", samples, COUNT, ids), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "no sample 150 of 150"));
    samples[0] = -1;
    assert_int_equal(qn_dataset_gather(s.pairs, "ids", samples, 1, ids), QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_gather(s.pairs, "rows", samples, 1, rows), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "no column 'rows'"));
    end(&s);
}

static void columns_have_both_names(void **state)
{
    struct setting s = make_pairs(*state, 0, (qn_pair_params){0});
    const qn_dataset_facts *facts = qn_dataset_describe(s.pairs);
    static const char *const names[] = {"query.labels", "query.rows", "passage.labels",
                                        "passage.rows", "ids"};
    assert_int_equal(facts->count, COUNT);
    assert_int_equal(facts->n_columns, 5);
    for (int c = 0; c < 5; c++)
        assert_string_equal(facts->columns[c].name, names[c]);
    assert_int_equal(facts->columns[2].classes, 2);
    assert_string_equal(facts->columns[2].class_names[1], "high");
    assert_int_equal(facts->columns[3].shape.rank, 1);
    assert_int_equal(facts->columns[4].dtype, QN_I32);
    assert_int_equal(facts->columns[4].shape.rank, 0);
    end(&s);
    s = make_pairs(*state, 2 * COUNT, (qn_pair_params){0});
    const qn_column *passages = qn_dataset_column(s.pairs, "passage.rows");
    const qn_column *labels = qn_dataset_column(s.pairs, "passage.labels");
    assert_true(passages->shape.rank == 2 && passages->shape.dim[0] == 3);
    assert_int_equal(passages->shape.dim[1], WIDTH);
    assert_true(labels->shape.rank == 1 && labels->shape.dim[0] == 3);
    assert_int_equal(qn_dataset_column(s.pairs, "query.rows")->shape.rank, 1);
    end(&s);
}

/* Columns that nobody asks for are not there, and the others' rows are the same. */
static void columns_are_left_out(void **state)
{
    static const char *const wanted[][2] = {
        {"passage.rows", "query.rows"}, {"ids", "passage.rows"}, {"query.labels", "query.labels"}};
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
        const qn_pair_params some = {.n_columns = 2, .columns = wanted[w]};
        struct setting s = make_pairs(*state, HARD * COUNT, some);
        qn_loader *loader = open_loader(*state, s.pairs, 20, true);
        qn_batch batch;
        assert_int_equal(qn_dataset_describe(s.pairs)->n_columns, w < 2 ? 2 : 1);
        assert_int_equal(qn_loader_next(loader, 40, &batch), QN_OK);
        for (int64_t i = 0; i < 40; i++)
            if (w == 2) {
                assert_int_equal(((const uint8_t *)batch.columns[0].data)[i], 20 + i);
            } else {
                const int32_t *group = numbers_of(&batch, "passage.rows") + i * (1 + HARD) * WIDTH;
                is_row(group, passage_mark, 20 + i, 0);
                is_row(group + HARD * WIDTH, negative_mark, (20 + i) * HARD + HARD - 1, 0);
            }
        qn_loader_close(&loader);
        end(&s);
    }
}

/* Pairs of pairs and of parts, where each reads the next with memory of its own. */
static void pairs_may_be_of_pairs(void **state)
{
    struct scratch *scratch = *state;
    static const char *const some[] = {"query.rows", "passage.rows"}, *const fewer[] = {
                                                                          "query.query.rows",
                                                                          "passage.passage.rows"};
    struct setting s = make_pairs(scratch, 0, (qn_pair_params){.n_columns = 2, .columns = some});
    const qn_pair_params params = {.log = scratch->log,
                                   .queries = s.pairs,
                                   .passages = s.pairs,
                                   .n_columns = 2,
                                   .columns = fewer};
    qn_dataset *twice = NULL;
    qn_batch batch;
    assert_int_equal(qn_dataset_pair(&twice, &params), QN_OK);
    qn_loader *loader = open_loader(scratch, twice, 0, true);
    assert_int_equal(qn_loader_next(loader, 64, &batch), QN_OK);
    for (int64_t i = 0; i < 64; i++) {
        is_row(numbers_of(&batch, fewer[0]) + i * WIDTH, query_mark, i, 0);
        is_row(numbers_of(&batch, fewer[1]) + i * WIDTH, passage_mark, i, 0);
    }
    qn_loader_close(&loader);
    qn_dataset_close(&twice);
    end(&s);
}

static void checksums_tell_apart(void **state)
{
    struct scratch *scratch = *state;
    struct setting s = make_pairs(scratch, 0, (qn_pair_params){0}), same = s;
    struct setting hard = make_pairs(scratch, COUNT, (qn_pair_params){0}),
                   harder = make_pairs(scratch, 2 * COUNT, (qn_pair_params){0});
    const qn_pair_params params = {.queries = s.queries, .passages = s.passages};
    assert_int_equal(qn_dataset_pair(&same.pairs, &params), QN_OK);
    const uint32_t sum = qn_dataset_checksum(s.pairs);
    assert_int_equal(qn_dataset_checksum(same.pairs), sum);
    assert_true(qn_dataset_checksum(hard.pairs) != sum);
    assert_true(qn_dataset_checksum(hard.pairs) != qn_dataset_checksum(harder.pairs));
    assert_null(qn_dataset_sample_name(s.pairs, 0));
    qn_dataset_close(&same.pairs);
    end(&s);
    end(&hard);
    end(&harder);
}

static void refuse(struct scratch *scratch, qn_pair_params params, const char *one,
                   const char *other)
{
    qn_dataset *made = NULL;
    params.log = scratch->log;
    assert_int_equal(qn_dataset_pair(&made, &params), QN_ERR_ARGUMENT);
    assert_null(made);
    scratch_said(scratch, one, other);
}

static void what_does_not_match_is_refused(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *ten = make(scratch, 10, &query_mark), *nine = make(scratch, 9, &query_mark),
               *many = make(scratch, 25, &query_mark), *few = make(scratch, 5, &query_mark);
    static const char *const wrong[] = {"ids", "query.images"};
    refuse(scratch, (qn_pair_params){.queries = ten, .passages = nine}, "10 queries", "9 passages");
    refuse(scratch, (qn_pair_params){.queries = ten, .passages = ten, .negatives = many},
           "25 negatives", "10 pairs");
    refuse(scratch, (qn_pair_params){.queries = ten, .passages = ten, .negatives = few},
           "5 negatives", "10 pairs");
    refuse(scratch,
           (qn_pair_params){.queries = ten, .passages = ten, .n_columns = 2, .columns = wrong},
           "query.images", "no column");
    refuse(scratch, (qn_pair_params){.queries = ten}, "params->passages", "");
    refuse(scratch, (qn_pair_params){.passages = ten}, "params->queries", "");
    refuse(scratch, (qn_pair_params){.queries = ten, .passages = ten, .columns = wrong},
           "n_columns", "");
    refuse(scratch, (qn_pair_params){.queries = ten, .passages = ten, .n_columns = 1}, "n_columns",
           "");
    assert_int_equal(qn_dataset_pair(NULL, &(qn_pair_params){.queries = ten, .passages = ten}),
                     QN_ERR_ARGUMENT);
    assert_int_equal(qn_dataset_pair(&few, NULL), QN_ERR_ARGUMENT);
    qn_dataset_close(&few);
    qn_dataset_close(&many);
    qn_dataset_close(&nine);
    qn_dataset_close(&ten);
}

/* One sample of zeroed rows with this column. */
static qn_dataset *make_array(struct scratch *scratch, const char *name, qn_dtype dtype,
                              qn_shape shape)
{
    static const float zeros[64];
    const qn_column column = {.name = name, .dtype = dtype, .shape = shape, .data = zeros};
    const qn_array_params params = {
        .log = scratch->log, .count = 1, .n_columns = 1, .columns = &column};
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_from_arrays(&dataset, &params), QN_OK);
    return dataset;
}

static void negatives_are_like_passages(void **state)
{
    struct scratch *scratch = *state;
    static const char *const ids[] = {"ids", "query.x"};
    qn_dataset *x = make_array(scratch, "x", QN_F32, (qn_shape){1, {3}});
    qn_dataset *wrong[] = {make_array(scratch, "y", QN_F32, (qn_shape){1, {3}}),
                           make_array(scratch, "x", QN_I32, (qn_shape){1, {3}}),
                           make_array(scratch, "x", QN_F32, (qn_shape){1, {4}})};
    qn_dataset *deep = make_array(scratch, "x", QN_U8, (qn_shape){6, {1, 1, 2, 1, 1, 1}}),
               *pairs = NULL;
    refuse(scratch, (qn_pair_params){.queries = x, .passages = x, .negatives = wrong[0]},
           "x: the passages have this column", "the negatives have not");
    refuse(scratch, (qn_pair_params){.queries = x, .passages = x, .negatives = wrong[1]},
           "x: the passages have rows of f32 (3)", "the negatives of i32 (3)");
    refuse(scratch, (qn_pair_params){.queries = x, .passages = x, .negatives = wrong[2]},
           "x: the passages have rows of f32 (3)", "the negatives of f32 (4)");
    refuse(scratch, (qn_pair_params){.queries = x, .passages = deep, .negatives = deep},
           "passage.x: shape", "");
    const qn_pair_params unasked = {
        .queries = x, .passages = x, .negatives = wrong[0], .n_columns = 2, .columns = ids};
    assert_int_equal(qn_dataset_pair(&pairs, &unasked), QN_OK);
    qn_dataset_close(&pairs);
    for (int i = 0; i < 3; i++)
        qn_dataset_close(&wrong[i]);
    qn_dataset_close(&deep);
    qn_dataset_close(&x);
}

/* A row of a side that cannot be read says so, and the loader gives its status. */
static qn_status fail_late(void *user, const qn_draw *draws, int64_t count, void *const *rows)
{
    return draws[0].sample >= 12 ? QN_ERR_IO : make_rows(user, draws, count, rows);
}

static void failures_come_through(void **state)
{
    struct scratch *scratch = *state;
    const qn_function_params params = {.log = scratch->log,
                                       .count = 20,
                                       .n_columns = 2,
                                       .columns = columns,
                                       .fn = fail_late,
                                       .user = &passage_mark};
    qn_dataset *good = make(scratch, 20, &query_mark), *bad = NULL;
    assert_int_equal(qn_dataset_from_function(&bad, &params), QN_OK);
    for (int which = 0; which < 3; which++) {
        const qn_pair_params pair = {.queries = which == 0 ? bad : good,
                                     .passages = which == 1 ? bad : good,
                                     .negatives = which == 2 ? bad : good};
        qn_dataset *pairs = NULL;
        qn_batch batch;
        assert_int_equal(qn_dataset_pair(&pairs, &pair), QN_OK);
        qn_loader *loader = open_loader(scratch, pairs, 0, true);
        assert_int_equal(qn_loader_next(loader, 12, &batch), QN_OK);
        assert_int_equal(qn_loader_next(loader, 8, &batch), QN_ERR_IO);
        scratch_said(scratch, "samples 12", "the function failed");
        assert_int_equal(qn_loader_position(loader), 12);
        qn_loader_close(&loader);
        qn_dataset_close(&pairs);
    }
    qn_dataset_close(&bad);
    qn_dataset_close(&good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(pairs_stay_together),
        WITH_SCRATCH(ranges_are_those_of_the_whole),
        WITH_SCRATCH(parts_keep_the_ids),
        WITH_SCRATCH(columns_have_both_names),
        WITH_SCRATCH(columns_are_left_out),
        WITH_SCRATCH(pairs_may_be_of_pairs),
        WITH_SCRATCH(checksums_tell_apart),
        WITH_SCRATCH(what_does_not_match_is_refused),
        WITH_SCRATCH(negatives_are_like_passages),
        WITH_SCRATCH(failures_come_through),
        WITH_SCRATCH(samples_are_gathered_by_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
