/* SPDX-License-Identifier: MIT
 *
 * Finding out which matrix units a device has: by multiplying one tile in them.
 */
#include "cl/private.h"
#include "cl/recording.h"
#include "cl/slab.h"
#include "op/op.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 32, HELD = 10 * LANES }; /* of a team, as in lib/tile.clh and tile.cl */
enum { MOST_LINES = 32, MOST_WORDS = 16 };
enum { A, B, C, HELD_WORDS, BUFFERS };

/* What kernel multiplies one tile with factors of a type: rows, columns, and words of both, each
 * with `pack` factors. Small whole numbers are stored as the top bits of an f32, or as a half. */
static const struct type {
    const char *name;
    enum qn_matrix_type unit;
    int pack;
    const char *kernel;
    int rows, columns, words, lanes;
} types[] = {{"f16", QN_MATRIX_F16, 2, "tile", 16, 8, 8, LANES},
             {"bf16", QN_MATRIX_BF16, 2, "tile", 16, 8, 8, LANES},
             {"tf32", QN_MATRIX_TF32, 1, "tile", 16, 8, 8, LANES},
             {"bf16", QN_MATRIX_BF16_TILES, 2, "tile_cpu", 32, 32, 16, 1}};

/* 0 to 7, without a pattern that a permutation of rows, columns or terms would keep. */
static int number(int seed, int row, int term)
{
    return (seed + 37 * row + 101 * term + row * term * term) % 127 % 8;
}

static uint32_t factor(const struct type *type, int value)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    const float exact = (float)value;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if (type->unit == QN_MATRIX_TF32)
        return bits;
    return type->unit == QN_MATRIX_F16 ? halves[value] : bits >> 16;
}

static void fill(const struct type *type, int seed, int rows, uint32_t *words)
{
    memset(words, 0, (size_t)(rows * type->words) * sizeof *words);
    for (int row = 0; row < rows; row++)
        for (int l = 0; l < type->words * type->pack; l++)
            words[row * type->words + l / type->pack] |= factor(type, number(seed, row, l))
                                                         << 16 * (l % type->pack);
}

static bool is_right(const struct type *type, const float *c)
{
    for (int i = 0; i < type->rows * type->columns; i++) {
        int sum = 0;
        for (int l = 0; l < type->words * type->pack; l++)
            sum += number(1, i / type->columns, l) * number(2, i % type->columns, l);
        if (!(c[i] == (float)sum))
            return false;
    }
    return true;
}

static struct qn_operand words_of(int buffer, int64_t count)
{
    return (struct qn_operand){QN_I32, {1, {count}}, buffer, 0};
}

static qn_status launch(struct qn_slab *slab, const struct type *type, bool units)
{
    const struct qn_operand a = words_of(A, type->rows * type->words),
                            b = words_of(B, type->columns * type->words),
                            c = words_of(C, type->rows * type->columns),
                            held = words_of(HELD_WORDS, HELD);
    struct qn_launch launch = {.program = type->kernel,
                               .kernel = type->kernel,
                               .args = {QN_BUF(&a), QN_BUF(&b), QN_BUF(&c)},
                               .global = {type->lanes},
                               .local = {type->lanes}};
    if (type->lanes == LANES)
        launch.args[HELD_WORDS] = (struct qn_arg)QN_BUF(&held);
    struct qn_recording *recording = NULL;
    snprintf(launch.options, sizeof launch.options, "-DUNIT_TYPE=%s", type->name);
    if (units)
        qn_launch_option(&launch, "QN_MATRIX_UNITS", type->unit);
    QN_TRY(qn_recording_open(&recording, slab));
    qn_status status = qn_emit_launch(qn_recording_emit(recording, "matrix units"), &launch);
    if (status == QN_OK)
        status = qn_recording_run(recording, 0, -1);
    qn_recording_close(&recording);
    return status;
}

static qn_status multiply(struct qn_slab *slab, const struct type *type, bool units, float *c)
{
    uint32_t words[MOST_LINES * MOST_WORDS];
    const size_t line = (size_t)type->words * sizeof *words;
    fill(type, 1, type->rows, words);
    QN_TRY(qn_slab_write(slab, A, 0, words, type->rows * line, NULL));
    fill(type, 2, type->columns, words);
    QN_TRY(qn_slab_write(slab, B, 0, words, type->columns * line, NULL));
    QN_TRY(launch(slab, type, units));
    return qn_slab_read(slab, C, 0, c, (size_t)(type->rows * type->columns) * sizeof *c, NULL);
}

bool qn_device_try_tile(struct qn_device *device, enum qn_matrix_type unit, bool units)
{
    static const int64_t bytes[BUFFERS] = {MOST_LINES * MOST_WORDS * 4, MOST_LINES * MOST_WORDS * 4,
                                           MOST_LINES * MOST_LINES * 4, HELD * 4};
    const struct type *type = types;
    float c[MOST_LINES * MOST_LINES] = {0};
    struct qn_slab *slab = NULL;
    while (type->unit != unit)
        type++;
    if (qn_slab_open(&slab, device, bytes, BUFFERS) != QN_OK)
        return false;
    const bool right = multiply(slab, type, units, c) == QN_OK && is_right(type, c);
    qn_slab_close(&slab);
    return right;
}

/* The types that may be tried: of a device that is not asked for them, none. */
static int units_to_try(const struct qn_device *device)
{
    if (device->quirks & QN_QUIRK_PTX_ASM)
        return QN_MATRIX_F16 | QN_MATRIX_BF16 | QN_MATRIX_TF32;
    if (device->quirks & QN_QUIRK_HOST_ASM && device->facts.cpu && qn_tiles_allowed())
        return QN_MATRIX_BF16_TILES;
    return 0;
}

int qn_device_try_units(struct qn_device *device)
{
    const struct qn_log log = device->log;
    const int to_try = units_to_try(device);
    int units = 0;
    device->log = (struct qn_log){0}; /* a trial that fails is no error */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (to_try & (int)types[i].unit && qn_device_try_tile(device, types[i].unit, true))
            units |= (int)types[i].unit;
    device->log = log;
    if (to_try)
        qn_log_write(&log, QN_LOG_DEBUG, "matrix units:%s%s%s%s%s",
                     units & QN_MATRIX_F16 ? " f16" : "", units & QN_MATRIX_BF16 ? " bf16" : "",
                     units & QN_MATRIX_TF32 ? " tf32" : "",
                     units & QN_MATRIX_BF16_TILES ? " bf16 tiles" : "", units ? "" : " none");
    return units;
}
