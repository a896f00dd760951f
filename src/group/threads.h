/* SPDX-License-Identifier: MIT
 *
 * Threads of a group, and waiting until a moment.
 */
#ifndef QN_GROUP_THREADS_H
#define QN_GROUP_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* A condition that is waited for until moments of qn_moment_after, and its lock. False: there is
 * neither. */
bool qn_lock_open(pthread_mutex_t *lock, pthread_cond_t *changed);
void qn_lock_close(pthread_mutex_t *lock, pthread_cond_t *changed);
/* So many seconds from now. */
struct timespec qn_moment_after(double seconds);
/* Starts a thread that gets no signals: these are the caller's own. False: there is none. */
bool qn_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
