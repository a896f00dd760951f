/* SPDX-License-Identifier: MIT
 *
 * Vocabularies made from text: the merges are those that the tokenizers package learns from the
 * same text.
 */
#include "sample.h"

#include <cjson/cJSON.h>

static char *read_text(const char *path, size_t *size)
{
    char *text;
    if (qn_file_read(path, 1 << 24, &text, size, NULL) != QN_OK)
        fail_msg("%s", qn_last_error());
    return text;
}

static cJSON *read_model(const char *path)
{
    size_t size;
    char *text = read_text(path, &size);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    free(text);
    return root;
}

static void merges_are_those_of_the_package(void **state)
{
    struct scratch *scratch = *state;
    size_t size;
    char *text = read_text(GOLDEN "/text.txt", &size);
    const char *path = scratch_path(scratch, "made.json");
    const qn_tokenizer_train_params params = {
        .log = scratch->log, .path = path, .text = text, .size = size, .vocabulary = 600};
    int64_t tokens = 0;
    assert_int_equal(qn_tokenizer_train(&params, &tokens), QN_OK);
    assert_int_equal(tokens, 600);
    cJSON *made = read_model(path), *golden = read_model(GOLDEN "/gpt2.json");
    const cJSON *ours = cJSON_GetObjectItem(made, "model");
    const cJSON *theirs = cJSON_GetObjectItem(golden, "model");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ours, "merges")), 343);
    assert_true(cJSON_Compare(ours, theirs, true));
    cJSON_Delete(made);
    cJSON_Delete(golden);
    free(text);
}

static int64_t train(struct scratch *scratch, const char *text, size_t size, int64_t vocabulary)
{
    const char *path = scratch_path(scratch, "made.json");
    const qn_tokenizer_train_params params = {
        .log = scratch->log, .path = path, .text = text, .size = size, .vocabulary = vocabulary};
    int64_t tokens = 0;
    qn_tokenizer *tokenizer = NULL;
    if (qn_tokenizer_train(&params, &tokens) != QN_OK ||
        qn_tokenizer_open(&tokenizer, path, &scratch->log) != QN_OK)
        fail_msg("%s", scratch->heard);
    assert_int_equal(qn_tokenizer_size(tokenizer), tokens);
    static struct sample got;
    sample_encode(&got, tokenizer, text, size, false);
    sample_is(&got, tokenizer, text, size);
    qn_tokenizer_close(&tokenizer);
    return tokens;
}

/* A text may be empty, short, or not UTF-8. */
static void short_texts_give_fewer_tokens(void **state)
{
    struct scratch *scratch = *state;
    assert_int_equal(train(scratch, "", 0, 1000), 257);
    assert_int_equal(train(scratch, "a", 1, 1000), 257);
    assert_int_equal(train(scratch, "aaaa", 4, 1000), 259); /* aa, aaaa */
    assert_int_equal(train(scratch, "abab", 4, 258), 258);
    assert_int_equal(train(scratch, "\xff\xfe\xff\xfe\0\0", 6, 1000), 260);
    assert_int_equal(train(scratch, "abab", 4, 257), 257);
}

static void sizes_are_checked(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer_train_params params = {.log = scratch->log,
                                        .path = scratch_path(scratch, "a"),
                                        .text = "a",
                                        .size = 1,
                                        .vocabulary = 256};
    assert_int_equal(qn_tokenizer_train(&params, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "256 tokens", "not from 257 to 16777216");
    params.vocabulary = 257;
    params.path = scratch_path(scratch, "none/a");
    assert_int_equal(qn_tokenizer_train(&params, NULL), QN_ERR_IO);
    scratch_said(scratch, "none/a", "cannot write");
    assert_int_equal(qn_tokenizer_train(NULL, NULL), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(merges_are_those_of_the_package),
        WITH_SCRATCH(short_texts_give_fewer_tokens),
        WITH_SCRATCH(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
