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
        cmocka_unit_test(sizes_read_well),
        cmocka_unit_test(logs_filter_and_fail),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
