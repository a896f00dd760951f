/* SPDX-License-Identifier: MIT
 *
 * The line of a training on a terminal fits into it, however narrow.
 */
#include "progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct progress training = {.total = 1000,
                                         .samples_per_epoch = 6000,
                                         .bytes = 5 << 20,
                                         .budget = 8 << 20,
                                         .updates = 250,
                                         .samples = 24000,
                                         .seconds = 20,
                                         .metric = "accuracy 91.67 %"};
static const qn_metrics update = {.update = 249, .loss = 0.25};

static void the_line_fits(void **state)
{
    char text[PROGRESS_LINE_BYTES];
    (void)state;
    for (int columns = 2; columns < 300; columns++) {
        progress_line(&training, &update, 24000, columns, text);
        assert_true(strlen(text) < (size_t)columns && *text);
        if (columns > 11)
            assert_non_null(strstr(text, "loss 0.2500"));
    }
}

static void what_matters_less_is_left_out(void **state)
{
    static const struct {
        int columns;
        const char *text;
    } cases[] = {
        {160, "[=======>                    ]  250/1000  loss 0.2500  accuracy 91.67 %  "
              "1200 samples/s  1m00s left  5 MiB of 8 MiB  epoch 4.00"},
        {100,
         "[===>        ]  250/1000  loss 0.2500  accuracy 91.67 %  1200 samples/s  1m00s left  "
         "5 MiB of 8 MiB"},
        {80, "[==>     ]  250/1000  loss 0.2500  accuracy 91.67 %  1200 samples/s  1m00s left"},
        {40, "250/1000  loss 0.2500  1m00s left"},
        {12, "loss 0.2500"},
        {6, "loss "},
    };
    char text[PROGRESS_LINE_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        progress_line(&training, &update, 24000, cases[i].columns, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void huge_numbers_fit(void **state)
{
    struct progress p = training;
    const qn_metrics m = {.update = INT64_MAX - 2, .loss = 1e300};
    char text[PROGRESS_LINE_BYTES];
    (void)state;
    p.total = INT64_MAX;
    p.bytes = p.budget = INT64_MAX;
    p.seconds = 1e-300;
    memset(p.metric, 'x', sizeof p.metric - 1);
    for (int columns = -1; columns < 500; columns += 7)
        assert_true(strlen(progress_line(&p, &m, INT64_MAX, columns, text)) <=
                    (size_t)(columns < 2 ? 1 : columns - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_fits),
        cmocka_unit_test(what_matters_less_is_left_out),
        cmocka_unit_test(huge_numbers_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
