/* SPDX-License-Identifier: MIT
 *
 * Turns; and, while a rank is busy, a thread that answers the others, which wait for it.
 */
#include "ranks_job.h"
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, ending;
} pulse = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* That of all, by rank. */
static void merge(struct turn *turn, const struct turn *all, int count)
{
    *turn = all[0];
    for (int r = 1; r < count; r++) {
        turn->signal = turn->signal ? turn->signal : all[r].signal;
        turn->replanned |= all[r].replanned;
    }
}

int ranks_turn(struct turn *turn, struct failure *failure)
{
    const struct ranks_job *job = ranks_job();
    struct turn all[QN_MAX_GROUP];
    turn->signal = signals_received();
    if (!job)
        return CODE_DONE;
    if (ranks_exchange(&job->during, turn, sizeof *turn, all) != QN_OK)
        return failure_set(failure, CODE_FAILED, "%s", qn_last_error());
    merge(turn, all, job->count);
    signals_take(turn->signal);
    return CODE_DONE;
}

/* --- busy ranks --- */

/* Every rank says whether it is busy; `any`: one of them is. */
static qn_status meet(const struct ranks_job *job, bool busy, bool *any)
{
    bool all[QN_MAX_GROUP];
    const qn_status status = ranks_exchange(&job->during, &busy, sizeof busy, all);
    *any = false;
    for (int r = 0; status == QN_OK && r < job->count; r++)
        *any |= all[r];
    return status;
}

/* Waits for a quarter of the time-out; false: the work has ended. */
static bool goes_on(double timeout)
{
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    const double until = (double)when.tv_nsec * 1e-9 + timeout / 4;
    when.tv_sec += (time_t)until;
    when.tv_nsec = (long)((until - (double)(time_t)until) * 1e9);
    pthread_mutex_lock(&pulse.lock);
    while (!pulse.ending && pthread_cond_timedwait(&pulse.changed, &pulse.lock, &when) != ETIMEDOUT)
        ;
    const bool more = !pulse.ending;
    pthread_mutex_unlock(&pulse.lock);
    return more;
}

/* What fails here fails when all meet, too. */
static void *answer(void *user)
{
    const struct ranks_job *job = user;
    bool any;
    while (goes_on(job->timeout) && meet(job, true, &any) == QN_OK)
        ;
    return NULL;
}

void ranks_busy_begin(void)
{
    struct ranks_job *job = ranks_job();
    if (!job)
        return;
    pulse.ending = false;
    pulse.running = pthread_create(&pulse.thread, NULL, answer, job) == 0;
}

static void stop_answers(void)
{
    if (!pulse.running)
        return;
    pthread_mutex_lock(&pulse.lock);
    pulse.ending = true;
    pthread_cond_signal(&pulse.changed);
    pthread_mutex_unlock(&pulse.lock);
    pthread_join(pulse.thread, NULL);
    pulse.running = false;
}

int ranks_busy_end(int code, struct failure *failure)
{
    const struct ranks_job *job = ranks_job();
    bool any = job && !code;
    stop_answers();
    while (any)
        if (meet(job, false, &any) != QN_OK)
            return failure_set(failure, CODE_FAILED, "%s", qn_last_error());
    return code;
}
