/* SPDX-License-Identifier: MIT
 *
 * Files of metrics, and the pages of a report and of a comparison of what was read: updates rise,
 * and whatever the names and values are, the pages are made.
 */
#include "history.h"
#include "compare_page.h"
#include "file.h"
#include "fuzz.h"
#include "report_page.h"

#include <math.h>
#include <stdlib.h>

static void check(const struct series *s)
{
    for (int64_t i = 1; i < s->count; i++)
        if (!(s->x[i] > s->x[i - 1]))
            abort();
}

/* As two seeds, so that means are taken, too. */
static void put_comparison(const struct reported *training, struct failure *failure)
{
    struct arguments arguments = {.operand = "fuzz"};
    struct reported twice[] = {*training, *training};
    char name[] = "fuzz", *names[] = {name, name};
    struct compare_run runs[] = {{.name = name, .state = RUN_DONE},
                                 {.name = name, .state = RUN_DONE}};
    const struct comparison comparison = {.arguments = &arguments,
                                          .variants = {.n_variants = 1, .n_seeds = 2, .n_runs = 2},
                                          .variant_names = names,
                                          .runs = runs,
                                          .report = {twice, 2}};
    compare_page(&comparison, "/dev/null/none", failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct failure failure = FAILURE_NONE;
    struct reported training = {.name = "fuzz"};
    const struct report report = {&training, 1};
    struct page page;
    const int code = history_read(&training.history, fuzz_file(bytes, size), &failure);
    for (int i = 0; i < training.history.n_figures; i++)
        check(&training.history.figures[i].series);
    if (code == CODE_DONE && page_begin(&page, "fuzz", &failure) == CODE_DONE) {
        report_put(&page, &report);
        page_end(&page, "", CODE_FAILED, &failure);
        put_comparison(&training, &failure);
    }
    history_free(&training.history);
    return 0;
}
