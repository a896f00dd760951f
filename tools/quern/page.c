/* SPDX-License-Identifier: MIT */
#include "page.h"
#include "embedded.h"
#include "file.h"
#include "value.h"

#include <math.h>
#include <quern/abi.h>
#include <quern/log.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/* Freed by the caller; NULL when out of memory. */
static char *escape(struct page *page, const char *text)
{
    const size_t room = qn_escape(NULL, 0, text) + 1;
    char *shown = malloc(room);
    page->failed |= !shown;
    if (shown)
        qn_escape(shown, room, text);
    return shown;
}

static void put_text(struct page *page, const char *text)
{
    char *shown = escape(page, text);
    for (const char *c = shown; c && *c; c++)
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

void page_json(struct page *page, const char *text)
{
    char *shown = escape(page, text);
    fputc('"', page->out);
    for (const char *c = shown; c && *c; c++)
        if (strchr("\"\\<>&", *c))
            fprintf(page->out, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, page->out);
    fputc('"', page->out);
    free(shown);
}

/* Outside of its strings JSON has none of these characters. */
void page_script_data(struct page *page, const char *json)
{
    for (; *json; json++)
        if (strchr("<>&", *json))
            fprintf(page->out, "\\u%04x", (unsigned)*json);
        else
            fputc(*json, page->out);
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

void page_grid(struct page *page, bool wide)
{
    fprintf(page->out, "<div class=\"grid%s\">\n", wide ? " sides" : "");
}

void page_grid_end(struct page *page)
{
    fputs("</div>\n", page->out);
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

void page_number(struct page *page, double value, int digits)
{
    if (isfinite(value))
        page_cell(page, "%.*g", digits, value);
    else
        page_cell(page, "%s", "");
}

void page_bytes(struct page *page, double bytes)
{
    char size[SIZE_TEXT_BYTES];
    if (bytes >= 0 && bytes < 9e18)
        page_cell(page, "%s", size_text((int64_t)bytes, size));
    else
        page_cell(page, "%s", "");
}

void page_table_end(struct page *page)
{
    while (page->column)
        page_cell(page, "%s", "");
    fputs("</tbody></table></div>\n", page->out);
}

/* --- pictures --- */

static void put_base64(FILE *out, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t n = size - i < 3 ? size - i : 3;
        const unsigned three = (unsigned)bytes[i] << 16 |
                               (n > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (n > 2 ? bytes[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            fputc(k <= n ? digits[three >> (18 - 6 * k) & 63] : '=', out);
    }
}

void page_picture(struct page *page, const char *type, const void *bytes, size_t size, int width,
                  const char *format, ...)
{
    fputs("<img ", page->out);
    if (width)
        fprintf(page->out, "class=\"pixels\" width=\"%d\" ", width);
    fprintf(page->out, "src=\"data:%s;base64,", type);
    put_base64(page->out, bytes, size);
    PUT_BETWEEN(page, "\" alt=\"", format, "\">\n");
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
    fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", page_css);
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
