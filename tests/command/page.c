/* SPDX-License-Identifier: MIT
 *
 * Pages of HTML: what comes from outside is text in them, and a file is whole or not there.
 */
#include "page.h"
#include "file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static char *read_page(void)
{
    struct failure failure = FAILURE_NONE;
    char *text;
    assert_int_equal(file_read(&text, path, &failure), CODE_DONE);
    return text;
}

static int count(const char *text, const char *part)
{
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        found++;
    return found;
}

/* Writes a page with `evil` everywhere where a text can be. */
static void write_evil(const char *evil)
{
    struct failure failure = FAILURE_NONE;
    struct page page;
    const struct page_column columns[] = {{evil, false}, {evil, true}};
    assert_int_equal(page_begin(&page, evil, &failure), CODE_DONE);
    page_section(&page, "%s", evil);
    page_paragraph(&page, "%s", evil);
    page_table(&page, evil, columns, 2);
    page_cell(&page, "%s", evil);
    page_cell(&page, "%s", evil);
    page_table_end(&page);
    page_fold(&page, "%s", evil);
    fprintf(page.out, "<p title=\"");
    page_text(&page, "%s", evil);
    fprintf(page.out, "\">x</p>\n");
    page_fold_end(&page);
    page_section_end(&page);
    assert_int_equal(page_end(&page, path, CODE_DONE, &failure), CODE_DONE);
}

static void names_are_text(void **state)
{
    static const struct {
        const char *evil, *shown;
    } cases[] = {
        {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"\" onclick='x'", "&quot; onclick=&#39;x&#39;"},
        {"a & b &lt;", "a &amp; b &amp;lt;"},
        {"\x1b[2J\r\n\xff", "\\x1b[2J\\r\\n\\xff"},
        {"100 %s % d", "100 %s % d"},
        {"K\xc3\xb6nig", "K\xc3\xb6nig"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_evil(cases[i].evil);
        char *text = read_page();
        assert_int_equal(count(text, cases[i].shown), 11);
        assert_int_equal(count(text, "<script"), 0);
        assert_int_equal(count(text, "\x1b"), 0);
        free(text);
    }
}

/* In a script element nothing but its end is markup. */
static void data_stays_in_its_script(void **state)
{
    struct failure failure = FAILURE_NONE;
    struct page page;
    (void)state;
    assert_int_equal(page_begin(&page, "t", &failure), CODE_DONE);
    page_json(&page, "</script>\"\\\n&");
    page_script_data(&page, "{\"</script>\": \"<!--\"}");
    assert_int_equal(page_end(&page, path, CODE_DONE, &failure), CODE_DONE);
    char *text = read_page();
    assert_true(strstr(
        text, "\"\\u003c/script\\u003e\\u0022\\u005c\\u005cn\\u0026\"{\"\\u003c/script\\u003e\": "
              "\"\\u003c!--\"}"));
    free(text);
}

static void pictures_are_inside(void **state)
{
    static const struct {
        const char *bytes, *digits;
    } cases[] = {{"M", "TQ=="}, {"Ma", "TWE="}, {"Man", "TWFu"}, {"\xff\xfe\xfd?", "//79Pw=="}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failure failure = FAILURE_NONE;
        struct page page;
        char want[96];
        assert_int_equal(page_begin(&page, "t", &failure), CODE_DONE);
        page_picture(&page, "image/png", cases[i].bytes, strlen(cases[i].bytes), i ? 0 : 9, "%s",
                     "\"a\"");
        assert_int_equal(page_end(&page, path, CODE_DONE, &failure), CODE_DONE);
        char *text = read_page();
        snprintf(want, sizeof want,
                 "<img %ssrc=\"data:image/png;base64,%s\" alt=\"&quot;a&quot;\">",
                 i ? "" : "class=\"pixels\" width=\"9\" ", cases[i].digits);
        assert_non_null(strstr(text, want));
        free(text);
    }
}

static void rows_are_whole(void **state)
{
    static const struct page_column columns[] = {{"name", false}, {"bytes", true}};
    struct failure failure = FAILURE_NONE;
    struct page page;
    (void)state;
    assert_int_equal(page_begin(&page, "t", &failure), CODE_DONE);
    page_table(&page, NULL, columns, 2);
    page_cell(&page, "%s", "a");
    page_cell(&page, "%d", 1);
    page_cell(&page, "%s", "b");
    page_table_end(&page);
    assert_int_equal(page_end(&page, path, CODE_DONE, &failure), CODE_DONE);
    char *text = read_page();
    assert_true(strstr(text, "<tr><th scope=\"row\">a</th><td class=\"n\">1</td></tr>\n"
                             "<tr><th scope=\"row\">b</th><td class=\"n\"></td></tr>\n"
                             "</tbody></table>"));
    assert_int_equal(count(text, "<caption>"), 0);
    free(text);
}

/* What went wrong before the end leaves the file that was there. */
static void a_failed_page_is_not_written(void **state)
{
    struct failure failure = FAILURE_NONE;
    struct page page;
    (void)state;
    assert_int_equal(file_replace(path, "older", &failure), CODE_DONE);
    assert_int_equal(page_begin(&page, "t", &failure), CODE_DONE);
    assert_int_equal(page_end(&page, path, CODE_FAILED, &failure), CODE_FAILED);
    assert_int_equal(page_end(&page, path, CODE_FAILED, &failure), CODE_FAILED);
    char *text = read_page();
    assert_string_equal(text, "older");
    free(text);
    assert_int_equal(page_begin(&page, "t", &failure), CODE_DONE);
    assert_int_equal(page_end(&page, "/nowhere/at/all", CODE_DONE, &failure), CODE_FAILED);
    assert_true(strstr(failure.text, "/nowhere/at/all: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_text),
        cmocka_unit_test(data_stays_in_its_script),
        cmocka_unit_test(pictures_are_inside),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(a_failed_page_is_not_written),
    };
    snprintf(path, sizeof path, "/tmp/quern-page-%d", (int)getpid());
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
