/* SPDX-License-Identifier: MIT */
#include <quern/data.h>

#include "../io/scratch.h"

#include <quern/text.h>

enum { LENGTH = 6 };

static const char *put(struct scratch *scratch, const char *text)
{
    return scratch_put(scratch, "t", text, strlen(text));
}

static qn_json_line_params in_file(struct scratch *scratch, const char *text,
                                   qn_json_line_params params)
{
    params.log = scratch->log;
    params.path = put(scratch, text);
    params.label = params.label || params.plain ? params.label : "kind";
    params.length = params.length ? params.length : LENGTH;
    return params;
}

static qn_dataset *open_lines(struct scratch *scratch, const char *text, qn_json_line_params params)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, text, params);
    if (qn_dataset_open_json_lines(&dataset, &params) != QN_OK)
        fail_msg("%s", scratch->heard);
    return dataset;
}

static void refuse(struct scratch *scratch, const char *text, qn_json_line_params params,
                   const char *line)
{
    qn_dataset *dataset = NULL;
    params = in_file(scratch, text, params);
    assert_int_equal(qn_dataset_open_json_lines(&dataset, &params), QN_ERR_FORMAT);
    assert_null(dataset);
    scratch_said(scratch, "/t: ", line);
}

/* All samples in their order. */
static void read_all(struct scratch *scratch, const qn_dataset *dataset, int32_t *tokens,
                     int32_t *lengths, int32_t *labels)
{
    const int64_t count = qn_dataset_describe(dataset)->count;
    const qn_loader_params params = {.log = scratch->log, .max_samples = count, .sequential = true};
    qn_loader *loader = NULL;
    qn_batch batch;
    assert_int_equal(qn_loader_open(&loader, dataset, &params), QN_OK);
    assert_int_equal(qn_loader_next(loader, count, &batch), QN_OK);
    assert_int_equal(qn_batch_fetch(&batch, "tokens", 0, count, tokens), QN_OK);
    assert_int_equal(qn_batch_fetch(&batch, "lengths", 0, count, lengths), QN_OK);
    if (labels)
        assert_int_equal(qn_batch_fetch(&batch, "labels", 0, count, labels), QN_OK);
    qn_loader_close(&loader);
}

static void check_samples(struct scratch *scratch, const qn_dataset *dataset, int64_t count,
                          const int32_t (*tokens)[LENGTH], const int32_t *lengths,
                          const int32_t *labels)
{
    int32_t is[16][LENGTH], long_is[16], label_is[16];
    assert_int_equal(qn_dataset_describe(dataset)->count, count);
    read_all(scratch, dataset, is[0], long_is, labels ? label_is : NULL);
    for (int64_t i = 0; i < count; i++) {
        assert_memory_equal(is[i], tokens[i], sizeof is[i]);
        assert_int_equal(long_is[i], lengths[i]);
        if (labels)
            assert_int_equal(label_is[i], labels[i]);
    }
}

/* --- samples --- */

/* Bytes that are no UTF-8, escapes, other fields, carriage returns, no newline at the end. */
static void lines_become_rows(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] =
        "{\"text\": \"abc\", \"kind\": 2}\r\n"
        "  {\"kind\":0,\"more\":{\"text\":[1]},\"text\":\"\xff\\u00e9\\n\"}\n"
        "{\"text\": \"abcdefgh\", \"kind\": 1.0}";
    static const int32_t tokens[][LENGTH] = {
        {'a', 'b', 'c'}, {0xff, 0xc3, 0xa9, '\n'}, {'a', 'b', 'c', 'd', 'e', 'f'}};
    static const int32_t lengths[] = {3, 4, 6}, labels[] = {2, 0, 1};
    qn_dataset *dataset = open_lines(scratch, text, (qn_json_line_params){0});
    check_samples(scratch, dataset, 3, tokens, lengths, labels);
    assert_int_equal(qn_dataset_column(dataset, "tokens")->classes, 256);
    assert_int_equal(qn_dataset_column(dataset, "labels")->classes, 3);
    assert_null(qn_dataset_column(dataset, "labels")->class_names);
    assert_int_equal(qn_dataset_column(dataset, "lengths")->shape.rank, 0);
    qn_dataset_close(&dataset);
}

/* Without labels, from JSON or as they stand, a carriage return at the end left out. */
static void texts_need_no_labels(void **state)
{
    struct scratch *scratch = *state;
    static const char json[] = "{\"text\": \"ab\", \"kind\": []}\n{\"text\": \"{c\"}",
                      plain[] = "ab\r\n{c\n";
    static const int32_t tokens[][LENGTH] = {{'a', 'b'}, {'{', 'c'}}, lengths[] = {2, 2};
    qn_json_line_params params = in_file(scratch, json, (qn_json_line_params){0});
    qn_dataset *dataset = NULL;
    params.label = NULL;
    assert_int_equal(qn_dataset_open_json_lines(&dataset, &params), QN_OK);
    assert_null(qn_dataset_column(dataset, "labels"));
    check_samples(scratch, dataset, 2, tokens, lengths, NULL);
    assert_int_not_equal(qn_dataset_checksum(dataset), 0);
    qn_dataset_close(&dataset);
    dataset = open_lines(scratch, plain, (qn_json_line_params){.plain = true});
    check_samples(scratch, dataset, 2, tokens, lengths, NULL);
    qn_dataset_close(&dataset);
    refuse(scratch, "a\n\nb\n", (qn_json_line_params){.plain = true}, "line 2: text: is empty");
}

static const char named[] = "{\"t\": \"a\", \"l\": \"new\"}\n{\"t\": \"b\", \"l\": \"apart\"}\n"
                            "{\"t\": \"c\", \"l\": \"old\"}\n{\"t\": \"d\", \"l\": \"new\"}\n"
                            "{\"t\": \"e\", \"l\": \"ne\"}\n";

/* Names are counted in the order of their bytes, over both splits. */
static void names_become_classes(void **state)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {"apart", "ne", "new", "old"};
    static const int32_t tokens[][LENGTH] = {{'a'}, {'b'}, {'c'}, {'d'}, {'e'}};
    static const int32_t lengths[] = {1, 1, 1, 1, 1}, labels[] = {2, 0, 3, 2, 1};
    qn_json_line_params params = {.text = "t", .label = "l", .held_out = 0.4};
    for (int split = 0; split < 2; split++) {
        params.split = split ? QN_SPLIT_TEST : QN_SPLIT_TRAIN;
        qn_dataset *dataset = open_lines(scratch, named, params);
        const qn_column *column = qn_dataset_column(dataset, "labels");
        const int first = split ? 3 : 0;
        check_samples(scratch, dataset, split ? 2 : 3, tokens + first, lengths, labels + first);
        assert_int_equal(column->classes, 4);
        for (int i = 0; i < 4; i++)
            assert_string_equal(column->class_names[i], names[i]);
        qn_dataset_close(&dataset);
    }
}

/* The names of another file, in their order. */
static void given_names_keep_their_numbers(void **state)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {"x", "old", "new", "ne", "apart"};
    static const int32_t tokens[][LENGTH] = {{'a'}, {'b'}, {'c'}, {'d'}, {'e'}};
    static const int32_t lengths[] = {1, 1, 1, 1, 1}, labels[] = {2, 4, 1, 2, 3};
    qn_json_line_params params = {.text = "t", .label = "l", .classes = 5, .class_names = names};
    qn_dataset *dataset = open_lines(scratch, named, params);
    check_samples(scratch, dataset, 5, tokens, lengths, labels);
    assert_int_equal(qn_dataset_column(dataset, "labels")->classes, 5);
    assert_string_equal(qn_dataset_column(dataset, "labels")->class_names[0], "x");
    qn_dataset_close(&dataset);
    params.classes = 4;
    refuse(scratch, named, params, "line 2: l: 'apart' is none of the 4 names");
}

static void checksums_tell_apart(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] = "{\"text\": \"abc\", \"kind\": 2, \"more\": \"abd\", \"less\": 1}\n";
    static const char other[] =
        "{\"text\": \"abd\", \"kind\": 2, \"more\": \"abd\", \"less\": 1}\n";
    const qn_json_line_params cases[] = {
        {.length = 6}, {.length = 7}, {.text = "more"}, {.label = "less"}, {.length = 6}};
    uint32_t sums[5];
    for (int i = 0; i < 5; i++) {
        qn_dataset *dataset = open_lines(scratch, i < 4 ? text : other, cases[i]);
        sums[i] = qn_dataset_checksum(dataset);
        qn_dataset_close(&dataset);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(sums[i], sums[k]);
    }
}

/* --- refusals --- */

#define GOOD "{\"text\": \"a\", \"kind\": 1}\n"

static void bad_lines_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"", ": is empty"},
        {"\n", "line 1: is not a JSON object"},
        {GOOD "\n", "line 2: is not a JSON object"},
        {GOOD "[1]\n" GOOD, "line 2: is not a JSON object"},
        {GOOD "{\"text\": \"a\", \"kind\": 1\n", "line 2: is not a JSON object"},
        {GOOD "{\"text\": \"a\", \"kind\": 1} {}\n", "line 2: is not a JSON object"},
        {GOOD "{\"kind\": 1}\n", "line 2: text: is missing"},
        {"{\"text\": 3, \"kind\": 1}\n", "line 1: text: is not a text"},
        {"{\"text\": null, \"kind\": 1}\n", "line 1: text: is not a text"},
        {"{\"text\": \"\", \"kind\": 1}\n", "line 1: text: is empty"},
        {"{\"text\": \"a\", \"text\": \"b\", \"kind\": 1}\n", "line 1: text: is there twice"},
        {GOOD GOOD "{\"text\": \"a\"}\n", "line 3: kind: is missing"},
        {"{\"text\": \"a\", \"kind\": true}\n", "line 1: kind: is neither a number nor a text"},
        {"{\"text\": \"a\", \"kind\": -1}\n", "line 1: kind: -1 is not a whole number from 0"},
        {"{\"text\": \"a\", \"kind\": 0.5}\n", "line 1: kind: 0.5 is not a whole number from 0"},
        {"{\"text\": \"a\", \"kind\": 1e300}\n", "line 1: kind: 1.00"},
        {"{\"text\": \"a\", \"kind\": 16777216}\n", "kind: 16777216 is not a whole number"},
        {"{\"text\": \"a\", \"kind\": \"\"}\n", "line 1: kind: the name of a class has 1 to 1000"},
        {GOOD "{\"text\": \"a\", \"kind\": \"b\"}\n",
         "line 2: kind: is a name, but other labels are numbers"},
        {"{\"text\": \"a\", \"kind\": \"b\"}\n" GOOD,
         "line 2: kind: is a number, but other labels are names"},
        {GOOD "{\"text\": \"a\\u0000b\", \"kind\": 1}\n", "line 2: has a character 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(scratch, cases[i].text, (qn_json_line_params){0}, cases[i].line);
    refuse(scratch, GOOD GOOD, (qn_json_line_params){.held_out = 0.4, .split = QN_SPLIT_TEST},
           "of 2 lines none is held out");
}

static void a_byte_0_is_refused(void **state)
{
    struct scratch *scratch = *state;
    static const char bytes[] = GOOD "{\"text\": \"a\0b\", \"kind\": 1}\n";
    qn_dataset *dataset = NULL;
    qn_json_line_params params = in_file(scratch, "", (qn_json_line_params){0});
    params.path = scratch_put(scratch, "t", bytes, sizeof bytes - 1);
    assert_int_equal(qn_dataset_open_json_lines(&dataset, &params), QN_ERR_FORMAT);
    scratch_said(scratch, "line 2: has a character 0", "");
}

/* An escaped backslash before u0000 is no escape of 0. */
static void a_backslash_is_no_0(void **state)
{
    struct scratch *scratch = *state;
    static const int32_t tokens[][LENGTH] = {{'\\', 'u', '0', '0', '0', '0'}}, lengths[] = {6},
                         labels[] = {1};
    qn_dataset *dataset =
        open_lines(scratch, "{\"text\": \"\\\\u0000\", \"kind\": 1}\n", (qn_json_line_params){0});
    check_samples(scratch, dataset, 1, tokens, lengths, labels);
    qn_dataset_close(&dataset);
}

static void bad_params_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const char *const names[] = {"a"};
    qn_dataset *dataset = NULL;
    const qn_json_line_params cases[] = {{.length = -1},
                                         {.held_out = 1},
                                         {.held_out = -0.1},
                                         {.split = (qn_split)2},
                                         {.plain = true, .label = "kind"},
                                         {.class_names = names}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_json_line_params params = in_file(scratch, GOOD, cases[i]);
        assert_int_equal(qn_dataset_open_json_lines(&dataset, &params), QN_ERR_ARGUMENT);
        scratch_said(scratch, "not true", "");
    }
    qn_json_line_params params = in_file(scratch, GOOD, (qn_json_line_params){0});
    params.path = scratch_path(scratch, "none");
    assert_int_equal(qn_dataset_open_json_lines(&dataset, &params), QN_ERR_IO);
    scratch_said(scratch, "/none: cannot read", "");
}

/* --- long files --- */

/* Lines longer than what is read at a time, and many short ones. */
static void lines_have_any_length(void **state)
{
    struct scratch *scratch = *state;
    enum { LINES = 900, EACH = 999 };
    char *text = malloc(LINES * (EACH + 40));
    size_t size = 0;
    assert_non_null(text);
    for (int i = 0; i < LINES; i++) {
        const int letters = i % 100 == 99 ? EACH : i % 7 + 1;
        size += (size_t)sprintf(text + size, "{\"kind\": %d, \"text\": \"", i);
        for (int k = 0; k < letters * (i == 99 ? 300 : 1) && size < LINES * EACH; k++)
            text[size++] = (char)('a' + i % 26);
        size += (size_t)sprintf(text + size, "\"}\n");
    }
    qn_dataset *dataset = open_lines(scratch, text, (qn_json_line_params){0});
    free(text);
    static int32_t tokens[LINES][LENGTH], lengths[LINES], labels[LINES];
    assert_int_equal(qn_dataset_describe(dataset)->count, LINES);
    read_all(scratch, dataset, tokens[0], lengths, labels);
    for (int i = 0; i < LINES; i++) {
        const int letters = i % 100 == 99 ? EACH : i % 7 + 1;
        assert_int_equal(labels[i], i);
        assert_int_equal(lengths[i], letters < LENGTH ? letters : LENGTH);
        assert_int_equal(tokens[i][lengths[i] - 1], 'a' + i % 26);
    }
    qn_dataset_close(&dataset);
}

/* Newlines at all multiples of 64 bytes: one is the first byte of what is read at a time. */
static void lines_end_anywhere(void **state)
{
    struct scratch *scratch = *state;
    enum { LINES = 2100, EACH = 64 };
    char *text = malloc(LINES * EACH + 2);
    size_t size = 0;
    assert_non_null(text);
    for (int i = 0; i < LINES; i++)
        size += (size_t)sprintf(text + size, "{\"kind\": %4d, \"text\": \"%0*d\"}\n", i,
                                EACH - 27 + (i == 0), i);
    assert_int_equal(size, LINES * EACH + 1);
    qn_dataset *dataset = open_lines(scratch, text, (qn_json_line_params){0});
    free(text);
    assert_int_equal(qn_dataset_describe(dataset)->count, LINES);
    qn_dataset_close(&dataset);
}

struct texts {
    char all[64];
    int64_t most, count;
};

static qn_status take_text(void *user, const char *text, size_t size)
{
    struct texts *texts = user;
    assert_int_equal(strlen(text), size);
    strcat(strcat(texts->all, text), "|");
    return ++texts->count == texts->most ? QN_ERR_IO : QN_OK;
}

static void texts_come_in_order(void **state)
{
    struct scratch *scratch = *state;
    static const char text[] = "{\"t\": \"one\"}\n{\"t\": \"\"}\n{\"u\": 1, \"t\": \"\xff\"}\n";
    const char *path = put(scratch, text);
    struct texts all = {.most = 9}, two = {.most = 2}, some = {.most = 9};
    assert_int_equal(qn_json_lines_texts(path, "t", take_text, &all, &scratch->log), QN_OK);
    assert_string_equal(all.all, "one||\xff|");
    assert_int_equal(qn_json_lines_texts(path, "t", take_text, &two, &scratch->log), QN_ERR_IO);
    assert_int_equal(two.count, 2);
    assert_int_equal(scratch->lines, 0);
    assert_int_equal(qn_json_lines_texts(path, "u", take_text, &some, &scratch->log),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "/t: line 1: u: is missing", "");
    assert_int_equal(qn_json_lines_texts(put(scratch, ""), "t", take_text, &some, &scratch->log),
                     QN_ERR_FORMAT);
    scratch_said(scratch, "/t: is empty", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(lines_become_rows),     WITH_SCRATCH(names_become_classes),
        WITH_SCRATCH(checksums_tell_apart),  WITH_SCRATCH(given_names_keep_their_numbers),
        WITH_SCRATCH(bad_lines_are_refused), WITH_SCRATCH(a_byte_0_is_refused),
        WITH_SCRATCH(a_backslash_is_no_0),   WITH_SCRATCH(bad_params_are_refused),
        WITH_SCRATCH(lines_have_any_length), WITH_SCRATCH(lines_end_anywhere),
        WITH_SCRATCH(texts_come_in_order),   WITH_SCRATCH(texts_need_no_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
