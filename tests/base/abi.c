/* SPDX-License-Identifier: MIT
 *
 * A program that means other structs than the library is told so; tests/install compiles one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <quern/quern.h>

#include <stdio.h>
#include <string.h>

static void the_version_is_that_of_the_headers(void **state)
{
    (void)state;
    int number[3];
    char text[64];
    assert_string_equal(qn_version(NULL), QN_VERSION);
    assert_string_equal(qn_version(number), QN_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", number[0], number[1], number[2]);
    assert_string_equal(text, QN_VERSION);
}

static void sizes_are_known_by_name(void **state)
{
    (void)state;
    assert_int_equal(qn_struct_size("qn_plan_params"), sizeof(qn_plan_params));
    assert_int_equal(qn_struct_size("qn_log"), sizeof(qn_log));
    assert_int_equal(qn_struct_size("qn_plan"), 0);
    assert_int_equal(qn_struct_size(""), 0);
    assert_int_equal(qn_struct_size(NULL), 0);
}

static void these_headers_fit(void **state)
{
    (void)state;
    assert_int_equal(qn_abi_check(), QN_OK);
    assert_int_equal(qn_abi_compare(NULL, NULL, 0), QN_ERR_ARGUMENT);
}

static void structs_that_differ_are_named(void **state)
{
    (void)state;
    const struct {
        qn_struct_info mine;
        const char *line;
    } wrong[] = {
        {{"qn_log", sizeof(qn_log) + 8, 0}, "qn_log: has 32 bytes in the program and 24 in Quern"},
        {{"qn_tensor", 0, 0}, "qn_tensor: has 0 bytes in the program and 4 in Quern"},
        {{"qn_plan", 8, 0}, "qn_plan: Quern " QN_VERSION " has no such struct"},
        {{"qn_log", sizeof(qn_log), 1}, "qn_log: has other fields in the program than in Quern"},
        {{NULL, 8, 0}, "NULL: Quern " QN_VERSION " has no such struct"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const qn_struct_info both[] = {{"qn_shape", sizeof(qn_shape), 0}, wrong[i].mine};
        assert_int_equal(qn_abi_compare(QN_VERSION, both, 1), QN_OK);
        assert_int_equal(qn_abi_compare(QN_VERSION, both, 2), QN_ERR_ARGUMENT);
        assert_memory_equal(qn_last_error(), wrong[i].line, strlen(wrong[i].line));
    }
}

static void versions_of_another_abi_are_named(void **state)
{
    (void)state;
    const qn_struct_info shape = {"qn_shape", sizeof(qn_shape), 0};
    char version[64];
    const int next = QN_VERSION_MAJOR ? 0 : QN_VERSION_MINOR + 1;
    snprintf(version, sizeof version, "%d.%d.7", QN_VERSION_MAJOR, QN_VERSION_MINOR);
    assert_int_equal(qn_abi_compare(version, &shape, 1), QN_OK);
    assert_int_equal(qn_abi_compare(NULL, &shape, 1), QN_OK);
    snprintf(version, sizeof version, "%d.%d.0", QN_VERSION_MAJOR ? QN_VERSION_MAJOR + 1 : 0, next);
    const char *const others[] = {version, "", "latest", "7"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(qn_abi_compare(others[i], &shape, 1), QN_ERR_ARGUMENT);
        assert_non_null(strstr(qn_last_error(), "another ABI"));
        assert_non_null(strstr(qn_last_error(), others[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_that_of_the_headers),
        cmocka_unit_test(sizes_are_known_by_name),
        cmocka_unit_test(these_headers_fit),
        cmocka_unit_test(structs_that_differ_are_named),
        cmocka_unit_test(versions_of_another_abi_are_named),
    };
    return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
