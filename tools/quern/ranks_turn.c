/* SPDX-License-Identifier: MIT
 *
 * While rank 0 evaluates, a thread answers the others that wait for their next turn.
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
    turn->busy = 0;
    do {
        turn->signal = signals_received();
        if (!job)
            return CODE_DONE;
        if (ranks_exchange(&job->during, turn, sizeof *turn, all) != QN_OK)
            return failure_set(failure, CODE_FAILED, "%s", qn_last_error());
    } while (all[0].busy);
    merge(turn, all, job->count);
    signals_take(turn->signal);
    return CODE_DONE;
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

/* What fails here fails in the next turn, too. */
static void *answer(void *user)
{
    const struct ranks_job *job = user;
    const struct turn busy = {.busy = 1};
    struct turn all[QN_MAX_GROUP];
    while (goes_on(job->timeout) && ranks_exchange(&job->during, &busy, sizeof busy, all) == QN_OK)
        ;
    return NULL;
}

void ranks_busy_begin(void)
{
    struct ranks_job *job = ranks_job();
    if (!job || !job->members || !ranks_first())
        return;
    pulse.ending = false;
    pulse.running = pthread_create(&pulse.thread, NULL, answer, job) == 0;
}

void ranks_busy_end(void)
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
