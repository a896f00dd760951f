/* SPDX-License-Identifier: MIT
 *
 * Teams whose updates were worked out by hand.
 */
#include "scaling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct expected {
    double seconds, sent, crossing;
};

static void expect(const struct scaling *team, const struct expected of[EXCHANGES])
{
    for (int e = 0; e < EXCHANGES; e++) {
        const struct scaled got = scaling_predict(team, (enum exchange)e);
        if (fabs(got.seconds - of[e].seconds) > 1e-9 || fabs(got.sent - of[e].sent) > 1e-9 ||
            fabs(got.crossing - of[e].crossing) > 1e-9)
            fail_msg("%s: %.9g s, %.9g and %.9g bytes", exchange_names[e], got.seconds, got.sent,
                     got.crossing);
        assert_true(fabs(got.seconds - got.exposed - team->compute) < 1e-9);
    }
}

static void one_member_exchanges_nothing(void **state)
{
    (void)state;
    const struct scaling team = {.nodes = 1,
                                 .per_node = 1,
                                 .compute = 20,
                                 .backward = 4,
                                 .bytes = 1000,
                                 .returned = 1000,
                                 .buckets = 10,
                                 .sharded = true};
    expect(&team, (struct expected[]){{20, 0, 0}, {20, 0, 0}, {20, 0, 0}});
}

/* Each sends half of 1000 bytes and gets as much, twice: 10 s at 100 bytes/s. The first bucket of
 * ten is made after 0.4 of 4 s, so 3.6 s of these are beside the backward pass; weights, parts and
 * sums each arrive 0.5 s after they were sent. */
static void two_members(void **state)
{
    (void)state;
    struct scaling team = {.nodes = 1,
                           .per_node = 2,
                           .inside = {100, 0.5, 0},
                           .compute = 20,
                           .backward = 4,
                           .bytes = 1000,
                           .returned = 1000,
                           .buckets = 10};
    const struct expected alike = {20 + 10 - 3.6 + 1.5, 1000, 0};
    expect(&team, (struct expected[]){alike, alike, alike});
    /* A long backward pass leaves the last bucket, of 1 s. */
    team.compute = 60;
    team.backward = 40;
    const struct expected hidden = {60 + 1 + 1.5, 1000, 0};
    expect(&team, (struct expected[]){hidden, hidden, hidden});
}

/* Norms are told too, and the second half waits for the update; it has half of the bytes where
 * parameters have. */
static void two_members_with_a_sharded_optimizer(void **state)
{
    (void)state;
    struct scaling team = {.nodes = 1,
                           .per_node = 2,
                           .inside = {100, 0.5, 0},
                           .compute = 20,
                           .backward = 4,
                           .bytes = 1000,
                           .returned = 1000,
                           .buckets = 10,
                           .sharded = true};
    const struct expected alike = {20 + (5 - 3.6) + 5 + 4 * 0.5, 1000, 0};
    expect(&team, (struct expected[]){alike, alike, alike});
    team.returned = 500;
    const struct expected smaller = {20 + (5 - 3.6) + 2.5 + 4 * 0.5, 750, 0};
    expect(&team, (struct expected[]){smaller, smaller, smaller});
}

/* Two members in nodes of their own are as far from each other as the nodes are. */
static void two_nodes_of_one(void **state)
{
    (void)state;
    const struct scaling team = {.nodes = 2,
                                 .per_node = 1,
                                 .between = {100, 0.5, 0},
                                 .compute = 20,
                                 .backward = 4,
                                 .bytes = 1000,
                                 .returned = 1000,
                                 .buckets = 10};
    const struct expected alike = {20 + 10 - 3.6 + 1.5, 1000, 1000};
    expect(&team, (struct expected[]){alike, alike, alike});
}

/* Seven messages of 100 bytes in four buckets, each 0.01 s: 7.28 s for a half. Around the ring a
 * message is passed on seven times. */
static void eight_in_one_node(void **state)
{
    (void)state;
    const struct scaling team = {.nodes = 1,
                                 .per_node = 8,
                                 .inside = {100, 0.1, 0.01},
                                 .compute = 10,
                                 .backward = 2,
                                 .bytes = 800,
                                 .returned = 800,
                                 .buckets = 4};
    const double told = 0.1 + 7 * 0.01, links = 2 * 7.28 - 1.5;
    expect(&team, (struct expected[]){{10 + told + links + 2 * 0.1, 1400, 0},
                                      {10 + told + links + 2 * 0.7, 1400, 0},
                                      {10 + told + links + 2 * 0.1, 1400, 0}});
}

/* Direct: of 100 bytes a member, 16 parts leave a node in a half, 32 s. Ring: one member sends 7
 * parts to the next node, 14 s. Hierarchical: after 6 s within it a node sends four times 100
 * bytes, 8 s, the busiest link; the last of four buckets takes a quarter of 6 + 8. */
static void two_nodes_of_four(void **state)
{
    (void)state;
    const struct scaling team = {.nodes = 2,
                                 .per_node = 4,
                                 .inside = {100, 0.1, 0},
                                 .between = {50, 1, 0},
                                 .compute = 10,
                                 .backward = 2,
                                 .bytes = 800,
                                 .returned = 800,
                                 .buckets = 4};
    expect(&team, (struct expected[]){{10 + 1 + 2 * 32 - 1.5 + 2 * 1, 1400, 3200},
                                      {10 + 1 + 2 * 14 - 1.5 + 2 * (5 * 0.1 + 2 * 1), 1400, 1400},
                                      {10 + 1 + 2 * (6 + 3.5) - 1.5 + 2 * 1.1, 1400, 800}});
}

/* Whatever the team, every exchange sends 2 (m - 1) / m of the bytes. */
static void bytes_are_the_same(void **state)
{
    (void)state;
    struct scaling team = {.inside = {100, 0.1, 0},
                           .between = {50, 1, 0},
                           .compute = 10,
                           .bytes = 5040,
                           .returned = 5040,
                           .buckets = 7};
    for (team.nodes = 1; team.nodes <= 128; team.nodes *= 2)
        for (team.per_node = 1; team.per_node <= 8; team.per_node++)
            for (int e = 0; e < EXCHANGES; e++) {
                const double members = team.nodes * team.per_node;
                const double sent = scaling_predict(&team, (enum exchange)e).sent;
                assert_true(fabs(sent - 2 * (members - 1) / members * team.bytes) < 1e-6);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_member_exchanges_nothing),
        cmocka_unit_test(two_members),
        cmocka_unit_test(two_members_with_a_sharded_optimizer),
        cmocka_unit_test(two_nodes_of_one),
        cmocka_unit_test(eight_in_one_node),
        cmocka_unit_test(two_nodes_of_four),
        cmocka_unit_test(bytes_are_the_same),
    };
    return cmocka_run_group_tests_name("scaling", tests, NULL, NULL);
}
