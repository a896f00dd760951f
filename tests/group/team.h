/* SPDX-License-Identifier: MIT
 *
 * Members of a group with their plans, in the tests of both ways in which groups send messages.
 */
#ifndef QN_TESTS_GROUP_TEAM_H
#define QN_TESTS_GROUP_TEAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../run/support.h"

#include <quern/group.h>

enum { MOST = 4, UNIT = 4 };

struct team {
    qn_device *devices[MOST];
    qn_plan *plans[MOST];
    qn_group *group;
    int count;
};

/* Of a member without samples: of one unit. */
static inline qn_plan_params plan_of(int64_t samples, int64_t micro_batch,
                                     qn_recompute_mode recompute)
{
    return (qn_plan_params){.budget = 8 << 20,
                            .batch = {samples ? samples : UNIT},
                            .micro_batch = micro_batch,
                            .recompute = recompute,
                            .optimizer = {.name = "adam"},
                            .norm_groups = "auto"};
}

/* As test_fetch, but called by several threads. */
static inline qn_status fetch_beside(void *user, const char *input, int64_t first, int64_t count,
                                     void *rows)
{
    struct test_data own = *(const struct test_data *)user;
    return test_fetch(&own, input, first, count, rows);
}

static inline void close_team(struct team *team)
{
    qn_group_close(&team->group);
    for (int m = 0; m < team->count; m++) {
        qn_plan_destroy(&team->plans[m]);
        qn_device_close(&team->devices[m]);
    }
}

#endif
