/* SPDX-License-Identifier: MIT
 *
 * Attention by matrix units of layouts mfma, wmma and dpas, which devices without them emulate. In
 * layout mma all cases of the operator's own test run.
 *
 * With the argument `turns`, for minutes less, each layout takes one case: the next one takes the
 * next case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/cell.h"
#include "check/choose.h"
#include "op/tile.h"

#include <string.h>

extern const struct qn_check_op qn_check_attention;

/* Narrow heads, and wide ones, of which gradients share rows between teams; all that masks scores.
 * The registers of dpas hold less: how many groups, from the forward pass on, take its units.
 */
static const struct {
    const char *name;
    qn_dtype storage;
    int dpas;
} attentions[] = {{"dropout in matrix units", QN_F16, QN_MAX_GROUPS},
                  {"padding of steps of matrix units", QN_BF16, QN_MAX_GROUPS},
                  {"head size 96", QN_BF16, 2},
                  {"dropout of wide heads in matrix units", QN_F16, 0}};

static bool by_turns;

static const struct qn_check_case *find_case(const char *name)
{
    const struct qn_check_case *item = qn_check_attention.cases;
    while (strcmp(item->name, name) != 0)
        item++;
    return item;
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

static bool is_by_units(const struct qn_picks *picks, int groups_by_units)
{
    const struct qn_group *groups = qn_check_attention.op->groups;
    bool all = true;
    for (int g = 0; g < groups_by_units && groups[g].name; g++)
        for (int v = 0; v < QN_MAX_VARIANTS && groups[g].variant[v].name; v++)
            all = all && (strcmp(groups[g].variant[v].name, "units") != 0 ||
                          picks->group[g].variant == &groups[g].variant[v]);
    return all;
}

static void check(qn_device *device, int layout, int number)
{
    const struct qn_facts facts = facts_of(device, layout);
    const int groups = layout < QN_MATRIX_DPAS8 ? QN_MAX_GROUPS : attentions[number].dpas;
    struct qn_picks picks = {.facts = &facts};
    struct qn_verdict verdict = {0};
    struct qn_subject subject = {.check = &qn_check_attention,
                                 .item = find_case(attentions[number].name),
                                 .storage = attentions[number].storage,
                                 .store_parameters = true,
                                 .brief = true,
                                 .seed = 1};
    const char *why;
    if (groups == 0)
        return;
    assert_true(qn_subject_open(&subject, &verdict));
    assert_true(qn_pick_all(&picks, &subject, "units", 0, &why));
    assert_true(is_by_units(&picks, groups));
    qn_cell_check(&subject, device, &picks, &verdict);
    if (verdict.failed)
        fail_msg("%s, %s: %s", qn_tile_layout(layout)->name, attentions[number].name, verdict.text);
    qn_subject_close(&subject);
}

static void is_right(void **state)
{
    const int layout = *(const int *)*state;
    qn_device *device = NULL;
    assert_int_equal(qn_device_open(&device, NULL), QN_OK);
    const int count = sizeof attentions / sizeof *attentions, turn = (layout + 1) % count;
    for (int i = 0; i < count; i++)
        if (!by_turns || i == turn)
            check(device, layout, i);
    qn_device_close(&device);
}

int main(int argc, char **argv)
{
    by_turns = argc > 1 && strcmp(argv[1], "turns") == 0;
    static int mfma = QN_MATRIX_MFMA, wmma = QN_MATRIX_WMMA, dpas8 = QN_MATRIX_DPAS8,
               dpas16 = QN_MATRIX_DPAS16;
    const struct CMUnitTest tests[] = {
        {"mfma is right", is_right, NULL, NULL, &mfma},
        {"wmma is right", is_right, NULL, NULL, &wmma},
        {"dpas8 is right", is_right, NULL, NULL, &dpas8},
        {"dpas16 is right", is_right, NULL, NULL, &dpas16},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
