/* SPDX-License-Identifier: MIT
 *
 * Files that are no tokenizers: each gets one line with the file, the field and the reason.
 */
#include "sample.h"

/* A good file, in parts that a case replaces. */
struct parts {
    const char *normalizer, *words, *decoder, *around, *added, *model;
};
static const struct parts good = {
    "null",
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}",
    "{\"type\": \"ByteLevel\"}",
    "null",
    "[]",
    "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}"};
static const struct parts bert = {
    "{\"type\": \"BertNormalizer\"}",
    "{\"type\": \"BertPreTokenizer\"}",
    "{\"type\": \"WordPiece\"}",
    "null",
    "[]",
    "{\"type\": \"WordPiece\", \"unk_token\": \"?\", \"vocab\": {\"a\": 0, \"##b\": 1, \"?\": 2}}"};

#define BPE(fields) "{\"type\": \"BPE\", " fields "}"
#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}"
#define STEPS(steps) "{\"type\": \"Sequence\", \"pretokenizers\": [" steps "]}"
#define SPLIT(rest) "{\"type\": \"Split\", " rest "}"
#define REGEX(text) "\"pattern\": {\"Regex\": \"" text "\"}"
#define ISOLATED "\"behavior\": \"Isolated\", "
#define BYTES "{\"type\": \"ByteLevel\", \"use_regex\": false, \"add_prefix_space\": false}"
#define TOKEN(rest) "[{\"id\": 3, \"content\": \"<x>\"" rest "}]"

static const struct {
    struct parts with; /* NULL: as in the good file */
    const char *field, *reason;
} cases[] = {
    /* model */
    {{.model = "7"}, "model: ", "is not an object"},
    {{.model = "null"}, "model: ", "is not an object"},
    {{.model = "{\"type\": \"Unigram\"}"},
     "model.type: ",
     "'Unigram' is neither BPE nor WordPiece"},
    {{.model = "{\"type\": \"\\u001b[31m\"}"}, "model.type: ", "'\\x1b[31m'"},
    {{.model = BPE("\"merges\": []")}, "model.vocab: ", "is not an object"},
    {{.model = BPE("\"vocab\": {}, \"merges\": []")}, "model.vocab: ", "is empty"},
    {{.model = BPE("\"vocab\": [1], \"merges\": []")}, "model.vocab: ", "is not an object"},
    {{.model = BPE("\"vocab\": {\"a\": \"0\"}")}, "model.vocab: ", "the id of 'a' is not a whole"},
    {{.model = BPE("\"vocab\": {\"a\": 0.5}")}, "model.vocab: ", "the id of 'a' is not a whole"},
    {{.model = BPE("\"vocab\": {\"a\": -1}")}, "model.vocab: ", "the id of 'a' is not a whole"},
    {{.model = BPE("\"vocab\": {\"a\": 2147483648}")}, "model.vocab: ", "from 0 to 16777215"},
    {{.model = BPE("\"vocab\": {\"a\": 1e999}")}, "model.vocab: ", "from 0 to 16777215"},
    {{.model = BPE("\"vocab\": {\"a\": 0, \"b\": 0}")},
     "model.vocab: ",
     "two tokens have the id 0, 'a' and 'b'"},
    {{.model = BPE("\"vocab\": {\"a\": 0, \"a\": 1}")},
     "model.vocab: ",
     "'a' has two ids, 0 and 1"},
    {{.model = BPE("\"vocab\": {\"a\": 0, \"a\": 0}")}, "model.vocab: ", "'a' is there twice"},
    {{.model = BPE(VOCAB)}, "model.merges: ", "is not a list"},
    {{.model = BPE(VOCAB ", \"merges\": [\"a b\", \"ab\"]")}, "model.merges[1]: ", "is neither"},
    {{.model = BPE(VOCAB ", \"merges\": [\"a b c\"]")}, "model.merges[0]: ", "is neither"},
    {{.model = BPE(VOCAB ", \"merges\": [[\"a\"]]")}, "model.merges[0]: ", "is neither"},
    {{.model = BPE(VOCAB ", \"merges\": [[\"a\", 1]]")}, "model.merges[0]: ", "is neither"},
    {{.model = BPE(VOCAB ", \"merges\": [17]")}, "model.merges[0]: ", "is neither"},
    {{.model = BPE(VOCAB ", \"merges\": [\"a z\"]")}, "model.merges[0]: ", "'z' is not a token"},
    {{.model = BPE(VOCAB ", \"merges\": [[\"b\", \"a\"]]")},
     "model.merges[0]: ",
     "'ba' is not a token"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"unk_token\": \"z\"")},
     "model.unk_token: ",
     "'z' is not in"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"unk_token\": 1")},
     "model.unk_token: ",
     "is not a text"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"byte_fallback\": true")},
     "model.byte_fallback: ",
     "not supported"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"dropout\": 0.1")},
     "model.dropout: ",
     "not supported"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"end_of_word_suffix\": \"</w>\"")},
     "model.end_of_word_suffix: ",
     "'</w>'"},
    {{.model = BPE(VOCAB ", \"merges\": [], \"ignore_merges\": 1")},
     "model.ignore_merges: ",
     "neither true nor false"},
    /* normalizer, pre_tokenizer, decoder */
    {{.normalizer = "{\"type\": \"NFC\"}"}, "normalizer.type: ", "'NFC' is not supported"},
    {{.words = "null"}, "pre_tokenizer.type: ", "'' is not supported"},
    {{.words = "[]"}, "pre_tokenizer.type: ", "'' is not supported"},
    {{.words = "{\"type\": \"Metaspace\"}"},
     "pre_tokenizer.type: ",
     "'Metaspace' is not supported"},
    {{.words = STEPS("")}, "pre_tokenizer.pretokenizers: ", "is not a list of steps"},
    {{.words = STEPS(BYTES "," BYTES)}, "pre_tokenizer.pretokenizers[0].type: ", "'ByteLevel'"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("a")))},
     "pre_tokenizer.pretokenizers[0].type: ",
     "'Split'"},
    {{.words = STEPS(SPLIT(REGEX("a")) "," BYTES)}, "pretokenizers[0].behavior: ", "Isolated is"},
    {{.words = STEPS(SPLIT(ISOLATED "\"invert\": true, " REGEX("a")) "," BYTES)},
     "pretokenizers[0].invert: ",
     "not supported"},
    {{.words = STEPS(SPLIT(ISOLATED "\"pattern\": {\"String\": \"a\"}") "," BYTES)},
     "pretokenizers[0].pattern.Regex: ",
     "is missing"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("(a")) "," BYTES)},
     "pretokenizers[0].pattern: ",
     "does not compile: missing"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("a*")) "," BYTES)},
     "pretokenizers[0].pattern: ",
     "can match nothing"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("\\\\w")) "," BYTES)},
     "pretokenizers[0].pattern: ",
     "not supported"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("[a[b]]")) "," BYTES)},
     "pretokenizers[0].pattern: ",
     "class within a class"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("a")) "," SPLIT(ISOLATED REGEX("b")) "," BYTES)},
     "pretokenizers[1]: ",
     "second pattern"},
    {{.words = STEPS(SPLIT(ISOLATED REGEX("a")) ",{\"type\": \"ByteLevel\"}")},
     "pretokenizers[1].use_regex: ",
     "second pattern"},
    {{.decoder = "{\"type\": \"Fuse\"}"}, "decoder.type: ", "'Fuse'"},
    /* added_tokens */
    {{.added = "{}"}, "added_tokens: ", "is not a list"},
    {{.added = "[3]"}, "added_tokens[0].id: ", "is not a number"},
    {{.added = "[{\"id\": 4294967296, \"content\": \"<x>\"}]"},
     "added_tokens[0].id: ",
     "4294967296 is not a whole number"},
    {{.added = "[{\"id\": 3, \"content\": \"\"}]"},
     "added_tokens[0].content: ",
     "missing or empty"},
    {{.added = "[{\"id\": 3, \"content\": 3}]"}, "added_tokens[0].content: ", "is not a text"},
    {{.added = "[{\"id\": 3, \"content\": \"a\"}]"},
     "added_tokens[0].id: ",
     "3, but 'a' has the id 0"},
    {{.added = "[{\"id\": 0, \"content\": \"<x>\"}]"},
     "added_tokens[0].id: ",
     "0 is that of 'a', too"},
    {{.added = TOKEN(", \"single_word\": true")}, "added_tokens[0].single_word: ", "not supported"},
    {{.added = TOKEN(", \"special\": null, \"lstrip\": 0")},
     "added_tokens[0].lstrip: ",
     "neither true nor false"},
    /* post_processor */
    {{.around = "{\"type\": \"Other\"}"}, "post_processor.type: ", "'Other' is not supported"},
    {{.around = "{\"type\": \"TemplateProcessing\"}"}, "post_processor.single: ", "is not a list"},
    {{.around = "{\"type\": \"TemplateProcessing\", \"single\": []}"},
     "post_processor.single: ",
     "has 0 texts"},
    {{.around = "{\"type\": \"TemplateProcessing\", \"single\": [7]}"},
     "post_processor.single[0]: ",
     "is neither"},
    {{.around =
          "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}]}"},
     "post_processor.single[0].id: ",
     "'x' is not one of"},
    {{.around = "{\"type\": \"TemplateProcessing\", \"special_tokens\": {\"x\": {\"ids\": [9]}}, "
                "\"single\": [{\"SpecialToken\": {\"id\": \"x\"}}]}"},
     "post_processor.single[0]: ",
     "is not the id of a token"},
    {{.around = "{\"type\": \"BertProcessing\", \"cls\": [\"a\", 0]}"},
     "post_processor.sep: ",
     "is not the id of a token"},
};

static const struct {
    struct parts with;
    const char *field, *reason;
} bert_cases[] = {
    {{.model = "{\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}"},
     "model.unk_token: ",
     "is missing"},
    {{.model = "{\"type\": \"WordPiece\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0}, "
               "\"max_input_chars_per_word\": 100000}"},
     "model.max_input_chars_per_word: ",
     "from 0 to 1000"},
    {{.normalizer = "{\"type\": \"Lowercase\"}"}, "normalizer.type: ", "'Lowercase'"},
    {{.normalizer = "{\"type\": \"BertNormalizer\", \"lowercase\": \"yes\"}"},
     "normalizer.lowercase: ",
     "neither"},
    {{.words = "{\"type\": \"Whitespace\"}"}, "pre_tokenizer.type: ", "'Whitespace'"},
    {{.decoder = "{\"type\": \"ByteLevel\"}"}, "decoder.type: ", "'ByteLevel'"},
};

static qn_status open_text(struct scratch *scratch, const char *name, const char *text, size_t size,
                           qn_tokenizer **tokenizer)
{
    return qn_tokenizer_open(tokenizer, scratch_put(scratch, name, text, size), &scratch->log);
}

static qn_status open_parts(struct scratch *scratch, const struct parts *base,
                            const struct parts *with, qn_tokenizer **tokenizer)
{
    char text[4096];
#define PART(name) (with && with->name ? with->name : base->name)
    const int size = snprintf(text, sizeof text,
                              "{\"normalizer\": %s, \"pre_tokenizer\": %s, \"decoder\": %s, "
                              "\"post_processor\": %s, \"added_tokens\": %s, \"model\": %s}",
                              PART(normalizer), PART(words), PART(decoder), PART(around),
                              PART(added), PART(model));
#undef PART
    return open_text(scratch, "t.json", text, (size_t)size, tokenizer);
}

static void expect_refusal(struct scratch *scratch, const struct parts *base,
                           const struct parts *with, const char *field, const char *reason)
{
    qn_tokenizer *tokenizer = (void *)scratch;
    char place[128];
    snprintf(place, sizeof place, "t.json: %s%s",
             strncmp(field, "pretok", 6) ? "" : "pre_tokenizer.", field);
    const qn_status status = open_parts(scratch, base, with, &tokenizer);
    if (status != QN_ERR_FORMAT || tokenizer)
        fail_msg("%s%s: %s: %s", field, reason, qn_status_name(status), scratch->heard);
    scratch_said(scratch, place, reason);
}

static void wrong_fields_are_named(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer *tokenizer;
    assert_int_equal(open_parts(scratch, &good, NULL, &tokenizer), QN_OK);
    qn_tokenizer_close(&tokenizer);
    assert_int_equal(open_parts(scratch, &bert, NULL, &tokenizer), QN_OK);
    qn_tokenizer_close(&tokenizer);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(scratch, &good, &cases[i].with, cases[i].field, cases[i].reason);
    for (size_t i = 0; i < sizeof bert_cases / sizeof *bert_cases; i++)
        expect_refusal(scratch, &bert, &bert_cases[i].with, bert_cases[i].field,
                       bert_cases[i].reason);
}

static void a_truncated_file_is_told(void **state)
{
    struct scratch *scratch = *state;
    qn_tokenizer *tokenizer;
    char *text;
    size_t size;
    assert_int_equal(qn_file_read(GOLDEN "/bert.json", 1 << 20, &text, &size, NULL), QN_OK);
    for (size_t length = 0; length < size; length += length < 100 ? 1 : 331) {
        assert_int_equal(open_text(scratch, "t.json", text, length, &tokenizer), QN_ERR_FORMAT);
        scratch_said(scratch, "t.json: ", "is not JSON, seen at byte");
    }
    free(text);
}

static void other_files_are_told(void **state)
{
    struct scratch *scratch = *state;
    static char deep[200000];
    qn_tokenizer *tokenizer;
    memset(deep, '[', sizeof deep);
    assert_int_equal(open_text(scratch, "t.json", deep, sizeof deep, &tokenizer), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: ", "is not JSON");
    assert_int_equal(open_text(scratch, "t.json", "[]", 2, &tokenizer), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: ", "is not a JSON object");
    assert_int_equal(open_text(scratch, "t.json", "{}", 2, &tokenizer), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: model: ", "is not an object");
    assert_int_equal(open_text(scratch, "t.json", "{} x", 4, &tokenizer), QN_ERR_FORMAT);
    scratch_said(scratch, "t.json: ", "is not JSON, seen at byte 3");
    assert_int_equal(qn_tokenizer_open(&tokenizer, "/nowhere/t.json", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/nowhere/t.json: ", "cannot read");
    assert_int_equal(qn_tokenizer_open(&tokenizer, scratch->folder, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "tokenizer.json: ", "cannot read");
    assert_int_equal(qn_tokenizer_open(NULL, "x", &scratch->log), QN_ERR_ARGUMENT);
}

static void wrong_merges_are_told(void **state)
{
    static const struct {
        const char *merges, *place, *reason;
    } all[] = {
        {"#version: 0.2\na b\nab\n", "merges.txt: line 3: ", "is not \"a b\""},
        {"a b c\n", "merges.txt: line 1: ", "is not \"a b\""},
        {"a b\n\n", "merges.txt: line 2: ", "is not \"a b\""},
        {"a \x1b\n", "merges.txt: line 1: ", "'\\x1b' is not a token"},
        {"b a", "merges.txt: line 1: ", "'ba' is not a token"},
    };
    struct scratch *scratch = *state;
    static const char vocab[] = "{\"a\": 0, \"b\": 1, \"ab\": 2}";
    qn_tokenizer *tokenizer;
    assert_int_equal(open_text(scratch, "vocab.json", vocab, sizeof vocab - 1, &tokenizer),
                     QN_ERR_IO);
    scratch_said(scratch, "merges.txt: ", "cannot read");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        scratch_put(scratch, "merges.txt", all[i].merges, strlen(all[i].merges));
        assert_int_equal(qn_tokenizer_open(&tokenizer, scratch->folder, &scratch->log),
                         QN_ERR_FORMAT);
        scratch_said(scratch, all[i].place, all[i].reason);
    }
    scratch_put(scratch, "merges.txt", "#version: 0.2\r\na b\r\n", 20);
    assert_int_equal(qn_tokenizer_open(&tokenizer, scratch->folder, &scratch->log), QN_OK);
    qn_tokenizer_close(&tokenizer);
    static const char twice[] = "{\"a\": 0, \"b\": 1, \"ab\": 1}";
    assert_int_equal(open_text(scratch, "vocab.json", twice, sizeof twice - 1, &tokenizer),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "vocab.json: vocabulary: ", "two tokens have the id 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(wrong_fields_are_named),
        WITH_SCRATCH(a_truncated_file_is_told),
        WITH_SCRATCH(other_files_are_told),
        WITH_SCRATCH(wrong_merges_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
