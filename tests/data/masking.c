/* SPDX-License-Identifier: MIT
 *
 * Masked language modelling: how many tokens are chosen and what becomes of them, and that nothing
 * but (seed, epoch, sample, position) changes a mask.
 */
#include <quern/data.h>

#include "../io/scratch.h"

#include <math.h>

enum {
    LENGTH = 64,
    SAMPLES = 500,
    TOKENS = LENGTH * SAMPLES,
    CLASSES = 300,
    MASK = 299,
    END_AT = 7
};
static const double PROBABILITY = 0.15;

/* Never MASK. */
static uint16_t token_at(int64_t i)
{
    return (uint16_t)((i * 7919 + i * i) % (CLASSES - 1));
}

static qn_token_params in_file(struct scratch *scratch)
{
    static uint16_t tokens[TOKENS];
    for (int64_t i = 0; i < TOKENS; i++)
        tokens[i] = token_at(i);
    scratch_put(scratch, "t", tokens, sizeof tokens);
    return (qn_token_params){.log = scratch->log,
                             .path = scratch->path,
                             .type = QN_TOKEN_U16,
                             .length = LENGTH,
                             .tokens = CLASSES,
                             .mlm_probability = PROBABILITY,
                             .mask_token = MASK};
}

/* Tokens and labels of samples, one after another. */
struct rows {
    int32_t tokens[TOKENS], labels[TOKENS];
};

static void add_batch(struct rows *rows, int64_t at, const qn_batch *batch)
{
    const size_t bytes = (size_t)batch->samples * LENGTH * sizeof *rows->tokens;
    memcpy(rows->tokens + at * LENGTH, qn_batch_column(batch, "tokens")->data, bytes);
    memcpy(rows->labels + at * LENGTH, qn_batch_column(batch, "labels")->data, bytes);
}

/* The epoch of that number in the order of the file, in cycles of `cycle` samples. */
static void read_epoch(struct rows *rows, const qn_dataset *dataset, uint64_t seed, int64_t epoch,
                       int64_t cycle)
{
    qn_loader *loader = NULL;
    qn_batch batch;
    const qn_loader_params params = {
        .seed = seed, .position = epoch * SAMPLES, .max_samples = cycle, .sequential = true};
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    for (int64_t at = 0, n; at < SAMPLES; at += n) {
        n = SAMPLES - at < cycle ? SAMPLES - at : cycle;
        assert_int_equal(qn_loader_next(loader, n, &batch), QN_OK);
        add_batch(rows, at, &batch);
    }
    qn_loader_close(&loader);
}

static qn_dataset *open_tokens(struct scratch *scratch, const qn_token_params *params)
{
    qn_dataset *dataset = NULL;
    if (qn_dataset_open_tokens(&dataset, params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return dataset;
}

/* Within five standard deviations of the number that is expected of `of` draws. */
static void check_share(const char *what, int64_t count, int64_t of, double share)
{
    const double expected = share * (double)of, deviation = sqrt(expected * (1 - share));
    print_message("  %s: %lld of %lld, expected %.0f +- %.0f\n", what, (long long)count,
                  (long long)of, expected, deviation);
    assert_true(fabs((double)count - expected) < 5 * deviation);
}

static void tokens_are_chosen_and_replaced(void **state)
{
    static struct rows rows;
    qn_token_params params = in_file(*state);
    qn_dataset *dataset = open_tokens(*state, &params);
    int64_t chosen = 0, masked = 0, kept = 0, seen[CLASSES] = {0};
    assert_int_equal(qn_dataset_describe(dataset)->count, SAMPLES);
    read_epoch(&rows, dataset, 3, 0, 50);
    for (int64_t i = 0; i < TOKENS; i++) {
        const int32_t token = token_at(i);
        if (rows.labels[i] == QN_IGNORED_LABEL) {
            assert_int_equal(rows.tokens[i], token);
            continue;
        }
        assert_int_equal(rows.labels[i], token);
        chosen++;
        masked += rows.tokens[i] == MASK;
        kept += rows.tokens[i] == token;
        seen[rows.tokens[i]] += rows.tokens[i] != MASK && rows.tokens[i] != token;
    }
    check_share("chosen", chosen, TOKENS, PROBABILITY);
    check_share("masked", masked, chosen, 0.8);
    check_share("kept", kept, chosen, 0.1);
    int64_t low = 0, all = 0;
    for (int64_t t = 0; t < CLASSES; t++) {
        low += t < CLASSES / 2 ? seen[t] : 0;
        all += seen[t];
    }
    check_share("of the random ones in the lower half", low, all, 0.5);
    qn_dataset_close(&dataset);
}

/* Whether two epochs have the same masks; gives the tokens that are chosen in both. */
static bool same(const struct rows *a, const struct rows *b, int64_t *both)
{
    *both = 0;
    for (int64_t i = 0; i < TOKENS; i++)
        *both += a->labels[i] != QN_IGNORED_LABEL && b->labels[i] != QN_IGNORED_LABEL;
    return memcmp(a, b, sizeof *a) == 0;
}

static void masks_are_drawn_by_seed_and_epoch_alone(void **state)
{
    static struct rows first, other;
    static const struct {
        uint64_t seed;
        int64_t epoch, cycle;
        bool same;
    } cases[] = {{3, 0, 1, true},   {3, 0, 7, true},   {3, 0, SAMPLES, true},
                 {3, 1, 50, false}, {4, 0, 50, false}, {3, 0, 50, true}};
    qn_token_params params = in_file(*state);
    qn_dataset *dataset = open_tokens(*state, &params);
    int64_t both;
    read_epoch(&first, dataset, 3, 0, 50);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_epoch(&other, dataset, cases[i].seed, cases[i].epoch, cases[i].cycle);
        assert_int_equal(same(&first, &other, &both), cases[i].same);
        if (!cases[i].same)
            check_share("chosen twice", both, TOKENS, PROBABILITY * PROBABILITY);
    }
    qn_dataset_close(&dataset);
}

static void separators_are_never_asked_for(void **state)
{
    static struct rows rows;
    const int32_t end = token_at(END_AT);
    qn_token_params params = in_file(*state);
    params.separate = true;
    params.separator = end;
    params.mlm_probability = 1;
    qn_dataset *dataset = open_tokens(*state, &params);
    read_epoch(&rows, dataset, 3, 0, 50);
    for (int64_t i = 0; i < TOKENS; i++) {
        const int32_t token = token_at(i);
        assert_int_equal(rows.labels[i], token == end ? QN_IGNORED_LABEL : token);
        assert_true(token != end || rows.tokens[i] == end);
    }
    qn_dataset_close(&dataset);
}

/* A split of one sample needs no label behind it; masks are what samples become. */
static void what_is_masked_is_another_dataset(void **state)
{
    qn_token_params params = in_file(*state);
    qn_dataset *dataset = open_tokens(*state, &params);
    const uint32_t sum = qn_dataset_checksum(dataset);
    qn_dataset_close(&dataset);
    params.mask_token = MASK - 1;
    dataset = open_tokens(*state, &params);
    assert_true(qn_dataset_checksum(dataset) != sum);
    qn_dataset_close(&dataset);
    params.mlm_probability = 0;
    dataset = open_tokens(*state, &params);
    assert_true(qn_dataset_checksum(dataset) != sum);
    assert_int_equal(qn_dataset_describe(dataset)->count, SAMPLES - 1);
    qn_dataset_close(&dataset);
}

static void bad_settings_are_named(void **state)
{
    struct scratch *scratch = *state;
    qn_dataset *dataset = NULL;
    static const struct {
        double probability;
        int64_t mask, length;
        const char *text;
    } cases[] = {
        {0.15, CLASSES, LENGTH, "/t: data.mask_token: 300 is none of the 300 tokens"},
        {0.15, -1, LENGTH, "/t: data.mask_token: -1 is none of the 300 tokens"},
        {1.01, MASK, LENGTH, "params->mlm_probability"},
        {-0.1, MASK, LENGTH, "params->mlm_probability"},
        {0.15, MASK, TOKENS + 1, "/t: 32000 tokens, too few for a sample of 32001"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_token_params params = in_file(scratch);
        params.mlm_probability = cases[i].probability;
        params.mask_token = cases[i].mask;
        params.length = cases[i].length;
        assert_true(qn_dataset_open_tokens(&dataset, &params) != QN_OK);
        assert_null(dataset);
        scratch_said(scratch, cases[i].text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(tokens_are_chosen_and_replaced),
        WITH_SCRATCH(masks_are_drawn_by_seed_and_epoch_alone),
        WITH_SCRATCH(separators_are_never_asked_for),
        WITH_SCRATCH(what_is_masked_is_another_dataset),
        WITH_SCRATCH(bad_settings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
