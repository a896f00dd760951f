/* SPDX-License-Identifier: MIT
 *
 * A page of HTML in one file: its style sheet is inside, it asks no network, and is read in the
 * light, in the dark, on a phone and on paper. Text from outside is escaped; what a caller writes
 * to `out` by itself is markup.
 */
#ifndef QUERN_TOOL_PAGE_H
#define QUERN_TOOL_PAGE_H

#include "failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct page_column {
    const char *name;
    bool number; /* its cells are set to the right */
};

struct page {
    FILE *out; /* the page so far; kept in memory up to its end */
    char *bytes;
    size_t size;
    bool failed;                       /* out of memory */
    const struct page_column *columns; /* of the table under way; borrowed */
    int n_columns, column;             /* and of its next cell */
};

/* The title is in the page's head and above its text. */
int page_begin(struct page *page, const char *title, struct failure *failure);
/* Ends the page and, if `code` is CODE_DONE, writes it: the file of that name is replaced whole or
 * not at all. Gives `code`, or why there is no file. The page is gone. A page whose bytes are zero,
 * because it was never begun, does nothing. */
int page_end(struct page *page, const char *path, int code, struct failure *failure);

/* A text within an element or an attribute in quotes: characters that mean something in HTML are
 * written as references, control characters as in qn_escape. */
__attribute__((format(printf, 2, 3))) void page_text(struct page *page, const char *format, ...);
/* The same as a paragraph of its own. */
__attribute__((format(printf, 2, 3))) void page_paragraph(struct page *page, const char *format,
                                                          ...);
/* A text as a string of JSON within a script element, escaped likewise. */
void page_json(struct page *page, const char *text);
/* JSON as the whole content of a script element: no character in it can end the element. */
void page_script_data(struct page *page, const char *json);
/* A part with a heading. Sections lie side by side, not in one another. */
__attribute__((format(printf, 2, 3))) void page_section(struct page *page, const char *format, ...);
void page_section_end(struct page *page);

/* A table: `n` cells make a row, whose first one is its heading. `caption` may be NULL. The end
 * fills up the last row. */
void page_table(struct page *page, const char *caption, const struct page_column *columns, int n);
__attribute__((format(printf, 2, 3))) void page_cell(struct page *page, const char *format, ...);
/* A number of so many digits, or bytes; an empty cell where it is not finite. */
void page_number(struct page *page, double value, int digits);
void page_bytes(struct page *page, double bytes);
void page_table_end(struct page *page);

/* A picture inside the page; the format is of the text for those who do not see it. No script in
 * the bytes runs. `type`: "image/png". `width`: in pixels of the page, with its own as squares; 0:
 * as it is. */
__attribute__((format(printf, 6, 7))) void page_picture(struct page *page, const char *type,
                                                        const void *bytes, size_t size, int width,
                                                        const char *format, ...);

/* A grid: as many elements side by side as the page has room for; `wide` ones, which it stretches,
 * or narrow ones. */
void page_grid(struct page *page, bool wide);
void page_grid_end(struct page *page);

/* A part that is closed until the reader opens it; it is not printed. */
__attribute__((format(printf, 2, 3))) void page_fold(struct page *page, const char *format, ...);
void page_fold_end(struct page *page);

#endif
