/* SPDX-License-Identifier: MIT
 *
 * Products by matrix units of every layout, which devices without them emulate, over whole steps
 * and past the edges of tiles and sums: in f32, where operands are split, in f16 at each setting
 * and, in the first layout, in bf16, of which tests/cl/tile.c multiplies tiles in all. Forward and
 * both gradients take operands in every order. Strips that the device copies by itself are those of
 * the first layout, over more steps than there are stages. Convolutions, transposed ones too: the
 * forward pass and all gradients in f16, and in the first layout of both types with weights of f32.
 *
 * With the argument `turns`, for minutes less, one after the other takes the next setting, half of
 * the convolutions run, and those that could take each layout take the next one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/cell.h"
#include "check/choose.h"
#include "op/conv2d.h"
#include "op/tile.h"
#include "ops/matmul.h"

#include <string.h>

extern const struct qn_check_op qn_check_linear, qn_check_conv2d, qn_check_conv_transpose2d;
/* Bytes of local memory that hold two stages of the smallest tiles. */
enum { TWO_STAGES = 20 << 10 };
static const qn_dtype types[] = {QN_F32, QN_F16, QN_BF16};

/* What is multiplied, whether in each layout, and whether at each setting. */
struct work {
    const struct qn_check_op *check;
    struct qn_check_case item;
    bool every_layout, every_setting;
};

#define ACTIVATIONS(...)                                                                           \
    {                                                                                              \
        .rank = 4, .dim = { __VA_ARGS__ }                                                          \
    }
#define WEIGHTS(...)                                                                               \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 4, .dim = { __VA_ARGS__ }                               \
    }
#define BIAS(n)                                                                                    \
    {                                                                                              \
        .role = QN_ROLE_PARAMETER, .rank = 1, .dim = { n }                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = -1                                                                                 \
    }
/* Groups whose strips are not full, and residues; two sources; lines that are aligned but for the
 * padding, and so by 4 or 8 elements, or not, over several pieces; a window that is no constant;
 * one that is an element, over the edges of tiles, down images and along lines that are aligned by
 * 4 and by 2. */
static const struct work convolutions[] = {
    {&qn_check_conv2d,
     {"25 channels in 2 groups of stride 2",
      {ACTIVATIONS(2, 50, 7, 9), WEIGHTS(52, 25, 3, 3), BIAS(52), NONE},
      &(const struct qn_conv2d_attr){{2, 2}, {1, 1}, {1, 1}, 2}},
     .every_layout = true},
    {&qn_check_conv2d,
     {"two images of 25 and 24 channels",
      {ACTIVATIONS(1, 25, 5, 6), WEIGHTS(24, 49, 2, 2), NONE, ACTIVATIONS(1, 24, 5, 6)},
      &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 1}},
     .every_layout = true},
    {&qn_check_conv2d,
     {"33 channels and dilation 2",
      {ACTIVATIONS(1, 33, 9, 8), WEIGHTS(24, 33, 3, 3), NONE, NONE},
      &(const struct qn_conv2d_attr){{1, 1}, {2, 2}, {2, 2}, 1}}},
    {&qn_check_conv2d,
     {"lines of 12 in many parts",
      {ACTIVATIONS(4, 24, 9, 12), WEIGHTS(25, 24, 3, 3), NONE, NONE},
      &(const struct qn_conv2d_attr){{1, 1}, {1, 1}, {1, 1}, 1}},
     .every_setting = true},
    {&qn_check_conv2d,
     {"lines of 17",
      {ACTIVATIONS(1, 24, 3, 17), WEIGHTS(24, 24, 3, 3), NONE, NONE},
      &(const struct qn_conv2d_attr){{1, 1}, {1, 1}, {1, 1}, 1}},
     .every_layout = true},
    {&qn_check_conv2d,
     {"lines of 32 and stride 2",
      {ACTIVATIONS(2, 24, 5, 32), WEIGHTS(24, 24, 3, 3), NONE, NONE},
      &(const struct qn_conv2d_attr){{2, 2}, {1, 1}, {1, 1}, 1}}},
    {&qn_check_conv2d,
     {"24 channels, asymmetric",
      {ACTIVATIONS(1, 24, 8, 11), WEIGHTS(24, 24, 2, 4), BIAS(24), NONE},
      &(const struct qn_conv2d_attr){{3, 2}, {1, 4}, {2, 1}, 1}}},
    {&qn_check_conv2d,
     {"24 pixels and 35 channels",
      {ACTIVATIONS(3, 35, 4, 6), WEIGHTS(65, 35, 1, 1), BIAS(65), NONE},
      &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 1}},
     .every_setting = true},
    {&qn_check_conv2d,
     {"100 pixels",
      {ACTIVATIONS(2, 24, 10, 10), WEIGHTS(24, 24, 1, 1), NONE, NONE},
      &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 1}}},
    {&qn_check_conv2d,
     {"two images of 602 pixels",
      {ACTIVATIONS(2, 25, 14, 43), WEIGHTS(24, 49, 1, 1), NONE, ACTIVATIONS(2, 24, 14, 43)},
      &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 1}}},
    {&qn_check_conv_transpose2d,
     {"transposed, 26 to 25 channels in 2 groups",
      {ACTIVATIONS(2, 52, 4, 5), WEIGHTS(52, 25, 3, 3), BIAS(50)},
      &(const struct qn_conv_transpose2d_attr){{{2, 2}, {1, 1}, {1, 1}, 2}, {1, 0}}},
     .every_layout = true},
    {&qn_check_conv_transpose2d,
     {"transposed, doubling 66 channels",
      {ACTIVATIONS(1, 66, 5, 8), WEIGHTS(66, 65, 2, 2), BIAS(65)},
      &(const struct qn_conv_transpose2d_attr){{{2, 2}, {0, 0}, {1, 1}, 1}, {0, 0}}},
     .every_setting = true},
    {&qn_check_conv_transpose2d,
     {"transposed, output padding below the dilation",
      {ACTIVATIONS(1, 24, 6, 5), WEIGHTS(24, 33, 2, 1), NONE},
      &(const struct qn_conv_transpose2d_attr){{{1, 2}, {0, 0}, {3, 4}, 1}, {2, 3}}}},
    {&qn_check_conv_transpose2d,
     {"transposed, 24 pixels and 35 channels",
      {ACTIVATIONS(3, 35, 4, 6), WEIGHTS(35, 24, 1, 1), BIAS(24)},
      &(const struct qn_conv_transpose2d_attr){{{1, 1}, {0, 0}, {1, 1}, 1}, {0, 0}}}},
};

/* The case of linear whose operands are whole vectors. */
static struct work product(void)
{
    const struct qn_check_case *item = qn_check_linear.cases;
    while (strcmp(item->name, "whole vectors") != 0)
        item++;
    return (struct work){&qn_check_linear, *item, true, true};
}

static bool by_turns;
static int next_setting; /* by turns */

/* Settings that were checked; others do not fit. */
static int check_settings(qn_device *device, const struct qn_subject *subject,
                          const struct qn_facts *facts, bool every_setting)
{
    const int known = qn_variant_settings(subject->check->op, "units");
    const int first = by_turns ? next_setting++ : 0, wanted = every_setting ? known : 1;
    int count = 0;
    for (int i = 0; i < known && count < wanted; i++) {
        const int setting = (first + i) % known;
        struct qn_picks picks = {.facts = facts};
        struct qn_verdict verdict = {0};
        const char *why;
        if (!qn_pick_all(&picks, subject, "units", setting, &why))
            continue;
        qn_cell_check(subject, device, &picks, &verdict);
        if (verdict.failed)
            fail_msg("%s, %s, %s, setting %d: %s", qn_tile_layout(facts->matrix_layout)->name,
                     subject->item->name, qn_dtype_name(subject->storage), setting, verdict.text);
        count++;
    }
    return count;
}

static struct qn_facts facts_of(qn_device *device, int layout)
{
    struct qn_facts facts = *qn_device_facts(device);
    facts.cpu = false;
    facts.vector_width = 4;
    facts.matrix_layout = layout;
    facts.matrix_units = qn_tile_layout(layout)->types;
    return facts;
}

/* 16-bit parameters, or f32 ones beside 16-bit activations. */
static int check_type(qn_device *device, const struct work *work, const struct qn_facts *facts,
                      qn_dtype storage, bool store_parameters)
{
    struct qn_subject subject = {.check = work->check,
                                 .item = &work->item,
                                 .storage = storage,
                                 .store_parameters = store_parameters,
                                 .brief = true,
                                 .seed = 1};
    struct qn_verdict verdict = {0};
    assert_true(qn_subject_open(&subject, &verdict));
    const bool every_setting = work->every_setting && storage == QN_F16 && !by_turns;
    const int count = check_settings(device, &subject, facts, every_setting);
    qn_subject_close(&subject);
    return count;
}

/* In f32 the layouts with neither f32 nor tf32 multiply nothing. */
static void products_are_right(void **state)
{
    (void)state;
    const struct work linear = product();
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    for (int layout = QN_TILE_LAYOUTS; layout > 0; layout--)
        for (int t = 0; t < (layout == 1 ? 3 : 2); t++) {
            const struct qn_facts facts = facts_of(device, layout);
            const int wide = facts.matrix_units & (QN_MATRIX_F32 | QN_MATRIX_TF32);
            const int count = check_type(device, &linear, &facts, types[t], true);
            assert_int_equal(count > 0, types[t] != QN_F32 || wide);
        }
    qn_device_close(&device);
}

/* In three stages, in two, and by work-items. */
static void copies_are_right(void **state)
{
    (void)state;
    const struct work vectors = product();
    const struct work steps = {&qn_check_linear,
                               {"five steps",
                                {{.rank = 2, .dim = {136, 136}},
                                 {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {72, 136}},
                                 NONE,
                                 NONE},
                                NULL},
                               false,
                               false};
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    struct qn_facts facts = facts_of(device, QN_MATRIX_MMA);
    assert_true(check_type(device, &steps, &facts, QN_F16, true) > 0);
    facts.local_bytes = TWO_STAGES;
    assert_true(check_type(device, &steps, &facts, QN_BF16, true) > 0);
    facts.matrix_units &= ~QN_MATRIX_COPIES;
    assert_true(check_type(device, &vectors, &facts, QN_F16, true) > 0);
    qn_device_close(&device);
}

/* Of 64 GiB and of more, either of them. */
static void large_operands_are_refused(void **state)
{
    (void)state;
    enum { TERMS = 1 << 20, MOST_ROWS = 1 << 14, FEW = 64 };
    const struct qn_operand f32 = {.dtype = QN_F32};
    struct qn_facts facts;
    const char *why;
    qn_facts_default(&facts, false);
    facts.matrix_layout = QN_MATRIX_MMA;
    facts.matrix_units = qn_tile_layout(QN_MATRIX_MMA)->types;
    const struct qn_call call = {.facts = &facts};
    for (int rows = MOST_ROWS; rows <= 2 * MOST_ROWS; rows += MOST_ROWS) {
        const struct qn_matmul
            tall = {.m = rows, .n = FEW, .k = TERMS, .a = &f32, .b = &f32, .c = &f32},
            wide = {.m = FEW, .n = rows, .k = TERMS, .a = &f32, .b = &f32, .c = &f32};
        assert_int_equal(qn_matmul_units.fits(&call, &tall, &why), rows == MOST_ROWS);
        assert_int_equal(qn_matmul_units.fits(&call, &wide, &why), rows == MOST_ROWS);
    }
}

/* In f16; and with weights of f32, which are split. */
static void convolutions_are_right(void **state)
{
    (void)state;
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    int turns = 0;
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        const struct work *work = &convolutions[i];
        if (by_turns && !work->every_layout && !work->every_setting)
            continue;
        const int turn = by_turns && work->every_layout ? turns++ % QN_TILE_LAYOUTS : 0;
        const int first = QN_MATRIX_MMA + turn;
        const int last = by_turns || !work->every_layout ? first : QN_TILE_LAYOUTS;
        for (int layout = last; layout >= first; layout--) {
            const struct qn_facts facts = facts_of(device, layout);
            assert_true(check_type(device, work, &facts, QN_F16, true) > 0);
            if (work->every_layout && layout == QN_MATRIX_MMA) {
                assert_true(check_type(device, work, &facts, QN_BF16, false) > 0);
                assert_true(check_type(device, work, &facts, QN_F16, false) > 0);
            }
        }
    }
    qn_device_close(&device);
}

/* Two channels of each pair are alike, and their weights cancel but for less than half of the last
 * bit of f16. */
enum { ROWS = 25, CHANNELS = 26, PIXELS = 40 };

static void fill_pairs(double pixels[CHANNELS * PIXELS], double weights[ROWS * CHANNELS])
{
    for (int i = 0; i < CHANNELS * PIXELS; i++)
        pixels[i] = (i / (2 * PIXELS) * 31 + i % PIXELS * 17) % 64 - 31.5;
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        const double weight = 1 + i / 2 * 29 % 64 / 64.0;
        weights[i] = i % 2 ? -weight * (1 + 0.875 / 4096) : weight;
    }
}

/* Rounded to f16 the first would give 0, and the second would have few bits. */
static void weights_beside_f16_are_exact(void **state)
{
    static double pixels[CHANNELS * PIXELS], weights[ROWS * CHANNELS];
    const struct work works[] = {
        {&qn_check_conv2d,
         {"pairs that cancel",
          {{.rank = 4, .dim = {1, CHANNELS, 5, 8}, .values = pixels},
           {QN_ROLE_PARAMETER, .rank = 4, .dim = {ROWS, CHANNELS, 1, 1}, .values = weights},
           NONE,
           NONE},
          &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 1}}},
        {&qn_check_conv2d,
         {"weights of 2^-20 in 2 groups",
          {{.rank = 4, .dim = {1, 50, 4, 5}, .a = 4096},
           {QN_ROLE_PARAMETER, .rank = 4, .dim = {50, 25, 2, 2}, .a = 1.0 / (1 << 20)},
           BIAS(50),
           NONE},
          &(const struct qn_conv2d_attr){{1, 1}, {0, 0}, {1, 1}, 2}}}};
    (void)state;
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    const struct qn_facts facts = facts_of(device, QN_MATRIX_MMA);
    fill_pairs(pixels, weights);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        assert_int_equal(check_type(device, &works[i], &facts, QN_F16, false), 1);
    qn_device_close(&device);
}

int main(int argc, char **argv)
{
    by_turns = argc > 1 && strcmp(argv[1], "turns") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right), cmocka_unit_test(large_operands_are_refused),
        cmocka_unit_test(copies_are_right), cmocka_unit_test(convolutions_are_right),
        cmocka_unit_test(weights_beside_f16_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
