/* SPDX-License-Identifier: MIT */
#include "group/threads.h"

#include <signal.h>

static bool open_condition(pthread_cond_t *changed)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool made = pthread_cond_init(changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return made;
}

bool qn_lock_open(pthread_mutex_t *lock, pthread_cond_t *changed)
{
    if (pthread_mutex_init(lock, NULL))
        return false;
    if (open_condition(changed))
        return true;
    pthread_mutex_destroy(lock);
    return false;
}

void qn_lock_close(pthread_mutex_t *lock, pthread_cond_t *changed)
{
    pthread_cond_destroy(changed);
    pthread_mutex_destroy(lock);
}

struct timespec qn_moment_after(double seconds)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    const double until = (double)when.tv_nsec * 1e-9 + seconds;
    when.tv_sec += (time_t)until;
    when.tv_nsec = (long)((until - (double)(time_t)until) * 1e9);
    return when;
}

bool qn_thread_start(pthread_t *thread, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool running = pthread_create(thread, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return running;
}
