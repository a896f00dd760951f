/* SPDX-License-Identifier: MIT
 *
 * Words that are hard: long ones, ones that are no UTF-8, bytes without a token, patterns that do
 * not end.
 */
#include "sample.h"

#include "text/alphabet.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bytes_have_characters(void **state)
{
    struct qn_bytes written = {0}, read = {0};
    char bytes[256];
    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    assert_int_equal(qn_alphabet_point(' '), 0x120);
    assert_int_equal(qn_alphabet_point('\n'), 0x10a);
    assert_int_equal(qn_alphabet_point(0xad), 0x143);
    assert_int_equal(qn_alphabet_point('a'), 'a');
    assert_true(qn_alphabet_write(&written, bytes, 256));
    assert_true(qn_alphabet_read(&read, written.at, written.count));
    assert_int_equal(read.count, 256);
    assert_memory_equal(read.at, bytes, 256);
    read.count = 0;
    assert_true(qn_alphabet_read(&read, "a b", 3)); /* no blank is of the alphabet */
    assert_memory_equal(read.at, "a b", 3);
    qn_bytes_free(&written);
    qn_bytes_free(&read);
}

/* What is not UTF-8 comes back as it was, and is a word of its own. */
static void other_bytes_are_kept(void **state)
{
    static const char text[] =
        "the \xff\xfe the\xc3 \xe2\x82 the\xed\xa0\x80\xf4\x90\x80\x80 \0 end\xc3";
    static struct sample got, part;
    qn_tokenizer *gpt2 = sample_open("gpt2.json"), *bert = sample_open("bert.json");
    (void)state;
    sample_encode(&got, gpt2, text, sizeof text - 1, false);
    sample_is(&got, gpt2, text, sizeof text - 1);
    sample_encode(&got, gpt2, "the\xffthe", 7, false);
    sample_encode(&part, gpt2, "the", 3, false);
    assert_int_equal(got.count, 2 * part.count + 1);
    sample_encode(&got, bert, "\xff", 1, false); /* U+FFFD goes */
    assert_int_equal(got.count, 0);
    qn_tokenizer_close(&gpt2);
    qn_tokenizer_close(&bert);
}

/* A text that is cut off has the beginning of its ids, in the same frame. */
static void a_text_is_cut_within_its_frame(void **state)
{
    static const char *const names[] = {"bert.json", "gpt2.json", "llama3.json"};
    static const char text[] =
        "Behold, [SEP] the\xff flood of waters <|endoftext|> upon the earth.";
    static struct sample whole, bare, cut;
    (void)state;
    for (int i = 0; i < 3; i++) {
        qn_tokenizer *tokenizer = sample_open(names[i]);
        sample_encode(&whole, tokenizer, text, sizeof text - 1, true);
        sample_encode(&bare, tokenizer, text, sizeof text - 1, false);
        const int64_t frame = whole.count - bare.count, behind = i == 0;
        qn_encode_params params = {.frame = true, .fn = sample_take, .user = &cut};
        for (params.most = frame ? frame : 1; params.most <= whole.count + 1; params.most++) {
            const int64_t count = params.most < whole.count ? params.most : whole.count;
            cut.count = 0;
            assert_int_equal(qn_tokenizer_encode(tokenizer, text, sizeof text - 1, &params), QN_OK);
            assert_int_equal(cut.count, count);
            assert_memory_equal(cut.ids, whole.ids, (size_t)(count - behind) * sizeof *cut.ids);
            assert_int_equal(cut.ids[count - 1],
                             behind ? whole.ids[whole.count - 1] : whole.ids[count - 1]);
        }
        params.most = frame - 1;
        if (params.most > 0)
            assert_int_equal(qn_tokenizer_encode(tokenizer, text, 1, &params), QN_ERR_ARGUMENT);
        qn_tokenizer_close(&tokenizer);
    }
}

static qn_status count_ids(void *user, const int32_t *ids, int64_t count)
{
    (void)ids;
    *(int64_t *)user += count;
    return QN_OK;
}

static int64_t encode_row(const qn_tokenizer *tokenizer, char c, size_t size)
{
    int64_t count = 0;
    char *text = malloc(size);
    const qn_encode_params params = {.fn = count_ids, .user = &count};
    memset(text, c, size);
    assert_int_equal(qn_tokenizer_encode(tokenizer, text, size, &params), QN_OK);
    free(text);
    return count;
}

/* Time grows about as the length: ten times the length takes less than forty times as long. */
static void long_words_take_no_longer(void **state)
{
    static const char *const names[] = {"gpt2.json", "llama3.json"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        qn_tokenizer *tokenizer = sample_open(names[i]);
        for (const char *c = "ax \n.7"; *c; c++) {
            double start = now();
            assert_true(encode_row(tokenizer, *c, 100000) > 0);
            const double one = now() - start;
            start = now();
            encode_row(tokenizer, *c, 1000000);
            if (now() - start > 40 * one + 2)
                fail_msg("%s: a million of '%c' take %.1f s, a tenth %.3f s", names[i], *c,
                         now() - start, one);
        }
        qn_tokenizer_close(&tokenizer);
    }
}

static qn_status refuse_ids(void *user, const int32_t *ids, int64_t count)
{
    (void)ids;
    assert_true(count > 0);
    ++*(int *)user;
    return QN_ERR_IO;
}

static void the_caller_ends_it(void **state)
{
    qn_tokenizer *gpt2 = sample_open("gpt2.json");
    int calls = 0;
    const qn_encode_params params = {.fn = refuse_ids, .user = &calls};
    (void)state;
    assert_int_equal(qn_tokenizer_encode(gpt2, "the river", 9, &params), QN_ERR_IO);
    assert_int_equal(calls, 1);
    assert_int_equal(qn_tokenizer_encode(gpt2, "", 0, &params), QN_OK); /* nothing to give */
    assert_int_equal(calls, 1);
    assert_int_equal(qn_tokenizer_encode(gpt2, NULL, 1, &params), QN_ERR_ARGUMENT);
    assert_int_equal(qn_tokenizer_encode(NULL, "a", 1, &params), QN_ERR_ARGUMENT);
    assert_int_equal(qn_tokenizer_encode(gpt2, "a", 1, NULL), QN_ERR_ARGUMENT);
    qn_tokenizer_close(&gpt2);
}

/* --- small tokenizers, written here --- */

static qn_tokenizer *make(struct scratch *scratch, const char *pattern, const char *model,
                          const char *added)
{
    char text[4096];
    qn_tokenizer *tokenizer = NULL;
    const int size = snprintf(
        text, sizeof text,
        "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
        "\"behavior\": \"Isolated\", \"pattern\": {\"Regex\": \"%s\"}}, {\"type\": \"ByteLevel\", "
        "\"use_regex\": false, \"add_prefix_space\": false}]}, \"added_tokens\": [%s], "
        "\"model\": {\"type\": \"BPE\", %s}}",
        pattern, added, model);
    const char *path = scratch_put(scratch, "t.json", text, (size_t)size);
    if (qn_tokenizer_open(&tokenizer, path, &scratch->log) != QN_OK)
        fail_msg("%s", scratch->heard);
    return tokenizer;
}

#define LETTERS "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"aab\": 3, \"aa\": 4"

static void expect(struct scratch *scratch, qn_tokenizer *tokenizer, const char *text,
                   const char *expected)
{
    static struct sample got;
    char ids[256] = "";
    sample_encode(&got, tokenizer, text, strlen(text), false);
    for (int64_t i = 0; i < got.count; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%d", i ? " " : "", got.ids[i]);
    assert_string_equal(ids, expected);
    assert_int_equal(scratch->lines, 0);
}

static void the_first_merge_comes_first(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer *t =
        make(scratch, "[ab]+", LETTERS "}, \"merges\": [\"a b\", [\"a\", \"ab\"], \"a a\"]", "");
    expect(scratch, t, "aab", "3");
    expect(scratch, t, "aaab", "0 3");
    expect(scratch, t, "aaa", "4 0"); /* of equal ones the left one */
    expect(scratch, t, "baab", "1 3");
    qn_tokenizer_close(&t);
    t = make(scratch, "[ab]+", LETTERS "}, \"merges\": []", "");
    expect(scratch, t, "aab", "0 0 1");
    qn_tokenizer_close(&t);
    t = make(scratch, "[ab]+", LETTERS "}, \"merges\": [], \"ignore_merges\": true", "");
    expect(scratch, t, "aab", "3");
    expect(scratch, t, "aaba", "0 0 1 0");
    qn_tokenizer_close(&t);
}

static void unknown_bytes_have_a_token_or_a_line(void **state)
{
    struct scratch *scratch = *state;
    static struct sample got;
    const qn_encode_params params = {.fn = sample_take, .user = &got};
    qn_tokenizer *t = make(scratch, "[ab]+", LETTERS "}, \"merges\": []", "");
    assert_int_equal(qn_tokenizer_encode(t, "a!", 2, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: model.vocab: ", "no token for the byte 0x21");
    qn_tokenizer_close(&t);
    t = make(scratch, "[ab]+", LETTERS ", \"?\": 5}, \"merges\": [], \"unk_token\": \"?\"", "");
    expect(scratch, t, "a!!b", "0 5 5 1");
    qn_tokenizer_close(&t);
    t = make(scratch, "[ab]+",
             LETTERS ", \"?\": 5}, \"merges\": [], \"unk_token\": \"?\", \"fuse_unk\": true", "");
    expect(scratch, t, "a!!b", "0 5 1");
    qn_tokenizer_close(&t);
}

static void added_tokens_are_found_first(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer *t = make(scratch, ".+", LETTERS "}, \"merges\": [\"a b\"]",
                           "{\"id\": 7, \"content\": \"<b>\", \"special\": true},"
                           "{\"id\": 8, \"content\": \"<b><b>\"},"
                           "{\"id\": 9, \"content\": \"<c>\", \"lstrip\": true, \"rstrip\": true}");
    expect(scratch, t, "<b>ab<b>", "7 2 7");
    expect(scratch, t, "<b><b><b>", "8 7"); /* the longest */
    expect(scratch, t, "a \xe3\x80\x80<c> \n b<c>", "0 9 1 9");
    expect(scratch, t, " <c>  <c>", "9 9");
    assert_true(qn_tokenizer_is_special(t, 7));
    assert_false(qn_tokenizer_is_special(t, 8));
    assert_int_equal(qn_tokenizer_size(t), 10);
    assert_null(qn_tokenizer_text(t, 6));
    qn_tokenizer_close(&t);
}

/* A text that does not begin with a blank gets one, and so does what follows an added token. */
static void a_blank_comes_first(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] =
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}, "
        "\"added_tokens\": [{\"id\": 3, \"content\": \"<x>\"}], \"model\": {\"type\": \"BPE\", "
        "\"vocab\": {\"a\": 0, \"\\u0120\": 1, \"\\u0120a\": 2}, \"merges\": [\"\\u0120 a\"]}}";
    qn_tokenizer *t = NULL;
    const char *path = scratch_put(scratch, "t.json", text, sizeof text - 1);
    assert_int_equal(qn_tokenizer_open(&t, path, &scratch->log), QN_OK);
    expect(scratch, t, "aa", "2 0");
    expect(scratch, t, " aa", "2 0");
    expect(scratch, t, "a<x>a<x> a", "2 3 2 3 2");
    expect(scratch, t, "", "");
    qn_tokenizer_close(&t);
}

static void a_pattern_that_never_ends_is_told(void **state)
{
    struct scratch *scratch = *state;
    static struct sample got;
    char row[200];
    const qn_encode_params params = {.fn = sample_take, .user = &got};
    qn_tokenizer *t = make(scratch, "(a+)+[bc]", LETTERS "}, \"merges\": []", "");
    memset(row, 'a', sizeof row);
    const double start = now();
    assert_int_equal(qn_tokenizer_encode(t, row, sizeof row, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: pre_tokenizer: ", "too many steps");
    assert_true(now() - start < 20);
    qn_tokenizer_close(&t);
}

/* Blanks are those of Unicode, inside of brackets and outside: U+1680 is one, U+180E, which older
 * tables call one, is not, and so "a" and U+180E are one word. */
static void blanks_in_patterns(void **state)
{
    struct scratch *scratch = *state;
    static const char *const patterns[] = {"\\\\s",        "[\\\\s]",      "[^\\\\S]",
                                           "[\\\\r\\\\s]", "[\\\\]\\\\s]", "[]\\\\s]",
                                           "\\\\S+",       "[^\\\\s]+",    "[\\\\S]+"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        qn_tokenizer *t = make(
            scratch, patterns[i],
            "\"vocab\": {\"?\": 0, \"a\": 1, \"a\xc3\xa1\xc5\x82\xc4\xb0\": 2}, \"merges\": [], "
            "\"unk_token\": \"?\", \"fuse_unk\": true, \"ignore_merges\": true",
            "");
        expect(scratch, t,
               "a\xe1\x9a\x80"
               "a\xe1\xa0\x8e",
               "1 0 2");
        qn_tokenizer_close(&t);
    }
}

/* \d is every decimal digit, here U+0661. */
static void digits_in_patterns(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer *t = make(scratch, "\\\\d",
                           "\"vocab\": {\"?\": 0}, \"merges\": [], \"unk_token\": \"?\", "
                           "\"fuse_unk\": true",
                           "");
    expect(scratch, t,
           "\xd9\xa1\xd9\xa1"
           "12",
           "0 0 0 0");
    qn_tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_have_characters),
        cmocka_unit_test(other_bytes_are_kept),
        cmocka_unit_test(a_text_is_cut_within_its_frame),
        cmocka_unit_test(long_words_take_no_longer),
        cmocka_unit_test(the_caller_ends_it),
        WITH_SCRATCH(the_first_merge_comes_first),
        WITH_SCRATCH(unknown_bytes_have_a_token_or_a_line),
        WITH_SCRATCH(added_tokens_are_found_first),
        WITH_SCRATCH(a_blank_comes_first),
        WITH_SCRATCH(a_pattern_that_never_ends_is_told),
        WITH_SCRATCH(blanks_in_patterns),
        WITH_SCRATCH(digits_in_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
