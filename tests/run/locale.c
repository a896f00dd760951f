/* SPDX-License-Identifier: MIT
 *
 * A program may live in a locale that writes 1,5: what the library writes and reads must not
 * change. Skipped where no such locale can be made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/text.h"
#include "io/tree.h"
#include "support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 20 };

static char folder[] = "/tmp/quern-locale-XXXXXX";

static bool use_comma(void)
{
    return setlocale(LC_ALL, "de_DE.UTF-8") && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* Compiles the locale into our own folder if the machine has none. */
static bool make_comma(void)
{
    char command[256];
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             folder, folder);
    if (use_comma())
        return true;
    return system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 && use_comma();
}

static void numbers_have_a_point(void **state)
{
    (void)state;
    struct qn_text text = {0};
    char plain[32], size[32];
    const double values[] = {1.5, -1e-12, 0, 1e300, 3, INFINITY};
    for (int i = 0; i < 6; i++) {
        qn_text_number(&text, 17, values[i]);
        qn_text_add(&text, " ");
    }
    snprintf(plain, sizeof plain, "%.1f", 1.5);
    assert_string_equal(plain, "1,5"); /* the locale is what it should be */
    char *written = qn_text_take(&text);
    assert_string_equal(written, "1.5 -9.9999999999999998e-13 0 1.0000000000000001e+300 3 1e999 ");
    assert_string_equal(qn_size_text(1536, size, sizeof size), "1.50 KiB");
    free(written);
}

static void plans_print_the_same(void **state)
{
    (void)state;
    char *texts[4];
    qn_graph *graph = test_mlp(7, false);
    qn_facts facts;
    qn_plan *plan;
    qn_facts_default(&facts, true);
    const qn_plan_params params = {.budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = 16};
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(i ? use_comma() : setlocale(LC_ALL, "C") != NULL);
        texts[2 * i] = qn_plan_json(plan);
        texts[2 * i + 1] = qn_plan_svg(plan);
    }
    assert_string_equal(texts[0], texts[2]);
    assert_string_equal(texts[1], texts[3]);
    for (int i = 0; i < 4; i++)
        free(texts[i]);
    qn_plan_destroy(&plan);
    qn_graph_destroy(&graph);
}

static void save_trained(qn_device *device, const qn_graph *graph, const qn_trainer_params *params)
{
    struct test_data data;
    test_data_make(&data, SAMPLES, 7);
    const qn_plan_params plan = {
        .budget = 64 << 20, .batch = {SAMPLES}, .optimizer = {.name = "adam", .beta1 = 0.875}};
    struct test_run run = test_open(device, graph, &plan, params);
    test_train(run.trainer, &data, SAMPLES, 2);
    assert_int_equal(qn_checkpoint_save(run.trainer, folder, NULL), QN_OK);
    test_close(&run);
    test_data_free(&data);
}

static void checkpoints_read_back(void **state)
{
    (void)state;
    qn_device *device = test_device();
    qn_graph *graph = test_mlp(7, false);
    const qn_trainer_params params = {.weight_decay = 0.0625, .clip = INFINITY};
    save_trained(device, graph, &params);
    for (int i = 0; i < 2; i++) {
        qn_checkpoint *checkpoint;
        qn_plan *plan;
        qn_trainer *trainer;
        assert_true(i ? use_comma() : setlocale(LC_ALL, "C") != NULL);
        assert_int_equal(qn_checkpoint_open(&checkpoint, folder, NULL), QN_OK);
        const qn_checkpoint_info *info = qn_checkpoint_describe(checkpoint);
        assert_true(info->trainer.weight_decay == 0.0625 && isinf(info->trainer.clip));
        assert_true(info->plan.optimizer.beta1 == 0.875);
        assert_int_equal(qn_checkpoint_plan(checkpoint, graph, device, &plan), QN_OK);
        assert_int_equal(qn_trainer_open(&trainer, device, plan, &info->trainer), QN_OK);
        assert_int_equal(qn_checkpoint_restore(checkpoint, trainer), QN_OK);
        qn_trainer_close(&trainer);
        qn_plan_destroy(&plan);
        qn_checkpoint_close(&checkpoint);
    }
    qn_graph_destroy(&graph);
    qn_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_a_point),
        cmocka_unit_test(plans_print_the_same),
        cmocka_unit_test(checkpoints_read_back),
    };
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    int result = make_comma() ? cmocka_run_group_tests_name("locale", tests, NULL, NULL) : 77;
    qn_tree_remove(folder, NULL);
    return result;
}
