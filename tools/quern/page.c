/* SPDX-License-Identifier: MIT */
#include "page.h"
#include "file.h"

#include <quern/abi.h>
#include <quern/log.h>
#include <stdarg.h>
#include <stdlib.h>

/* Colours of series are told apart by those who see no red or no green, too. Paper is white,
 * whatever the screen. */
static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2127;--faint:#5c6670;--line:#d3d8de;"
    "--panel:#f5f6f8;--s0:#0b62a4;--s1:#c2500a;--s2:#0a7a5a;--s3:#8a4fb0;--s4:#8c6d00;"
    "--s5:#b3306f;--s6:#2d7f93;--s7:#555}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e3e6ea;"
    "--faint:#9aa4ae;--line:#3a4148;--panel:#1e2327;--s0:#6db6f2;--s1:#f5a05a;--s2:#4fd1a5;"
    "--s3:#c99ae8;--s4:#e0c14a;--s5:#f283b4;--s6:#72cfe3;--s7:#b5b5b5}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--paper);color:var(--ink);"
    "font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1.5rem}\nh2{font-size:1.15rem;margin:0 0 .5rem}\n"
    "section{margin:1.5rem 0}\nfooter,caption,.note{color:var(--faint);font-size:.875rem}\n"
    "figure{margin:0 0 1rem}\nsvg,img{max-width:100%;height:auto}\nimg{background:#fff}\n"
    ".wide{overflow-x:auto}\ntable{border-collapse:collapse;font-size:.875rem}\n"
    "caption{text-align:left;padding:.25rem 0}\n"
    "th,td{padding:.2rem .75rem .2rem 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--line)}\n"
    "tbody th{font-weight:normal}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "summary{cursor:pointer}\n"
    "@media print{body{max-width:none;padding:0;font-size:.8rem}section,figure,tr"
    "{break-inside:avoid}details::details-content{content-visibility:visible}}\n";

/* --- text --- */

static void put_character(FILE *out, char c)
{
    static const struct {
        char c;
        const char *reference;
    } special[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"},
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (c == special[i].c) {
            fputs(special[i].reference, out);
            return;
        }
    fputc(c, out);
}

static void put_text(struct page *page, const char *text)
{
    const size_t room = qn_escape(NULL, 0, text) + 1;
    char *shown = malloc(room);
    page->failed |= !shown;
    if (!shown)
        return;
    qn_escape(shown, room, text);
    for (const char *c = shown; *c; c++)
        put_character(page->out, *c);
    free(shown);
}

static void put_args(struct page *page, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    page->failed |= !text;
    if (!text)
        return;
    vsnprintf(text, (size_t)length + 1, format, args);
    put_text(page, text);
    free(text);
}

/* A text between two pieces of markup. */
#define PUT_BETWEEN(page, before, format, after)                                                   \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        fputs(before, (page)->out);                                                                \
        put_args(page, format, args);                                                              \
        fputs(after, (page)->out);                                                                 \
        va_end(args);                                                                              \
    } while (0)

void page_text(struct page *page, const char *format, ...)
{
    PUT_BETWEEN(page, "", format, "");
}

void page_paragraph(struct page *page, const char *format, ...)
{
    PUT_BETWEEN(page, "<p>", format, "</p>\n");
}

/* --- parts --- */

void page_section(struct page *page, const char *format, ...)
{
    PUT_BETWEEN(page, "<section>\n<h2>", format, "</h2>\n");
}

void page_section_end(struct page *page)
{
    fputs("</section>\n", page->out);
}

void page_fold(struct page *page, const char *format, ...)
{
    PUT_BETWEEN(page, "<details>\n<summary>", format, "</summary>\n");
}

void page_fold_end(struct page *page)
{
    fputs("</details>\n", page->out);
}

/* --- tables --- */

void page_table(struct page *page, const char *caption, const struct page_column *columns, int n)
{
    page->columns = columns;
    page->n_columns = n;
    page->column = 0;
    fputs("<div class=\"wide\"><table>\n", page->out);
    if (caption) {
        fputs("<caption>", page->out);
        page_text(page, "%s", caption);
        fputs("</caption>\n", page->out);
    }
    fputs("<thead><tr>", page->out);
    for (int i = 0; i < n; i++) {
        fprintf(page->out, "<th scope=\"col\"%s>", columns[i].number ? " class=\"n\"" : "");
        page_text(page, "%s", columns[i].name);
        fputs("</th>", page->out);
    }
    fputs("</tr></thead>\n<tbody>\n", page->out);
}

void page_cell(struct page *page, const char *format, ...)
{
    const bool first = page->column == 0;
    fprintf(page->out, "%s<%s%s>", first ? "<tr>" : "", first ? "th scope=\"row\"" : "td",
            page->columns[page->column].number ? " class=\"n\"" : "");
    PUT_BETWEEN(page, "", format, first ? "</th>" : "</td>");
    page->column = (page->column + 1) % page->n_columns;
    if (page->column == 0)
        fputs("</tr>\n", page->out);
}

void page_table_end(struct page *page)
{
    while (page->column)
        page_cell(page, "%s", "");
    fputs("</tbody></table></div>\n", page->out);
}

/* --- the whole --- */

/* The policy says to the browser that nothing may be fetched, whatever the page says. */
int page_begin(struct page *page, const char *title, struct failure *failure)
{
    *page = (struct page){0};
    page->out = open_memstream(&page->bytes, &page->size);
    if (!page->out)
        return failure_set(failure, CODE_FAILED, "out of memory");
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<title>",
          page->out);
    page_text(page, "%s", title);
    fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", style);
    page_text(page, "%s", title);
    fputs("</h1>\n", page->out);
    return CODE_DONE;
}

int page_end(struct page *page, const char *path, int code, struct failure *failure)
{
    if (!page->out)
        return code;
    fprintf(page->out, "<footer>quern %s</footer>\n</body>\n</html>\n", QN_VERSION);
    page->failed |= fclose(page->out) != 0;
    if (!code && page->failed)
        code = failure_set(failure, CODE_FAILED, "%s: out of memory", path);
    if (!code)
        code = file_write(path, page->bytes, page->size, failure);
    free(page->bytes);
    *page = (struct page){0};
    return code;
}
