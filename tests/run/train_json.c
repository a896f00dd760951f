/* SPDX-License-Identifier: MIT
 *
 * train.json of a checkpoint that somebody else wrote.
 */
#include "../io/scratch.h"
#include "run/checkpoint.h"

#include <inttypes.h>

/* The seed of the fuzz program with `from` replaced by `to`. */
static qn_status parse(struct scratch *scratch, const char *from, const char *to)
{
    struct qn_checkpoint checkpoint = {.log = scratch->log};
    char *seed, text[8192];
    size_t size;
    assert_int_equal(qn_file_read(TRAIN_SEED, sizeof text / 2, &seed, &size, NULL), QN_OK);
    const char *at = strstr(seed, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - seed), seed, to, at + strlen(from));
    free(seed);
    const qn_status status = qn_train_parse(&checkpoint, "train.json", text);
    qn_arena_free(&checkpoint.arena);
    return status;
}

static void takes_the_seed(void **state)
{
    struct scratch *scratch = *state;
    assert_int_equal(parse(scratch, "{", "{"), QN_OK);
    assert_int_equal(scratch->lines, 0);
}

static void refuses_what_is_out_of_range(void **state)
{
    static const struct {
        const char *from, *to, *key;
    } cases[] = {
        {"\"loss_scale\": 1", "\"loss_scale\": 0", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": -8", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": 1e300", "loss_scale"},
        {"\"loss_scale\": 1", "\"loss_scale\": 1e999", "loss_scale"},
        {"\"applied\": 1", "\"applied\": 4294967296", "update"},
        {"\"position\": 24", "\"position\": -1", "update"},
        {"3,\n", "-3,\n", "ring_rows"},
        {"\"position\": 24", "\"position\": 24, \"ring_limits\": 5", "ring_limits"},
        {"\"position\": 24", "\"position\": 24, \"ring_limits\": [4, -5]", "ring_limits"},
        {"\"optimizer\": \"", "\"optimizer\": \"no ", "optimizer"},
        {"\"tuning\": \"\",", "\"tuning\": \"\", \"norm_groups\": [],", "norm_groups"},
        {"\"members\": [", "\"members\": 1, \"more\": [", "members"},
        {"\"members\": [", "\"members\": [{}, ", "facts"},
        {"\"whole\": [24]", "\"whole\": [-1]", "whole"},
        {"\"whole\": [24]", "\"whole\": [24, 24]", "whole"},
    };
    struct scratch *scratch = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(scratch, cases[i].from, cases[i].to), QN_ERR_FORMAT);
        scratch_said(scratch, cases[i].key, ": is missing or not of its type");
    }
}

/* A list of numbers takes forty times its bytes. */
static void refuses_what_is_too_long(void **state)
{
    static const char *const files[] = {QN_WEIGHTS_FILE, QN_OPTIMIZER_FILE, QN_TRAIN_FILE};
    struct scratch *scratch = *state;
    qn_checkpoint *checkpoint;
    char sums[512] = "", *text = malloc(QN_TRAIN_BYTES + 1);
    assert_non_null(text);
    for (int i = 0; i <= QN_TRAIN_BYTES; i++)
        text[i] = i == 0 ? '[' : i == QN_TRAIN_BYTES ? ']' : i % 2 ? '0' : ',';
    for (int i = 0; i < 3; i++) {
        uint32_t crc;
        int64_t bytes;
        scratch_put(scratch, files[i], text, i == 2 ? QN_TRAIN_BYTES + 1 : 1);
        assert_int_equal(qn_file_crc32(scratch->path, &crc, &bytes, NULL), QN_OK);
        snprintf(sums + strlen(sums), sizeof sums - strlen(sums), "%08" PRIx32 " %" PRId64 " %s\n",
                 crc, bytes, files[i]);
    }
    free(text);
    scratch_put(scratch, QN_CHECKSUM_FILE, sums, strlen(sums));
    assert_int_equal(qn_checkpoint_open(&checkpoint, scratch->folder, &scratch->log),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "/train.json: ", "larger than 16777216 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(takes_the_seed),
        WITH_SCRATCH(refuses_what_is_out_of_range),
        WITH_SCRATCH(refuses_what_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
