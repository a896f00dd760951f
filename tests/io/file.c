/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <zlib.h>

static void a_path_is_split(void **state)
{
    static const struct {
        const char *path, *folder, *name;
    } cases[] = {
        {"a", ".", "a"},    {"a/b", "a", "b"},       {"/a", "/", "a"},
        {"a//b", "a", "b"}, {"/a/b/c", "/a/b", "c"}, {"./a", ".", "a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = qn_path_folder(cases[i].path);
        assert_string_equal(folder, cases[i].folder);
        assert_string_equal(qn_path_name(cases[i].path), cases[i].name);
        free(folder);
    }
}

static void temporary_names_are_known(void **state)
{
    static const struct {
        const char *name;
        bool temp;
    } cases[] = {
        {".last.tmp-12-0", true},   {".a.tmp-b.tmp-1-22", true}, {"last.tmp-12-0", false},
        {".last.tmp-12", false},    {".last.tmp-12-", false},    {".last.tmp--1", false},
        {".last.tmp-12-0x", false}, {".profile", false},         {".tmp-1-1", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(qn_path_is_temp(cases[i].name), cases[i].temp);
    char *temp = qn_path_temp("folder", "step-1", 3);
    assert_true(qn_path_is_temp(qn_path_name(temp)));
    free(temp);
}

static void a_file_appears_whole(void **state)
{
    struct scratch *scratch = *state;
    const char *path = scratch_put(scratch, "a", "old", 3);
    struct qn_file file = {0};
    char *bytes;
    size_t size;
    assert_int_equal(qn_file_create(&file, path, &scratch->log), QN_OK);
    assert_int_equal(qn_file_put(&file, 2, "w!", 2), QN_OK);
    assert_int_equal(qn_file_put(&file, 0, "ne", 2), QN_OK);
    assert_int_equal(qn_file_read(path, 100, &bytes, &size, &scratch->log), QN_OK);
    assert_string_equal(bytes, "old");
    free(bytes);
    assert_int_equal(qn_file_commit(&file), QN_OK);
    assert_int_equal(qn_file_read(path, 100, &bytes, &size, &scratch->log), QN_OK);
    assert_string_equal(bytes, "new!");
    assert_int_equal(size, 4);
    free(bytes);
    assert_int_equal(scratch->lines, 0);
}

static void a_discarded_file_leaves_the_old_one(void **state)
{
    struct scratch *scratch = *state;
    const char *path = scratch_put(scratch, "a", "old", 3);
    struct qn_file file = {0};
    assert_int_equal(qn_file_create(&file, path, &scratch->log), QN_OK);
    assert_int_equal(qn_file_put(&file, 0, "new", 3), QN_OK);
    assert_int_equal(access(file.temp, F_OK), 0);
    qn_file_discard(&file);
    qn_file_discard(&file);
    char *bytes;
    size_t size;
    assert_int_equal(qn_file_read(path, 3, &bytes, &size, &scratch->log), QN_OK);
    assert_string_equal(bytes, "old");
    free(bytes);
}

static void failures_name_the_file(void **state)
{
    struct scratch *scratch = *state;
    char *bytes;
    size_t size;
    uint32_t crc;
    const char *path = scratch_path(scratch, "none/a");
    assert_int_equal(qn_file_write(path, "x", 1, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, path, "cannot write: No such file or directory");
    assert_int_equal(qn_file_read(path, 9, &bytes, &size, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, path, "cannot read: No such file or directory");
    assert_int_equal(qn_file_crc32(path, &crc, NULL, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, path, "cannot read");
    assert_int_equal(qn_file_read(scratch->folder, 9, &bytes, &size, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, scratch->folder, "not a regular file");
    path = scratch_put(scratch, "a", "four", 4);
    assert_int_equal(qn_file_read(path, 3, &bytes, &size, &scratch->log), QN_ERR_FORMAT);
    scratch_said(scratch, path, "larger than 3 bytes");
}

static void a_file_is_summed(void **state)
{
    struct scratch *scratch = *state;
    size_t sizes[] = {0, 1, 1 << 18, (1 << 18) + 1, 1000000};
    unsigned char *bytes = malloc(1000000);
    for (size_t i = 0; i < 1000000; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *path = scratch_put(scratch, "a", bytes, sizes[i]);
        uint32_t crc;
        int64_t size;
        assert_int_equal(qn_file_crc32(path, &crc, &size, &scratch->log), QN_OK);
        assert_int_equal(size, sizes[i]);
        assert_int_equal(crc, crc32(crc32(0, NULL, 0), bytes, (uInt)sizes[i]));
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_split),    cmocka_unit_test(temporary_names_are_known),
        WITH_SCRATCH(a_file_appears_whole),   WITH_SCRATCH(a_discarded_file_leaves_the_old_one),
        WITH_SCRATCH(failures_name_the_file), WITH_SCRATCH(a_file_is_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
