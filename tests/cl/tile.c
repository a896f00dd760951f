/* SPDX-License-Identifier: MIT
 *
 * Tiles of matrix units, in units where the device has them and emulated where it has none:
 * products of every layout and type, and the largest number and the sum of each row; whether what a
 * lane loads or keeps in a wrong place is noticed; how tiles turn into a strip; and how floats
 * become factors.
 */
#include "support.h"

#include "cl/limits.h"
#include "op/op.h"
#include "op/tile.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGE = 16, WORDS = QN_TILE_DEPTH, COUNT = 1 << 12, GROUP = 32 };
static struct kept kept;

static struct qn_operand words_of(int buffer, int64_t count)
{
    return (struct qn_operand){QN_I32, {1, {count}}, buffer, 0};
}

static void run(struct qn_slab *slab, const struct qn_launch *launch)
{
    if (qn_trial_launch(slab, "tile", launch) != QN_OK)
        fail_msg("%s", kept.text);
}

/* --- products --- */

static const struct type {
    const char *name;
    enum qn_matrix_type unit;
    int pack, digits; /* of a fraction */
} types[] = {
    {"f16", QN_MATRIX_F16, 2, 10},
    {"bf16", QN_MATRIX_BF16, 2, 7},
    {"tf32", QN_MATRIX_TF32, 1, 10},
    {"f32", QN_MATRIX_F32, 1, 10}, /* more digits than a test of sums needs */
};
enum { TYPES = sizeof types / sizeof *types, SPLIT_TYPES = 3, ALL = 15 };

struct tile {
    uint32_t a[EDGE * WORDS], b[EDGE * WORDS];
    float c[EDGE * (EDGE + 2)]; /* the product, and two numbers of each row */
};

/* tile->c from the `count` words of a, of whatever the kernel takes, and tile->b. */
static void multiply_by(qn_device *device, const char *kernel, const struct qn_tile_layout *layout,
                        const struct type *type, const void *a_words, int count, struct tile *tile)
{
    const int64_t bytes[] = {count * (int64_t)sizeof(uint32_t), sizeof tile->b, sizeof tile->c};
    const struct qn_operand a = words_of(0, count), b = words_of(1, layout->n * WORDS),
                            c = words_of(2, layout->m * (layout->n + 2));
    struct qn_launch launch = {.program = "tile",
                               .kernel = kernel,
                               .args = {QN_BUF(&a), QN_BUF(&b), QN_BUF(&c)},
                               .global = {layout->lanes},
                               .local = {layout->lanes}};
    struct qn_slab *slab = NULL;
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s -DTILE_LAYOUT=%s", type->name,
             layout->name);
    assert_int_equal(qn_slab_open(&slab, device, bytes, 3), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, a_words, bytes[0], NULL), QN_OK);
    assert_int_equal(qn_slab_write(slab, 1, 0, tile->b, sizeof tile->b, NULL), QN_OK);
    run(slab, &launch);
    assert_int_equal(qn_slab_read(slab, 2, 0, tile->c, sizeof tile->c, NULL), QN_OK);
    qn_slab_close(&slab);
}

static void multiply(qn_device *device, const struct qn_tile_layout *layout,
                     const struct type *type, struct tile *tile)
{
    multiply_by(device, "tile", layout, type, tile->a, layout->m * WORDS, tile);
}

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
static double factor(const struct type *type, uint32_t *bits)
{
    const int units = 1 << type->digits, value = rand() % units + units;
    const double v = ldexp(rand() % 2 ? value : -value, -type->digits - rand() % 4);
    *bits = bits_of((float)v);
    if (type->unit == QN_MATRIX_BF16)
        *bits >>= 16;
    if (type->unit == QN_MATRIX_F16)
        *bits = (*bits >> 16 & 0x8000u) | ((*bits >> 13 & 0x3ffffu) - (112u << 10));
    return v;
}

static void fill(const struct type *type, int rows, uint32_t *words, double *values)
{
    memset(words, 0, (size_t)(rows * WORDS) * sizeof *words);
    for (int i = 0; i < rows * WORDS * type->pack; i++) {
        uint32_t bits;
        values[i] = factor(type, &bits);
        words[i / type->pack] |= bits << 16 * (i % type->pack);
    }
}

static void check_number(const struct qn_tile_layout *layout, const struct type *type, int i,
                         float got, double want)
{
    if (!(fabs((double)got - want) < 1e-4))
        fail_msg("%s, %s: number %d is %g, not %g", layout->name, type->name, i, (double)got, want);
}

static void check_product(qn_device *device, const struct qn_tile_layout *layout,
                          const struct type *type)
{
    struct tile tile;
    double a[EDGE * WORDS * 2], b[EDGE * WORDS * 2];
    const int k = WORDS * type->pack, m = layout->m, n = layout->n;
    fill(type, m, tile.a, a);
    fill(type, n, tile.b, b);
    multiply(device, layout, type, &tile);
    for (int row = 0; row < m; row++) {
        double most = -INFINITY, all = 0;
        for (int column = 0; column < n; column++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += a[row * k + l] * b[column * k + l];
            check_number(layout, type, row * n + column, tile.c[row * n + column], sum);
            most = fmax(most, sum);
            all += sum;
        }
        check_number(layout, type, m * n + row, tile.c[m * n + row], most);
        check_number(layout, type, m * n + m + row, tile.c[m * n + m + row], all);
    }
}

static void products_are_right(void **state)
{
    (void)state;
    qn_device *device = open_device(&kept);
    for (int i = 1; i <= QN_TILE_LAYOUTS; i++)
        for (const struct type *type = types; type < types + TYPES; type++)
            if (qn_tile_layout(i)->types & (int)type->unit)
                check_product(device, qn_tile_layout(i), type);
    qn_device_close(&device);
}

/* --- the trial --- */

/* How many of the types, as bits, the device multiplies right in a layout. */
static int count_right(qn_device *device, int layout, int units)
{
    int count = 0;
    for (const struct type *type = types; type < types + TYPES; type++)
        if (qn_tile_layout(layout)->types & units & (int)type->unit)
            count += qn_device_try_tile(device, (enum qn_matrix_layout)layout, type->unit, false);
    return count;
}

/* A device with another text in the place of a kernel's, which lies in `path`. */
/* The same with another text in the place of the kernel's. */
static int count_right_with(const char *text, int layout, int units)
{
    char path[FOLDER_BYTES];
    qn_device *device = open_with_kernel(&kept, "tile.cl", text, path);
    const int count = count_right(device, layout, units);
    close_with_kernel(device, &kept, path);
    return count;
}

static void trial_tells_right_from_wrong(void **state)
{
    (void)state;
    static const char *const zeros =
        "__kernel void tile(__global const uint *a, ulong a_at, __global const uint *b,\n"
        "                   ulong b_at, __global float *c, ulong c_at)\n"
        "{\n"
        "    for (uint i = get_local_id(0); i < 64; i += get_local_size(0))\n"
        "        c[c_at + i] = 0.0f;\n"
        "}\n";
    static const int counts[] = {3, 3, 2, 2, 3};
    qn_device *device = open_device(&kept);
    for (int i = 1; i <= QN_TILE_LAYOUTS; i++) {
        assert_int_equal(count_right(device, i, ALL), counts[i - 1]);
        assert_int_equal(count_right_with(zeros, i, ALL), 0);
    }
    assert_true(qn_device_try_copies(device, false));
    qn_device_close(&device);
}

/* In the registers and by dot products too, where there are any; a kernel that leaves zeros is
 * found out. */
static void tiles_of_a_core_are_tried(void **state)
{
    (void)state;
    char path[FOLDER_BYTES];
    qn_device *device = open_device(&kept);
    const int has = qn_device_facts(device)->matrix_units & QN_MATRIX_BF16_TILES;
    for (int units = 0; units <= (has ? 1 : 0); units++)
        assert_true(qn_device_try_tile(device, QN_MATRIX_MMA, QN_MATRIX_BF16_TILES, units));
    if (qn_has_dots() && device->quirks & QN_QUIRK_HOST_ASM)
        assert_true(qn_device_try_tile(device, QN_MATRIX_MMA, QN_MATRIX_BF16_DOTS, true));
    qn_device_close(&device);

    device = open_with_kernel(&kept, "tile_cpu.cl",
                              "__kernel void tile_cpu(__global const uint *a, ulong a_at,\n"
                              "                       __global const uint *b, ulong b_at,\n"
                              "                       __global float *c, ulong c_at)\n"
                              "{\n"
                              "    for (int i = 0; i < 32 * 32; i++)\n"
                              "        c[c_at + i] = 0.0f;\n"
                              "}\n",
                              path);
    assert_int_equal(qn_device_facts(device)->matrix_units, 0);
    assert_false(qn_device_try_tile(device, QN_MATRIX_MMA, QN_MATRIX_BF16_TILES, false));
    close_with_kernel(device, &kept, path);
}

/* The most that a file of facts may say of the field. */
static int64_t most_of_fact(const char *field)
{
#define MOST(name, kind, least, most)                                                              \
    if (strcmp(field, #name) == 0)                                                                 \
        return (int64_t)(most);
    QN_FACTS_LIST(MOST)
#undef MOST
    return -1;
}

/* Of a bit that the kernels know by another number units would be emulated, right and slow; with
 * one that facts do not allow there would be no plan. */
static void kernels_know_the_bits(void **state)
{
    (void)state;
    static const struct {
        const char *stem, *name;
        enum qn_matrix_type type;
    } bits[] = {{"tile", "unit_bit_f16", QN_MATRIX_F16},
                {"tile", "unit_bit_bf16", QN_MATRIX_BF16},
                {"tile", "unit_bit_tf32", QN_MATRIX_TF32},
                {"tile", "unit_bit_f32", QN_MATRIX_F32},
                {"tile_copy", "unit_bit_copies", QN_MATRIX_COPIES},
                {"tile_cpu", "TILES_UNIT", QN_MATRIX_BF16_TILES},
                {"tile_cpu", "DOTS_UNIT", QN_MATRIX_BF16_DOTS}};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        char line[64];
        assert_true(bits[i].type <= most_of_fact("matrix_units"));
        snprintf(line, sizeof line, "#define %s %d", bits[i].name, bits[i].type);
        char *text = kernel_text(bits[i].stem);
        const char *at = strstr(text, line);
        if (!at || (at[strlen(line)] != '\n' && at[strlen(line)] != ' '))
            fail_msg("%s.cl: no \"%s\"", bits[i].stem, line);
        free(text);
    }
}

/* --- planted swaps --- */

/* Which layout and types meet it; a text behind another one, and what takes its place. */
static const struct swap {
    int layout, units;
    const char *file, *text, *swapped;
} swaps[] = {
    /* two registers of a, of b; two lanes of a, of b; two elements of c; two lanes of c */
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_mma.clh", "words_load4(a.v[0], rows)",
     "words_load4(a.v[1], rows)"},
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_mma.clh", "{column[0], column[1]}",
     "{column[1], column[0]}"},
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_mma.clh", "lane / 4 * 2, lane",
     "(lane / 4 ^ 1) * 2, lane"},
    {QN_MATRIX_MMA, QN_MATRIX_F16, "uint column[4]", "lane % 4 * 4", "(lane % 4 ^ 1) * 4"},
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_row", "lane / 4 * 2 + i / 2", "lane / 4 * 2 + i % 2"},
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_column", "lane % 4 * 2", "(lane % 4 ^ 2) * 2"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile_mfma.clh", "= row[w]", "= row[w ^ 1]"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile_mfma.clh", "= column[w]", "= column[w ^ 2]"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile_mfma.clh", "at(lane % 16,", "at((lane % 16 ^ 1),"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "uint row[4]", "lane / 16 * 4", "(lane / 16 ^ 1) * 4"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile_mfma.clh", "lane / 16 * 4 + i;",
     "lane / 16 * 4 + (i ^ 1);"},
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile_mfma.clh", "return lane % 16;", "return lane % 16 ^ 1;"},
    {QN_MATRIX_WMMA, QN_MATRIX_F16, "tile_wmma.clh", "% 16, w)", "% 16, w ^ 4)"},
    {QN_MATRIX_WMMA, QN_MATRIX_F16, "tile_wmma.clh", "at(lane % 16,", "at(lane / 2,"},
    {QN_MATRIX_WMMA, QN_MATRIX_F16, "tile_wmma.clh", "return 2 * i + lane / 16",
     "return i + lane / 16 * 8"},
    {QN_MATRIX_WMMA, QN_MATRIX_F16, "tile_wmma.clh", "return lane % 16;", "return lane % 16 ^ 1;"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "tile_fragment.clh", "row % 8 * TILE_WORDS",
     "(row % 8 ^ 1) * TILE_WORDS"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "dpas_block", "v[i] = words[i", "v[i ^ 1] = words[i"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "tile_fragment.clh", "word % TILE_WORDS * TILE_N",
     "(word % TILE_WORDS ^ 1) * TILE_N"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "fragment_load_b", "words[w * TILE_LANES + lane]",
     "words[w * TILE_LANES + (lane ^ 1)]"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "tile_dpas.clh", "return i;", "return i ^ 1;"},
    {QN_MATRIX_DPAS8, QN_MATRIX_F16, "tile_dpas.clh", "return lane;", "return lane ^ 1;"},
    {QN_MATRIX_DPAS16, QN_MATRIX_F16, "dpas_block", "factors[2 * i *", "factors[(2 * i + 1) *"},
    {QN_MATRIX_DPAS16, QN_MATRIX_F16, "fragment_load_b", "words[w * TILE_LANES + lane]",
     "words[(w ^ 1) * TILE_LANES + lane]"},
    {QN_MATRIX_DPAS16, QN_MATRIX_F16, "tile_dpas.clh", "return i;", "return i ^ 1;"},
    {QN_MATRIX_DPAS16, QN_MATRIX_F16, "tile_dpas.clh", "return lane;", "return lane ^ 1;"},
    {QN_MATRIX_DPAS16, QN_MATRIX_TF32, "dpas_block", "TILE_LANES + lane];",
     "TILE_LANES + (lane ^ 8)];"},
    {QN_MATRIX_MFMA, QN_MATRIX_F32, "tile_mfma.clh", "= row[w]", "= row[w ^ 1]"},
    {QN_MATRIX_MMA, QN_MATRIX_TF32, "tile_mma.clh", "words_load4(a.v[0], rows)",
     "words_load4(a.v[1], rows)"},
    /* bits of an f32 that a tf32 has not */
    {QN_MATRIX_MMA, QN_MATRIX_TF32, "unit_factor_tf32(const", "TILE_CUTS ?", "0 ?"},
    /* the numbers of a row */
    {QN_MATRIX_MMA, QN_MATRIX_F16, "tile_rows.clh", "+ tile_column(lane, i)]",
     "+ tile_column(lane, i) / 2]"},
    /* the operands */
    {QN_MATRIX_MFMA, QN_MATRIX_F16, "tile.cl", "load_a(rows, lane), tile_load_b(columns,",
     "load_a(columns, lane), tile_load_b(rows,"},
    {QN_MATRIX_WMMA, QN_MATRIX_F16, "tile.cl", "load_a(rows, lane), tile_load_b(columns,",
     "load_a(columns, lane), tile_load_b(rows,"},
};

/* Of strips that are copied: two registers, rows, words and halves of a, of b; two rows of c; what
 * is copied too late, or from another row; two operands. */
static const struct swap copy_swaps[] = {
    {0, 0, "fragment_b;", "true, i % 2 * MATRIX", "true, (i + 1) % 2 * MATRIX"},
    {0, 0, "fragment_b;", "2 * step + i / 2)\n", "2 * step + 1 - i / 2)\n"},
    {0, 0, "fragment_b;", "true, line, i)", "true, line, i ^ 1)"},
    {0, 0, "fragment_b;", "words[matrix_a_at(step, i, g) + t]",
     "words[matrix_a_at(step, i, t) + g]"},
    {0, 0, "fragment_b;", "words[matrix_b_at(i, g) + t]", "words[matrix_b_at(i, g ^ 1) + t]"},
    {0, 0, "fragment_b;", "(2 * step + i / 2) * MATRIX + line, i % 2)",
     "(2 * step + i % 2) * MATRIX + line, i / 2)"},
    {0, 0, "fragment_b;", "false, i * MATRIX", "false, (i ^ 2) * MATRIX"},
    {0, 0, "fragment_b;", "matrix_a_at(step, i, 2 * t + 1), g)", "matrix_a_at(step, i, 2 * t), g)"},
    {0, 0, "fragment_b;", "lane / 4 + i / 2 * MATRIX", "lane / 4 * 2 + i / 2"},
    {0, 0, "copy_queue;", "(queue->turn + 1) % STAGES", "queue->turn % STAGES"},
    {0, 0, "copy_queue;", "(s.along_k ? place.x : place.y", "(s.along_k ? place.x ^ 1 : place.y"},
    {0, 0, "tile_copy(", "rows + tile_seat_a(lane)", "columns + tile_seat_a(lane)"},
};

static int copies_right_in(const char *text, const struct swap *swap)
{
    (void)swap;
    char path[FOLDER_BYTES];
    qn_device *device = open_with_kernel(&kept, "tile_copy.cl", text, path);
    const bool right = qn_device_try_copies(device, false);
    close_with_kernel(device, &kept, path);
    return right;
}

static int count_right_in(const char *text, const struct swap *swap)
{
    return count_right_with(text, swap->layout, swap->units);
}

/* Each of `count` swaps in the text of kernel `stem`, of which `right` says how much is right. */
static void check_swaps(const char *stem, const struct swap *list, size_t count,
                        int (*right)(const char *text, const struct swap *swap))
{
    char *text = kernel_text(stem);
    for (const struct swap *swap = list; swap < list + count; swap++) {
        char *wrong = swapped(text, swap->file, swap->text, swap->swapped);
        if (right(wrong, swap))
            fail_msg("%s in the place of %s is not noticed", swap->swapped, swap->text);
        free(wrong);
    }
    free(text);
}

static void swaps_are_noticed(void **state)
{
    (void)state;
    check_swaps("tile", swaps, sizeof swaps / sizeof *swaps, count_right_in);
}

static void copies_are_noticed(void **state)
{
    (void)state;
    check_swaps("tile_copy", copy_swaps, sizeof copy_swaps / sizeof *copy_swaps, copies_right_in);
}

/* Half of the local memory for all words; words of others. */
static const struct swap strip_swaps[] = {{0, 0, "local_words", "words[i] = i", "words[i / 2] = i"},
                                          {0, 0, "local_words", "WORDS - 1 - i", "i"}};

static int strips_right_in(const char *text, const struct swap *swap)
{
    (void)swap;
    char path[FOLDER_BYTES];
    qn_device *device = open_with_kernel(&kept, "limits.cl", text, path);
    const bool right = qn_device_try_strips(device);
    close_with_kernel(device, &kept, path);
    return right;
}

static void local_memory_is_noticed(void **state)
{
    (void)state;
    qn_device *device = open_device(&kept);
    assert_true(qn_device_try_strips(device));
    qn_device_close(&device);
    check_swaps("limits", strip_swaps, sizeof strip_swaps / sizeof *strip_swaps, strips_right_in);
}

/* --- tiles that turn into a strip --- */

enum { TERMS = 2 * WORDS };

/* How many numbers are right of a product whose first factor is made from tiles: of floats that are
 * factors, so that none is rounded. */
static int count_turned(qn_device *device, const struct type *type)
{
    static float x[EDGE * TERMS];
    const struct qn_tile_layout *layout = qn_tile_layout(QN_MATRIX_MMA);
    struct tile tile;
    double a[EDGE * TERMS], b[EDGE * TERMS];
    int right = 0;
    fill(type, layout->m, tile.a, a);
    fill(type, layout->n, tile.b, b);
    for (int i = 0; i < layout->m * TERMS; i++)
        x[i] = (float)a[i];
    multiply_by(device, "turn", layout, type, x, layout->m * TERMS, &tile);
    for (int i = 0; i < layout->m * layout->n; i++) {
        double sum = 0;
        for (int l = 0; l < TERMS; l++)
            sum += a[i / layout->n * TERMS + l] * b[i % layout->n * TERMS + l];
        right += fabs((double)tile.c[i] - sum) < 1e-4;
    }
    return right;
}

static const struct swap turn_swaps[] = {
    {0, 0, "fragment_turn(", "v[q / 2][q % 2 * 2 + r]", "v[q % 2][q / 2 * 2 + r]"},
    {0, 0, "fragment_turn(", "q % 2 * 2 + r]", "q % 2 + 2 * r]"},
    {0, 0, "tile_turned(", "column % 8 / 2 * 8 + column / 8 * 2",
     "column % 8 / 2 * 2 + column / 8 * 8"},
};

static int turned_right_in(const char *text, const struct swap *swap)
{
    (void)swap;
    char path[FOLDER_BYTES];
    qn_device *device = open_with_kernel(&kept, "tile.cl", text, path);
    const int right = count_turned(device, &types[0]);
    close_with_kernel(device, &kept, path);
    return right == qn_tile_layout(QN_MATRIX_MMA)->m * qn_tile_layout(QN_MATRIX_MMA)->n;
}

static void tiles_turn_into_a_strip(void **state)
{
    (void)state;
    const struct qn_tile_layout *layout = qn_tile_layout(QN_MATRIX_MMA);
    qn_device *device = open_device(&kept);
    for (int t = 0; t < 2; t++)
        assert_int_equal(count_turned(device, &types[t]), layout->m * layout->n);
    qn_device_close(&device);
    check_swaps("tile", turn_swaps, sizeof turn_swaps / sizeof *turn_swaps, turned_right_in);
}

/* --- floats as sums of two factors --- */

static float values[COUNT];
static uint32_t words[COUNT], rests[COUNT];

static void split(const struct type *type, const char *layout)
{
    const int64_t bytes[] = {sizeof values, sizeof words, sizeof rests};
    const struct qn_operand v = words_of(0, COUNT), word = words_of(1, COUNT),
                            rest = words_of(2, COUNT);
    struct qn_launch launch = {.program = "tile",
                               .kernel = "split",
                               .args = {QN_BUF(&v), QN_BUF(&word), QN_BUF(&rest)},
                               .global = {COUNT / type->pack},
                               .local = {GROUP}};
    struct qn_slab *slab = NULL;
    qn_device *device = open_device(&kept);
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s -DTILE_LAYOUT=%s", type->name,
             layout);
    assert_int_equal(qn_slab_open(&slab, device, bytes, 3), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 0, values, sizeof values, NULL), QN_OK);
    run(slab, &launch);
    assert_int_equal(qn_slab_read(slab, 1, 0, words, sizeof words, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 2, 0, rests, sizeof rests, NULL), QN_OK);
    qn_slab_close(&slab);
    qn_device_close(&device);
}

static float half_of(uint32_t bits)
{
    const int exponent = bits >> 10 & 31, digits = (bits & 1023) + (exponent ? 1024 : 0);
    const float v = exponent < 31    ? ldexpf((float)digits, (exponent ? exponent : 1) - 25)
                    : digits == 1024 ? INFINITY
                                     : NAN;
    return bits & 0x8000 ? -v : v;
}

/* Factor i of the words, as a float. */
static float part(const struct type *type, const uint32_t *from, int i)
{
    if (type->pack == 1)
        return float_of(from[i]);
    const uint32_t bits = from[i / 2] >> 16 * (i % 2) & 0xffff;
    return type->unit == QN_MATRIX_F16 ? half_of(bits) : float_of(bits << 16);
}

/* Units that cut drop what a rest has behind the last bit of tf32. */
static void check_split(const struct type *type, bool cut, int i)
{
    const bool is_f16 = type->unit == QN_MATRIX_F16;
    const double v = (double)values[i], most = is_f16 ? 65504 : FLT_MAX;
    const double bound = fmax(ldexp(fabs(v), -2 * type->digits - 2), is_f16 ? 0x1p-25 : 0);
    const uint32_t below = (1u << (23 - type->digits)) - 1;
    const float word = part(type, words, i), whole = part(type, rests, i);
    const float rest = cut ? float_of(bits_of(whole) & ~below) : whole;
    assert_int_equal(bits_of(word) & below, 0);
    assert_int_equal(bits_of(rest) & below, 0);
    if (fabs(v) <= most && !(fabs((double)word + (double)rest - v) <= bound))
        fail_msg("%s: %.9g is split into %.9g and %.9g", type->name, v, (double)word, (double)rest);
    if (!isfinite(v))
        assert_false(isfinite(word) && isfinite(rest));
    if (isnan(v) && bits_of(values[i]) & 0x7fffff & ~below)
        assert_true(isnan(word));
}

static void check_splits(const struct type *type, const char *layout, bool cut)
{
    split(type, layout);
    for (int i = 0; i < COUNT; i++)
        check_split(type, cut, i);
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
    for (int s = 0; s < SPLIT_TYPES; s++) {
        check_splits(&types[s], "mma", types[s].unit == QN_MATRIX_TF32);
        check_splits(&types[s], "dpas16", false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),        cmocka_unit_test(trial_tells_right_from_wrong),
        cmocka_unit_test(tiles_of_a_core_are_tried), cmocka_unit_test(kernels_know_the_bits),
        cmocka_unit_test(swaps_are_noticed),         cmocka_unit_test(copies_are_noticed),
        cmocka_unit_test(local_memory_is_noticed),   cmocka_unit_test(tiles_turn_into_a_strip),
        cmocka_unit_test(floats_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
