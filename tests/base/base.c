/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/random.h"
#include "base/shape.h"
#include "base/text.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(qn_status_name(QN_OK), "QN_OK");
    assert_string_equal(qn_status_name(QN_ERR_BUDGET), "QN_ERR_BUDGET");
    assert_string_equal(qn_status_name((qn_status)99), "QN_ERR_INTERNAL");
    assert_non_null(qn_status_text((qn_status)-1));
}

static void types_have_sizes(void **state)
{
    (void)state;
    assert_int_equal(qn_dtype_size(QN_BF16), 2);
    assert_int_equal(qn_dtype_size(QN_DTYPE_NONE), 0);
    assert_string_equal(qn_dtype_name(QN_I32), "i32");
}

static void arena_is_zeroed_and_aligned(void **state)
{
    (void)state;
    struct qn_arena arena = {0};
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        unsigned char *bytes = qn_arena_alloc(&arena, 1, size);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 1, size);
    }
    assert_null(qn_arena_alloc(&arena, SIZE_MAX / 2, 4));
    assert_string_equal(qn_arena_strdup(&arena, "text"), "text");
    qn_arena_free(&arena);
    assert_null(arena.last);
}

static void products_that_overflow_are_seen(void **state)
{
    (void)state;
    assert_int_equal(qn_mul(INT64_C(1) << 40, INT64_C(1) << 30), -1);
    assert_int_equal(qn_mul(3, -1), -1);
    assert_int_equal(qn_sum_of(INT64_MAX, 1), -1);
    assert_int_equal(qn_round_up(513, 512), 1024);
    assert_int_equal(qn_round_up(INT64_MAX, 512), -1);
    assert_int_equal(qn_round_up(-1, 512), -1);
    assert_int_equal(qn_div_up(INT64_MAX, 2), INT64_C(1) << 62);
    const struct qn_shape large = {3, {INT64_C(1) << 31, INT64_C(1) << 31, 4}};
    assert_int_equal(qn_shape_count(&large), -1);
    assert_int_equal(qn_shape_count(&(struct qn_shape){0}), 1);
}

static void shapes_print(void **state)
{
    (void)state;
    char text[64];
    const struct qn_shape shape = {3, {QN_BATCH, 2 * QN_BATCH, 7}};
    assert_string_equal(qn_shape_text(&shape, text, sizeof text), "(b, 2b, 7)");
    assert_string_equal(qn_shape_text(&(struct qn_shape){0}, text, sizeof text), "()");
    const struct qn_shape least = {1, {INT64_MIN}};
    assert_string_equal(qn_shape_text(&least, text, sizeof text), "(9223372036854775808b)");
    qn_shape_text(&shape, text, 4);
    assert_string_equal(text, "(b,");
}

/* Known answers of the authors' library (Random123, kat_vectors). */
static void philox_gives_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        struct qn_philox p = qn_philox(cases[i].counter, cases[i].key);
        assert_memory_equal(p.word, cases[i].want, sizeof p.word);
    }
}

static void random_numbers_have_their_moments(void **state)
{
    (void)state;
    double sum = 0, squares = 0, mean = 0;
    const int count = 20000;
    for (int i = 0; i < count; i++) {
        double u = qn_random_uniform(1, 2, (uint64_t)i), n = qn_random_normal(1, 2, (uint64_t)i);
        assert_true(u >= 0 && u < 1);
        mean += u / count;
        sum += n / count;
        squares += n * n / count;
    }
    assert_true(fabs(mean - 0.5) < 0.01);
    assert_true(fabs(sum) < 0.03);
    assert_true(fabs(squares - 1) < 0.05);
    assert_true(qn_random_bits(1, 2, 3) != qn_random_bits(1, 3, 3));
}

static void text_grows_and_escapes(void **state)
{
    (void)state;
    struct qn_text text = {0};
    for (int i = 0; i < 1000; i++)
        qn_text_add(&text, "%d,", i);
    qn_text_json(&text, "a\"b\\c\n");
    char *bytes = qn_text_take(&text);
    assert_non_null(strstr(bytes, "999,\"a\\\"b\\\\c\\u000a\""));
    free(bytes);
    bytes = qn_text_take(&text);
    assert_string_equal(bytes, "");
    free(bytes);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {NULL, ""},
        {"a b/c\\d\"", "a b/c\\d\""},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\xbe", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\xbe"},
        {"a\nb\r\tc", "a\\nb\\r\\tc"},
        {"\x1b[2K\x01\x7f", "\\x1b[2K\\x01\\x7f"},
        {"\xc2\x9b", "\\xc2\\x9b"},          /* a control sequence begins, in one character */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* what follows is written from right to left */
        {"\xe4 \xc3", "\\xe4 \\xc3"},        /* no UTF-8 */
        {"\xc0\x8a", "\\xc0\\x8a"},          /* a newline in too many bytes */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* half a character of UTF-16 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char once[64], twice[64];
        assert_int_equal(qn_escape(once, sizeof once, cases[i].text), strlen(cases[i].shown));
        assert_string_equal(once, cases[i].shown);
        qn_escape(twice, sizeof twice, once);
        assert_string_equal(twice, once);
    }
}

static void nothing_is_cut_in_two(void **state)
{
    (void)state;
    static const char text[] = "a\n\xc3\xa4\x1b";
    static const struct {
        size_t capacity;
        const char *shown;
    } cases[] = {{1, ""},
                 {2, "a"},
                 {3, "a"},
                 {4, "a\\n"},
                 {5, "a\\n"},
                 {6, "a\\n\xc3\xa4"},
                 {9, "a\\n\xc3\xa4"},
                 {10, "a\\n\xc3\xa4\\x1b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[16] = "";
        assert_int_equal(qn_escape(shown, cases[i].capacity, text), 9);
        assert_string_equal(shown, cases[i].shown);
    }
    assert_int_equal(qn_escape(NULL, 0, text), 9);
}

static void sizes_read_well(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(qn_size_text(512, text, sizeof text), "512 bytes");
    assert_string_equal(qn_size_text(8 << 20, text, sizeof text), "8.00 MiB");
    assert_string_equal(qn_size_text(INT64_C(1536) << 20, text, sizeof text), "1.50 GiB");
}

static void count_line(void *user, qn_log_level level, const char *text)
{
    assert_int_equal(level, QN_LOG_ERROR);
    assert_string_equal(text, "file: reason 7");
    ++*(int *)user;
}

static void nearest_names_are_offered(void **state)
{
    (void)state;
    static const char *const names[] = {"train", "trace", "lr",      "lr_end", "beta1",
                                        "beta2", "beta3", "tensor1", "beta4"};
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {"trian", "; did you mean train?"},
        {"TRAINS", "; did you mean train?"},
        {"tracn", "; did you mean train or trace?"},
        {"tra", ""},
        {"l", "; did you mean lr?"},
        {"rl", "; did you mean lr?"},
        {"xy", ""},
        {"lrend", "; did you mean lr_end?"},
        {"", ""},
        {"beta", "; did you mean beta1, beta2 or beta3?"},
        {"tensor", "; did you mean tensor1?"},
        {"lx_*", "; did you mean lr_end?"},
        {"*race", "; did you mean trace?"},
        {"t*izr", ""},
        {"tens?r*", "; did you mean tensor1?"},
        {"a name that is longer than all that the distance is computed of, so it is near none", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_nearest nearest = {.text = cases[i].text};
        char hint[QN_NEAREST_BYTES];
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            qn_nearest_offer(&nearest, names[n]);
        assert_string_equal(qn_nearest_hint(&nearest, hint), cases[i].hint);
    }
}

static void logs_filter_and_fail(void **state)
{
    (void)state;
    int lines = 0;
    const struct qn_log log = {count_line, &lines, QN_LOG_ERROR};
    qn_log_write(&log, QN_LOG_DEBUG, "unseen");
    assert_int_equal(qn_fail(&log, QN_ERR_IO, "file: reason %d", 7), QN_ERR_IO);
    assert_int_equal(qn_fail(NULL, QN_ERR_IO, "nobody"), QN_ERR_IO);
    assert_int_equal(lines, 1);
}

static void keep_line(void *user, qn_log_level level, const char *text)
{
    assert_int_equal(level, QN_LOG_WARNING);
    snprintf(user, 64, "%s", text);
}

static void logs_one_line(void **state)
{
    (void)state;
    char line[64];
    const struct qn_log log = {keep_line, line, QN_LOG_WARNING};
    qn_log_write(&log, QN_LOG_WARNING, "%s: is missing", "a\x1b[2K\nquern: done");
    assert_string_equal(line, "a\\x1b[2K\\nquern: done: is missing");
}

static void *fail_elsewhere(void *line)
{
    assert_string_equal(qn_last_error(), "");
    qn_fail(NULL, QN_ERR_IO, "%s", (const char *)line);
    assert_string_equal(qn_last_error(), line);
    return NULL;
}

static void the_last_error_is_kept_without_a_log(void **state)
{
    (void)state;
    static char line[] = "file: of another thread";
    int lines = 0;
    pthread_t thread;
    const struct qn_log log = {count_line, &lines, QN_LOG_ERROR}, silent = {0};
    qn_fail(&silent, QN_ERR_IO, "silent: %d", 1);
    assert_string_equal(qn_last_error(), "silent: 1");
    qn_fail(&log, QN_ERR_IO, "file: reason %d", 7);
    assert_string_equal(qn_last_error(), "file: reason 7");
    qn_log_write(NULL, QN_LOG_WARNING, "no error");
    assert_string_equal(qn_last_error(), "file: reason 7");
    qn_log_write(NULL, QN_LOG_ERROR, "because of %s", qn_last_error());
    assert_string_equal(qn_last_error(), "because of file: reason 7");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, line), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(qn_last_error(), "because of file: reason 7");
}

static void texts_are_freed(void **state)
{
    (void)state;
    struct qn_text text = {0};
    qn_text_add(&text, "text");
    qn_free(qn_text_take(&text)); /* a sanitizer sees what is left */
    qn_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(types_have_sizes),
        cmocka_unit_test(arena_is_zeroed_and_aligned),
        cmocka_unit_test(products_that_overflow_are_seen),
        cmocka_unit_test(shapes_print),
        cmocka_unit_test(philox_gives_known_answers),
        cmocka_unit_test(random_numbers_have_their_moments),
        cmocka_unit_test(text_grows_and_escapes),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(nothing_is_cut_in_two),
        cmocka_unit_test(sizes_read_well),
        cmocka_unit_test(nearest_names_are_offered),
        cmocka_unit_test(logs_filter_and_fail),
        cmocka_unit_test(logs_one_line),
        cmocka_unit_test(the_last_error_is_kept_without_a_log),
        cmocka_unit_test(texts_are_freed),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
