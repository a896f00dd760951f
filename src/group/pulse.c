/* SPDX-License-Identifier: MIT */
#include "group/pulse.h"

#include "base/log.h"
#include "group/threads.h"

#include <errno.h>
#include <stdio.h>

/* False: the work has ended. */
static bool rest(struct qn_pulse *pulse)
{
    const struct timespec when = qn_moment_after(pulse->seconds);
    while (!pulse->ending &&
           pthread_cond_timedwait(&pulse->changed, &pulse->lock, &when) != ETIMEDOUT)
        ;
    return !pulse->ending;
}

static void *beat_on(void *user)
{
    struct qn_pulse *pulse = user;
    pthread_mutex_lock(&pulse->lock);
    while (pulse->status == QN_OK && rest(pulse))
        pulse->status = pulse->beat(pulse->user);
    if (pulse->status != QN_OK)
        snprintf(pulse->line, sizeof pulse->line, "%s", qn_last_error());
    pthread_mutex_unlock(&pulse->lock);
    return NULL;
}

qn_status qn_pulse_begin(struct qn_pulse *pulse)
{
    if (!qn_lock_open(&pulse->lock, &pulse->changed))
        return qn_fail(NULL, QN_ERR_MEMORY, "save: no thread could be started");
    pulse->running = pulse->seconds > 0 && qn_thread_start(&pulse->thread, beat_on, pulse);
    if (pulse->running || !(pulse->seconds > 0))
        return QN_OK;
    qn_lock_close(&pulse->lock, &pulse->changed);
    return qn_fail(NULL, QN_ERR_MEMORY, "save: no thread could be started");
}

qn_status qn_pulse_end(struct qn_pulse *pulse)
{
    pthread_mutex_lock(&pulse->lock);
    pulse->ending = true;
    pthread_cond_signal(&pulse->changed);
    pthread_mutex_unlock(&pulse->lock);
    if (pulse->running)
        pthread_join(pulse->thread, NULL);
    qn_lock_close(&pulse->lock, &pulse->changed);
    return pulse->status == QN_OK ? QN_OK : qn_transport_error(pulse->status, pulse->line);
}
