/* SPDX-License-Identifier: MIT
 *
 * What a terminal shows while something takes long: nothing for a second, then a word on it, which
 * is gone when it is over.
 */
#ifndef QUERN_TOOL_WAITING_H
#define QUERN_TOOL_WAITING_H

#include <pthread.h>
#include <stdbool.h>

struct waiting {
    const char *text;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool running, over, shown;
};

/* `text` is borrowed; NULL, or without a terminal on standard error: nothing is shown. */
void waiting_begin(struct waiting *waiting, const char *text);
void waiting_end(struct waiting *waiting);

#endif
