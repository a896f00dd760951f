/* SPDX-License-Identifier: MIT */
#include "io/orientation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A header, a directory of `count` entries; then two entries, of which the second says 6. */
#define ENTRY "\0\3\0\0\0\1"
static const char big[] = "MM\0*\0\0\0\x8\0\2"
                          "\1\0" ENTRY "\0\5\0\0"
                          "\1\x12" ENTRY "\0\6\0\0";
static const char little[] = "II*\0\x8\0\0\0\2\0"
                             "\0\1\3\0\1\0\0\0\5\0\0\0"
                             "\x12\1\3\0\1\0\0\0\6\0\0\0";
enum { BYTES = 34 };

/* In memory of just that size, so that a sanitizer sees what is read behind it. */
static int orientation_of(const char *exif, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, exif, size);
    const int found = qn_orientation_of(copy, size);
    free(copy);
    return found;
}

static void both_orders_are_read(void **state)
{
    (void)state;
    assert_int_equal(orientation_of(big, BYTES), 6);
    assert_int_equal(orientation_of(little, BYTES), 6);
}

/* What is broken says nothing: one byte changed, or cut anywhere. */
static void what_is_broken_is_ignored(void **state)
{
    static const struct {
        size_t at;
        char byte;
    } broken[] = {
        {0, 'I'},   {1, 'I'},       {2, 1},  {3, 43}, /* byte order and mark */
        {4, 127},   {4, (char)255}, {7, 33}, {7, 34}, /* where the directory is */
        {9, 1},                                       /* of one entry alone */
        {23, 0x13}, {25, 4},        {29, 2},          /* tag, type, count */
        {31, 0},    {31, 9},        {30, 1},          /* no orientation */
    };
    (void)state;
    for (size_t size = 0; size < BYTES; size++) {
        assert_int_equal(orientation_of(big, size), 1);
        assert_int_equal(orientation_of(little, size), 1);
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char copy[BYTES];
        memcpy(copy, big, BYTES);
        copy[broken[i].at] = broken[i].byte;
        assert_int_equal(orientation_of(copy, BYTES), 1);
    }
}

/* A directory that promises more entries than there are is read as far as it goes. */
static void what_is_there_is_read(void **state)
{
    char copy[BYTES];
    (void)state;
    memcpy(copy, big, BYTES);
    copy[8] = copy[9] = (char)255;
    assert_int_equal(orientation_of(copy, BYTES), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_orders_are_read),
        cmocka_unit_test(what_is_broken_is_ignored),
        cmocka_unit_test(what_is_there_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
