/* SPDX-License-Identifier: MIT
 *
 * Members of one process: a message is copied from the sender's memory into the receiver's by
 * whichever of both begins last, so that waiting for it is waiting alone.
 */
#include "base/log.h"
#include "group/threads.h"
#include <quern/group.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double DEFAULT_TIMEOUT = 600; /* seconds */

enum message_state { MESSAGE_BEGUN, MESSAGE_COPIED, MESSAGE_DONE };

/* A ticket, of either side. What a sender offers under a number of a lane goes to the receiver of
 * the same number. */
struct ticket {
    struct lane *lane;
    struct ticket *next; /* in the lane's list, or among the unused ones */
    const void *from;    /* of a sender; NULL */
    void *to;            /* of a receiver; NULL */
    int64_t count;
    uint64_t number;
    enum message_state state;
    bool misfit; /* the other side has another number of bytes */
};

/* Messages from one member to another. */
struct lane {
    int sender, receiver;
    uint64_t sent, received;
    struct ticket *begun; /* of both sides, as long as they have not been waited for */
};

struct station {
    struct qn_hub *hub;
    int member;
};

struct qn_hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int members;
    double timeout;
    bool failed;
    int who;            /* failed first */
    struct lane *lanes; /* sender * members + receiver */
    struct ticket *unused;
    struct station *stations;
    /* The gathering under way: those who have come, their bytes, and which it is. */
    int come, leaving;
    uint64_t round;
    const void **given;
};

static void fail_hub(struct qn_hub *hub, int member)
{
    hub->who = hub->failed ? hub->who : member;
    hub->failed = true;
    pthread_cond_broadcast(&hub->changed);
}

/* Why a member that waits goes on waiting no more. */
static qn_status give_up(struct qn_hub *hub, int member, int other)
{
    if (hub->failed)
        return qn_fail(NULL, QN_ERR_MEMBER, "member %d: member %d has failed", member, hub->who);
    fail_hub(hub, other < 0 ? member : other);
    if (other < 0)
        return qn_fail(NULL, QN_ERR_MEMBER, "member %d: the others did not come within %g seconds",
                       member, hub->timeout);
    return qn_fail(NULL, QN_ERR_MEMBER, "member %d: nothing from member %d for %g seconds", member,
                   other, hub->timeout);
}

/* Until something changes; false: it is too late, or a member has failed. */
static bool wait_until(struct qn_hub *hub, const struct timespec *when)
{
    return !hub->failed && pthread_cond_timedwait(&hub->changed, &hub->lock, when) != ETIMEDOUT;
}

/* --- messages --- */

static qn_status open_ticket(struct qn_hub *hub, void **ticket)
{
    struct ticket *t = hub->unused;
    if (t)
        hub->unused = t->next;
    else
        t = malloc(sizeof *t);
    *ticket = t;
    return t ? QN_OK : qn_fail(NULL, QN_ERR_MEMORY, "group: out of host memory");
}

/* The ticket of the other side; NULL: it is not begun. */
static struct ticket *find_partner(const struct ticket *ticket)
{
    struct ticket *t = ticket->lane->begun;
    while (t && (t->number != ticket->number || !t->from == !ticket->from))
        t = t->next;
    return t;
}

/* The bytes are copied while others may go on. */
static void copy(struct qn_hub *hub, struct ticket *ticket, struct ticket *partner)
{
    const struct ticket *offer = ticket->from ? ticket : partner;
    const struct ticket *reception = ticket->from ? partner : ticket;
    ticket->misfit = partner->misfit = ticket->count != partner->count;
    ticket->state = partner->state = MESSAGE_COPIED;
    pthread_mutex_unlock(&hub->lock);
    if (!ticket->misfit)
        memcpy(reception->to, offer->from, (size_t)offer->count);
    pthread_mutex_lock(&hub->lock);
    ticket->state = partner->state = MESSAGE_DONE;
    pthread_cond_broadcast(&hub->changed);
}

static qn_status begin(const struct station *station, int sender, int receiver,
                       const struct ticket *what, void **ticket)
{
    struct qn_hub *hub = station->hub;
    const int other = sender == station->member ? receiver : sender;
    QN_REQUIRE(NULL, other >= 0 && other < hub->members && other != station->member);
    QN_REQUIRE(NULL, what->count >= 0 && ticket && !*ticket);
    pthread_mutex_lock(&hub->lock);
    const qn_status status = open_ticket(hub, ticket);
    if (status == QN_OK) {
        struct lane *lane = &hub->lanes[sender * hub->members + receiver];
        struct ticket *t = *ticket;
        *t = *what;
        t->lane = lane;
        t->number = what->from ? lane->sent++ : lane->received++;
        struct ticket *partner = find_partner(t);
        t->next = lane->begun;
        lane->begun = t;
        if (partner)
            copy(hub, t, partner);
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static qn_status send_bytes(void *user, int to, const void *bytes, int64_t count, void **ticket)
{
    const struct station *station = user;
    QN_REQUIRE(NULL, bytes);
    return begin(station, station->member, to, &(struct ticket){.from = bytes, .count = count},
                 ticket);
}

static qn_status receive_bytes(void *user, int from, void *bytes, int64_t count, void **ticket)
{
    const struct station *station = user;
    QN_REQUIRE(NULL, bytes);
    return begin(station, from, station->member, &(struct ticket){.to = bytes, .count = count},
                 ticket);
}

static void close_ticket(struct qn_hub *hub, struct ticket *ticket)
{
    struct ticket **at = &ticket->lane->begun;
    while (*at != ticket)
        at = &(*at)->next;
    *at = ticket->next;
    ticket->next = hub->unused;
    hub->unused = ticket;
}

/* Where nobody comes any more, nobody copies either when this returns. */
static qn_status wait_done(struct qn_hub *hub, const struct ticket *t)
{
    const struct timespec when = qn_moment_after(hub->timeout);
    const struct lane *lane = t->lane;
    const int self = t->from ? lane->sender : lane->receiver;
    const int other = t->from ? lane->receiver : lane->sender;
    while (t->state == MESSAGE_BEGUN)
        if (!wait_until(hub, &when) && t->state == MESSAGE_BEGUN)
            return give_up(hub, self, other);
    while (t->state == MESSAGE_COPIED)
        pthread_cond_wait(&hub->changed, &hub->lock);
    if (!t->misfit)
        return QN_OK;
    fail_hub(hub, lane->sender);
    return qn_fail(NULL, QN_ERR_MEMBER,
                   "member %d: member %d sends and receives other numbers of "
                   "bytes than the %" PRId64 " that it should",
                   self, other, t->count);
}

static qn_status wait_ticket(void *user, void **ticket)
{
    struct qn_hub *hub = ((const struct station *)user)->hub;
    struct ticket *t = ticket ? *ticket : NULL;
    if (!t)
        return QN_OK;
    pthread_mutex_lock(&hub->lock);
    const qn_status status = wait_done(hub, t);
    close_ticket(hub, t);
    pthread_mutex_unlock(&hub->lock);
    *ticket = NULL;
    return status;
}

/* --- gathering --- */

/* Nobody's bytes are read when the last member has left. */
static qn_status gather_all(struct qn_hub *hub, const struct station *station, int64_t count,
                            unsigned char *all)
{
    const struct timespec when = qn_moment_after(hub->timeout);
    const uint64_t round = hub->round;
    if (++hub->come == hub->members) {
        hub->come = 0;
        hub->leaving = hub->members;
        hub->round++;
        pthread_cond_broadcast(&hub->changed);
    }
    while (hub->round == round)
        if (!wait_until(hub, &when) && hub->round == round)
            return give_up(hub, station->member, -1);
    for (int m = 0; m < hub->members; m++)
        memcpy(all + m * count, hub->given[m], (size_t)count);
    if (--hub->leaving == 0)
        pthread_cond_broadcast(&hub->changed);
    while (hub->leaving && hub->round == round + 1)
        if (!wait_until(hub, &when) && hub->leaving)
            return give_up(hub, station->member, -1);
    return QN_OK;
}

static qn_status gather(void *user, const void *own, int64_t count, void *all)
{
    const struct station *station = user;
    struct qn_hub *hub = station->hub;
    QN_REQUIRE(NULL, count >= 0 && (!count || (own && all)));
    pthread_mutex_lock(&hub->lock);
    hub->given[station->member] = own;
    const qn_status status = gather_all(hub, station, count, all);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static void fail(void *user)
{
    const struct station *station = user;
    pthread_mutex_lock(&station->hub->lock);
    fail_hub(station->hub, station->member);
    pthread_mutex_unlock(&station->hub->lock);
}

/* --- the hub --- */

static void free_tickets(struct ticket *t)
{
    while (t) {
        struct ticket *next = t->next;
        free(t);
        t = next;
    }
}

static void free_hub(struct qn_hub *hub)
{
    for (int i = 0; hub->lanes && i < hub->members * hub->members; i++)
        free_tickets(hub->lanes[i].begun);
    free_tickets(hub->unused);
    free(hub->lanes);
    free(hub->stations);
    free(hub->given);
    free(hub);
}

qn_status qn_hub_open(qn_hub **out, int members, double timeout)
{
    if (out)
        *out = NULL;
    QN_REQUIRE(NULL, out && members > 0 && members <= QN_MAX_GROUP && timeout >= 0);
    struct qn_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return qn_fail(NULL, QN_ERR_MEMORY, "group: out of host memory");
    const size_t count = (size_t)members;
    hub->members = members;
    hub->timeout = timeout > 0 ? timeout : DEFAULT_TIMEOUT;
    hub->lanes = calloc(count * count, sizeof *hub->lanes);
    hub->stations = calloc(count, sizeof *hub->stations);
    hub->given = calloc(count, sizeof *hub->given);
    if (!hub->lanes || !hub->stations || !hub->given || !qn_lock_open(&hub->lock, &hub->changed)) {
        free_hub(hub);
        return qn_fail(NULL, QN_ERR_MEMORY, "group: out of host memory");
    }
    for (int i = 0; i < members * members; i++)
        hub->lanes[i] = (struct lane){.sender = i / members, .receiver = i % members};
    for (int m = 0; m < members; m++)
        hub->stations[m] = (struct station){hub, m};
    *out = hub;
    return QN_OK;
}

void qn_hub_close(qn_hub **hub)
{
    if (!hub || !*hub)
        return;
    qn_lock_close(&(*hub)->lock, &(*hub)->changed);
    free_hub(*hub);
    *hub = NULL;
}

qn_status qn_hub_transport(qn_hub *hub, int member, qn_transport *transport)
{
    QN_REQUIRE(NULL, hub && transport && member >= 0 && member < hub->members);
    *transport = (qn_transport){.user = &hub->stations[member],
                                .member = member,
                                .members = hub->members,
                                .send = send_bytes,
                                .receive = receive_bytes,
                                .wait = wait_ticket,
                                .gather = gather,
                                .fail = fail,
                                .timeout = hub->timeout};
    return QN_OK;
}
