/* SPDX-License-Identifier: MIT
 *
 * Messages between two members. Each pair has a tag of its own, and another one for gatherings: in
 * a tag MPI keeps the order. A message goes in pieces of PIECE bytes and one that is shorter, maybe
 * empty: so every other length than the expected one is seen at the first piece that differs.
 */
#include "mpi/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 24 };
enum kind { KIND_MESSAGE, KIND_GATHER, KINDS };

struct ticket {
    struct qn_party other;
    int64_t count;
    bool receives;
    int pieces;
    MPI_Request requests[];
};

static int bytes_of_piece(int64_t count, int piece)
{
    const int64_t rest = count - (int64_t)piece * PIECE;
    return rest < PIECE ? (int)rest : PIECE;
}

/* Members of a rank are counted from its first one. */
static int tag_of(const qn_mpi *mpi, struct qn_party sender, struct qn_party receiver,
                  enum kind kind)
{
    const int from = sender.member - mpi->first[sender.rank];
    const int to = receiver.member - mpi->first[receiver.rank];
    return QN_TAG_FIRST + (from * mpi->most + to) * KINDS + (int)kind;
}

static qn_status wrong_argument(const struct qn_seat *seat, const char *what)
{
    char self[QN_PARTY_BYTES];
    return qn_link_fail(QN_ERR_ARGUMENT, "%s: %s", qn_party_name(seat->self, self), what);
}

static qn_status begin_failed(const struct qn_seat *seat, int other)
{
    char self[QN_PARTY_BYTES], name[QN_PARTY_BYTES];
    return qn_link_fail(QN_ERR_MEMBER, "%s: MPI begins no message with %s",
                        qn_party_name(seat->self, self),
                        qn_party_name(seat->mpi->parties[other], name));
}

static int begin_piece(const qn_mpi *mpi, struct ticket *t, int piece, char *bytes, int tag)
{
    char *at = bytes + (int64_t)piece * PIECE;
    const int count = bytes_of_piece(t->count, piece);
    MPI_Request *request = &t->requests[piece];
    return t->receives ? MPI_Irecv(at, count, MPI_BYTE, t->other.rank, tag, mpi->comm, request)
                       : MPI_Isend(at, count, MPI_BYTE, t->other.rank, tag, mpi->comm, request);
}

/* `what`: other, count and receives. A ticket whose last pieces were refused has the others. */
static qn_status begin(const struct qn_seat *seat, const struct ticket *what, char *bytes,
                       enum kind kind, void **ticket)
{
    const qn_mpi *mpi = seat->mpi;
    const size_t pieces = (size_t)(what->count / PIECE) + 1;
    struct ticket *t = malloc(sizeof *t + pieces * sizeof *t->requests);
    if (!t)
        return qn_link_fail(QN_ERR_MEMORY, "mpi: out of host memory");
    *t = *what;
    *ticket = t;
    const int tag = what->receives ? tag_of(mpi, what->other, seat->self, kind)
                                   : tag_of(mpi, seat->self, what->other, kind);
    for (t->pieces = 0; t->pieces < (int)pieces; t->pieces++)
        if (begin_piece(mpi, t, t->pieces, bytes, tag) != MPI_SUCCESS)
            return begin_failed(seat, what->other.member);
    return QN_OK;
}

static qn_status check_message(const struct qn_seat *seat, int other, const void *bytes,
                               int64_t count, void *const *ticket)
{
    if (other < 0 || other >= seat->mpi->members || other == seat->self.member)
        return wrong_argument(seat, "a message with no other member of the group");
    if (!bytes || count < 0 || !ticket || *ticket)
        return wrong_argument(seat, "a message without bytes, or with a ticket that is in use");
    return QN_OK;
}

/* Messages to be sent are not written to: MPI_Isend takes them const. */
static qn_status send_bytes(void *user, int to, const void *bytes, int64_t count, void **ticket)
{
    const struct qn_seat *seat = user;
    const qn_status status = check_message(seat, to, bytes, count, ticket);
    if (status != QN_OK)
        return status;
    const struct ticket what = {.other = seat->mpi->parties[to], .count = count};
    return begin(seat, &what, (char *)bytes, KIND_MESSAGE, ticket);
}

static qn_status receive_bytes(void *user, int from, void *bytes, int64_t count, void **ticket)
{
    const struct qn_seat *seat = user;
    const qn_status status = check_message(seat, from, bytes, count, ticket);
    if (status != QN_OK)
        return status;
    const struct ticket what = {
        .other = seat->mpi->parties[from], .count = count, .receives = true};
    return begin(seat, &what, bytes, KIND_MESSAGE, ticket);
}

/* The first failure says why, the later ones that there was one. */
static qn_status repeat_first(struct qn_seat *seat, qn_status status)
{
    if (status == QN_OK)
        return QN_OK;
    if (seat->line[0])
        return qn_transport_error(status, seat->line);
    snprintf(seat->line, sizeof seat->line, "%s", qn_last_error());
    return status;
}

/* After a failure the other pieces are waited for, too, and do not take long. */
static qn_status wait_ticket(void *user, void **ticket)
{
    struct qn_seat *seat = user;
    struct ticket *t = ticket ? *ticket : NULL;
    qn_status status = QN_OK;
    for (int p = 0; t && p < t->pieces; p++) {
        const struct qn_wait what = {seat->self, t->other, bytes_of_piece(t->count, p), t->count,
                                     t->receives};
        const qn_status one = repeat_first(seat, qn_link_wait(seat->mpi, &t->requests[p], &what));
        status = status == QN_OK ? one : status;
    }
    free(t);
    if (ticket)
        *ticket = NULL;
    return status;
}

/* --- gathering --- */

static qn_status begin_gather(const struct qn_seat *seat, const void *own, int64_t count, char *all)
{
    const int members = seat->mpi->members;
    qn_status status = QN_OK;
    for (int m = 0; status == QN_OK && m < members; m++) {
        struct ticket what = {.other = seat->mpi->parties[m], .count = count, .receives = true};
        if (m == seat->self.member)
            continue;
        status = begin(seat, &what, all + m * count, KIND_GATHER, &seat->tickets[m]);
        what.receives = false;
        if (status == QN_OK)
            status = begin(seat, &what, (char *)own, KIND_GATHER, &seat->tickets[members + m]);
    }
    return status;
}

/* Each sends to each: who has received from all knows that all have called. */
static qn_status gather(void *user, const void *own, int64_t count, void *all)
{
    const struct qn_seat *seat = user;
    if (count < 0 || (count && (!own || !all)))
        return wrong_argument(seat, "gathers without bytes");
    qn_status status = begin_gather(seat, own, count, all);
    if (status != QN_OK)
        qn_link_end(seat->mpi, seat->self);
    for (int i = 0; i < 2 * seat->mpi->members; i++) {
        const qn_status one = wait_ticket(user, &seat->tickets[i]);
        status = status == QN_OK ? one : status;
    }
    if (count)
        memcpy((char *)all + seat->self.member * count, own, (size_t)count);
    return status;
}

static void fail(void *user)
{
    const struct qn_seat *seat = user;
    qn_link_end(seat->mpi, seat->self);
}

void qn_link_table(struct qn_seat *seat, qn_transport *transport)
{
    *transport = (qn_transport){.user = seat,
                                .member = seat->self.member,
                                .members = seat->mpi->members,
                                .send = send_bytes,
                                .receive = receive_bytes,
                                .wait = wait_ticket,
                                .gather = gather,
                                .fail = fail,
                                .timeout = seat->mpi->timeout};
}
