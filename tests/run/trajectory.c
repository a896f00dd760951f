/* SPDX-License-Identifier: MIT
 *
 * Contrastive training beside PyTorch: weights after 50 updates in each mode, banks included
 * (tools/golden/contrastive.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device.h"
#include "support.h"

#include "../golden/contrastive.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = CODE * WIDE, BANK = 7 };

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const int64_t from = *(const int64_t *)user + first;
    const double side = strcmp(input, "y") == 0;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < WIDE; k++) {
            const double sample = (double)(from + i), turn = (double)((from + i) % 13);
            if (strcmp(input, "ids") == 0)
                ((int32_t *)rows)[i] = (int32_t)(from + i);
            else
                ((float *)rows)[i * WIDE + k] =
                    (float)sin(1.7 * sample + 0.9 * k + 0.1 * turn * k + 2 * side);
        }
    return QN_OK;
}

static qn_tensor tower(qn_graph *graph, const char *input, const char *name)
{
    qn_tensor x = qn_input(graph, input, QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor w = qn_parameter(graph, name, 2, (int64_t[]){CODE, WIDE}, NULL);
    return qn_tanh(graph, qn_linear(graph, x, w, (qn_tensor){0}));
}

static qn_status towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    (void)user;
    *queries = tower(graph, "x", "query");
    *passages = tower(graph, "y", "passage");
    return QN_OK;
}

static const char *const names[] = {"query", "passage"};

static void begin(qn_trainer *trainer)
{
    float w[NUMBERS];
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < NUMBERS; i++)
            w[i] = (float)(0.5 * sin(i + 3 * side));
        assert_int_equal(qn_trainer_write(trainer, names[side], w, NUMBERS), QN_OK);
    }
}

static void compare(qn_trainer *trainer, const double *want, const char *what)
{
    double apart = 0, size = 0;
    for (int side = 0; side < 2; side++) {
        float w[NUMBERS];
        assert_int_equal(qn_trainer_read(trainer, names[side], w, NUMBERS), QN_OK);
        for (int i = 0; i < NUMBERS; i++) {
            const double d = (double)w[i] - want[side * NUMBERS + i];
            apart += d * d;
            size += want[side * NUMBERS + i] * want[side * NUMBERS + i];
        }
    }
    print_message("  %s: %.2e apart\n", what, sqrt(apart / size));
    assert_true(sqrt(apart / size) < 1e-5);
}

/* From the update CHANGE on banks are limited to so many samples; 0: they are not. */
static void follow_limited(const qn_contrastive_params *how, int64_t micro, int64_t limit,
                           const double *want, const char *what)
{
    qn_contrastive_params params = *how;
    const qn_plan_params plan = {.budget = 1 << 20, .batch = {BATCH}, .micro_batch = micro};
    qn_contrastive *contrastive;
    struct test_run run;
    params.graph.log = test_log;
    params.towers = towers;
    params.temperature = 0.5;
    assert_int_equal(qn_contrastive_create(&contrastive, &params), QN_OK);
    assert_int_equal(qn_plan_create_runs(&run.plan, qn_contrastive_program(contrastive),
                                         qn_device_facts(device), &plan, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, NULL), QN_OK);
    begin(run.trainer);
    for (int64_t update = 0, from = 0; update < UPDATES; update++, from += BATCH) {
        const qn_cycle cycle = {.samples = BATCH, .lr = 0.3, .fetch = fetch, .user = &from};
        if (limit && update == CHANGE)
            assert_int_equal(qn_trainer_limit_cell(run.trainer, "bank.ids", limit), QN_OK);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    }
    assert_int_equal(qn_trainer_finish(run.trainer, NULL), QN_OK);
    compare(run.trainer, want, what);
    test_close(&run);
    qn_contrastive_destroy(&contrastive);
}

static void follow(const qn_contrastive_params *how, int64_t micro, const double *want,
                   const char *what)
{
    follow_limited(how, micro, 0, want, what);
}

static void whole_batches(void **state)
{
    (void)state;
    const qn_contrastive_params whole = {.mode = QN_CONTRASTIVE_WHOLE};
    const qn_contrastive_params both = {.mode = QN_CONTRASTIVE_WHOLE, .symmetric = true};
    const qn_contrastive_params cached = {.mode = QN_CONTRASTIVE_GRADCACHE};
    follow(&whole, 0, golden_whole, "whole");
    follow(&both, 0, golden_whole_symmetric, "whole, symmetric");
    follow(&cached, MICRO, golden_whole, "gradcache");
}

static void micro_steps(void **state)
{
    (void)state;
    const qn_contrastive_params plain = {.mode = QN_CONTRASTIVE_ACCUMULATE};
    const qn_contrastive_params banks = {.mode = QN_CONTRASTIVE_CONTACCUM, .bank = BANK};
    const qn_contrastive_params both = {
        .mode = QN_CONTRASTIVE_CONTACCUM, .bank = BANK, .symmetric = true};
    const qn_contrastive_params alone = {
        .mode = QN_CONTRASTIVE_CONTACCUM, .bank = BANK, .no_query_bank = true};
    follow(&plain, MICRO, golden_accumulate, "accumulate");
    follow(&banks, MICRO, golden_contaccum, "contaccum");
    follow(&both, MICRO, golden_contaccum_symmetric, "contaccum, symmetric");
    follow(&alone, MICRO, golden_passages_alone, "contaccum, passages alone");
}

/* Banks that start later, and banks of which fewer samples count from an update on. */
static void banks_that_change(void **state)
{
    (void)state;
    const qn_contrastive_params late = {
        .mode = QN_CONTRASTIVE_CONTACCUM, .bank = BANK, .start = CHANGE};
    const qn_contrastive_params banks = {.mode = QN_CONTRASTIVE_CONTACCUM, .bank = BANK};
    follow(&late, MICRO, golden_late, "contaccum, later");
    follow_limited(&banks, MICRO, 3, golden_limited, "contaccum, limited");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_batches),
        cmocka_unit_test(micro_steps),
        cmocka_unit_test(banks_that_change),
    };
    return cmocka_run_group_tests_name("trajectory", tests, open_device, close_device);
}
