/* SPDX-License-Identifier: MIT */
#include "compare_table.h"
#include "line.h"
#include "report_curves.h"
#include "value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MILLISECONDS = 1000;
/* A number as %.*g writes it, whatever the digits. */
enum { TERMINAL_DIGITS = 4, COMPARE_VALUE_BYTES = 352 };

/* --- figures --- */

static double of_plan(const struct reported *t, const char *key)
{
    return reported_number(t->history.plan, key);
}

static double peak(const struct reported *t)
{
    return of_plan(t, "peak_bytes_planned");
}

static double micro_batch(const struct reported *t)
{
    return of_plan(t, "micro_batch");
}

static double recomputed(const struct reported *t)
{
    return of_plan(t, "recomputed_steps");
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value of rank `share` of all updates' seconds, as milliseconds; between two: their mean. */
static double time_of_rank(const struct reported *t, double share)
{
    const struct series *seconds = history_find(&t->history, FIGURE_UPDATE, "seconds");
    double *sorted = seconds ? calloc((size_t)seconds->count + 1, sizeof *sorted) : NULL, time;
    int64_t n = 0;
    for (int64_t i = 0; sorted && i < seconds->count; i++)
        if (isfinite(seconds->y[i]))
            sorted[n++] = seconds->y[i];
    if (n)
        qsort(sorted, (size_t)n, sizeof *sorted, rising);
    const double rank = share * (double)(n - 1);
    time = n ? (sorted[(int64_t)floor(rank)] + sorted[(int64_t)ceil(rank)]) / 2 : NAN;
    free(sorted);
    return MILLISECONDS * time;
}

static double fastest(const struct reported *t)
{
    return time_of_rank(t, 0);
}

static double median(const struct reported *t)
{
    return time_of_rank(t, 0.5);
}

static double training_seconds(const struct reported *t)
{
    return reported_sum(t, FIGURE_UPDATE, "seconds");
}

static double updates(const struct reported *t)
{
    const struct series *loss = history_find(&t->history, FIGURE_UPDATE, "loss");
    return loss && loss->count ? loss->x[loss->count - 1] : NAN;
}

static double last_loss(const struct reported *t)
{
    return reported_last(t, FIGURE_UPDATE, "loss");
}

/* Evaluations stand behind the first of them. */
static const struct compare_column known[] = {
    {"last training loss", COMPARE_NUMBER, true, last_loss, NULL},
    {"planned peak", COMPARE_BYTES, true, peak, NULL},
    {"median ms an update", COMPARE_NUMBER, true, median, NULL},
    {"fastest ms an update", COMPARE_NUMBER, false, fastest, NULL},
    {"samples per second", COMPARE_NUMBER, true, reported_speed, NULL},
    {"seconds of updates", COMPARE_NUMBER, false, training_seconds, NULL},
    {"updates", COMPARE_NUMBER, false, updates, NULL},
    {"micro-batch", COMPARE_NUMBER, false, micro_batch, NULL},
    {"recomputed steps", COMPARE_NUMBER, false, recomputed, NULL},
};
enum { N_KNOWN = sizeof known / sizeof *known };

/* --- columns --- */

static void add_evaluations(struct compare_columns *c, const struct report *r, int training)
{
    const struct history *h = &r->trainings[training].history;
    char text[FIGURE_NAME_BYTES];
    for (int i = 0; i < h->n_figures; i++) {
        const char *title = report_figure_title(r, training, i, text);
        if (h->figures[i].kind != FIGURE_EVALUATION || !title)
            continue;
        struct compare_column *column = &c->columns[c->count++];
        *column = (struct compare_column){
            .form = COMPARE_NUMBER, .brief = true, .evaluation = h->figures[i].name};
        snprintf(column->title, sizeof column->title, "last %s", title);
    }
}

bool compare_columns_make(struct compare_columns *c, const struct report *r)
{
    size_t room = N_KNOWN;
    for (int t = 0; t < r->count; t++)
        room += (size_t)r->trainings[t].history.n_figures;
    *c = (struct compare_columns){calloc(room, sizeof *c->columns), 0};
    if (!c->columns)
        return false;
    c->columns[c->count++] = known[0];
    for (int t = 0; t < r->count; t++)
        add_evaluations(c, r, t);
    memcpy(c->columns + c->count, known + 1, (N_KNOWN - 1) * sizeof *known);
    c->count += N_KNOWN - 1;
    return true;
}

void compare_columns_free(struct compare_columns *c)
{
    free(c->columns);
    *c = (struct compare_columns){0};
}

/* --- cells --- */

static struct spread spread_of(const double *values, int count)
{
    struct spread s = {.mean = NAN, .deviation = NAN, .count = count};
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    if (!count)
        return s;
    s.mean = sum / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - s.mean) * (values[i] - s.mean);
    s.deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
    return s;
}

static double value_of(const struct compare_column *column, const struct reported *t)
{
    return column->value ? column->value(t)
                         : reported_last(t, FIGURE_EVALUATION, column->evaluation);
}

struct spread compare_of_run(const struct compare_column *column, const struct comparison *c,
                             int run)
{
    const double value = value_of(column, &c->report.trainings[run]);
    return spread_of(&value, isfinite(value));
}

struct spread compare_of_variant(const struct compare_column *column, const struct comparison *c,
                                 int variant)
{
    double values[MOST_RUNS];
    int count = 0;
    for (int i = 0; i < c->variants.n_runs; i++) {
        if (c->runs[i].variant != variant || c->runs[i].state != RUN_DONE)
            continue;
        values[count] = value_of(column, &c->report.trainings[i]);
        count += isfinite(values[count]);
    }
    return spread_of(values, count);
}

/* All digits of a whole part, where that is what a reader looks for. */
static int digits_for(double value, int digits)
{
    const int whole = fabs(value) >= 1000 ? 1 + (int)log10(fabs(value)) : 0;
    return whole > digits && whole <= 15 ? whole : digits;
}

static void put_value(char text[COMPARE_VALUE_BYTES], enum compare_form form, double value,
                      int digits)
{
    if (form == COMPARE_BYTES)
        size_text((int64_t)value, text);
    else
        snprintf(text, COMPARE_VALUE_BYTES, "%.*g", digits_for(value, digits), value);
}

const char *compare_text(const struct compare_column *column, const struct spread *s, int digits,
                         char text[COMPARE_TEXT_BYTES])
{
    char mean[COMPARE_VALUE_BYTES], deviation[COMPARE_VALUE_BYTES];
    if (!s->count || !(fabs(s->mean) < 9e18))
        return strcpy(text, "");
    put_value(mean, column->form, s->mean, digits);
    put_value(deviation, column->form, s->deviation, digits - 2);
    const bool spreads = s->deviation > 0;
    snprintf(text, COMPARE_TEXT_BYTES, "%.32s%s%.32s", mean, spreads ? " ± " : "",
             spreads ? deviation : "");
    return text;
}

const char *compare_state(const struct comparison *c, int run)
{
    return c->runs[run].state == RUN_NO_PLAN ? "no plan fits"
           : c->runs[run].state == RUN_NEW   ? "not trained yet"
                                             : reported_state(&c->report.trainings[run]);
}

const char *compare_reason(const struct comparison *c, int run, char text[COMPARE_TEXT_BYTES])
{
    const double smallest =
        reported_number(c->report.trainings[run].history.summary, "smallest_budget_bytes");
    char size[SIZE_TEXT_BYTES] = "";
    const bool known_size = c->runs[run].state == RUN_NO_PLAN && smallest > 0 && smallest < 9e18;
    snprintf(text, COMPARE_TEXT_BYTES, "%s%s%s", compare_state(c, run),
             known_size ? "; the smallest budget is " : "",
             known_size ? size_text((int64_t)smallest, size) : "");
    return text;
}

int compare_done(const struct comparison *c, int variant)
{
    int done = 0;
    for (int i = 0; i < c->variants.n_runs; i++)
        done += c->runs[i].variant == variant && c->runs[i].state == RUN_DONE;
    return done;
}

/* --- on a terminal --- */

/* Columns that a text takes: bytes that begin a character. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void put_cell(FILE *out, const char *text, int width, bool right)
{
    const int blanks = width - width_of(text);
    fprintf(out, "%*s%s%*s", right && blanks > 0 ? blanks : 0, "", text,
            !right && blanks > 0 ? blanks : 0, "");
}

/* The cell of a variant, or the title where the variant is -1. */
static const char *cell(const struct comparison *c, const struct compare_column *column,
                        int variant, char text[COMPARE_TEXT_BYTES])
{
    if (variant < 0)
        return column->title;
    const struct spread spread = compare_of_variant(column, c, variant);
    return compare_text(column, &spread, TERMINAL_DIGITS, text);
}

static int widest(const struct comparison *c, const struct compare_column *column)
{
    char text[COMPARE_TEXT_BYTES];
    int width = 0;
    for (int v = -1; v < c->variants.n_variants; v++) {
        const int now = width_of(cell(c, column, v, text));
        width = now > width ? now : width;
    }
    return width;
}

static const char *head_of(const struct comparison *c, int variant)
{
    return variant < 0                  ? ""
           : *c->variant_names[variant] ? c->variant_names[variant]
                                        : c->arguments->operand;
}

static int widest_head(const struct comparison *c)
{
    int width = 0;
    for (int v = 0; v < c->variants.n_variants; v++) {
        const int now = width_of(head_of(c, v));
        width = now > width ? now : width;
    }
    return width;
}

static void put_row(FILE *out, const struct comparison *c, const struct compare_columns *columns,
                    int variant)
{
    char text[COMPARE_TEXT_BYTES];
    for (int i = 0; i < columns->count; i++) {
        const struct compare_column *column = &columns->columns[i];
        if (!column->brief)
            continue;
        fprintf(out, "  ");
        put_cell(out, cell(c, column, variant, text), widest(c, column), true);
    }
}

/* A variant none of whose runs came to its end says why. */
static bool print_row(const struct comparison *c, const struct compare_columns *columns,
                      int variant)
{
    char text[COMPARE_TEXT_BYTES], *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return false;
    put_cell(out, head_of(c, variant), widest_head(c), false);
    if (variant < 0 || compare_done(c, variant))
        put_row(out, c, columns, variant);
    else
        fprintf(out, "  %s", compare_reason(c, variant * c->variants.n_seeds, text));
    const bool whole = fclose(out) == 0;
    if (whole)
        line_print(stdout, "%s", line);
    free(line);
    return whole;
}

bool compare_print(const struct comparison *c)
{
    struct compare_columns columns;
    bool whole = compare_columns_make(&columns, &c->report);
    for (int v = -1; whole && v < c->variants.n_variants; v++)
        whole = print_row(c, &columns, v);
    compare_columns_free(&columns);
    return whole;
}

bool compare_print_run(const struct comparison *c, int run)
{
    struct compare_columns columns;
    char text[COMPARE_TEXT_BYTES], line[1024];
    size_t length = 0;
    const bool whole = compare_columns_make(&columns, &c->report);
    snprintf(line, sizeof line, "%s", compare_reason(c, run, text));
    for (int i = 0; i < columns.count; i++) {
        const struct compare_column *column = &columns.columns[i];
        const struct spread spread = compare_of_run(column, c, run);
        length = strlen(line);
        if (column->brief && spread.count)
            snprintf(line + length, sizeof line - length, ", %s %s", column->title,
                     compare_text(column, &spread, TERMINAL_DIGITS, text));
    }
    compare_columns_free(&columns);
    line_print(stdout, "%s: %s", c->runs[run].name, line);
    return whole;
}
