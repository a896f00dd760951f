/* SPDX-License-Identifier: MIT
 *
 * Opening: every rank says hello to every other, with how many members it has.
 */
#include "mpi/link.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double DEFAULT_TIMEOUT = 600;        /* seconds */
static const uint64_t MAGIC = 0x69706d2d6e726571; /* "qern-mpi" */
enum { PROTOCOL = 2, ORDER = 0x01020304 };

/* Of 32 bytes in every version. */
struct hello {
    uint64_t magic;
    uint32_t order; /* of the bytes of a number */
    uint32_t version;
    int32_t members;
    uint32_t reserved[3];
};

/* --- MPI itself --- */

/* Open MPI announces a message of more bytes than this (64 KiB) and sends it when the other rank
 * has answered, which takes two latencies more. A bucket of gradients goes out at once: who
 * receives it asked for it before. Other MPIs do not look, and what the user says stays. */
static void send_buckets_at_once(void)
{
    static const char *const keys[] = {"OMPI_MCA_btl_tcp_eager_limit",
                                       "OMPI_MCA_btl_tcp_max_send_size"};
    enum { HEADERS = 4096 };
    char bytes[16];
    snprintf(bytes, sizeof bytes, "%d", QN_BUCKET_BYTES + HEADERS);
    for (int i = 0; i < 2; i++)
        setenv(keys[i], bytes, 0);
}

static qn_status initialise(qn_mpi *mpi)
{
    int before, after, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&before);
    MPI_Finalized(&after);
    if (!before)
        send_buckets_at_once();
    if (after)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: MPI was finalised and begins only once");
    if (before)
        MPI_Query_thread(&provided);
    else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: MPI cannot be initialised");
    mpi->finalise = !before;
    if (mpi->finalise)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided < MPI_THREAD_MULTIPLE)
        return qn_link_fail(QN_ERR_ARGUMENT,
                            "mpi: members are threads, and MPI was %s without MPI_THREAD_MULTIPLE",
                            before ? "initialised" : "built");
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->ranks);
    return QN_OK;
}

/* Nothing can be told to ranks that do not come, and MPI may still write to mpi->comm then. */
static qn_status join(qn_mpi *mpi)
{
    const double began = qn_link_clock();
    MPI_Request request;
    int done = 0;
    bool fine = MPI_Comm_idup(MPI_COMM_WORLD, &mpi->comm, &request) == MPI_SUCCESS;
    while (fine && !done && qn_link_clock() - began < mpi->timeout) {
        fine = MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        qn_link_pause(qn_link_clock() - began);
    }
    if (!done) {
        mpi->failed = true;
        return qn_link_fail(QN_ERR_MEMBER,
                            "mpi: rank %d: not all of the %d ranks came for %g seconds", mpi->rank,
                            mpi->ranks, mpi->timeout);
    }
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    return QN_OK;
}

/* --- hello --- */

static qn_status check_hello(qn_mpi *mpi, const struct hello *hello, int rank)
{
    const struct qn_party party = {rank, -1};
    const bool known = hello->magic == MAGIC && hello->order == ORDER;
    if (known && hello->version == PROTOCOL && hello->members > 0 && hello->members <= QN_MAX_GROUP)
        return QN_OK;
    qn_link_end(mpi, party);
    if (!known)
        return qn_link_fail(
            QN_ERR_MEMBER, "mpi: rank %d is no member of a group, or has another byte order", rank);
    return qn_link_fail(QN_ERR_MEMBER,
                        "mpi: rank %d has version %u of the messages, and this one %d", rank,
                        (unsigned)hello->version, PROTOCOL);
}

static qn_status meet(qn_mpi *mpi, const struct hello *own, struct hello *hello, int rank)
{
    MPI_Request receiving, sending;
    struct qn_wait what = {{mpi->rank, -1}, {rank, -1}, sizeof *hello, sizeof *hello, true};
    if (MPI_Irecv(hello, sizeof *hello, MPI_BYTE, rank, QN_TAG_HELLO, mpi->comm, &receiving) ||
        MPI_Isend(own, sizeof *own, MPI_BYTE, rank, QN_TAG_HELLO, mpi->comm, &sending)) {
        qn_link_end(mpi, what.self);
        return qn_link_fail(QN_ERR_MEMBER, "mpi: MPI begins no message with rank %d", rank);
    }
    const qn_status received = qn_link_wait(mpi, &receiving, &what);
    what.receives = false;
    const qn_status sent = qn_link_wait(mpi, &sending, &what);
    return received != QN_OK ? received : sent != QN_OK ? sent : check_hello(mpi, hello, rank);
}

/* Fills in mpi->first, as counts at first. */
static qn_status meet_all(qn_mpi *mpi)
{
    const struct hello own = {MAGIC, ORDER, PROTOCOL, mpi->own, {0}};
    int *count = mpi->first + 1;
    for (int r = 0; r < mpi->ranks; r++) {
        struct hello hello = own;
        const qn_status status = r == mpi->rank ? QN_OK : meet(mpi, &own, &hello, r);
        if (status != QN_OK)
            return status;
        count[r] = hello.members;
        mpi->most = count[r] > mpi->most ? count[r] : mpi->most;
    }
    for (int r = 0; r < mpi->ranks; r++)
        mpi->first[r + 1] += mpi->first[r];
    mpi->members = mpi->first[mpi->ranks];
    return QN_OK;
}

/* All ranks come to the same answer. */
static qn_status check_members(const qn_mpi *mpi)
{
    int there = 0, *most_tag = NULL;
    MPI_Comm_get_attr(mpi->comm, MPI_TAG_UB, &most_tag, &there);
    const int most = there ? *most_tag : 32767;
    if (mpi->members > QN_MAX_GROUP)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: %d members, and a group has at most %d",
                            mpi->members, QN_MAX_GROUP);
    if (QN_TAG_FIRST + 2 * mpi->most * mpi->most > most)
        return qn_link_fail(QN_ERR_ARGUMENT,
                            "mpi: %d members of one rank, for which this MPI has too few tags (%d)",
                            mpi->most, most);
    return QN_OK;
}

/* --- the object --- */

static qn_status out_of_memory(void)
{
    return qn_link_fail(QN_ERR_MEMORY, "mpi: out of host memory");
}

static qn_status make_ranks(qn_mpi *mpi)
{
    mpi->locked = pthread_mutex_init(&mpi->lock, NULL) == 0;
    mpi->first = calloc((size_t)mpi->ranks + 1, sizeof *mpi->first);
    mpi->told = calloc((size_t)mpi->ranks, sizeof *mpi->told);
    return mpi->locked && mpi->first && mpi->told ? QN_OK : out_of_memory();
}

static qn_status make_seats(qn_mpi *mpi)
{
    const size_t members = (size_t)mpi->members;
    mpi->parties = calloc(members, sizeof *mpi->parties);
    mpi->seats = calloc((size_t)mpi->own, sizeof *mpi->seats);
    if (!mpi->parties || !mpi->seats)
        return out_of_memory();
    for (int r = 0; r < mpi->ranks; r++)
        for (int m = mpi->first[r]; m < mpi->first[r + 1]; m++)
            mpi->parties[m] = (struct qn_party){r, m};
    for (int i = 0; i < mpi->own; i++) {
        mpi->seats[i] = (struct qn_seat){.mpi = mpi,
                                         .self = mpi->parties[mpi->first[mpi->rank] + i],
                                         .tickets = calloc(2 * members, sizeof(void *))};
        if (!mpi->seats[i].tickets)
            return out_of_memory();
    }
    return QN_OK;
}

static qn_status open_ranks(qn_mpi *mpi)
{
    static qn_status (*const stages[])(qn_mpi *) = {initialise, make_ranks, join, meet_all};
    qn_status status = QN_OK;
    for (size_t s = 0; status == QN_OK && s < sizeof stages / sizeof *stages; s++)
        status = stages[s](mpi);
    if (status == QN_OK)
        status = check_members(mpi);
    return status == QN_OK ? make_seats(mpi) : status;
}

static qn_status check_params(const qn_mpi_params *params)
{
    if (params->members < 0 || params->members > QN_MAX_GROUP)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: %d members, and a group has 1 to %d",
                            params->members, QN_MAX_GROUP);
    if (!(params->timeout >= 0))
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: a timeout of %g seconds", params->timeout);
    return QN_OK;
}

static qn_status open_params(qn_mpi **out, const qn_mpi_params *params)
{
    qn_status status = check_params(params);
    if (status != QN_OK)
        return status;
    qn_mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi)
        return out_of_memory();
    mpi->comm = MPI_COMM_NULL;
    mpi->own = params->members ? params->members : 1;
    mpi->timeout = params->timeout > 0 ? params->timeout : DEFAULT_TIMEOUT;
    status = open_ranks(mpi);
    if (status != QN_OK)
        qn_mpi_close(&mpi);
    *out = mpi;
    return status;
}

qn_status qn_mpi_open(qn_mpi **mpi, const qn_mpi_params *params)
{
    static const qn_mpi_params none;
    if (!mpi)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: no place for the object");
    *mpi = NULL;
    params = params ? params : &none;
    const qn_status status = open_params(mpi, params);
    if (status != QN_OK && params->log.fn)
        params->log.fn(params->log.user, QN_LOG_ERROR, qn_last_error());
    return status;
}

/* After a failure messages may be on their way, which use what MPI_Comm_free and MPI_Finalize end,
 * and the object itself; false: it stays. */
static bool leave(qn_mpi *mpi)
{
    if (mpi->locked && qn_link_failed(mpi))
        return false;
    if (mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->comm);
    if (mpi->finalise)
        MPI_Finalize();
    return true;
}

void qn_mpi_close(qn_mpi **mpi)
{
    if (!mpi || !*mpi)
        return;
    qn_mpi *m = *mpi;
    *mpi = NULL;
    for (int i = 0; m->seats && i < m->own; i++)
        free(m->seats[i].tickets);
    free(m->seats);
    free(m->parties);
    if (!leave(m))
        return;
    if (m->locked)
        pthread_mutex_destroy(&m->lock);
    free(m->first);
    free(m->told);
    free(m);
}

qn_status qn_mpi_transport(qn_mpi *mpi, int member, qn_transport *transport)
{
    if (!mpi || !transport || member < 0 || member >= mpi->own)
        return qn_link_fail(QN_ERR_ARGUMENT, "mpi: no such member of this rank: %d", member);
    qn_link_table(&mpi->seats[member], transport);
    return QN_OK;
}

int qn_mpi_rank(const qn_mpi *mpi)
{
    return mpi ? mpi->rank : 0;
}

int qn_mpi_ranks(const qn_mpi *mpi)
{
    return mpi ? mpi->ranks : 0;
}

int qn_mpi_members(const qn_mpi *mpi)
{
    return mpi ? mpi->members : 0;
}
