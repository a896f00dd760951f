/* SPDX-License-Identifier: MIT */
#include "eval_report.h"
#include "mistakes.h"
#include "page.h"

#include <inttypes.h>
#include <quern/image.h>
#include <stdlib.h>
#include <string.h>

/* More classes than these make no matrix that people read: the most frequent confusions stand for
 * it. */
enum { MATRIX_CLASSES = 32, MOST_CONFUSIONS = 40, PICTURE_WIDTH = 160 };

struct writing {
    const struct eval_report *report;
    struct page page;
    int classes;
    const int64_t *confusion;  /* (classes, classes): label, guess */
    int64_t *labels, *guesses; /* (classes): sums of its rows and columns */
};

static const char *class_name(const struct writing *w, int label, char number[16])
{
    if (w->report->names)
        return w->report->names[label];
    snprintf(number, 16, "%d", label);
    return number;
}

static int64_t count_of(const struct writing *w, int label, int guess)
{
    return w->confusion[(int64_t)label * w->classes + guess];
}

static void sum_up(struct writing *w)
{
    for (int a = 0; a < w->classes; a++)
        for (int b = 0; b < w->classes; b++) {
            w->labels[a] += count_of(w, a, b);
            w->guesses[b] += count_of(w, a, b);
        }
}

/* --- tables --- */

static void write_figures(struct writing *w)
{
    static const struct page_column columns[] = {{"figure", false}, {"value", true}};
    const struct evaluation *e = w->report->evaluation;
    page_section(&w->page, "Figures");
    page_table(&w->page, NULL, columns, 2);
    for (int f = 0; f < FIGURES; f++)
        if (e->figure[f].there) {
            page_cell(&w->page, "%s", evaluation_key((enum figure)f));
            page_cell(&w->page, "%.6g", e->figure[f].value);
        }
    page_cell(&w->page, "samples");
    page_cell(&w->page, "%" PRId64, e->samples);
    page_table_end(&w->page);
    page_section_end(&w->page);
}

/* "-" where there is nothing to divide by. */
static void ratio_cell(struct page *page, int64_t part, int64_t whole)
{
    if (whole)
        page_cell(page, "%.4f", (double)part / (double)whole);
    else
        page_cell(page, "-");
}

static void write_classes(struct writing *w)
{
    static const struct page_column columns[] = {{"class", false},    {"labels", true},
                                                 {"precision", true}, {"recall", true},
                                                 {"F1", true},        {"IoU", true}};
    char number[16];
    page_section(&w->page, "Classes");
    page_table(&w->page, NULL, columns, 6);
    for (int c = 0; c < w->classes; c++) {
        const int64_t right = count_of(w, c, c), both = w->labels[c] + w->guesses[c];
        page_cell(&w->page, "%s", class_name(w, c, number));
        page_cell(&w->page, "%" PRId64, w->labels[c]);
        ratio_cell(&w->page, right, w->guesses[c]);
        ratio_cell(&w->page, right, w->labels[c]);
        ratio_cell(&w->page, 2 * right, both);
        ratio_cell(&w->page, right, both - right);
    }
    page_table_end(&w->page);
    page_section_end(&w->page);
}

/* --- what was taken for what --- */

/* A cell is as dark as its share of the label's row. */
static void write_cell(struct writing *w, int label, int guess)
{
    const int64_t count = count_of(w, label, guess);
    const double share = w->labels[label] ? (double)count / (double)w->labels[label] : 0;
    fprintf(w->page.out,
            "<td class=\"n\" style=\"background:color-mix(in srgb,var(--s%d) %.0f%%,transparent)\">"
            "%" PRId64 "</td>",
            label != guess, 70 * share, count);
}

static void write_matrix(struct writing *w)
{
    char number[16];
    fputs("<div class=\"wide\"><table id=\"confusion\">\n<caption>rows: labels; columns: what they "
          "were taken for; shades: share of the row</caption>\n<thead><tr><th></th>",
          w->page.out);
    for (int c = 0; c < w->classes; c++) {
        fputs("<th scope=\"col\" class=\"n\">", w->page.out);
        page_text(&w->page, "%s", class_name(w, c, number));
        fputs("</th>", w->page.out);
    }
    fputs("</tr></thead>\n<tbody>\n", w->page.out);
    for (int label = 0; label < w->classes; label++) {
        fputs("<tr><th scope=\"row\">", w->page.out);
        page_text(&w->page, "%s", class_name(w, label, number));
        fputs("</th>", w->page.out);
        for (int guess = 0; guess < w->classes; guess++)
            write_cell(w, label, guess);
        fputs("</tr>\n", w->page.out);
    }
    fputs("</tbody></table></div>\n", w->page.out);
}

/* The most frequent confusion after `last`, in the order of counts, then of places in the matrix;
 * below 0: there is none. */
static int64_t next_confusion(const struct writing *w, int64_t last)
{
    const int64_t most = last < 0 ? INT64_MAX : w->confusion[last];
    int64_t best = -1;
    for (int64_t i = 0; i < (int64_t)w->classes * w->classes; i++) {
        const int64_t count = w->confusion[i];
        const bool later = count < most || (count == most && i > last);
        if (i / w->classes != i % w->classes && count && later &&
            (best < 0 || count > w->confusion[best]))
            best = i;
    }
    return best;
}

static void write_confusions(struct writing *w)
{
    static const struct page_column columns[] = {
        {"class", false}, {"taken for", false}, {"times", true}, {"of its labels", true}};
    char number[16];
    page_table(&w->page, "the most frequent confusions", columns, 4);
    int64_t at = next_confusion(w, -1);
    for (int i = 0; i < MOST_CONFUSIONS && at >= 0; i++, at = next_confusion(w, at)) {
        const int label = (int)(at / w->classes), guess = (int)(at % w->classes);
        page_cell(&w->page, "%s", class_name(w, label, number));
        page_cell(&w->page, "%s", class_name(w, guess, number));
        page_cell(&w->page, "%" PRId64, w->confusion[at]);
        ratio_cell(&w->page, w->confusion[at], w->labels[label]);
    }
    page_table_end(&w->page);
}

/* --- pictures --- */

static int write_png(struct writing *w, const char *text, qn_png_params params)
{
    void *bytes = NULL;
    size_t size = 0;
    const qn_model_data *data = &w->report->session->data.model;
    struct failure *failure = w->report->session->failure;
    params.log = failure_log(failure);
    params.height = data->height;
    params.width = data->width;
    TRY_LIBRARY(failure, NULL, qn_png_encode(&bytes, &size, &params));
    page_picture(&w->page, "image/png", bytes, size, PICTURE_WIDTH, "%s", text);
    qn_free(bytes);
    return CODE_DONE;
}

/* Channels side by side for every pixel; of two, or of more than three, the first alone. */
static int write_image(struct writing *w, const uint8_t *image)
{
    const qn_model_data *data = &w->report->session->data.model;
    const int channels = data->channels == 3 ? 3 : 1, pixels = data->height * data->width;
    uint8_t *mixed = malloc((size_t)channels * (size_t)pixels);
    if (!mixed)
        return failure_set(w->report->session->failure, CODE_FAILED, "out of memory");
    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++)
            mixed[i * channels + c] = image[c * pixels + i];
    const int code =
        write_png(w, "picture", (qn_png_params){.pixels = mixed, .channels = channels});
    free(mixed);
    return code;
}

static int write_mask(struct writing *w, const char *text, const uint8_t *mask)
{
    enum { COLOURS = 256 };
    uint8_t palette[3 * COLOURS];
    for (int c = 0; c < COLOURS; c++)
        qn_class_colour(palette + 3 * c, c);
    const qn_png_params params = {
        .pixels = mask, .channels = 1, .palette = palette, .colours = COLOURS};
    return write_png(w, text, params);
}

static void write_caption(struct writing *w, const struct mistake *mistake)
{
    char label[16], guess[16];
    const char *file = qn_dataset_sample_name(w->report->session->data.evaluated, mistake->sample);
    fputs("<figcaption>", w->page.out);
    if (mistake->mask)
        page_text(&w->page, "%.2f %% of pixels wrong", 100 * mistake->wrong);
    else
        page_text(&w->page, "%s, taken for %s (%.2f %%)", class_name(w, mistake->label, label),
                  class_name(w, mistake->guess, guess), 100 * mistake->sure);
    fputs("<br><span class=\"note\">", w->page.out);
    if (file)
        page_text(&w->page, "%s", file);
    else
        page_text(&w->page, "sample %" PRId64, mistake->sample);
    fputs("</span></figcaption>\n", w->page.out);
}

static int write_mistake(struct writing *w, const struct mistake *mistake)
{
    fputs("<figure>\n", w->page.out);
    if (mistake->image)
        TRY(write_image(w, mistake->image));
    if (mistake->mask) {
        TRY(write_mask(w, "its mask", mistake->truth));
        TRY(write_mask(w, "the model's mask", mistake->mask));
    }
    write_caption(w, mistake);
    fputs("</figure>\n", w->page.out);
    return CODE_DONE;
}

static int write_mistakes(struct writing *w)
{
    const struct mistakes *m = &w->report->detail->mistakes;
    page_section(&w->page, "The worst mistakes");
    page_paragraph(&w->page, "%" PRId64 " of %" PRId64 " samples are not wholly right%s", m->wrong,
                   w->report->evaluation->samples,
                   m->count ? "; these are furthest from it." : ".");
    fputs("<div style=\"display:grid;gap:1rem;grid-template-columns:"
          "repeat(auto-fill,minmax(10.5rem,1fr))\">\n",
          w->page.out);
    for (int i = 0; i < m->count; i++)
        TRY(write_mistake(w, &m->worst[i]));
    fputs("</div>\n", w->page.out);
    page_section_end(&w->page);
    return CODE_DONE;
}

/* --- the whole --- */

static int write_page(struct writing *w)
{
    const struct eval_report *r = w->report;
    page_paragraph(&w->page, "%s on %s of the recipe %s", r->weights,
                   r->evaluation->validation ? "the validation split" : "the test split",
                   r->session->recipe.name);
    write_figures(w);
    sum_up(w);
    write_classes(w);
    page_section(&w->page, "Confusion");
    if (w->classes <= MATRIX_CLASSES)
        write_matrix(w);
    else
        write_confusions(w);
    page_section_end(&w->page);
    return write_mistakes(w);
}

int eval_report_write(const struct eval_report *report, const char *path)
{
    struct failure *failure = report->session->failure;
    const int classes = report->session->data.model.classes;
    struct writing w = {.report = report,
                        .classes = classes,
                        .confusion = report->detail->confusion,
                        .labels = calloc((size_t)classes, sizeof *w.labels),
                        .guesses = calloc((size_t)classes, sizeof *w.guesses)};
    int code = w.labels && w.guesses ? page_begin(&w.page, "Evaluation", failure)
                                     : failure_set(failure, CODE_FAILED, "out of memory");
    if (code == CODE_DONE)
        code = write_page(&w);
    code = page_end(&w.page, path, code, failure);
    free(w.labels);
    free(w.guesses);
    return code;
}
