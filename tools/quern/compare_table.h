/* SPDX-License-Identifier: MIT
 *
 * The figures of the runs of a comparison side by side, and over the seeds of a variant.
 */
#ifndef QUERN_TOOL_COMPARE_TABLE_H
#define QUERN_TOOL_COMPARE_TABLE_H

#include "compare_runs.h"

enum compare_form { COMPARE_NUMBER, COMPARE_BYTES };

struct compare_column {
    char title[FIGURE_NAME_BYTES + 16];
    enum compare_form form;
    bool brief;                                       /* is told on a terminal, too */
    double (*value)(const struct reported *training); /* NULL: of the newest evaluation */
    const char *evaluation;                           /* "test_accuracy"; borrowed */
};

struct compare_columns {
    struct compare_column *columns; /* (count) */
    int count;
};

/* What the runs have been told of so far. False: out of memory. Freed by the caller. */
bool compare_columns_make(struct compare_columns *columns, const struct report *report);
void compare_columns_free(struct compare_columns *columns);

/* Of a figure of several runs: mean and standard deviation, (sum (x - mean)^2 / (count - 1))^(1/2),
 * which is 0 of one run. */
struct spread {
    double mean, deviation;
    int count; /* of the runs that have it; 0: the others are not finite */
};
/* Of one run; of the runs of a variant that came to their end. */
struct spread compare_of_run(const struct compare_column *column,
                             const struct comparison *comparison, int run);
struct spread compare_of_variant(const struct compare_column *column,
                                 const struct comparison *comparison, int variant);

/* "0.9167", "0.9167 ± 0.002", "4.98 MiB" with so many digits of a mean and two fewer of a
 * deviation;
 * "": there is none. Gives `text`. */
enum { COMPARE_TEXT_BYTES = 80 };
const char *compare_text(const struct compare_column *column, const struct spread *spread,
                         int digits, char text[COMPARE_TEXT_BYTES]);
/* "done", "no plan fits", "not trained yet". */
const char *compare_state(const struct comparison *comparison, int run);
/* The same with the budget that would do: "no plan fits; the smallest budget is 3 MiB". Gives
 * `text`. */
const char *compare_reason(const struct comparison *comparison, int run,
                           char text[COMPARE_TEXT_BYTES]);
/* How many runs of a variant came to their end. */
int compare_done(const struct comparison *comparison, int variant);

/* The last words on a terminal: a row for each variant. False: out of memory. */
bool compare_print(const struct comparison *comparison);
/* One line about a run that came to its end. False: out of memory. */
bool compare_print_run(const struct comparison *comparison, int run);

#endif
