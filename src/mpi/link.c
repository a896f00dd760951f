/* SPDX-License-Identifier: MIT
 *
 * MPI_Wait knows no end but the message: so requests are tested, and between the tests one looks
 * at the clock and for the word of another rank that it has failed.
 */
#include "mpi/link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Seconds: the longest sleep; after a failure, for messages that both sides have begun. */
static const double LONGEST_SLEEP = 1e-3, GRACE = 0.5;

qn_status qn_link_fail(qn_status status, const char *format, ...)
{
    char line[QN_LINK_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return qn_transport_error(status, line);
}

double qn_link_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const char *qn_party_name(struct qn_party party, char name[QN_PARTY_BYTES])
{
    if (party.member < 0)
        snprintf(name, QN_PARTY_BYTES, "rank %d", party.rank);
    else
        snprintf(name, QN_PARTY_BYTES, "member %d (rank %d)", party.member, party.rank);
    return name;
}

void qn_link_pause(double waited)
{
    const double sleep = waited < 16 * LONGEST_SLEEP ? waited / 16 : LONGEST_SLEEP;
    nanosleep(&(struct timespec){.tv_nsec = (long)(sleep * 1e9)}, NULL);
}

/* --- failures --- */

/* False: somebody had failed already. */
static bool note_failure(qn_mpi *mpi, struct qn_party who)
{
    pthread_mutex_lock(&mpi->lock);
    const bool first = !mpi->failed;
    if (first) {
        mpi->failed = true;
        mpi->failed_at = qn_link_clock();
        mpi->who = who;
    }
    pthread_mutex_unlock(&mpi->lock);
    return first;
}

void qn_link_end(qn_mpi *mpi, struct qn_party who)
{
    if (!note_failure(mpi, who))
        return;
    for (int r = 0; r < mpi->ranks; r++)
        if (r != mpi->rank)
            MPI_Isend(&mpi->who, sizeof mpi->who, MPI_BYTE, r, QN_TAG_FAILED, mpi->comm,
                      &mpi->told[r]);
}

bool qn_link_failed(qn_mpi *mpi)
{
    pthread_mutex_lock(&mpi->lock);
    const bool failed = mpi->failed;
    pthread_mutex_unlock(&mpi->lock);
    return failed;
}

/* The word of another rank, if it has come. */
static void hear_failure(qn_mpi *mpi)
{
    int there = 0;
    struct qn_party who;
    MPI_Message message;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, QN_TAG_FAILED, mpi->comm, &there, &message, &status) ||
        !there || MPI_Mrecv(&who, sizeof who, MPI_BYTE, &message, MPI_STATUS_IGNORE))
        return;
    note_failure(mpi, who);
}

/* What both sides have begun ends soon, and the rest never does. */
static void give_up(const qn_mpi *mpi, MPI_Request *request, bool receives)
{
    int done = 0;
    if (receives)
        MPI_Cancel(request);
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done &&
           qn_link_clock() < mpi->failed_at + GRACE)
        qn_link_pause(LONGEST_SLEEP);
    if (*request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
}

/* --- waiting --- */

static qn_status too_late(qn_mpi *mpi, const struct qn_wait *what)
{
    char other[QN_PARTY_BYTES];
    qn_link_end(mpi, what->other);
    return qn_link_fail(QN_ERR_MEMBER, "nothing from %s for %g seconds",
                        qn_party_name(what->other, other), mpi->timeout);
}

/* Of this one that can only be the word of others, who waited for it. */
static qn_status others_failed(const qn_mpi *mpi, const struct qn_wait *what)
{
    char who[QN_PARTY_BYTES];
    const bool self = mpi->who.rank == what->self.rank && mpi->who.member == what->self.member;
    return qn_link_fail(QN_ERR_MEMBER, self ? "others gave up on %s" : "%s has failed",
                        qn_party_name(mpi->who, who));
}

/* Of a request that is done: its error, and the bytes that came. */
static qn_status check_done(qn_mpi *mpi, int error, const MPI_Status *status,
                            const struct qn_wait *what)
{
    char other[QN_PARTY_BYTES], text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS, count = what->count, length;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    else if (what->receives)
        MPI_Get_count(status, MPI_BYTE, &count);
    if (error == MPI_SUCCESS && count == what->count)
        return QN_OK;
    qn_link_end(mpi, what->other);
    qn_party_name(what->other, other);
    if (error == MPI_SUCCESS || class == MPI_ERR_TRUNCATE)
        return qn_link_fail(QN_ERR_MEMBER,
                            "%s sends other numbers of bytes than the %" PRId64 " that it should",
                            other, what->whole);
    MPI_Error_string(error, text, &length);
    return qn_link_fail(QN_ERR_MEMBER, "message %s %s: %s", what->receives ? "from" : "to", other,
                        text);
}

qn_status qn_link_wait(qn_mpi *mpi, MPI_Request *request, const struct qn_wait *what)
{
    const double began = qn_link_clock();
    for (;;) {
        int done = 0;
        MPI_Status status;
        const int error = MPI_Test(request, &done, &status);
        if (done || error != MPI_SUCCESS)
            return check_done(mpi, error, &status, what);
        hear_failure(mpi);
        const double waited = qn_link_clock() - began;
        qn_status why = QN_OK;
        if (qn_link_failed(mpi))
            why = others_failed(mpi, what);
        else if (waited > mpi->timeout)
            why = too_late(mpi, what);
        if (why != QN_OK) {
            give_up(mpi, request, what->receives);
            return why;
        }
        qn_link_pause(waited);
    }
}
