/* SPDX-License-Identifier: MIT
 *
 * Files of metrics, and the page of a report of what was read: updates rise, and whatever the names
 * and values are, the page is made.
 */
#include "history.h"
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
    }
    history_free(&training.history);
    return 0;
}
