/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/scratch.h"

#include <fcntl.h>

enum { COUNT = 1000, LENGTH = 16, HEADER = 1024 };

static uint8_t bytes[1 << 16];

static uint32_t token_at(int64_t i, uint32_t classes)
{
    return (uint32_t)(i * 7919 + i * i) % classes;
}

static size_t put_number(size_t at, uint32_t number, int width)
{
    for (int i = 0; i < width; i++)
        bytes[at + (size_t)i] = (uint8_t)(number >> (8 * i));
    return at + (size_t)width;
}

/* `count` tokens of a width behind the first `at` bytes; gives the end. */
static size_t put_tokens(size_t at, int64_t count, int width, uint32_t classes)
{
    for (int64_t i = 0; i < count; i++)
        at = put_number(at, token_at(i, classes), width);
    return at;
}

/* llm.c's header. */
static void put_header(uint32_t magic, uint32_t version, uint32_t count)
{
    memset(bytes, 0, HEADER);
    put_number(put_number(put_number(0, magic, 4), version, 4), count, 4);
}

static void put_file(struct scratch *scratch, size_t size)
{
    scratch_put(scratch, "t", bytes, size);
}

/* --- opening --- */

static qn_token_params in_file(struct scratch *scratch, qn_token_params params)
{
    params.log = scratch->log;
    params.path = scratch_path(scratch, "t");
    params.length = params.length ? params.length : LENGTH;
    return params;
}

static qn_dataset *open_tokens(struct scratch *scratch, qn_token_params params)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, params);
    if (qn_dataset_open_tokens(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return dataset;
}

static void refuse(struct scratch *scratch, qn_token_params params, qn_status status,
                   const char *one, const char *other)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, params);
    assert_int_equal(qn_dataset_open_tokens(&dataset, &params), status);
    assert_null(dataset);
    scratch_said(scratch, one, other);
}

static int64_t samples_of(const qn_dataset *dataset)
{
    return qn_dataset_describe(dataset)->count;
}

/* --- samples --- */

/* Reads the samples in their order; NULL at the first that cannot be read. */
struct walk {
    qn_loader *loader;
    qn_batch batch;
};

static struct walk begin(struct scratch *scratch, const qn_dataset *dataset, int64_t position)
{
    struct walk walk = {0};
    const qn_loader_params params = {
        .log = scratch->log, .position = position, .max_samples = 1, .sequential = true};
    assert_int_equal(qn_loader_open(&walk.loader, dataset, &params), QN_OK);
    return walk;
}

static qn_status next(struct walk *walk, const int32_t **tokens, const int32_t **labels)
{
    qn_status status = qn_loader_next(walk->loader, 1, &walk->batch);
    if (status != QN_OK)
        return status;
    *tokens = qn_batch_column(&walk->batch, "tokens")->data;
    *labels = qn_batch_column(&walk->batch, "labels")->data;
    return QN_OK;
}

/* Sample i begins with token first + i * stride of token_at, and each label is the next token. */
static void check_samples(struct scratch *scratch, const qn_dataset *dataset, int64_t count,
                          int64_t first, int64_t stride, uint32_t classes)
{
    struct walk walk = begin(scratch, dataset, 0);
    const int32_t *tokens = NULL, *labels = NULL;
    assert_int_equal(samples_of(dataset), count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(next(&walk, &tokens, &labels), QN_OK);
        for (int64_t k = 0; k < LENGTH; k++) {
            const int64_t at = first + i * stride + k;
            assert_int_equal(tokens[k], token_at(at, classes));
            assert_int_equal(labels[k], token_at(at + 1, classes));
        }
    }
    qn_loader_close(&walk.loader);
}

static void check_columns(const qn_dataset *dataset, int64_t classes)
{
    static const char *const names[] = {"tokens", "labels"};
    assert_int_equal(qn_dataset_describe(dataset)->n_columns, 2);
    for (int i = 0; i < 2; i++) {
        const qn_column *column = qn_dataset_column(dataset, names[i]);
        assert_int_equal(column->dtype, QN_I32);
        assert_int_equal(column->shape.rank, 1);
        assert_int_equal(column->shape.dim[0], LENGTH);
        assert_int_equal(column->classes, classes);
    }
}

static void all_types_are_read(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        qn_token_type type;
        int width;
        uint32_t magic, version; /* of a header */
        uint32_t classes;
        int64_t told; /* classes that the caller names */
    } cases[] = {
        {QN_TOKEN_U8, 1, 0, 0, 256, 0},
        {QN_TOKEN_U8, 1, 0, 0, 50, 50},
        {QN_TOKEN_U16, 2, 0, 0, 65536, 65536},
        {QN_TOKEN_U32, 4, 0, 0, 100000, 100000},
        {QN_TOKEN_LLM_C, 2, 20240520, 1, 50257, 0},
        {QN_TOKEN_LLM_C, 4, 20240801, 7, 128256, 0},
        {QN_TOKEN_LLM_C, 2, 20240520, 1, 50257, 50304},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t start = cases[i].magic ? HEADER : 0;
        if (start)
            put_header(cases[i].magic, cases[i].version, COUNT);
        put_file(scratch, put_tokens(start, COUNT, cases[i].width, cases[i].classes));
        qn_dataset *dataset =
            open_tokens(scratch, (qn_token_params){.type = cases[i].type, .tokens = cases[i].told});
        check_columns(dataset, cases[i].told ? cases[i].told : cases[i].classes);
        check_samples(scratch, dataset, (COUNT - 1) / LENGTH, 0, LENGTH, cases[i].classes);
        qn_dataset_close(&dataset);
    }
}

/* As many samples as there is a label for each of their tokens. */
static void samples_end_with_the_file(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        int64_t tokens, stride, samples;
    } cases[] = {
        {LENGTH + 1, 0, 1}, {2 * LENGTH, 0, 1},  {2 * LENGTH + 1, 0, 2},
        {LENGTH + 1, 1, 1}, {LENGTH + 4, 1, 4},  {LENGTH + 4, 2, 2},
        {LENGTH + 5, 2, 3}, {3 * LENGTH, 40, 1}, {3 * LENGTH, 3000, 1},
        {100, 40, 3},       {96, 40, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(scratch, put_tokens(0, cases[i].tokens, 2, 999));
        qn_dataset *dataset = open_tokens(
            scratch,
            (qn_token_params){.type = QN_TOKEN_U16, .tokens = 999, .stride = cases[i].stride});
        check_samples(scratch, dataset, cases[i].samples, 0,
                      cases[i].stride ? cases[i].stride : LENGTH, 999);
        qn_dataset_close(&dataset);
    }
}

/* Tokens and labels of the training split end where those of the test split begin. */
static void splits_share_no_token(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        double held_out;
        int64_t held, stride;
    } cases[] = {{0.05, 50, 0}, {0.0509, 50, 3}, {0.5, 500, 1}, {0.033, 33, 0}, {0.98, 980, 0}};
    put_file(scratch, put_tokens(0, COUNT, 2, 999));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_token_params params = {.type = QN_TOKEN_U16,
                                  .tokens = 999,
                                  .stride = cases[i].stride,
                                  .held_out = cases[i].held_out};
        const int64_t first = COUNT - cases[i].held;
        const int64_t stride = params.stride ? params.stride : LENGTH;
        qn_dataset *train = open_tokens(scratch, params);
        params.split = QN_SPLIT_TEST;
        qn_dataset *test = open_tokens(scratch, params);
        const int64_t last = (samples_of(train) - 1) * stride + LENGTH;
        assert_true(last < first && last + stride >= first);
        check_samples(scratch, train, (first - 1 - LENGTH) / stride + 1, 0, stride, 999);
        check_samples(scratch, test, (cases[i].held - 1 - LENGTH) / stride + 1, first, stride, 999);
        assert_true(qn_dataset_checksum(train) != qn_dataset_checksum(test));
        qn_dataset_close(&train);
        qn_dataset_close(&test);
    }
}

/* "ab\n" again and again: nothing is learned from the line's end about the next line. */
static void labels_across_documents_are_ignored(void **state)
{
    struct scratch *scratch = *state;
    const int32_t *tokens = NULL, *labels = NULL;
    for (int i = 0; i < COUNT; i++)
        bytes[i] = (uint8_t) "ab\n"[i % 3];
    put_file(scratch, COUNT);
    for (int separate = 0; separate < 2; separate++) {
        qn_dataset *dataset = open_tokens(
            scratch,
            (qn_token_params){.type = QN_TOKEN_U8, .separate = separate, .separator = '\n'});
        struct walk walk = begin(scratch, dataset, 0);
        for (int64_t sample = 0; sample < 6; sample++) {
            assert_int_equal(next(&walk, &tokens, &labels), QN_OK);
            for (int64_t k = 0; k < LENGTH; k++) {
                const int64_t at = (sample * LENGTH + k) % 3;
                assert_int_equal(tokens[k], "ab\n"[at]);
                assert_int_equal(labels[k], at < 2 ? "ab\n"[at + 1] : separate ? -100 : 'a');
            }
        }
        qn_loader_close(&walk.loader);
        qn_dataset_close(&dataset);
    }
}

/* Token 0 may be the separator. */
static void a_separator_may_be_zero(void **state)
{
    struct scratch *scratch = *state;
    const int32_t *tokens = NULL, *labels = NULL;
    memset(bytes, 0, LENGTH + 1);
    put_file(scratch, LENGTH + 1);
    qn_dataset *dataset =
        open_tokens(scratch, (qn_token_params){.type = QN_TOKEN_U8, .separate = true});
    struct walk walk = begin(scratch, dataset, 0);
    assert_int_equal(next(&walk, &tokens, &labels), QN_OK);
    for (int k = 0; k < LENGTH; k++)
        assert_true(tokens[k] == 0 && labels[k] == QN_IGNORED_LABEL);
    qn_loader_close(&walk.loader);
    qn_dataset_close(&dataset);
}

/* A file of 10 GB, most of it a hole, whose last tokens are not 0. */
static void files_may_be_larger_than_memory(void **state)
{
    struct scratch *scratch = *state;
    const int64_t count = INT64_C(5000000000), last = count - COUNT;
    const int32_t *tokens = NULL, *labels = NULL;
    put_tokens(0, COUNT, 2, 999);
    const int fd = open(scratch_path(scratch, "t"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, bytes, 2 * COUNT, 2 * last), 2 * COUNT);
    close(fd);
    const qn_token_params params = {.type = QN_TOKEN_U16, .tokens = 999};
    qn_dataset *dataset = open_tokens(scratch, params);
    assert_int_equal(samples_of(dataset), (count - 1) / LENGTH);
    struct walk walk = begin(scratch, dataset, samples_of(dataset) - 1);
    assert_int_equal(next(&walk, &tokens, &labels), QN_OK);
    const int64_t first = (samples_of(dataset) - 1) * LENGTH - last;
    for (int64_t k = 0; k < LENGTH; k++) {
        assert_int_equal(tokens[k], token_at(first + k, 999));
        assert_int_equal(labels[k], token_at(first + k + 1, 999));
    }
    qn_loader_close(&walk.loader);
    qn_dataset_close(&dataset);
}

/* --- bad input --- */

static void bad_files_are_named(void **state)
{
    struct scratch *scratch = *state;
    const qn_token_params u16 = {.type = QN_TOKEN_U16, .tokens = 999};
    const qn_token_params u32 = {.type = QN_TOKEN_U32, .tokens = 999};
    const qn_token_params text = {.type = QN_TOKEN_U8}, llm_c = {0};
    refuse(scratch, text, QN_ERR_IO, "/t", "No such file");
    assert_int_equal(mkdir(scratch_path(scratch, "t"), 0700), 0);
    refuse(scratch, text, QN_ERR_IO, "/t", "not a regular file");
    assert_int_equal(rmdir(scratch_path(scratch, "t")), 0);
    assert_int_equal(mkfifo(scratch_path(scratch, "t"), 0600), 0);
    refuse(scratch, text, QN_ERR_IO, "/t", "not a regular file");
    assert_int_equal(unlink(scratch_path(scratch, "t")), 0);
    put_file(scratch, 0);
    refuse(scratch, text, QN_ERR_FORMAT, "/t", "is empty");
    refuse(scratch, llm_c, QN_ERR_FORMAT, "/t", "is empty");
    put_tokens(0, COUNT, 1, 256);
    put_file(scratch, 101);
    refuse(scratch, u16, QN_ERR_FORMAT, "/t: 101 bytes", "of 2 bytes");
    put_file(scratch, 102);
    refuse(scratch, u32, QN_ERR_FORMAT, "/t: 102 bytes", "of 4 bytes");
    put_file(scratch, LENGTH);
    refuse(scratch, text, QN_ERR_FORMAT, "/t: 16 tokens", "a sample of 16");
    put_file(scratch, LENGTH + 1);
    qn_dataset *dataset = open_tokens(scratch, text);
    qn_dataset_close(&dataset);
    refuse(scratch, (qn_token_params){.type = QN_TOKEN_U8, .length = INT64_MAX}, QN_ERR_FORMAT,
           "/t: 17 tokens", "a sample of 9223372036854775807");
}

static void headers_that_lie_are_named(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        uint32_t magic, version, count;
        size_t size;
        const char *text;
    } cases[] = {
        {20240520, 1, 100, HEADER - 1, "is not llm.c's"},
        {20240521, 1, 100, HEADER + 200, "is not llm.c's"},
        {20240520, 7, 100, HEADER + 200, "header: version: 7, but 1"},
        {20240801, 1, 50, HEADER + 200, "header: version: 1, but 7"},
        {20240520, 1, 99, HEADER + 200, "header: count: 99 tokens are 198 bytes, but 200"},
        {20240520, 1, 101, HEADER + 200, "header: count: 101 tokens are 202 bytes, but 200"},
        {20240520, 1, 100, HEADER + 201, "header: count: 100 tokens are 200 bytes, but 201"},
        {20240801, 7, 100, HEADER + 200, "header: count: 100 tokens are 400 bytes, but 200"},
        {20240801, 7, 0xffffffff, HEADER + 200, "4294967295 tokens are 17179869180 bytes"},
        {20240520, 1, 0, HEADER, "header: count: holds no token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_header(cases[i].magic, cases[i].version, cases[i].count);
        put_tokens(HEADER, 100, 2, 999);
        put_file(scratch, cases[i].size);
        refuse(scratch, (qn_token_params){0}, QN_ERR_FORMAT, "/t: header", cases[i].text);
    }
}

static void bad_settings_are_named(void **state)
{
    struct scratch *scratch = *state;
    put_file(scratch, put_tokens(0, 200, 2, 999));
    refuse(scratch, (qn_token_params){.type = QN_TOKEN_U16}, QN_ERR_ARGUMENT, "/t: data.tokens",
           "missing");
    refuse(
        scratch,
        (qn_token_params){.type = QN_TOKEN_U16, .tokens = 999, .separate = true, .separator = 999},
        QN_ERR_ARGUMENT, "/t: data.separator: 999", "999 tokens");
    refuse(scratch, (qn_token_params){.type = QN_TOKEN_U8, .separate = true, .separator = -1},
           QN_ERR_ARGUMENT, "/t: data.separator: -1", "256 tokens");
    qn_token_params params = {.type = QN_TOKEN_U16, .tokens = 999, .held_out = 0.05};
    params.split = QN_SPLIT_TEST;
    refuse(scratch, params, QN_ERR_FORMAT, "/t: 10 tokens are held out", "a sample of 16");
    params.held_out = 0;
    refuse(scratch, params, QN_ERR_FORMAT, "/t: 0 tokens are held out", "a sample of 16");
    params = (qn_token_params){.type = QN_TOKEN_U16, .tokens = 999, .held_out = 0.99};
    refuse(scratch, params, QN_ERR_FORMAT, "/t: 2 tokens are not held out", "a sample of 16");
    const qn_token_params never[] = {
        {.type = (qn_token_type)4, .tokens = 9},
        {.type = QN_TOKEN_U8, .length = -1},
        {.type = QN_TOKEN_U8, .stride = -1},
        {.type = QN_TOKEN_U8, .tokens = -1},
        {.type = QN_TOKEN_U8, .tokens = INT64_C(1) << 31},
        {.type = QN_TOKEN_U8, .held_out = 1},
        {.type = QN_TOKEN_U8, .held_out = -0.1},
        {.type = QN_TOKEN_U8, .split = (qn_split)2},
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        refuse(scratch, never[i], QN_ERR_ARGUMENT, "not true: ", "params->");
}

/* The rest of the file can be read on. */
static void tokens_outside_the_vocabulary_are_named(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        int64_t at;
        uint32_t token;
        int64_t bad, last; /* samples that hold it, as a token or as their last label */
        const char *text;
    } cases[] = {
        {20, 999, 1, 1, "/t: token 20 is 999, but there are 999"},
        {32, 1234, 1, 2, "/t: token 32 is 1234, but there are 999"},
        {0, 0x80000000, 0, 0, "/t: token 0 is 2147483648, but there are 999"},
        {95, 0xffffffff, 5, 5, "/t: token 95 is 4294967295, but there are 999"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t *tokens = NULL, *labels = NULL;
        const size_t end = put_tokens(0, 100, 4, 999);
        put_number((size_t)cases[i].at * 4, cases[i].token, 4);
        put_file(scratch, end);
        qn_dataset *dataset =
            open_tokens(scratch, (qn_token_params){.type = QN_TOKEN_U32, .tokens = 999});
        for (int64_t sample = 0; sample < 6; sample++) {
            const bool bad = sample >= cases[i].bad && sample <= cases[i].last;
            struct walk walk = begin(scratch, dataset, sample);
            assert_int_equal(next(&walk, &tokens, &labels), bad ? QN_ERR_FORMAT : QN_OK);
            if (bad)
                scratch_said(scratch, cases[i].text, "");
            qn_loader_close(&walk.loader);
        }
        qn_dataset_close(&dataset);
    }
}

static void a_file_that_shrinks_is_named(void **state)
{
    struct scratch *scratch = *state;
    const int32_t *tokens = NULL, *labels = NULL;
    put_file(scratch, put_tokens(0, COUNT, 2, 999));
    qn_dataset *dataset =
        open_tokens(scratch, (qn_token_params){.type = QN_TOKEN_U16, .tokens = 999});
    assert_int_equal(truncate(scratch_path(scratch, "t"), 100), 0);
    struct walk walk = begin(scratch, dataset, 4);
    assert_int_equal(next(&walk, &tokens, &labels), QN_ERR_FORMAT);
    scratch_said(scratch, "/t: ends early", "");
    qn_loader_close(&walk.loader);
    qn_dataset_close(&dataset);
}

/* --- checksums --- */

static uint32_t sum_of(struct scratch *scratch, qn_token_params params)
{
    qn_dataset *dataset = open_tokens(scratch, params);
    const uint32_t sum = qn_dataset_checksum(dataset);
    assert_int_equal(sum, qn_dataset_checksum(dataset));
    qn_dataset_close(&dataset);
    return sum;
}

/* Every byte of a small file counts, the first and last pages of a large one, and what becomes of
 * them. */
static void checksums_tell_files_apart(void **state)
{
    struct scratch *scratch = *state;
    const qn_token_params text = {.type = QN_TOKEN_U8};
    const size_t size = sizeof bytes;
    put_tokens(0, (int64_t)size, 1, 256);
    put_file(scratch, size);
    const uint32_t sum = sum_of(scratch, text);
    for (size_t at = 0; at < size; at += at < 5000 ? 491 : 4093) {
        bytes[at] ^= 1;
        put_file(scratch, size);
        assert_true(sum_of(scratch, text) != sum);
        bytes[at] ^= 1;
    }
    put_file(scratch, size - 1);
    assert_true(sum_of(scratch, text) != sum);
    put_file(scratch, size);
    assert_int_equal(sum_of(scratch, text), sum);
    const qn_token_params others[] = {
        {.type = QN_TOKEN_U8, .length = LENGTH + 1},
        {.type = QN_TOKEN_U8, .stride = 5},
        {.type = QN_TOKEN_U8, .separate = true, .separator = 10},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(sum_of(scratch, others[i]) != sum);
    const int64_t large = INT64_C(1) << 33;
    const int fd = open(scratch_path(scratch, "t"), O_WRONLY);
    assert_int_equal(ftruncate(fd, large), 0);
    const uint32_t long_sum = sum_of(scratch, text);
    assert_int_equal(pwrite(fd, "x", 1, large - 1), 1);
    assert_true(sum_of(scratch, text) != long_sum);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(all_types_are_read),
        WITH_SCRATCH(samples_end_with_the_file),
        WITH_SCRATCH(splits_share_no_token),
        WITH_SCRATCH(labels_across_documents_are_ignored),
        WITH_SCRATCH(a_separator_may_be_zero),
        WITH_SCRATCH(files_may_be_larger_than_memory),
        WITH_SCRATCH(bad_files_are_named),
        WITH_SCRATCH(headers_that_lie_are_named),
        WITH_SCRATCH(bad_settings_are_named),
        WITH_SCRATCH(tokens_outside_the_vocabulary_are_named),
        WITH_SCRATCH(a_file_that_shrinks_is_named),
        WITH_SCRATCH(checksums_tell_files_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
