/* SPDX-License-Identifier: MIT
 *
 * Reading a folder of kernels must give the same text as embedding it does. QN_KERNELS names the
 * folder that was embedded.
 */
#include "support.h"

#include "cl/source.h"

#include <stdlib.h>
#include <string.h>

static void reads_what_was_embedded(void **state)
{
    (void)state;
    const char *dir = getenv("QN_KERNELS");
    if (!dir)
        skip();
    for (const struct qn_embedded_kernel *kernel = qn_embedded_kernels; kernel->stem; kernel++) {
        struct qn_source embedded, read;
        assert_int_equal(qn_source_open(&embedded, NULL, kernel->stem, NULL), QN_OK);
        assert_int_equal(qn_source_open(&read, dir, kernel->stem, NULL), QN_OK);
        if (read.length != embedded.length || memcmp(read.bytes, embedded.bytes, read.length) != 0)
            fail_msg("%s", kernel->stem);
        qn_source_free(&read);
        qn_source_free(&embedded);
    }
}

static void inlines_once(void **state)
{
    (void)state;
    char dir[FOLDER_BYTES];
    struct qn_source source;
    make_folder(dir);
    write_text(dir, "a.cl", "one\n  # include \"b.clh\"\ntwo\n#include \"b.clh\"\nthree");
    write_text(dir, "b.clh", "#include \"a.cl\"\nbee\n");
    assert_int_equal(qn_source_open(&source, dir, "a", NULL), QN_OK);
    assert_string_equal(source.bytes, "#line 1 \"a.cl\"\none\n#line 1 \"b.clh\"\n\nbee\n"
                                      "#line 3 \"a.cl\"\ntwo\n\nthree\n");
    qn_source_free(&source);
    remove_folder(dir);
}

static void stays_in_its_folder(void **state)
{
    (void)state;
    static struct kept kept;
    const qn_log log = kept_log(&kept);
    char dir[FOLDER_BYTES];
    struct qn_source source;
    make_folder(dir);
    write_text(dir, "a.cl", "#include \"../b.clh\"\n");
    write_text(dir, "c.cl", "#include \"absent.clh\"\n");
    assert_int_equal(qn_source_open(&source, dir, "a", &log), QN_ERR_FORMAT);
    assert_int_equal(qn_source_open(&source, dir, "c", &log), QN_ERR_IO);
    assert_non_null(strstr(kept.text, "absent.clh"));
    assert_null(source.owned);
    remove_folder(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_embedded),
        cmocka_unit_test(inlines_once),
        cmocka_unit_test(stays_in_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
