/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "line.h"
#include "report_page.h"

#include <stdlib.h>

enum { MOST_TRAININGS = 32 };

static int write_report(const struct report *r, const char *path, struct failure *failure)
{
    char title[64];
    struct page page;
    snprintf(title, sizeof title, "%d trainings", r->count);
    TRY(page_begin(&page, r->count > 1 ? title : r->trainings[0].name, failure));
    report_put(&page, r);
    return page_end(&page, path, CODE_DONE, failure);
}

static int report(struct report *r, const struct arguments *a, struct failure *failure)
{
    const char *path = a->value[OPTION_PAGE] ? a->value[OPTION_PAGE] : "report.html";
    if (a->n_operands > MOST_TRAININGS)
        return failure_set(failure, CODE_USAGE, "report: more than %d trainings", MOST_TRAININGS);
    r->trainings = calloc((size_t)a->n_operands, sizeof *r->trainings);
    if (!r->trainings)
        return failure_set(failure, CODE_FAILED, "out of memory");
    for (; r->count < a->n_operands; r->count++)
        TRY(reported_read(&r->trainings[r->count], a->operands[r->count], a->operands[r->count],
                          failure));
    TRY(write_report(r, path, failure));
    line_print(stdout, "%s", path);
    return CODE_DONE;
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct report r = {0};
    const int code = report(&r, a, failure);
    for (int i = 0; r.trainings && i < a->n_operands; i++)
        reported_free(&r.trainings[i]);
    free(r.trainings);
    return code;
}

const struct command command_report = {
    "report",
    "DIR|FILE...",
    "a page with the curves, memory and time of trainings",
    "Writes one HTML file, which needs no network, about one training or several side by side:\n"
    "losses, evaluations, learning rates, gradient norms and samples per second over updates,\n"
    "the newest drift of banks over the age of what they hold, bytes and picture of the plan,\n"
    "time, device and versions. DIR is what --out of quern train named, FILE a file of --metrics.\n"
    "A training that is under way can be reported.\n\n"
    "A curve of many updates is drawn by the least, the greatest and the mean of each stretch,\n"
    "so that no spike is lost. Time by kind of step is of a training with --profile.",
    false,
    run,
    {OPTION_PAGE, OPTION_COUNT},
};
