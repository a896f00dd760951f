/* SPDX-License-Identifier: MIT
 *
 * Messages between members of one process: contents and order, gathering, what ends a wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <quern/group.h>
#include <string.h>
#include <unistd.h>

enum { MEMBERS = 3, MESSAGES = 40, NUMBERS = 1000 };

static qn_transport open_member(qn_hub *hub, int member)
{
    qn_transport transport;
    assert_int_equal(qn_hub_transport(hub, member, &transport), QN_OK);
    assert_int_equal(transport.member, member);
    return transport;
}

/* Message number n from one member to another begins with this number; its length differs. */
static int32_t first_of(int from, int to, int n)
{
    return (from * MEMBERS + to) * MESSAGES + n;
}

static int64_t bytes_of(int n)
{
    return (n % 7 + 1) * 4;
}

struct talker {
    qn_transport transport;
    int32_t out[MEMBERS][MESSAGES][8], in[MEMBERS][MESSAGES][8];
    void *sent[MEMBERS][MESSAGES], *received[MEMBERS][MESSAGES];
    int wrong;
};

static void begin_all(struct talker *t)
{
    const int self = t->transport.member;
    for (int n = 0; n < MESSAGES; n++)
        for (int m = 0; m < MEMBERS; m++) {
            if (m == self)
                continue;
            for (int i = 0; i < 8; i++)
                t->out[m][n][i] = first_of(self, m, n) + i;
            t->wrong += t->transport.send(t->transport.user, m, t->out[m][n], bytes_of(n),
                                          &t->sent[m][n]) != QN_OK;
            t->wrong += t->transport.receive(t->transport.user, m, t->in[m][n], bytes_of(n),
                                             &t->received[m][n]) != QN_OK;
        }
}

/* Receptions are waited for from the last to the first: order is that of their beginning. */
static void *talk(void *user)
{
    struct talker *t = user;
    const int self = t->transport.member;
    begin_all(t);
    for (int n = MESSAGES - 1; n >= 0; n--)
        for (int m = 0; m < MEMBERS; m++) {
            t->wrong += t->transport.wait(t->transport.user, &t->received[m][n]) != QN_OK;
            for (int i = 0; m != self && i < bytes_of(n) / 4; i++)
                t->wrong += t->in[m][n][i] != first_of(m, self, n) + i;
        }
    for (int n = 0; n < MESSAGES; n++)
        for (int m = 0; m < MEMBERS; m++)
            t->wrong += t->transport.wait(t->transport.user, &t->sent[m][n]) != QN_OK;
    return NULL;
}

static void messages_arrive_in_order(void **state)
{
    (void)state;
    static struct talker talkers[MEMBERS];
    pthread_t threads[MEMBERS];
    qn_hub *hub;
    assert_int_equal(qn_hub_open(&hub, MEMBERS, 60), QN_OK);
    for (int m = 0; m < MEMBERS; m++)
        talkers[m].transport = open_member(hub, m);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, talk, &talkers[m]), 0);
    for (int m = 0; m < MEMBERS; m++) {
        pthread_join(threads[m], NULL);
        assert_int_equal(talkers[m].wrong, 0);
    }
    qn_hub_close(&hub);
}

struct gatherer {
    qn_transport transport;
    int wrong;
};

static void *gather_often(void *user)
{
    struct gatherer *g = user;
    for (int32_t n = 0; n < NUMBERS; n++) {
        const int32_t own = n * MEMBERS + g->transport.member;
        int32_t all[MEMBERS];
        g->wrong += g->transport.gather(g->transport.user, &own, sizeof own, all) != QN_OK;
        for (int m = 0; m < MEMBERS; m++)
            g->wrong += all[m] != n * MEMBERS + m;
    }
    return NULL;
}

static void gathering_is_in_the_order_of_members(void **state)
{
    (void)state;
    struct gatherer gatherers[MEMBERS] = {{.wrong = 0}};
    pthread_t threads[MEMBERS];
    qn_hub *hub;
    assert_int_equal(qn_hub_open(&hub, MEMBERS, 60), QN_OK);
    for (int m = 0; m < MEMBERS; m++)
        gatherers[m].transport = open_member(hub, m);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, gather_often, &gatherers[m]), 0);
    for (int m = 0; m < MEMBERS; m++) {
        pthread_join(threads[m], NULL);
        assert_int_equal(gatherers[m].wrong, 0);
    }
    qn_hub_close(&hub);
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    qn_hub *hub;
    void *ticket = NULL;
    int32_t number = 0, all[2];
    assert_int_equal(qn_hub_open(&hub, 2, 0.05), QN_OK);
    qn_transport t = open_member(hub, 0);
    assert_int_equal(t.receive(t.user, 1, &number, sizeof number, &ticket), QN_OK);
    assert_int_equal(t.wait(t.user, &ticket), QN_ERR_MEMBER);
    assert_non_null(strstr(qn_last_error(), "nothing from member 1"));
    assert_null(ticket);
    assert_int_equal(t.gather(t.user, &number, sizeof number, all), QN_ERR_MEMBER);
    qn_hub_close(&hub);
}

static void *fail_later(void *user)
{
    const qn_transport *t = user;
    usleep(20000);
    (t->fail)(t->user);
    return NULL;
}

static void a_failure_ends_all_waits(void **state)
{
    (void)state;
    qn_hub *hub;
    void *ticket = NULL;
    const int32_t number = 0;
    pthread_t thread;
    assert_int_equal(qn_hub_open(&hub, 2, 600), QN_OK);
    qn_transport t = open_member(hub, 0), other = open_member(hub, 1);
    assert_int_equal(t.send(t.user, 1, &number, sizeof number, &ticket), QN_OK);
    assert_int_equal(pthread_create(&thread, NULL, fail_later, &other), 0);
    assert_int_equal(t.wait(t.user, &ticket), QN_ERR_MEMBER);
    assert_non_null(strstr(qn_last_error(), "member 1 has failed"));
    pthread_join(thread, NULL);
    qn_hub_close(&hub);
}

static void lengths_must_fit(void **state)
{
    (void)state;
    qn_hub *hub;
    void *ticket = NULL, *offered = NULL;
    int32_t numbers[2] = {0};
    assert_int_equal(qn_hub_open(&hub, 2, 600), QN_OK);
    qn_transport t = open_member(hub, 0), other = open_member(hub, 1);
    assert_int_equal(other.send(other.user, 0, numbers, 4, &offered), QN_OK);
    assert_int_equal(t.receive(t.user, 1, numbers, 8, &ticket), QN_OK);
    assert_int_equal(t.wait(t.user, &ticket), QN_ERR_MEMBER);
    assert_non_null(strstr(qn_last_error(), "than the 8 that it should"));
    assert_int_equal(other.wait(other.user, &offered), QN_ERR_MEMBER);
    assert_int_equal(t.send(t.user, 0, numbers, 4, &ticket), QN_ERR_ARGUMENT);
    assert_int_equal(t.send(t.user, 2, numbers, 4, &ticket), QN_ERR_ARGUMENT);
    qn_hub_close(&hub);
}

static void lines_of_other_transports(void **state)
{
    (void)state;
    assert_int_equal(qn_transport_error(QN_ERR_MEMBER, "member 3:\ngone"), QN_ERR_MEMBER);
    assert_string_equal(qn_last_error(), "member 3:\\ngone");
    assert_int_equal(qn_transport_error(QN_ERR_IO, NULL), QN_ERR_IO);
    assert_string_equal(qn_last_error(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_in_order),
        cmocka_unit_test(gathering_is_in_the_order_of_members),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(a_failure_ends_all_waits),
        cmocka_unit_test(lengths_must_fit),
        cmocka_unit_test(lines_of_other_transports),
    };
    return cmocka_run_group_tests_name("hub", tests, NULL, NULL);
}
