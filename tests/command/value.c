/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes; /* 0: none */
    } cases[] = {
        {"1", 1},
        {"8388608", 8388608},
        {"8KiB", 8192},
        {"32MiB", 32 << 20},
        {"32 MiB", 32 << 20},
        {"1.5GiB", INT64_C(3) << 29},
        {"1.3MiB", 1363148},
        {"32mib", 32 << 20},
        {"32MIB", 32 << 20},
        {"32M", 32 << 20},
        {"32 m", 32 << 20},
        {"32K", 32 << 10},
        {"1.5g", INT64_C(3) << 29},
        {"32  MiB", 32 << 20},
        {" 32\tMiB \r\n", 32 << 20},
        {"", 0},
        {"0", 0},
        {"0.5", 0},
        {"0GiB", 0},
        {"-5MiB", 0},
        {"MiB", 0},
        {"32MB", 0},
        {"32KB", 0},
        {"32B", 0},
        {"32Mi", 0},
        {"32MiBs", 0},
        {"32 MiB 5", 0},
        {"32 MiB x", 0},
        {"32 5", 0},
        {"3 2MiB", 0},
        {" ", 0},
        {"text", 0},
        {"nan", 0},
        {"inf", 0},
        {"1e300", 0},
        {"99999999999GiB", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t bytes = -1;
        const char *reason = value_size(cases[i].text, &bytes);
        if (cases[i].bytes) {
            assert_null(reason);
            assert_int_equal(bytes, cases[i].bytes);
        } else {
            assert_non_null(reason);
            assert_int_equal(bytes, -1);
        }
    }
}

static void counts(void **state)
{
    int64_t value = -1;
    (void)state;
    assert_null(value_count("12", 1, 20, &value));
    assert_int_equal(value, 12);
    assert_string_equal(value_count("0", 1, 20, &value), "is too small");
    assert_string_equal(value_count("21", 1, 20, &value), "is too large");
    assert_string_equal(value_count("99999999999999999999", 1, 20, &value), "is too large");
    assert_string_equal(value_count("", 1, 20, &value), "is not a whole number");
    assert_string_equal(value_count("1.5", 1, 20, &value), "is not a whole number");
    assert_string_equal(value_count("3x", 1, 20, &value), "is not a whole number");
    assert_int_equal(value, 12);
}

static void others(void **state)
{
    static const char *const words[] = {"red", "green", NULL};
    float reals[2];
    double real;
    bool on = false;
    int word, count;
    (void)state;
    assert_null(value_real("-1e-3", &real));
    assert_true(real == -1e-3);
    assert_non_null(value_real("inf", &real));
    assert_non_null(value_real("", &real));
    assert_null(value_switch("yes", &on));
    assert_true(on);
    assert_null(value_switch("0", &on));
    assert_false(on);
    assert_null(value_single("-3.4e38", &real));
    assert_null(value_single("1.2e-38", &real));
    assert_null(value_single("0", &real));
    assert_true(real == 0);
    assert_string_equal(value_single("3.5e38", &real),
                        "is outside the range of f32, 1.2e-38 to 3.4e38");
    assert_non_null(value_single("-1.1e-38", &real));
    assert_non_null(value_single("1e-400", &real)); /* 0 for double, too */
    assert_non_null(value_single("x", &real));
    assert_non_null(value_reals("0, 1e39", reals, 2, &count));
    assert_non_null(value_switch("maybe", &on));
    assert_null(value_word("green", words, &word));
    assert_int_equal(word, 1);
    assert_non_null(value_word("blue", words, &word));
    assert_null(value_reals("0.5, 0.25", reals, 2, &count));
    assert_int_equal(count, 2);
    assert_true(reals[0] == 0.5f && reals[1] == 0.25f);
    assert_non_null(value_reals("1,2,3", reals, 2, &count));
    assert_non_null(value_reals("1,", reals, 2, &count));
    assert_non_null(value_reals("1 2", reals, 2, &count));
    assert_non_null(value_reals("", reals, 2, &count));
}

static void lists_of_lengths(void **state)
{
    struct lengths lengths = {.count = 9};
    static const char *const bad[] = {"",      "0",         "8,8", "16,8", "1.5",
                                      "8,x",   "-4,8",      "8,",  "8 16", "1,2,3,4,5,6,7,8",
                                      "1e400", "16777217.5"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(value_lengths(bad[i], &lengths));
    assert_int_equal(lengths.count, 9);
    assert_null(value_lengths("64, 128 ,16777216", &lengths));
    assert_int_equal(lengths.count, 3);
    assert_int_equal(lengths.length[0], 64);
    assert_int_equal(lengths.length[1], 128);
    assert_int_equal(lengths.length[2], 16777216);
    assert_null(value_lengths("7", &lengths));
    assert_int_equal(lengths.count, 1);
}

static void size_texts(void **state)
{
    char text[SIZE_TEXT_BYTES];
    (void)state;
    assert_string_equal(size_text(512, text), "512 bytes");
    assert_string_equal(size_text(32 << 20, text), "32 MiB");
    assert_string_equal(size_text(3 << 9, text), "1.50 KiB");
}

static void rates_and_times(void **state)
{
    typedef const char *read_value(const char *text, double *value);
    static const struct {
        const char *text;
        read_value *read;
        double value; /* below 0: none */
    } cases[] = {
        {"1 B/s", value_rate, 1},          {"100 Mbit/s", value_rate, 12.5e6},
        {"100mbit/s", value_rate, 12.5e6}, {"12.5 GB/s", value_rate, 12.5e9},
        {"0.9TB/s", value_rate, 9e11},     {"8 bit/s", value_rate, 1},
        {"1 Tbit/s", value_rate, 1.25e11}, {"8 kbit/s", value_rate, 1000},
        {"2 kB/s", value_rate, 2000},      {"2 Gbit/s", value_rate, 2.5e8},
        {"100", value_rate, -1},           {"100 Mbit", value_rate, -1},
        {"0 GB/s", value_rate, -1},        {"-1 GB/s", value_rate, -1},
        {"GB/s", value_rate, -1},          {"inf GB/s", value_rate, -1},
        {"nan GB/s", value_rate, -1},      {"1 GB/s x", value_rate, -1},
        {"1e300 TB/s", value_rate, -1},    {"", value_rate, -1},
        {"20 ms", value_seconds, 0.02},    {"5us", value_seconds, 5e-6},
        {"0 s", value_seconds, 0},         {"1.5 s", value_seconds, 1.5},
        {"7 ns", value_seconds, 7e-9},     {"20", value_seconds, -1},
        {"-1 ms", value_seconds, -1},      {"20 min", value_seconds, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        const char *reason = cases[i].read(cases[i].text, &value);
        const bool taken = cases[i].value >= 0;
        assert_true(taken == !reason);
        assert_true(fabs(value - (taken ? cases[i].value : -1)) <= 1e-12 * fabs(value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_times),  cmocka_unit_test(sizes),
        cmocka_unit_test(counts),           cmocka_unit_test(others),
        cmocka_unit_test(lists_of_lengths), cmocka_unit_test(size_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
