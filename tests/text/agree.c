/* SPDX-License-Identifier: MIT
 *
 * Ids as the tokenizers package gives them: golden/text, which tools/golden/text.py makes. And what
 * is meant to be different.
 */
#include "sample.h"

static const char *const names[] = {"gpt2.json", "llama3.json", "bert.json", "cased.json",
                                    "accents.json"};
enum { N_NAMES = sizeof names / sizeof *names };

/* "68656c|1 2|..." becomes bytes; gives their number. */
static size_t read_hex(const char **at, char *bytes)
{
    size_t size = 0;
    for (unsigned byte; **at != '|'; *at += 2) {
        assert_int_equal(sscanf(*at, "%2x", &byte), 1);
        bytes[size++] = (char)byte;
    }
    return size;
}

static void expect_ids(const struct sample *got, const char **at, const char *name, int line)
{
    int64_t count = 0;
    assert_int_equal(**at, '|');
    ++*at;
    for (; **at != '|' && **at != '\n'; count++) {
        char *end;
        const long id = strtol(*at, &end, 10);
        if (count >= got->count || got->ids[count] != id)
            fail_msg("%s, line %d of cases.txt: id %lld is not %ld", name, line, (long long)count,
                     id);
        *at = end + (*end == ' ');
    }
    if (count != got->count)
        fail_msg("%s, line %d of cases.txt: %lld ids", name, line, (long long)got->count);
}

static void ids_are_those_of_the_package(void **state)
{
    static char line[1 << 16], bytes[1 << 15];
    static struct sample got;
    qn_tokenizer *tokenizer[N_NAMES];
    FILE *cases = fopen(GOLDEN "/cases.txt", "r");
    int lines = 0;
    (void)state;
    assert_non_null(cases);
    for (int i = 0; i < N_NAMES; i++)
        tokenizer[i] = sample_open(names[i]);
    while (fgets(line, sizeof line, cases)) {
        const char *at = line;
        const size_t size = read_hex(&at, bytes);
        lines++;
        for (int i = 0; i < N_NAMES; i++) {
            sample_encode(&got, tokenizer[i], bytes, size, true);
            expect_ids(&got, &at, names[i], lines);
            if (i == 0)
                sample_is(&got, tokenizer[i], bytes, size);
        }
    }
    assert_true(lines > 150);
    for (int i = 0; i < N_NAMES; i++)
        qn_tokenizer_close(&tokenizer[i]);
    fclose(cases);
}

static void gpt2_files_are_the_same_tokenizer(void **state)
{
    static struct sample one, other;
    static const char text[] = "We'll cross<|endoftext|> the river\n\n  1987 — Größe";
    qn_tokenizer *whole = sample_open("gpt2.json");
    (void)state;
    for (int i = 0; i < 2; i++) {
        qn_tokenizer *parts = sample_open(i ? "gpt2" : "gpt2/vocab.json");
        sample_encode(&one, whole, text, sizeof text - 1, false);
        sample_encode(&other, parts, text, sizeof text - 1, false);
        assert_int_equal(one.count, other.count);
        assert_memory_equal(one.ids, other.ids, (size_t)one.count * sizeof *one.ids);
        qn_tokenizer_close(&parts);
    }
    qn_tokenizer_close(&whole);
}

static void tokens_have_texts(void **state)
{
    qn_tokenizer *gpt2 = sample_open("gpt2.json"), *bert = sample_open("bert.json");
    (void)state;
    assert_int_equal(qn_tokenizer_size(gpt2), 600);
    assert_int_equal(qn_tokenizer_id(gpt2, "<|endoftext|>"), 0);
    assert_true(qn_tokenizer_is_special(gpt2, 0));
    assert_false(qn_tokenizer_is_special(gpt2, 1));
    const int32_t the = qn_tokenizer_id(gpt2, "\xc4\xa0the");
    assert_true(the > 256);
    assert_string_equal(qn_tokenizer_text(gpt2, the), "\xc4\xa0the");
    assert_int_equal(qn_tokenizer_id(gpt2, "no such token"), -1);
    assert_null(qn_tokenizer_text(gpt2, 600));
    assert_null(qn_tokenizer_text(gpt2, -1));
    assert_false(qn_tokenizer_is_special(gpt2, 600));
    assert_true(qn_tokenizer_is_special(bert, qn_tokenizer_id(bert, "[SEP]")));
    qn_tokenizer_close(&gpt2);
    qn_tokenizer_close(&bert);
    qn_tokenizer_close(&bert);
}

static void words_are_decoded(void **state)
{
    static struct sample got;
    qn_tokenizer *bert = sample_open("bert.json");
    static const char text[] = "The RIVER, isn't it?", back[] = "the river, isn ' t it?";
    (void)state;
    sample_encode(&got, bert, text, sizeof text - 1, false);
    sample_is(&got, bert, back, sizeof back - 1);
    sample_encode(&got, bert, "a", 1, true);
    sample_is(&got, bert, "[CLS] a [SEP]", 13);
    const int32_t none = 100000;
    char *decoded;
    size_t size;
    assert_int_equal(qn_tokenizer_decode(bert, &none, 1, &decoded, &size), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "no token has the id 100000"));
    assert_null(decoded);
    qn_tokenizer_close(&bert);
}

static void expect_count(const char *name, const char *text, int64_t count)
{
    static struct sample got;
    qn_tokenizer *tokenizer = sample_open(name);
    sample_encode(&got, tokenizer, text, strlen(text), false);
    if (got.count != count)
        fail_msg("%s: %lld ids for '%s'", name, (long long)got.count, text);
    qn_tokenizer_close(&tokenizer);
}

/* The header of text.h names them: tables of Unicode that are newer than those of the package. */
static void newer_characters_differ(void **state)
{
    (void)state;
    expect_count("bert.json", "\xe0\xa2\x90", 0);        /* U+0890, a format character: goes */
    expect_count("bert.json", "a\xf0\x91\xb1\x81 a", 3); /* U+11C41, punctuation: a word */
    expect_count("bert.json",
                 "a\xe1\x99\xad"
                 "b",
                 1);                                   /* U+166D, no punctuation any more */
    expect_count("cased.json", "\xf0\xab\xa0\xa0", 1); /* U+2B820, of no block that is known */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_package),
        cmocka_unit_test(gpt2_files_are_the_same_tokenizer),
        cmocka_unit_test(tokens_have_texts),
        cmocka_unit_test(words_are_decoded),
        cmocka_unit_test(newer_characters_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
