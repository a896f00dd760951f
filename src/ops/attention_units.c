/* SPDX-License-Identifier: MIT
 *
 * The shapes of attention_units.cl: how many teams share the rows of a block, and what that takes
 * of local memory. Operands of f32 would need two factors each, in twice the local memory: they are
 * left to the other variants.
 */
#include "ops/attention_units.h"

#include "op/tile.h"

/* As in attention_units.cl. */
enum { STEP = 2 * QN_TILE_DEPTH, WORD_BYTES = 4 };

/* Gradients of wide heads: with half the rows, two teams to each, the sums of two gradients fit the
 * registers and both blocks the local memory. */
enum { WIDE_HEAD = 64 };

/* Teams along the rows of a block and along what they share: each other tile of a row's scores and
 * of its sums. */
struct teams {
    int64_t m, n;
};

static const struct qn_tile_layout *layout_of(const struct qn_facts *facts)
{
    return qn_tile_layout(facts->matrix_layout);
}

/* The lanes of dpas are few: many teams must share a row to hold what it takes. */
static struct teams teams_of(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    if (facts->matrix_layout == QN_MATRIX_DPAS8)
        return (struct teams){4, 4};
    if (facts->matrix_layout == QN_MATRIX_DPAS16)
        return (struct teams){4, 2};
    return units->gradient && units->head > WIDE_HEAD ? (struct teams){2, 2} : (struct teams){4, 1};
}

/* The widest head of which the registers hold the sums. */
static int64_t most_head(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    static const int64_t most[QN_TILE_LAYOUTS + 1][2] = {
        [QN_MATRIX_MMA] = {128, 128}, [QN_MATRIX_MFMA] = {128, 128},  [QN_MATRIX_WMMA] = {128, 128},
        [QN_MATRIX_DPAS8] = {96, 64}, [QN_MATRIX_DPAS16] = {128, 64},
    };
    return most[facts->matrix_layout][units->gradient];
}

static int64_t items_of(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    const struct teams teams = teams_of(facts, units);
    return teams.m * teams.n * layout_of(facts)->lanes;
}

static int64_t block_of(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    return teams_of(facts, units).m * layout_of(facts)->m;
}

/* Blocks of a kernel that its teams hold in registers; units that are emulated hold none, on
 * devices that have local memory enough. */
static int held_of(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    static const int most[QN_TILE_LAYOUTS + 1] = {[QN_MATRIX_MFMA] = 2, [QN_MATRIX_WMMA] = 1};
    const int blocks = 1 + units->gradient, held = most[facts->matrix_layout];
    return held < blocks ? held : blocks;
}

/* Of the kernel that needs most: the gradients of k and v, or the forward pass. `apart`: with a
 * place for each copy of a step. */
static int64_t local_bytes_of(const struct qn_facts *facts, const struct qn_attention_units *units,
                              bool apart)
{
    const int64_t block = block_of(facts, units);
    const int64_t in_memory = 1 + units->gradient - held_of(facts, units);
    const int64_t blocks = in_memory * units->head / STEP * block;
    const int64_t statistics = units->gradient ? 2 * STEP : 0;
    const int64_t step = units->head * (!apart ? 1 : units->gradient ? 4 : 2);
    const int64_t words = (blocks + block + step) * layout_of(facts)->pitch + statistics;
    return words * WORD_BYTES + (units->dropout ? block * STEP / 4 : 0);
}

/* Copies that lie apart save barriers; where they also leave fewer work-groups to a processor,
 * nobody has looked. */
static bool is_apart(const struct qn_facts *facts, const struct qn_attention_units *units)
{
    return facts->matrix_layout == QN_MATRIX_MMA &&
           local_bytes_of(facts, units, true) <= facts->local_bytes;
}

static bool has_units(const struct qn_facts *facts, qn_dtype dtype)
{
    return facts->matrix_units & (dtype == QN_F16 ? QN_MATRIX_F16 : QN_MATRIX_BF16);
}

bool qn_attention_units_fit(const struct qn_facts *facts, qn_dtype dtype,
                            const struct qn_attention_units *units, const char **why)
{
    if (dtype == QN_F32)
        *why = "attention by matrix units takes operands of 16 bits";
    else if (units->head % STEP != 0)
        *why = "attention by matrix units takes heads of 32, 64, 96 and 128";
    else if (!has_units(facts, dtype))
        *why = "the device has no matrix units for this type";
    else if (units->head > most_head(facts, units))
        *why = "the sums of so wide a head do not fit the device's registers";
    else if (facts->max_work_group < items_of(facts, units))
        *why = "the device's work-groups are too small";
    else if (facts->local_bytes < local_bytes_of(facts, units, false))
        *why = "the device has too little local memory";
    else
        return true;
    return false;
}

int64_t qn_attention_units_set(struct qn_launch *launch, const struct qn_facts *facts,
                               const struct qn_attention_units *units)
{
    launch->program = "attention_units";
    const struct teams teams = teams_of(facts, units);
    launch->local[0] = items_of(facts, units);
    qn_launch_word(launch, "TILE_LAYOUT", layout_of(facts)->name);
    qn_launch_option(launch, "GRADIENT", units->gradient);
    qn_launch_option(launch, "TEAMS_M", teams.m);
    qn_launch_option(launch, "TEAMS_N", teams.n);
    qn_launch_option(launch, "APART", is_apart(facts, units));
    return block_of(facts, units);
}
