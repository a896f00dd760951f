/* SPDX-License-Identifier: MIT
 *
 * Documents of a file of tokens as samples of different length: what is in them, beside a reading
 * of the file token by token, and the order in which they come.
 */
#include <quern/data.h>

#include "../io/scratch.h"
#include "data/order.h"

enum { TOKENS = 40000, CLASSES = 500, END = 7, LONGEST = 12, SAMPLES = TOKENS, SEED = 3 };

static const int64_t lengths[] = {3, 5, LONGEST};

static uint16_t tokens[TOKENS];

/* Documents of 0 to 30 tokens; the last has no end. */
static void make_tokens(void)
{
    for (int i = 0; i < TOKENS; i++) {
        const int number = (int)((int64_t)i * 7919 % 4967);
        tokens[i] = number % 13 == 0 || number % 17 == 0 ? END : (uint16_t)(8 + number % 490);
    }
    tokens[TOKENS - 1] = tokens[TOKENS - 2] = 9;
}

static qn_token_params in_file(struct scratch *scratch)
{
    make_tokens();
    scratch_put(scratch, "t", tokens, sizeof tokens);
    return (qn_token_params){.log = scratch->log,
                             .path = scratch->path,
                             .type = QN_TOKEN_U16,
                             .length = LONGEST,
                             .tokens = CLASSES,
                             .separate = true,
                             .separator = END,
                             .n_lengths = 3,
                             .lengths = lengths};
}

static qn_dataset *open_dataset(const qn_token_params *params)
{
    qn_dataset *dataset = NULL;
    assert_int_equal(qn_dataset_open_tokens(&dataset, params), QN_OK);
    return dataset;
}

/* --- what is expected --- */

/* A sample: its tokens and labels, those behind them padding. */
struct sample {
    int32_t tokens[LONGEST], labels[LONGEST];
    int32_t count;
};

static void begin_sample(struct sample *sample)
{
    for (int i = 0; i < LONGEST; i++) {
        sample->tokens[i] = END;
        sample->labels[i] = QN_IGNORED_LABEL;
    }
    sample->count = 0;
}

/* Token by token: each that is no end goes to the sample with the token behind it. */
static int64_t expect(struct sample *samples, int64_t first, int64_t end)
{
    int64_t count = 0;
    begin_sample(samples);
    for (int64_t i = first; i + 1 < end; i++) {
        struct sample *sample = &samples[count];
        if (tokens[i] != END) {
            sample->tokens[sample->count] = tokens[i];
            sample->labels[sample->count++] = tokens[i + 1];
        }
        if (sample->count && (tokens[i] == END || sample->count == LONGEST))
            begin_sample(&samples[++count]);
    }
    return count + (samples[count].count > 0);
}

static int bucket_of(const struct sample *sample)
{
    return sample->count <= lengths[0] ? 0 : sample->count <= lengths[1] ? 1 : 2;
}

/* --- what is there --- */

static const int32_t *row(const qn_batch *batch, const char *name, int64_t i)
{
    const qn_column *column = qn_batch_column(batch, name);
    assert_non_null(column);
    return (const int32_t *)column->data + i * (qn_column_bytes(column) / 4);
}

static void check_sample(const qn_batch *batch, int64_t i, const struct sample *want)
{
    static const struct {
        const char *tokens, *labels;
        int64_t length;
    } columns[] = {
        {"tokens.3", "labels.3", 3}, {"tokens.5", "labels.5", 5}, {"tokens", "labels", LONGEST}};
    for (int c = 0; c < 3; c++) {
        const size_t bytes = (size_t)columns[c].length * sizeof(int32_t);
        assert_memory_equal(row(batch, columns[c].tokens, i), want->tokens, bytes);
        assert_memory_equal(row(batch, columns[c].labels, i), want->labels, bytes);
    }
    assert_int_equal(*row(batch, "lengths", i), want->count);
    assert_int_equal(*row(batch, "bucket", i), bucket_of(want));
}

static void check_all(struct scratch *scratch, const qn_dataset *dataset,
                      const struct sample *samples, int64_t count)
{
    const qn_loader_params params = {.log = scratch->log, .max_samples = 1, .sequential = true};
    qn_loader *loader = NULL;
    qn_batch batch;
    assert_int_equal(qn_dataset_describe(dataset)->count, count);
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(qn_loader_next(loader, 1, &batch), QN_OK);
        check_sample(&batch, 0, &samples[i]);
    }
    qn_loader_close(&loader);
}

/* --- the tests --- */

static struct sample samples[SAMPLES];

static void documents_are_samples(void **state)
{
    struct scratch *scratch = *state;
    const qn_token_params params = in_file(scratch);
    qn_dataset *dataset = open_dataset(&params);
    const int64_t count = expect(samples, 0, TOKENS);
    int64_t buckets[3] = {0};
    for (int64_t i = 0; i < count; i++)
        buckets[bucket_of(&samples[i])]++;
    assert_true(buckets[0] > 100 && buckets[1] > 100 && buckets[2] > 100);
    check_all(scratch, dataset, samples, count);
    qn_dataset_close(&dataset);
}

/* A document across their border is in both, its label at the border in none. */
static void splits_share_no_token(void **state)
{
    struct scratch *scratch = *state;
    qn_token_params params = in_file(scratch);
    for (int held = 4000; held < 4040; held++) {
        params.held_out = (held + 0.5) / TOKENS;
        for (int split = QN_SPLIT_TRAIN; split <= QN_SPLIT_TEST; split++) {
            const bool test = split == QN_SPLIT_TEST;
            params.split = (qn_split)split;
            qn_dataset *dataset = open_dataset(&params);
            const int64_t count =
                expect(samples, test ? TOKENS - held : 0, test ? TOKENS : TOKENS - held);
            check_all(scratch, dataset, samples, count);
            qn_dataset_close(&dataset);
        }
    }
}

static int64_t sample_at(struct qn_order *order, int64_t position, int64_t count, int bucket,
                         int64_t *from)
{
    for (; *from < position + count; ++*from)
        if (bucket_of(&samples[qn_order_at(order, *from)]) == bucket)
            return qn_order_at(order, (*from)++);
    return -1;
}

/* A cycle has the samples that it would have without buckets, the shortest first, else in their
 * order, across epochs too; and a graph is chosen that holds all of a micro-step. */
static void cycles_are_in_order_of_length(void **state)
{
    enum { CYCLE = 23 };
    struct scratch *scratch = *state;
    const qn_token_params tokens_of = in_file(scratch);
    qn_dataset *dataset = open_dataset(&tokens_of);
    const int64_t all = expect(samples, 0, TOKENS);
    qn_loader *loader = NULL;
    qn_batch batch;
    struct qn_order order;
    assert_int_equal(qn_order_make(&order, SEED, all, false, NULL), QN_OK);
    const qn_loader_params params = {
        .log = scratch->log, .seed = SEED, .position = all - CYCLE - 5, .max_samples = CYCLE};
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    for (int cycle = 0; cycle < 4; cycle++) {
        int64_t i = 0;
        assert_int_equal(qn_loader_next(loader, CYCLE, &batch), QN_OK);
        for (int bucket = 0; bucket < 3; bucket++) {
            int64_t from = batch.position, sample;
            while ((sample = sample_at(&order, batch.position, CYCLE, bucket, &from)) >= 0) {
                check_sample(&batch, i++, &samples[sample]);
                assert_int_equal(qn_batch_choose(&batch, i - 1, 1), bucket);
                assert_int_equal(qn_batch_choose(&batch, 0, i), bucket);
            }
        }
        assert_int_equal(i, CYCLE);
        assert_int_equal(qn_batch_choose(&batch, CYCLE - 1, 2), -1);
    }
    qn_loader_close(&loader);
    qn_order_free(&order);
    qn_dataset_close(&dataset);
}

/* Nothing is asked for in padding, and the last token of a split is a token as all others. */
static void masks_leave_padding_alone(void **state)
{
    struct scratch *scratch = *state;
    qn_token_params params = in_file(scratch);
    params.mlm_probability = 1;
    params.mask_token = 499;
    qn_dataset *dataset = open_dataset(&params);
    const int64_t count = qn_dataset_describe(dataset)->count;
    const qn_loader_params whole = {.log = scratch->log, .max_samples = count, .sequential = true};
    int64_t asked = 0, words = 0;
    qn_loader *loader = NULL;
    qn_batch batch;
    assert_int_equal(qn_loader_open(&loader, dataset, &whole), QN_OK);
    assert_int_equal(qn_loader_next(loader, count, &batch), QN_OK);
    for (int64_t i = 0; i < count; i++)
        for (int32_t k = 0; k < LONGEST; k++) {
            const bool counts = row(&batch, "labels", i)[k] != QN_IGNORED_LABEL;
            assert_int_equal(counts, k < *row(&batch, "lengths", i));
            assert_true(counts || row(&batch, "tokens", i)[k] == END);
            asked += counts;
        }
    for (int64_t i = 0; i < TOKENS; i++)
        words += tokens[i] != END;
    assert_int_equal(asked, words);
    qn_loader_close(&loader);
    qn_dataset_close(&dataset);
}

static void other_lengths_are_other_data(void **state)
{
    struct scratch *scratch = *state;
    qn_token_params params = in_file(scratch);
    static const int64_t others[] = {4, 5, LONGEST};
    qn_dataset *one = open_dataset(&params);
    params.lengths = others;
    qn_dataset *two = open_dataset(&params);
    assert_int_not_equal(qn_dataset_checksum(one), qn_dataset_checksum(two));
    qn_dataset_close(&one);
    qn_dataset_close(&two);
}

/* In a part of the documents, too, samples of a cycle come in the order of their buckets. */
static void parts_have_their_buckets(void **state)
{
    struct scratch *scratch = *state;
    const qn_token_params tokens_of = in_file(scratch);
    qn_dataset *whole = open_dataset(&tokens_of), *part = NULL;
    const qn_part_params half = {scratch->log, whole, 0.5, SEED, QN_SPLIT_TRAIN};
    assert_int_equal(qn_dataset_part(&part, &half), QN_OK);
    const qn_loader_params params = {.log = scratch->log, .seed = SEED, .max_samples = 40};
    qn_loader *loader = NULL;
    qn_batch batch;
    assert_int_equal(qn_loader_open(&loader, part, &params), QN_OK);
    assert_int_equal(qn_loader_next(loader, 40, &batch), QN_OK);
    for (int64_t i = 1; i < 40; i++)
        assert_true(*row(&batch, "bucket", i) >= *row(&batch, "bucket", i - 1));
    assert_true(*row(&batch, "bucket", 0) == 0 && *row(&batch, "bucket", 39) == 2);
    qn_loader_close(&loader);
    qn_dataset_close(&part);
    qn_dataset_close(&whole);
}

static void bad_lengths_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const int64_t falling[] = {5, 5, LONGEST}, none[] = {0, 5, LONGEST},
                         short_of[] = {3, 5, LONGEST - 1};
    qn_token_params cases[6];
    for (int i = 0; i < 6; i++)
        cases[i] = in_file(scratch);
    cases[0].lengths = falling;
    cases[1].lengths = none;
    cases[2].lengths = short_of;
    cases[3].stride = 4;
    cases[4].separate = false;
    cases[5].n_lengths = QN_MAX_LENGTHS + 1;
    for (int i = 0; i < 6; i++) {
        qn_dataset *dataset = NULL;
        assert_int_equal(qn_dataset_open_tokens(&dataset, &cases[i]), QN_ERR_ARGUMENT);
        scratch_said(scratch, "not true: ", "params->");
    }
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = END;
    scratch_put(scratch, "t", tokens, sizeof tokens);
    qn_token_params empty = cases[0];
    qn_dataset *dataset = NULL;
    empty.lengths = lengths;
    assert_int_equal(qn_dataset_open_tokens(&dataset, &empty), QN_ERR_FORMAT);
    scratch_said(scratch, "/t: no document", "has a token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(documents_are_samples),         WITH_SCRATCH(splits_share_no_token),
        WITH_SCRATCH(cycles_are_in_order_of_length), WITH_SCRATCH(masks_leave_padding_alone),
        WITH_SCRATCH(other_lengths_are_other_data),  WITH_SCRATCH(bad_lengths_are_refused),
        WITH_SCRATCH(parts_have_their_buckets),
    };
    return cmocka_run_group_tests_name("lengths", tests, NULL, NULL);
}
