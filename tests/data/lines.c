/* SPDX-License-Identifier: MIT
 *
 * Two files of texts, a line each, as pairs: line i of one belongs to line i of the other.
 */
#include <quern/data.h>

#include "../io/scratch.h"

enum { LONG = 6, SHORT = 4, LINES = 700 };

/* A file of lines in the folder, whose path is the scratch's for this call. */
static qn_status open_lines(struct scratch *scratch, qn_dataset **dataset, const char *name,
                            const char *text, int64_t length)
{
    const qn_json_line_params params = {.log = scratch->log,
                                        .path = scratch_put(scratch, name, text, strlen(text)),
                                        .length = length,
                                        .plain = true};
    return qn_dataset_open_json_lines(dataset, &params);
}

/* Two files and their pairs. */
struct files {
    qn_dataset *first, *second, *pairs;
};

static qn_status open_files(struct scratch *scratch, struct files *files, const char *first,
                            const char *second)
{
    *files = (struct files){NULL, NULL, NULL};
    assert_int_equal(open_lines(scratch, &files->first, "first", first, LONG), QN_OK);
    assert_int_equal(open_lines(scratch, &files->second, "second", second, SHORT), QN_OK);
    const qn_pair_params params = {
        .log = scratch->log, .queries = files->first, .passages = files->second};
    return qn_dataset_pair(&files->pairs, &params);
}

static void close_files(struct files *files)
{
    qn_dataset_close(&files->pairs);
    qn_dataset_close(&files->second);
    qn_dataset_close(&files->first);
}

static const int32_t *numbers_of(const qn_batch *batch, const char *name)
{
    return qn_batch_column(batch, name)->data;
}

/* Bytes that are no UTF-8, carriage returns, a line that is too long, none at the end. */
static void lines_become_pairs(void **state)
{
    static const int32_t queries[][LONG] = {{'o', 'n', 'e'},
                                            {0xff, ' '},
                                            {'l', 'o', 'n', 'g', 'e', 'r'}},
                         long_is[] = {3, 2, 6};
    static const int32_t passages[][SHORT] = {{'u', 'n'}, {'d', 'e', 'u', 'x'}, {'{', '}'}},
                         short_is[] = {2, 4, 2};
    const qn_loader_params params = {.max_samples = 3, .sequential = true};
    struct files files;
    qn_loader *loader = NULL;
    qn_batch batch;
    assert_int_equal(open_files(*state, &files, "one\r\n\xff \nlonger than that\n", "un\ndeux\n{}"),
                     QN_OK);
    assert_int_equal(qn_dataset_column(files.pairs, "query.tokens")->classes, 256);
    assert_int_equal(qn_loader_open(&loader, files.pairs, &params), QN_OK);
    assert_int_equal(qn_loader_next(loader, 3, &batch), QN_OK);
    assert_memory_equal(numbers_of(&batch, "query.tokens"), queries, sizeof queries);
    assert_memory_equal(numbers_of(&batch, "query.lengths"), long_is, sizeof long_is);
    assert_memory_equal(numbers_of(&batch, "passage.tokens"), passages, sizeof passages);
    assert_memory_equal(numbers_of(&batch, "passage.lengths"), short_is, sizeof short_is);
    qn_loader_close(&loader);
    close_files(&files);
}

/* Lines "a17" and "17b", in any order and in parts of the pairs. */
static void lines_stay_together(void **state)
{
    struct scratch *scratch = *state;
    static char first[LINES * 8], second[LINES * 8];
    struct files files;
    bool seen[LINES] = {false};
    for (int i = 0, a = 0, b = 0; i < LINES; i++) {
        a += sprintf(first + a, "a%d\n", i);
        b += sprintf(second + b, "%db\n", i);
    }
    assert_int_equal(open_files(scratch, &files, first, second), QN_OK);
    for (int split = 0; split < 2; split++) {
        const qn_part_params halves = {scratch->log, files.pairs, 0.4, 1,
                                       split ? QN_SPLIT_TEST : QN_SPLIT_TRAIN};
        const qn_loader_params params = {.seed = 2, .max_samples = LINES};
        qn_dataset *part = NULL;
        qn_loader *loader = NULL;
        qn_batch batch;
        assert_int_equal(qn_dataset_part(&part, &halves), QN_OK);
        assert_int_equal(qn_loader_open(&loader, part, &params), QN_OK);
        assert_int_equal(qn_loader_next(loader, qn_dataset_describe(part)->count, &batch), QN_OK);
        for (int64_t i = 0; i < batch.samples; i++) {
            const int32_t *query = numbers_of(&batch, "query.tokens") + i * LONG,
                          *passage = numbers_of(&batch, "passage.tokens") + i * SHORT;
            const int32_t id = numbers_of(&batch, "ids")[i];
            char is[LONG + 1] = "", text[LONG + 1];
            for (int k = 0; k < LONG; k++)
                is[k] = (char)query[k];
            sprintf(text, "a%d", id);
            assert_string_equal(is, text);
            for (int k = 0; k < SHORT; k++)
                assert_int_equal(passage[k], k < (int)strlen(text) - 1    ? text[k + 1]
                                             : k == (int)strlen(text) - 1 ? 'b'
                                                                          : 0);
            assert_false(seen[id]);
            seen[id] = true;
        }
        qn_loader_close(&loader);
        qn_dataset_close(&part);
    }
    for (int i = 0; i < LINES; i++)
        assert_true(seen[i]);
    close_files(&files);
}

static void what_does_not_match_is_refused(void **state)
{
    struct scratch *scratch = *state;
    struct files files;
    assert_int_equal(open_files(scratch, &files, "a\nb\nc\n", "a\nb\n"), QN_ERR_ARGUMENT);
    scratch_said(scratch, "3 queries", "2 passages");
    close_files(&files);
    assert_int_equal(open_lines(scratch, &files.first, "first", "a\n\nc\n", LONG), QN_ERR_FORMAT);
    scratch_said(scratch, "/first: line 2: text: is empty", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(lines_become_pairs),
        WITH_SCRATCH(lines_stay_together),
        WITH_SCRATCH(what_does_not_match_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
