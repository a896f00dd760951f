/* SPDX-License-Identifier: MIT
 *
 * The conversions of cl_kernels/lib/type.clh, bit for bit, by a kernel that only copies.
 */
#include "support.h"

#include "cl/recording.h"
#include "cl/slab.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

static struct kept kept;

/* The bits of a float, and of what f16 and bf16 make of it. NaN: any quiet one. */
static const struct {
    uint32_t f32;
    uint16_t f16, bf16;
} table[] = {
    {0x00000000, 0x0000, 0x0000},
    {0x80000000, 0x8000, 0x8000},
    {0x3f800000, 0x3c00, 0x3f80},
    {0x3f801000, 0x3c00, 0x3f80}, /* between two of f16: to the even one, below and above */
    {0x3f803000, 0x3c02, 0x3f80},
    {0x3f801001, 0x3c01, 0x3f80},
    {0x3f808000, 0x3c04, 0x3f80}, /* the same in bf16 */
    {0x3f818000, 0x3c0c, 0x3f82},
    {0x3f808001, 0x3c04, 0x3f81},
    {0xbf818000, 0xbc0c, 0xbf82},
    {0x387fffff, 0x0400, 0x3880}, /* the smallest normal f16, from below */
    {0x38800000, 0x0400, 0x3880},
    {0x33800000, 0x0001, 0x3380}, /* its smallest of all; half of it; a little more; 1.5 times */
    {0x33000000, 0x0000, 0x3300},
    {0x33000001, 0x0001, 0x3300},
    {0x33c00000, 0x0002, 0x33c0},
    {0xb3800000, 0x8001, 0xb380},
    {0x477fe000, 0x7bff, 0x4780}, /* its largest; what still rounds to it; what no longer does */
    {0x477fefff, 0x7bff, 0x4780},
    {0x477ff000, 0x7c00, 0x4780},
    {0xc77ff000, 0xfc00, 0xc780},
    {0x00010000, 0x0000, 0x0001}, /* the smallest of all bf16; half of it; a little more */
    {0x00008000, 0x0000, 0x0000},
    {0x00008001, 0x0000, 0x0001},
    {0x7f7f0000, 0x7c00, 0x7f7f}, /* its largest; what still rounds to it; what no longer does */
    {0x7f7f7fff, 0x7c00, 0x7f7f},
    {0x7f7f8000, 0x7c00, 0x7f80},
    {0xff7fffff, 0xfc00, 0xff80},
    {0x7f800000, 0x7c00, 0x7f80},
    {0xff800000, 0xfc00, 0xff80},
    {0x7fc00000, 0x7e00, 0x7fc0},
    {0x7f800001, 0x7e00, 0x7fc0},
    {0x7fffffff, 0x7e00, 0x7fc0},
    {0xffffffff, 0xfe00, 0xffc0},
};
/* Rounded up to whole vectors of 16. */
enum { ROWS = sizeof table / sizeof *table, COUNT = (ROWS + 15) / 16 * 16 };

static uint32_t bits_of_f16(uint16_t f16)
{
    int exponent = f16 >> 10 & 31, mantissa = f16 & 1023;
    float size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                 : exponent == 0 ? ldexpf((float)mantissa, -24)
                                 : ldexpf((float)(1024 + mantissa), exponent - 25);
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    return bits | (uint32_t)(f16 & 0x8000) << 16;
}

static bool is_quiet(qn_dtype type, uint16_t bits)
{
    uint16_t mask = type == QN_F16 ? 0x7e00 : 0x7fc0;
    return (bits & mask) == mask;
}

/* Row `row` of the table as the kernels stored it, and as they loaded it again. */
static void check_row(qn_dtype type, int width, int row, uint16_t stored, uint32_t loaded)
{
    row = row < ROWS ? row : 0;
    uint16_t want = type == QN_F16 ? table[row].f16 : table[row].bf16;
    uint32_t back = type == QN_F16 ? bits_of_f16(want) : (uint32_t)want << 16;
    bool nan = is_quiet(type, want);
    bool good = nan ? is_quiet(type, stored) && (loaded & 0x7fc00000) == 0x7fc00000
                    : stored == want && loaded == back;
    if (!good)
        fail_msg("%s in vectors of %d: %08x becomes %04x, then %08x; wanted %04x and %08x",
                 qn_dtype_name(type), width, table[row].f32, stored, loaded, want, back);
}

/* Copies `count` elements from `at` on: whole vectors, or fewer elements than one has. */
static void copy(struct qn_recording *recording, const struct qn_operand *from,
                 const struct qn_operand *to, int width, int64_t at, int64_t count)
{
    struct qn_operand a = *from, c = *to;
    a.offset = c.offset = at;
    a.shape.dim[0] = c.shape.dim[0] = count;
    struct qn_launch launch = {
        .program = "matmul",
        .kernel = "fill_rows",
        .args = {QN_BUF(&a), QN_BUF(&c), QN_LONG(1), QN_LONG(count)},
        .global = {count},
        .local = {64},
    };
    qn_launch_option(&launch, "QN_V", width);
    qn_launch_option(&launch, "WIDE", 1);
    qn_launch_option(&launch, "TALL", 1);
    qn_launch_type(&launch, "A", from);
    qn_launch_type(&launch, "C", to);
    qn_launch_type(&launch, "RESIDUAL", &(struct qn_operand){0});
    qn_launch_option(&launch, "HAS_RESIDUAL", 0);
    qn_launch_option(&launch, "ACTIVATION", 0);
    assert_int_equal(qn_emit_launch(qn_recording_emit(recording, "copy"), &launch), QN_OK);
}

static void check_type(qn_device *device, qn_dtype type, int width, bool vectors)
{
    struct qn_slab *slab = NULL;
    struct qn_recording *recording = NULL;
    uint32_t values[COUNT], loaded[COUNT];
    uint16_t stored[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = table[i < ROWS ? i : 0].f32;
    const struct qn_operand from = {QN_F32, {1, {COUNT}}, 0, 0}, small = {type, {1, {COUNT}}, 1, 0},
                            to = {QN_F32, {1, {COUNT}}, 2, 0};
    const int64_t bytes[] = {sizeof values, sizeof stored, sizeof loaded};
    assert_int_equal(qn_slab_open(&slab, device, bytes, 3), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, values, sizeof values, NULL), QN_OK);
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    int64_t each = vectors ? COUNT : 2;
    for (int64_t at = 0; at < COUNT; at += each) {
        copy(recording, &from, &small, width, at, each);
        copy(recording, &small, &to, width, at, each);
    }
    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    assert_int_equal(qn_slab_read(slab, 1, 0, stored, sizeof stored, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 2, 0, loaded, sizeof loaded, NULL), QN_OK);
    for (int i = 0; i < COUNT; i++)
        check_row(type, vectors ? width : 1, i, stored[i], loaded[i]);
    qn_recording_close(&recording);
    qn_slab_close(&slab);
}

static void converts(void **state)
{
    (void)state;
    static const qn_dtype types[] = {QN_F16, QN_BF16};
    qn_device *device = open_device(&kept);
    for (int t = 0; t < 2; t++)
        for (int width = 4; width <= 16; width *= 2) {
            check_type(device, types[t], width, true);
            check_type(device, types[t], width, false);
        }
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
