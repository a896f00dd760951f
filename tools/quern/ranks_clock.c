/* SPDX-License-Identifier: MIT
 *
 * How far clocks are apart: rank 0 asks each other rank for its time, again and again, and believes
 * the answer that came soonest: it was given half the way, to that much at most.
 */
#include "progress.h"
#include "ranks.h"

#include <math.h>

enum { QUESTIONS = 16 };

static int send(int to, double seconds, struct failure *failure)
{
    return ranks_send(to, &seconds, sizeof seconds, failure);
}

static int receive(int from, double *seconds, struct failure *failure)
{
    return ranks_receive(from, seconds, sizeof *seconds, failure);
}

/* Rank 0's part: tells the rank how far it is ahead. */
static int ask(int rank, struct failure *failure)
{
    double soonest = INFINITY, ahead = 0, theirs;
    for (int i = 0; i < QUESTIONS; i++) {
        const double began = clock_now();
        TRY(send(rank, began, failure));
        TRY(receive(rank, &theirs, failure));
        const double took = clock_now() - began;
        ahead = took < soonest ? theirs - (began + took / 2) : ahead;
        soonest = fmin(soonest, took);
    }
    return send(rank, ahead, failure);
}

static int answer(double *ahead, struct failure *failure)
{
    double asked;
    for (int i = 0; i < QUESTIONS; i++) {
        TRY(receive(0, &asked, failure));
        TRY(send(0, clock_now(), failure));
    }
    return receive(0, ahead, failure);
}

int ranks_clock(double *ahead, struct failure *failure)
{
    *ahead = 0;
    if (!ranks_first())
        return answer(ahead, failure);
    for (int r = 1; r < ranks_count(); r++)
        TRY(ask(r, failure));
    return CODE_DONE;
}
