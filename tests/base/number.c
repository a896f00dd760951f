/* SPDX-License-Identifier: MIT
 *
 * Numbers in bf16 with 8 more bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float nearest_bf16(float value)
{
    uint16_t stored;
    double number = (double)value;
    qn_number_encode(QN_BF16, &number, 1, &stored);
    qn_number_decode(QN_BF16, &stored, 1, &number);
    return (float)number;
}

struct parts {
    uint16_t stored;
    uint8_t code;
};

static struct parts split(float value)
{
    struct parts parts;
    qn_number_split(&value, 1, &parts.stored, &parts.code);
    return parts;
}

static float join(struct parts parts)
{
    float value;
    qn_number_join(&parts.stored, &parts.code, 1, &value);
    return value;
}

static float stored_alone(struct parts parts)
{
    return float_of((uint32_t)parts.stored << 16);
}

/* All numbers of 24 bits but NaN: those in the middle between two bf16 one step off. What is stored
 * is the nearest bf16, before and after. */
static void every_number_comes_back(void **state)
{
    (void)state;
    for (uint32_t whole = 0; whole < 1u << 24; whole++) {
        const float value = float_of(whole << 8);
        if (isnan(value))
            continue;
        const struct parts parts = split(value);
        const float back = join(parts), nearest = nearest_bf16(value);
        const bool middle = (whole & 0xff) == 0x80;
        const float down = float_of((whole - 1) << 8), up = float_of((whole + 1) << 8);
        assert_true(stored_alone(parts) == nearest && nearest_bf16(back) == nearest);
        if (middle)
            assert_true(back == (fabs((double)nearest) < fabs((double)value) ? down : up));
        else
            assert_memory_equal(&back, &value, sizeof value);
    }
}

static void others_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1 << 20; i++) {
        const float value = (float)qn_random_normal(7, 0, i);
        const double unit = ldexp(1, ilogb((double)value) - 15);
        const struct parts parts = split(value);
        const double off = (double)join(parts) - (double)value;
        const bool at_end = parts.code == 1 || parts.code == 255;
        assert_true(fabs(off) <= (at_end ? unit : unit / 2));
        assert_true(parts.code > 0);
    }
    assert_true(join(split(float_of(0x3f800080))) == float_of(0x3f800000)); /* ties to even */
    assert_true(join(split(float_of(0x3f800180))) == float_of(0x3f800200));
}

static void special_numbers(void **state)
{
    (void)state;
    assert_int_equal(split(0).stored, 0);
    assert_int_equal(split(0).code, 128);
    assert_int_equal(split(-0.0f).stored, 0x8000);
    assert_true(isnan(join(split(NAN))) && isnan(stored_alone(split(NAN))));
    assert_true(isnan(join(split(-float_of(0x7fffffff)))));
    assert_true(join(split(INFINITY)) == INFINITY && join(split(-INFINITY)) == -INFINITY);
    assert_true(join(split(float_of(0x7f7fffff))) == INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_comes_back),
        cmocka_unit_test(others_are_rounded_to_the_nearest),
        cmocka_unit_test(special_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
