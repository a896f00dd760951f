/* SPDX-License-Identifier: MIT
 *
 * Curves as part of a page: a picture with axes, a legend, the values under a pointer and a table
 * of some of them.
 */
#ifndef QUERN_TOOL_CHART_H
#define QUERN_TOOL_CHART_H

#include "page.h"
#include "series.h"

struct chart_line {
    const char *name; /* told where there are several lines; borrowed */
    const struct series *series;
    int colour; /* from 0; there are CHART_COLOURS, then they begin again with other dashes */
    bool pale;  /* stands behind the others, and in the picture alone */
};

enum { CHART_COLOURS = 8 };

/* What lines run over. */
struct chart_axis {
    const char *name; /* "update" */
    bool whole;       /* its values are whole numbers */
};

struct chart {
    const char *title;
    struct chart_axis axis;
    const struct chart_line *lines;
    int n_lines; /* one at least, each with points */
    int bins;    /* of a line's x: each is drawn by two points at most */
};

/* A chart without any finite value is left out. */
void chart_put(struct page *page, const struct chart *chart);
/* Once, behind all charts. */
void chart_script(struct page *page);

#endif
