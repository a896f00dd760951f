/* SPDX-License-Identifier: MIT */
#include "ranks_job.h"
#include "signals.h"

#include <quern/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ranks_job job = {.count = 1};

struct ranks_job *ranks_job(void)
{
    return job.ranks ? &job : NULL;
}

int ranks_own(void)
{
    return job.own;
}

int ranks_count(void)
{
    return job.count;
}

bool ranks_first(void)
{
    return job.own == 0;
}

/* --- messages --- */

/* Of a call to the transport that failed. */
static int lost(struct failure *failure)
{
    return failure_set(failure, CODE_FAILED, "%s", qn_last_error());
}

/* All tickets are waited for; the first failure is told. */
static qn_status wait_all(const qn_transport *t, void **tickets, int count, qn_status status)
{
    char line[FAILURE_BYTES];
    snprintf(line, sizeof line, "%s", qn_last_error());
    for (int i = 0; i < count; i++) {
        const qn_status one = t->wait(t->user, &tickets[i]);
        if (status == QN_OK && one != QN_OK)
            snprintf(line, sizeof line, "%s", qn_last_error());
        status = status == QN_OK ? one : status;
    }
    return status == QN_OK ? QN_OK : qn_transport_error(status, line);
}

qn_status ranks_exchange(const struct ranks_circle *circle, const void *own, size_t bytes,
                         void *all)
{
    const qn_transport *t = &circle->transport;
    void **tickets = calloc(2 * (size_t)job.count, sizeof *tickets);
    qn_status status = QN_OK;
    if (!tickets)
        return qn_transport_error(QN_ERR_MEMORY, "out of memory");
    for (int r = 0; r < job.count && status == QN_OK; r++) {
        char *place = (char *)all + (size_t)r * bytes;
        if (r == job.own) {
            memcpy(place, own, bytes);
            continue;
        }
        status =
            t->receive(t->user, circle->speaker[r], place, (int64_t)bytes, &tickets[2 * (size_t)r]);
        if (status == QN_OK)
            status = t->send(t->user, circle->speaker[r], own, (int64_t)bytes,
                             &tickets[2 * (size_t)r + 1]);
    }
    status = wait_all(t, tickets, 2 * job.count, status);
    free(tickets);
    return status;
}

int ranks_gather(const void *own, size_t bytes, void *all, struct failure *failure)
{
    if (!ranks_job()) {
        memcpy(all, own, bytes);
        return CODE_DONE;
    }
    return ranks_exchange(&job.before, own, bytes, all) == QN_OK ? CODE_DONE : lost(failure);
}

int ranks_send(int to, const void *bytes, int64_t count, struct failure *failure)
{
    const qn_transport *t = &job.before.transport;
    void *ticket = NULL;
    const qn_status status = t->send(t->user, to, bytes, count, &ticket);
    return wait_all(t, &ticket, 1, status) == QN_OK ? CODE_DONE : lost(failure);
}

int ranks_receive(int from, void *bytes, int64_t count, struct failure *failure)
{
    const qn_transport *t = &job.before.transport;
    void *ticket = NULL;
    const qn_status status = t->receive(t->user, from, bytes, count, &ticket);
    return wait_all(t, &ticket, 1, status) == QN_OK ? CODE_DONE : lost(failure);
}

struct outcome {
    int code;
    bool others;
};

/* The first that failed by itself, else the first that failed; `count`: nobody did. */
static int to_blame(const struct outcome *all, int count)
{
    int first = count;
    for (int r = count - 1; r >= 0; r--)
        if (all[r].code && (first == count || !all[r].others || all[first].others))
            first = r;
    return first;
}

int ranks_agree(int code, struct failure *failure)
{
    const struct outcome own = {code, failure->others};
    struct outcome all[QN_MAX_GROUP];
    if (!ranks_job() || job.agreed)
        return code;
    TRY(ranks_gather(&own, sizeof own, all, failure));
    const int speaker = to_blame(all, job.count);
    if (speaker == job.count)
        return CODE_DONE;
    job.agreed = true;
    failure->code = all[speaker].code;
    if (speaker != job.own)
        failure->text[0] = 0;
    return failure->code;
}

/* --- the job --- */

/* What all ranks find by themselves is told by rank 0. */
static int refused_alike(int code, struct failure *failure)
{
    if (ranks_said_own() > 0)
        failure->text[0] = 0;
    return code;
}

static int open_circle(struct ranks_circle *circle)
{
    circle->speaker = calloc((size_t)job.count, sizeof(int));
    for (int r = 0; circle->speaker && r < job.count; r++)
        circle->speaker[r] = r;
    return circle->speaker ? CODE_DONE : CODE_FAILED;
}

/* Of a job that was joined. */
static int enter(struct failure *failure)
{
    char who[32];
    if (ranks_said() > 1 && job.count == 1)
        return refused_alike(
            failure_set(failure, CODE_FAILED,
                        "several processes were started together, and the MPI that quern-mpi was "
                        "built with sees one: mpirun is that of another MPI"),
            failure);
    if (job.library.transport(job.ranks, 0, &job.before.transport) != QN_OK)
        return lost(failure);
    if (open_circle(&job.before) || open_circle(&job.during))
        return failure_set(failure, CODE_FAILED, "out of memory");
    snprintf(who, sizeof who, "rank %d", job.own);
    say_as(who);
    return ranks_first() || freopen("/dev/null", "w", stdout)
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED, "/dev/null: cannot be written");
}

static void leave(void)
{
    job.library.close(&job.members);
    job.library.close(&job.ranks);
    free(job.before.speaker);
    free(job.during.speaker);
    job.count = 1;
}

/* A launcher that does not say how many there are may have started one. */
int ranks_open(struct failure *failure)
{
    if (ranks_said() == 1)
        return CODE_DONE;
    signals_catch(); /* MPI starts threads */
    if (ranks_library_load(&job.library, failure))
        return refused_alike(failure->code, failure);
    const qn_status status = job.library.open(&job.ranks, NULL);
    if (status == QN_ERR_ARGUMENT)
        return refused_alike(failure_status(failure, status), failure);
    if (status != QN_OK)
        return lost(failure);
    job.count = job.library.ranks(job.ranks);
    job.own = job.library.rank(job.ranks);
    const bool alone = job.count == 1 && ranks_said() == 0;
    const int code = alone ? CODE_DONE : enter(failure);
    if (alone || code)
        leave();
    return code;
}

int ranks_members(int members, double timeout, qn_transport *transports, int *first, int *all,
                  struct failure *failure)
{
    const qn_mpi_params params = {.members = members, .timeout = timeout};
    *first = 0;
    *all = members;
    if (!ranks_job())
        return CODE_DONE;
    if (job.library.open(&job.members, &params) != QN_OK)
        return lost(failure);
    for (int m = 0; m < members; m++)
        if (job.library.transport(job.members, m, &transports[m]) != QN_OK)
            return lost(failure);
    job.during.transport = transports[0];
    job.timeout = timeout;
    *first = transports[0].member;
    *all = transports[0].members;
    return ranks_gather(first, sizeof *first, job.during.speaker, failure);
}

/* What others wait for ends. */
static void fail(void)
{
    (job.before.transport.fail)(job.before.transport.user);
    if (job.members)
        (job.during.transport.fail)(job.during.transport.user);
}

/* Whether this rank failed, and the others do not know. */
static bool failed_alone(const struct failure *failure)
{
    return failure->code && failure->code < CODE_SIGNAL && !job.agreed;
}

void ranks_end(struct failure *failure)
{
    if (!failed_alone(failure))
        ranks_agree(CODE_DONE, failure);
}

void ranks_close(const struct failure *failure)
{
    if (!ranks_job())
        return;
    if (failed_alone(failure))
        fail();
    else
        leave();
}
