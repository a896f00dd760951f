/* SPDX-License-Identifier: MIT
 *
 * A file with a budget, while somebody writes it, replaces it, or puts something else there.
 */
#include "budget_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static void put(const char *text, size_t length)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

static void open_file(struct budget_file *file, const char *text, int code, const char *reason)
{
    struct failure failure = FAILURE_NONE;
    int64_t bytes = 0;
    put(text, strlen(text));
    assert_int_equal(budget_file_open(file, path, &bytes, &failure), code);
    assert_int_equal(bytes, code ? 0 : 4 << 20);
    assert_true(strstr(failure.text, reason));
}

static void the_first_size_must_be_whole(void **state)
{
    struct budget_file file;
    char longer[128];
    (void)state;
    open_file(&file, "4 MiB\n", CODE_DONE, "");
    open_file(&file, "4 MiB 5", CODE_USAGE, ": '4 MiB 5' is not a size");
    open_file(&file, "4MiB\n5MiB\n", CODE_USAGE, "' is not a size");
    open_file(&file, "", CODE_USAGE, ": '' is not a size");
    snprintf(longer, sizeof longer, "4MiB%99s", "x");
    open_file(&file, longer, CODE_USAGE, ": holds more than a size");
}

/* Whether something new was said, and what: a size or a reason. */
static void changed(struct budget_file *file, int64_t size, const char *reason)
{
    int64_t bytes = 0;
    assert_int_equal(budget_file_changed(file, &bytes), size || reason);
    assert_int_equal(bytes, size);
    if (size || reason)
        assert_string_equal(file->why, reason ? reason : "");
    assert_false(budget_file_changed(file, &bytes));
}

static void changes_are_said_once(void **state)
{
    struct budget_file file;
    (void)state;
    open_file(&file, "4MiB", CODE_DONE, "");
    changed(&file, 0, NULL);
    put("4MiB\n", 5);
    changed(&file, 0, NULL);
    put("", 0); /* it was truncated and is about to be written */
    changed(&file, 0, NULL);
    put("3 MiB", 5);
    changed(&file, 3 << 20, NULL);
    put("3MiB\0 5", 7);
    changed(&file, 0, "holds more than a size");
    put("2M", 2);
    changed(&file, 2 << 20, NULL);
    assert_int_equal(unlink(path), 0); /* it is about to be replaced */
    changed(&file, 0, NULL);
    assert_int_equal(mkfifo(path, 0600), 0);
    changed(&file, 0, "is not a regular file");
    assert_int_equal(unlink(path), 0);
    put("2M", 2);
    changed(&file, 2 << 20, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_size_must_be_whole),
        cmocka_unit_test(changes_are_said_once),
    };
    snprintf(path, sizeof path, "/tmp/quern-budget-%d", (int)getpid());
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
