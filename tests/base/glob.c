/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/glob.h"

#include <string.h>

static bool matches(const char *pattern, const char *name)
{
    return qn_glob(pattern, strlen(pattern), name);
}

static void patterns_match_whole_names(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool match;
    } cases[] = {
        {"fc.weight", "fc.weight", true},
        {"fc.weight", "fc.weight2", false},
        {"fc.weight", "fc.weigh", false},
        {"fc", "fc.weight", false},
        {"*", "", true},
        {"*", "layers.0.weight", true},
        {"**", "a", true},
        {"", "", true},
        {"", "a", false},
        {"?", "", false},
        {"?", "a", true},
        {"layers.?.weight", "layers.7.weight", true},
        {"layers.?.weight", "layers.17.weight", false},
        {"layers.*", "layers.", true},
        {"layers.*", "layer.1", false},
        {"*.weight", "layers.0.weight", true},
        {"*.weight", "layers.0.weight.0", false},
        {"*.weight*", "layers.0.weight.0", true},
        {"l*s.*.w*t", "layers.0.weight.weight", true},
        {"*ab", "aaab", true},
        {"*aab*b", "aaaabab", true},
        {"*a?b", "aab", true},
        {"*a?b", "ab", false},
        {"a[0]", "a[0]", true},
        {"a[0]", "a0", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (matches(cases[i].pattern, cases[i].name) != cases[i].match)
            fail_msg("%s on %s", cases[i].pattern, cases[i].name);
}

/* A name of a million letters against twenty stars: no search goes back beyond the last star. */
static void many_stars_take_no_time(void **state)
{
    (void)state;
    static char name[1000001];
    memset(name, 'a', sizeof name - 1);
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
    assert_true(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", name));
}

static void lists_are_split_at_commas(void **state)
{
    (void)state;
    static const char *const want[] = {"a.*", "", "b"};
    const char *at = "a.*,,b,", *pattern;
    size_t length;
    for (int i = 0; i < 3; i++) {
        assert_non_null(pattern = qn_glob_next(&at, &length));
        assert_int_equal(length, strlen(want[i]));
        assert_memory_equal(pattern, want[i], length);
    }
    assert_null(qn_glob_next(&at, &length));
    at = NULL;
    assert_null(qn_glob_next(&at, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_whole_names),
        cmocka_unit_test(many_stars_take_no_time),
        cmocka_unit_test(lists_are_split_at_commas),
    };
    return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
