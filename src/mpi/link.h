/* SPDX-License-Identifier: MIT
 *
 * The ranks of an MPI job, waiting for messages between them, and what ends it.
 */
#ifndef QN_MPI_LINK_H
#define QN_MPI_LINK_H

#include <mpi.h>
#include <pthread.h>
#include <quern/mpi.h>

/* Messages that are none of a member's. */
enum { QN_TAG_FAILED, QN_TAG_HELLO, QN_TAG_FIRST };

enum { QN_LINK_LINE = 1024 }; /* bytes of a message about what went wrong */

/* Who sends or receives. */
struct qn_party {
    int rank, member; /* member -1: members have no numbers yet */
};

/* A member of this rank, the `user` of its table. */
struct qn_seat {
    qn_mpi *mpi;
    struct qn_party self;
    void **tickets;          /* of a gathering: receptions by member, then messages sent */
    char line[QN_LINK_LINE]; /* why the first wait failed, which all later ones repeat; "" */
};

struct qn_mpi {
    double timeout;
    MPI_Comm comm; /* of this object alone; MPI_COMM_NULL: none yet */
    bool finalise; /* MPI was initialised here */
    int rank, ranks, own, members;
    int most;                 /* members of the rank that has most */
    int *first;               /* by rank: its first member; then all members */
    struct qn_party *parties; /* by member */
    struct qn_seat *seats;    /* by member of this rank */
    pthread_mutex_t lock;     /* of what follows */
    bool locked;              /* the lock exists */
    bool failed;
    double failed_at;
    struct qn_party who; /* failed first, as far as is known; goes to the other ranks as it is */
    MPI_Request *told;   /* by rank */
};

/* Makes the line that qn_last_error gives, and gives `status`. */
qn_status qn_link_fail(qn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

double qn_link_clock(void);
/* Between two tests, by the seconds that were waited: a part of these, so that it costs little
 * whether the wait is long or short. */
void qn_link_pause(double waited);

/* "member 3 (rank 1)" or "rank 1". */
enum { QN_PARTY_BYTES = 48 };
const char *qn_party_name(struct qn_party party, char name[QN_PARTY_BYTES]);

/* What a request waits for: `count` bytes of a message of `whole`, from `other` if `receives`. */
struct qn_wait {
    struct qn_party self, other;
    int count;
    int64_t whole;
    bool receives;
};

/* Waits as long as nobody has failed and it is not too late; otherwise the request is given up, and
 * is MPI_REQUEST_NULL in any case. QN_ERR_MEMBER. */
qn_status qn_link_wait(qn_mpi *mpi, MPI_Request *request, const struct qn_wait *what);

/* Has failed: tells all other ranks, once. */
void qn_link_end(qn_mpi *mpi, struct qn_party who);
bool qn_link_failed(qn_mpi *mpi);

/* The functions of a member's table. */
void qn_link_table(struct qn_seat *seat, qn_transport *transport);

#endif
