/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *show_late(void *user)
{
    struct waiting *w = user;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&w->lock);
    while (!w->over && !error)
        error = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    w->shown = !w->over;
    if (w->shown)
        fprintf(stderr, "\r\033[K%s", w->text);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void waiting_begin(struct waiting *w, const char *text)
{
    *w = (struct waiting){
        .text = text, .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    w->running =
        text && isatty(STDERR_FILENO) == 1 && pthread_create(&w->thread, NULL, show_late, w) == 0;
}

void waiting_end(struct waiting *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (w->shown)
        fprintf(stderr, "\r\033[K");
}
