/* SPDX-License-Identifier: MIT
 *
 * A sign of life: while a thread is at work that takes long, another one tells those who wait.
 */
#ifndef QN_GROUP_PULSE_H
#define QN_GROUP_PULSE_H

#include "group/exchange.h"

#include <pthread.h>

struct qn_pulse {
    qn_status (*beat)(void *user); /* called with the lock, every `seconds` until it fails */
    void *user;
    double seconds;       /* 0: never */
    pthread_mutex_t lock; /* held by who sends: the pulse, or the thread at work */
    pthread_cond_t changed;
    pthread_t thread;
    bool running, ending;
    qn_status status; /* of the last beat */
    char line[QN_MEMBER_LINE];
};

/* With beat, user and seconds filled in. QN_ERR_MEMORY: no thread. */
qn_status qn_pulse_begin(struct qn_pulse *pulse);
/* Gives the status of the beat that failed, and its line. */
qn_status qn_pulse_end(struct qn_pulse *pulse);

#endif
