/* SPDX-License-Identifier: MIT */
#include "check/binary.h"

const struct qn_check_case qn_check_binary_cases[] = {
    {"full vectors", .in = {{.rank = 2, .dim = {4, 16}}, {.rank = 2, .dim = {4, 16}}}},
    {"a tail", .in = {{.rank = 3, .dim = {3, 5, 9}}, {.rank = 3, .dim = {3, 5, 9}}}, .small = true},
    {"one element", .in = {{.rank = 1, .dim = {1}}, {.rank = 1, .dim = {1}}}},
    {"several groups", .in = {{.rank = 2, .dim = {7, 311}}, {.rank = 2, .dim = {7, 311}}}},
    {"with a parameter",
     .in = {{.rank = 2, .dim = {3, 7}}, {.role = QN_ROLE_PARAMETER, .rank = 2, .dim = {3, 7}}}},
    {0},
};

const struct qn_check_case qn_check_binary_refused[] = {
    {"other sizes", .in = {{.rank = 2, .dim = {4, 5}}, {.rank = 2, .dim = {5, 4}}}},
    {"other ranks", .in = {{.rank = 2, .dim = {4, 1}}, {.rank = 1, .dim = {4}}}},
    {"integers", .in = {{.rank = 1, .dim = {4}},
                        {.role = QN_ROLE_FIXED, .dtype = QN_I32, .rank = 1, .dim = {4}}}},
    {0},
};
