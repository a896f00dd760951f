/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_int received;

static sigset_t ending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/* Remembers the first signal; by the second one the program ends. */
static void *watch(void *unused)
{
    const sigset_t set = ending_signals();
    int number = 0;
    (void)unused;
    sigwait(&set, &number);
    atomic_store(&received, number);
    sigwait(&set, &number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    return NULL;
}

/* A thread takes the signals, and no handler: a compiler that a driver loads into the process may
 * put its own handlers in the place of ours, which remove files that it is about to read. All
 * threads that are made later inherit the mask. */
void signals_catch(void)
{
    static bool caught;
    const sigset_t set = ending_signals();
    pthread_t watcher;
    if (caught)
        return;
    caught = true;
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&watcher, NULL, watch, NULL) == 0)
        pthread_detach(watcher);
    else
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int signals_received(void)
{
    return atomic_load(&received);
}

void signals_take(int number)
{
    int none = 0;
    atomic_compare_exchange_strong(&received, &none, number);
}

int signals_code(struct failure *failure)
{
    const int number = signals_received();
    if (number && !failure->code)
        failure->code = CODE_SIGNAL + number;
    return failure->code;
}
