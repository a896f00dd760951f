/* SPDX-License-Identifier: MIT
 *
 * Finding out which matrix units a device has: by multiplying one tile in them.
 */
#include "cl/limits.h"
#include "op/op.h"
#include "op/tile.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 32 }; /* of the tiles of a CPU's core, as in lib/tile_cpu.clh */
enum { EDGE = SIDE, WORDS = QN_TILE_DEPTH }; /* most rows and columns of a tile; words of each */
enum { A, B, C, BUFFERS };
static const float least_gain = 1.3f; /* of dot products, over f32 */

/* How small whole numbers are stored as factors: the top bits of an f32, or a half. */
static const struct type {
    const char *name;
    enum qn_matrix_type unit;
    int pack;
} types[] = {{"f16", QN_MATRIX_F16, 2},         {"bf16", QN_MATRIX_BF16, 2},
             {"tf32", QN_MATRIX_TF32, 1},       {"f32", QN_MATRIX_F32, 1},
             {"bf16", QN_MATRIX_BF16_TILES, 2}, {"bf16", QN_MATRIX_BF16_DOTS, 2}};
enum { TYPES = sizeof types / sizeof *types };

/* How the words of a tile lie: in rows of a and columns of b, which work-items copy, or which the
 * device copies; or in terms, which it copies. */
enum way { WORDS_IN_ROWS, ROWS_COPIED, TERMS_COPIED };

struct trial {
    enum qn_matrix_layout layout;
    const struct type *type;
    enum way way;
    bool units; /* not emulated */
};

/* What kernel multiplies one tile; its rows, columns and work-items; and the floats it writes: with
 * the product, those of a team give the largest number and the sum of each row. */
struct shape {
    const char *program;
    int m, n, lanes, floats;
};

static struct shape shape_of(const struct trial *trial)
{
    const struct qn_tile_layout *tile = qn_tile_layout(trial->layout);
    if (trial->type->unit >= QN_MATRIX_BF16_TILES)
        return (struct shape){"tile_cpu", SIDE, SIDE, 1, SIDE * SIDE};
    if (trial->way != WORDS_IN_ROWS)
        return (struct shape){"tile_copy", tile->m, tile->n, tile->lanes, tile->m * tile->n};
    return (struct shape){"tile", tile->m, tile->n, tile->lanes, tile->m * (tile->n + 2)};
}

/* 0 to 7, without a pattern that a permutation of rows, columns or terms would keep. */
static int number(int seed, int row, int term)
{
    return (seed + 37 * row + 101 * term + row * term * term) % 127 % 8;
}

/* Bits of an f32 that a tf32 has not. Units of layout mma must drop them (TILE_CUTS). */
static const uint32_t behind_tf32 = 0x1fff;

static uint32_t factor(const struct trial *trial, int value)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    const struct type *type = trial->type;
    const bool cut = type->unit == QN_MATRIX_TF32 && trial->layout == QN_MATRIX_MMA;
    const float exact = (float)value;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if (type->pack == 1)
        return cut ? bits | behind_tf32 : bits;
    return type->unit == QN_MATRIX_F16 ? halves[value] : bits >> 16;
}

static void fill(const struct trial *trial, int seed, int rows, uint32_t *words)
{
    const int pack = trial->type->pack, terms = WORDS * pack;
    memset(words, 0, (size_t)(rows * WORDS) * sizeof *words);
    for (int row = 0; row < rows; row++)
        for (int l = 0; l < terms; l++) {
            const int at = trial->way == TERMS_COPIED ? l * rows + row : row * terms + l;
            words[at / pack] |= factor(trial, number(seed, row, l)) << 16 * (at % pack);
        }
}

static int product(const struct type *type, int row, int column)
{
    int sum = 0;
    for (int l = 0; l < WORDS * type->pack; l++)
        sum += number(1, row, l) * number(2, column, l);
    return sum;
}

static bool is_right(const struct shape *shape, const struct type *type, const float *c)
{
    const float *most = c + shape->m * shape->n, *all = most + shape->m;
    bool right = true;
    for (int row = 0; row < shape->m; row++) {
        int largest = 0, total = 0;
        for (int column = 0; column < shape->n; column++) {
            const int sum = product(type, row, column);
            right = right && c[row * shape->n + column] == (float)sum;
            largest = sum > largest ? sum : largest;
            total += sum;
        }
        if (shape->floats > shape->m * shape->n)
            right = right && most[row] == (float)largest && all[row] == (float)total;
    }
    return right;
}

static struct qn_operand words_of(int buffer, int64_t count)
{
    return (struct qn_operand){QN_I32, {1, {count}}, buffer, 0};
}

static void set_options(struct qn_launch *launch, const struct trial *trial)
{
    const int copies = trial->way != WORDS_IN_ROWS ? QN_MATRIX_COPIES : 0;
    snprintf(launch->options, sizeof launch->options, "-DUNIT_TYPE=%s -DTILE_LAYOUT=%s",
             trial->type->name, qn_tile_layout(trial->layout)->name);
    if (copies)
        qn_launch_option(launch, "ALONG_K", trial->way == ROWS_COPIED);
    if (trial->units) {
        qn_launch_option(launch, "QN_MATRIX_UNITS", (int)trial->type->unit | copies);
        qn_launch_option(launch, "QN_MATRIX_LAYOUT", trial->layout);
    }
}

static qn_status launch(struct qn_slab *slab, const struct trial *trial)
{
    const struct shape shape = shape_of(trial);
    const struct qn_operand a = words_of(A, shape.m * WORDS), b = words_of(B, shape.n * WORDS),
                            c = words_of(C, shape.floats);
    struct qn_launch launch = {.program = shape.program,
                               .kernel = shape.program,
                               .args = {QN_BUF(&a), QN_BUF(&b), QN_BUF(&c)},
                               .global = {shape.lanes},
                               .local = {shape.lanes}};
    set_options(&launch, trial);
    return qn_trial_launch(slab, "matrix units", &launch);
}

static qn_status multiply(struct qn_slab *slab, const struct trial *trial, float *c)
{
    const struct shape shape = shape_of(trial);
    uint32_t words[EDGE * WORDS];
    fill(trial, 1, shape.m, words);
    QN_TRY(qn_slab_write(slab, A, 0, words, shape.m * WORDS * (int64_t)sizeof *words, NULL));
    fill(trial, 2, shape.n, words);
    QN_TRY(qn_slab_write(slab, B, 0, words, shape.n * WORDS * (int64_t)sizeof *words, NULL));
    QN_TRY(launch(slab, trial));
    return qn_slab_read(slab, C, 0, c, shape.floats * (int64_t)sizeof *c, NULL);
}

static bool try_it(struct qn_device *device, const struct trial *trial)
{
    static const int64_t bytes[BUFFERS] = {EDGE * WORDS * 4, EDGE * WORDS * 4, EDGE * EDGE * 4};
    const struct shape shape = shape_of(trial);
    float c[EDGE * EDGE] = {0};
    struct qn_slab *slab = NULL;
    if (qn_slab_open(&slab, device, bytes, BUFFERS) != QN_OK)
        return false;
    const bool right = multiply(slab, trial, c) == QN_OK && is_right(&shape, trial->type, c);
    qn_slab_close(&slab);
    return right;
}

bool qn_device_try_tile(struct qn_device *device, enum qn_matrix_layout layout,
                        enum qn_matrix_type unit, bool units)
{
    struct trial trial = {layout, types, WORDS_IN_ROWS, units};
    while (trial.type->unit != unit)
        trial.type++;
    return try_it(device, &trial);
}

bool qn_device_try_copies(struct qn_device *device, bool units)
{
    const struct trial rows = {QN_MATRIX_MMA, types, ROWS_COPIED, units};
    const struct trial terms = {QN_MATRIX_MMA, types, TERMS_COPIED, units};
    return try_it(device, &rows) && try_it(device, &terms);
}

/* Every layout has f16: what does not multiply these, or does not even compile, is not there. */
static int try_layout(struct qn_device *device, enum qn_matrix_layout layout)
{
    int units = 0;
    if (layout == QN_MATRIX_MMA && !(device->quirks & QN_QUIRK_PTX_ASM))
        return 0;
    for (int i = 0; i < TYPES && (i == 0 || units & QN_MATRIX_F16); i++)
        if ((qn_tile_layout(layout)->types & (int)types[i].unit) &&
            qn_device_try_tile(device, layout, types[i].unit, true))
            units |= (int)types[i].unit;
    if (layout == QN_MATRIX_MMA && units && qn_device_try_copies(device, true))
        units |= QN_MATRIX_COPIES;
    if (units & QN_MATRIX_COPIES && qn_device_try_strips(device))
        units |= QN_MATRIX_STRIPS;
    return units;
}

static void try_layouts(struct qn_device *device, struct qn_facts *facts)
{
    for (int i = 1; i <= QN_TILE_LAYOUTS && !facts->matrix_units; i++) {
        facts->matrix_units = try_layout(device, (enum qn_matrix_layout)i);
        if (facts->matrix_units)
            facts->matrix_layout = i;
    }
}

/* Ticks that as many multiply-adds take, in dot products and in f32. */
static qn_status measure_dots(struct qn_device *device, float ticks[2])
{
    static const int64_t bytes = 2 * sizeof *ticks;
    const struct qn_operand c = words_of(0, 2);
    struct qn_launch launch = {.program = "tile_cpu",
                               .kernel = "dots_rate",
                               .args = {QN_BUF(&c)},
                               .global = {1},
                               .local = {1}};
    struct qn_slab *slab = NULL;
    qn_launch_option(&launch, "QN_MATRIX_UNITS", QN_MATRIX_BF16_DOTS);
    QN_TRY(qn_slab_open(&slab, device, &bytes, 1));
    qn_status status = qn_trial_launch(slab, "matrix units", &launch);
    if (status == QN_OK)
        status = qn_slab_read(slab, 0, 0, ticks, bytes, NULL);
    qn_slab_close(&slab);
    return status;
}

/* Whether packing the factors is worth it: cores were seen that take twice the time of f32 for dot
 * products, and half. */
static bool has_fast_dots(struct qn_device *device)
{
    float ticks[2];
    return measure_dots(device, ticks) == QN_OK && least_gain * ticks[0] <= ticks[1];
}

static void try_cpu(struct qn_device *device, struct qn_facts *facts)
{
    const enum qn_matrix_layout layout = (enum qn_matrix_layout)facts->matrix_layout;
    if (!(device->quirks & QN_QUIRK_HOST_ASM))
        return;
    if (qn_tiles_allowed() && qn_device_try_tile(device, layout, QN_MATRIX_BF16_TILES, true))
        facts->matrix_units = QN_MATRIX_BF16_TILES;
    else if (qn_has_dots() && qn_device_try_tile(device, layout, QN_MATRIX_BF16_DOTS, true) &&
             has_fast_dots(device))
        facts->matrix_units = QN_MATRIX_BF16_DOTS;
}

static void log_units(const struct qn_log *log, const struct qn_facts *facts)
{
    const char *layout = facts->matrix_units & QN_MATRIX_BF16_DOTS ? "a core's dot products"
                         : facts->cpu                              ? "a core's tiles"
                                      : qn_tile_layout(facts->matrix_layout)->name;
    char text[64] = "";
    for (int i = 0; i < TYPES; i++)
        if (facts->matrix_units & (int)types[i].unit)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", types[i].name);
    const char *copies = facts->matrix_units & QN_MATRIX_COPIES ? ", copied meanwhile" : "";
    const char *strips = facts->matrix_units & QN_MATRIX_STRIPS ? ", in long strips" : "";
    qn_log_write(log, QN_LOG_DEBUG, "matrix units: %s%s%s%s", *text ? layout : "none", text, copies,
                 strips);
}

void qn_device_try_units(struct qn_device *device)
{
    const struct qn_log log = device->log;
    device->log = (struct qn_log){0}; /* a trial that fails is no error */
    (device->facts.cpu ? try_cpu : try_layouts)(device, &device->facts);
    device->log = log;
    log_units(&log, &device->facts);
}
