/* SPDX-License-Identifier: MIT
 *
 * Processes that mpirun or srun started together and that train one model, numbered by rank. There
 * is one such job in a process. Without it there is one rank, 0, and all calls that would wait for
 * others do at once what is right for one.
 */
#ifndef QUERN_TOOL_RANKS_H
#define QUERN_TOOL_RANKS_H

#include "failure.h"

#include <quern/group.h>
#include <stdbool.h>

/* --- the job --- */

/* Joins the others, if this process was started together with some. From then on lines on standard
 * error name the rank, and the standard output of all ranks but 0 goes nowhere. */
int ranks_open(struct failure *failure);
/* Waits until all ranks have done what they had to, unless this one failed. */
void ranks_end(struct failure *failure);
/* Leaves the job, after what this rank has to say: mpirun ends all ranks with the first that goes
 * with a code, and none that agreed goes before all have come here. A command that failed, unless
 * all agreed on it, takes the others with it. */
void ranks_close(const struct failure *failure);
int ranks_own(void);
int ranks_count(void);
/* Whether this is the rank that prints and saves. */
bool ranks_first(void);

/* --- before the training: what follows is called by all ranks, at the same point --- */

/* Each gives its code. If any is not CODE_DONE, all end with that of the first such rank, which
 * alone says why. */
int ranks_agree(int code, struct failure *failure);
/* Each gives `bytes` bytes and receives those of all, by rank. */
int ranks_gather(const void *own, size_t bytes, void *all, struct failure *failure);
/* Messages between two ranks; both wait. */
int ranks_send(int to, const void *bytes, int64_t count, struct failure *failure);
int ranks_receive(int from, void *bytes, int64_t count, struct failure *failure);
/* The text of rank 0, to all: *text is allocated on rank 0, and becomes so on the others. */
int ranks_text(char **text, struct failure *failure);
/* The texts of all, by rank, to rank 0; all others receive NULL. ranks_free. */
int ranks_collect(const char *own, char ***texts, struct failure *failure);
void ranks_free(char **texts);

/* Seconds by which clock_now is ahead of rank 0's. */
int ranks_clock(double *ahead, struct failure *failure);

/* Transports for so many members of this rank, number *first and following of *all. `timeout`:
 * seconds that they, and the turns, wait for others. Alone: there are none, and *all is
 * `members`. */
int ranks_members(int members, double timeout, qn_transport *transports, int *first, int *all,
                  struct failure *failure);

/* --- in the training --- */

/* What ranks tell one another before every update. */
struct turn {
    int signal;      /* that reached a rank, 0: none did. All end then */
    bool over;       /* rank 0's: the training has ended */
    bool saves;      /* rank 0's: it writes a checkpoint, of which others have parts */
    double lr_scale; /* rank 0's */
    bool replanned;  /* a rank has made new plans */
    bool traces;     /* rank 0's: the update is told step by step (profile.h) */
};

/* Each gives its own, of which `signal` is filled in, and receives that of all. */
int ranks_turn(struct turn *turn, struct failure *failure);
/* All call both. What a rank does in between may take longer than the time-out; who has done it
 * with CODE_DONE, his `code`, waits until all have. Gives the code, or why another rank does not
 * come. */
void ranks_busy_begin(void);
int ranks_busy_end(int code, struct failure *failure);

#endif
