/* SPDX-License-Identifier: MIT
 *
 * Tiles of matrix units, in units where the device has them and without where it has none: what
 * each lane holds against the tables of the PTX manual, products, and how floats become factors.
 */
#include "support.h"

#include "cl/private.h"
#include "cl/recording.h"
#include "cl/slab.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, ROWS = 16, COLUMNS = 8, WORDS = 8, HELD = 10, COUNT = 1 << 12 };
static struct kept kept;

static struct qn_operand words_of(int buffer, int64_t count)
{
    return (struct qn_operand){QN_I32, {1, {count}}, buffer, 0};
}

static void run(struct qn_slab *slab, const struct qn_launch *launch)
{
    struct qn_recording *recording = NULL;
    assert_int_equal(qn_recording_open(&recording, slab), QN_OK);
    if (qn_emit_launch(qn_recording_emit(recording, "tile"), launch) != QN_OK)
        fail_msg("%s", kept.text);
    assert_int_equal(qn_recording_run(recording, 0, -1), QN_OK);
    qn_recording_close(&recording);
}

/* --- fragments: "Matrix Fragments for mma.m16n8k16" and "for mma.m16n8k8" of the PTX manual --- */

struct place {
    int row, column;
};

/* a0 to a7 and b0 to b3 of 16 bits; %laneid is `lane`. */
static struct place a16(int lane, int i)
{
    const int group = lane >> 2, thread = lane % 4;
    const bool upper = (0 <= i && i < 2) || (4 <= i && i < 6);
    return (struct place){upper ? group : group + 8, thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}

static struct place b16(int lane, int i)
{
    return (struct place){lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2};
}

/* a0 to a3 and b0, b1 of tf32. */
static struct place a32(int lane, int i)
{
    const int group = lane >> 2, thread = lane % 4;
    return (struct place){i == 0 || i == 2 ? group : group + 8,
                          i == 0 || i == 1 ? thread : thread + 4};
}

static struct place b32(int lane, int i)
{
    return (struct place){i == 0 ? lane % 4 : lane % 4 + 4, lane >> 2};
}

/* c0 to c3, the same in both. */
static struct place c32(int lane, int i)
{
    return (struct place){i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 1)};
}

static const struct shape {
    const char *type;
    enum qn_matrix_type unit;
    int pack, digits; /* of a fraction */
    struct place (*a)(int lane, int i), (*b)(int lane, int i);
} shapes[] = {
    {"f16", QN_MATRIX_F16, 2, 10, a16, b16},
    {"bf16", QN_MATRIX_BF16, 2, 7, a16, b16},
    {"tf32", QN_MATRIX_TF32, 1, 10, a32, b32},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct tile {
    uint32_t a[ROWS * WORDS], b[COLUMNS * WORDS], held[LANES][HELD];
    float c[ROWS * COLUMNS];
};

static void multiply(const struct shape *shape, struct tile *tile)
{
    const int64_t bytes[] = {sizeof tile->a, sizeof tile->b, sizeof tile->c, sizeof tile->held};
    const struct qn_operand a = words_of(0, ROWS * WORDS), b = words_of(1, COLUMNS * WORDS),
                            c = words_of(2, ROWS * COLUMNS), held = words_of(3, LANES * HELD);
    struct qn_launch launch = {.program = "tile",
                               .kernel = "tile",
                               .args = {QN_BUF(&a), QN_BUF(&b), QN_BUF(&c), QN_BUF(&held)},
                               .global = {LANES},
                               .local = {LANES}};
    struct qn_slab *slab = NULL;
    qn_device *device = open_device(&kept);
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s", shape->type);
    assert_int_equal(qn_slab_open(&slab, device, bytes, 4), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, tile->a, sizeof tile->a, NULL), QN_OK);
    assert_int_equal(qn_slab_write(slab, 1, 0, tile->b, sizeof tile->b, NULL), QN_OK);
    run(slab, &launch);
    assert_int_equal(qn_slab_read(slab, 2, 0, tile->c, sizeof tile->c, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 3, 0, tile->held, sizeof tile->held, NULL), QN_OK);
    qn_slab_close(&slab);
    qn_device_close(&device);
}

/* A number whose 16 or 32 bits tell its place. */
static uint32_t mark(int operand, int row, int term)
{
    return (uint32_t)(operand << 8 | row << 4 | term);
}

static uint32_t marked_word(const struct shape *shape, int operand, int row, int word)
{
    uint32_t bits = 0;
    for (int e = 0; e < shape->pack; e++)
        bits |= mark(operand, row, word * shape->pack + e) << 16 * e;
    return bits;
}

static void check_lane(const struct shape *shape, const struct tile *tile, int lane)
{
    for (int i = 0; i < 6 * shape->pack; i++) {
        const int r = i / shape->pack, e = i % shape->pack;
        const uint32_t mask = shape->pack == 2 ? 0xffff : 0xffffffff;
        const uint32_t bits = tile->held[lane][r] >> 16 * e & mask;
        const struct place a = shape->a(lane, i), b = shape->b(lane, i - 4 * shape->pack);
        const uint32_t want = r < 4 ? mark(1, a.row, a.column) : mark(2, b.column, b.row);
        if (bits != want)
            fail_msg("%s, lane %d, register %d: %x, not %x", shape->type, lane, r, bits, want);
    }
}

static void lanes_hold_what_the_manual_says(void **state)
{
    (void)state;
    for (const struct shape *shape = shapes; shape < shapes + SHAPES; shape++) {
        struct tile tile;
        for (int w = 0; w < ROWS * WORDS; w++)
            tile.a[w] = marked_word(shape, 1, w / WORDS, w % WORDS);
        for (int w = 0; w < COLUMNS * WORDS; w++)
            tile.b[w] = marked_word(shape, 2, w / WORDS, w % WORDS);
        multiply(shape, &tile);
        for (int lane = 0; lane < LANES; lane++)
            check_lane(shape, &tile, lane);
    }
}

/* --- products --- */

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A random number in (-2, 2) that is a factor; `bits` is how it is stored. */
static double factor(const struct shape *shape, uint32_t *bits)
{
    const int units = 1 << shape->digits, value = rand() % units + units;
    const double v = ldexp(rand() % 2 ? value : -value, -shape->digits - rand() % 4);
    *bits = bits_of((float)v);
    if (shape->unit == QN_MATRIX_BF16)
        *bits >>= 16;
    if (shape->unit == QN_MATRIX_F16)
        *bits = (*bits >> 16 & 0x8000u) | ((*bits >> 13 & 0x3ffffu) - (112u << 10));
    return v;
}

static void fill(const struct shape *shape, int rows, uint32_t *words, double *values)
{
    memset(words, 0, (size_t)(rows * WORDS) * sizeof *words);
    for (int i = 0; i < rows * WORDS * shape->pack; i++) {
        uint32_t bits;
        values[i] = factor(shape, &bits);
        words[i / shape->pack] |= bits << 16 * (i % shape->pack);
    }
}

static void products_are_right(void **state)
{
    (void)state;
    for (const struct shape *shape = shapes; shape < shapes + SHAPES; shape++) {
        struct tile tile;
        double a[ROWS * WORDS * 2], b[COLUMNS * WORDS * 2];
        const int k = WORDS * shape->pack;
        fill(shape, ROWS, tile.a, a);
        fill(shape, COLUMNS, tile.b, b);
        multiply(shape, &tile);
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < 4; i++) {
                const struct place at = c32(lane, i);
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += a[at.row * k + l] * b[at.column * k + l];
                assert_true(fabs((double)float_of(tile.held[lane][6 + i]) - sum) < 1e-5);
                assert_true(fabs((double)tile.c[at.row * COLUMNS + at.column] - sum) < 1e-5);
            }
    }
}

/* --- the trial --- */

static const enum qn_matrix_type tried[] = {QN_MATRIX_F16, QN_MATRIX_BF16, QN_MATRIX_TF32,
                                            QN_MATRIX_BF16_TILES};
enum { TRIED = sizeof tried / sizeof *tried };

/* A kernel that leaves zeros where a product should be. */
static void write_wrong(const char *folder, const char *stem, const char *more, int count)
{
    char file[64], text[512];
    snprintf(file, sizeof file, "%s.cl", stem);
    snprintf(text, sizeof text,
             "__kernel void %s(__global const uint *a, ulong a_at, __global const uint *b,\n"
             "                 ulong b_at, __global float *c, ulong c_at%s)\n"
             "{\n"
             "    for (uint i = get_local_id(0); i < %d; i += get_local_size(0))\n"
             "        c[c_at + i] = 0.0f;\n"
             "}\n",
             stem, more, count);
    write_text(folder, file, text);
}

static void trial_tells_right_from_wrong(void **state)
{
    (void)state;
    qn_device *device = open_device(&kept);
    const int units = qn_device_facts(device)->matrix_units;
    for (int i = 0; i < TRIED; i++) {
        assert_true(qn_device_try_tile(device, tried[i], false));
        assert_true(!(units & (int)tried[i]) || qn_device_try_tile(device, tried[i], true));
    }
    qn_device_close(&device);

    char path[FOLDER_BYTES];
    make_folder(path);
    add_own_kernels(path);
    write_wrong(path, "tile", ", __global uint *held, ulong held_at", ROWS * COLUMNS);
    write_wrong(path, "tile_cpu", "", 32 * 32);
    const qn_device_params params = {.log = kept_log(&kept), .cache_dir = "", .kernel_dir = path};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    assert_int_equal(qn_device_facts(device)->matrix_units, 0);
    for (int i = 0; i < TRIED; i++)
        assert_false(qn_device_try_tile(device, tried[i], false));
    qn_device_close(&device);
    remove_folder(path);
}

/* --- floats as sums of two factors --- */

static float values[COUNT];
static uint32_t words[COUNT], rests[COUNT];

static void split(const struct shape *shape)
{
    const int64_t bytes[] = {sizeof values, sizeof words, sizeof rests};
    const struct qn_operand v = words_of(0, COUNT), word = words_of(1, COUNT),
                            rest = words_of(2, COUNT);
    struct qn_launch launch = {.program = "tile",
                               .kernel = "split",
                               .args = {QN_BUF(&v), QN_BUF(&word), QN_BUF(&rest)},
                               .global = {COUNT / shape->pack},
                               .local = {LANES}};
    struct qn_slab *slab = NULL;
    qn_device *device = open_device(&kept);
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s", shape->type);
    assert_int_equal(qn_slab_open(&slab, device, bytes, 3), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, values, sizeof values, NULL), QN_OK);
    run(slab, &launch);
    assert_int_equal(qn_slab_read(slab, 1, 0, words, sizeof words, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 2, 0, rests, sizeof rests, NULL), QN_OK);
    qn_slab_close(&slab);
    qn_device_close(&device);
}

/* Factor i of the words, as a float. */
static float part(const struct shape *shape, const uint32_t *from, int i)
{
    if (shape->pack == 1)
        return float_of(from[i]);
    return float_of(from[i / 2] >> 16 * (i % 2) << 16);
}

static void check_split(const struct shape *shape, int i)
{
    const float word = part(shape, words, i), rest = part(shape, rests, i);
    const double v = (double)values[i], bound = ldexp(fabs(v), -2 * shape->digits - 2);
    const uint32_t below = (1u << (23 - shape->digits)) - 1;
    assert_int_equal(bits_of(word) & below, 0);
    assert_int_equal(bits_of(rest) & below, 0);
    if (isfinite(v) && !(fabs((double)word + (double)rest - v) <= bound))
        fail_msg("%s: %.9g is split into %.9g and %.9g", shape->type, v, (double)word,
                 (double)rest);
    if (!isfinite(v))
        assert_false(isfinite(word) && isfinite(rest));
    if (isnan(v))
        assert_true(isnan(word) || isnan(rest));
}

static void floats_are_split(void **state)
{
    static const uint32_t specials[] = {0x7f800000, 0xff800000, 0x7fffffff, 0xffffffff,
                                        0x7fc00000, 0x7f800001, 0x7f7fffff, 0xff7fffff};
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] =
            i < 8 ? float_of(specials[i])
                  : ldexpf((float)(rand() % (1 << 24)), i % 200 - 100) * (i % 2 ? 1.0f : -1.0f);
    for (int s = 1; s < SHAPES; s++) {
        split(&shapes[s]);
        for (int i = 0; i < COUNT; i++)
            check_split(&shapes[s], i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_hold_what_the_manual_says),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(trial_tells_right_from_wrong),
        cmocka_unit_test(floats_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
