/* SPDX-License-Identifier: MIT
 *
 * Messages between members in several processes: mpirun -n RANKS transport MEMBERS, where each rank
 * has MEMBERS of them; 0: what is refused before. The program initialises MPI itself, so that one
 * scenario after another has an object of its own, also after a failure.
 */
#include <mpi.h>
#include <pthread.h>
#include <quern/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, MESSAGES = 24, ROUNDS = 100 };

static int rank, ranks, own, wrong;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("rank %d: line %d: not true: %s (%s)\n", rank, __LINE__, #condition,            \
                   qn_last_error());                                                               \
            __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);                                       \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static qn_mpi *open_mpi(double timeout)
{
    qn_mpi *mpi;
    const qn_mpi_params params = {.members = own, .timeout = timeout};
    EXPECT(qn_mpi_open(&mpi, &params) == QN_OK);
    if (!mpi)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return mpi;
}

/* Does the work for every member of this rank on a thread of its own. */
static void with_members(double timeout, void *(*work)(void *))
{
    qn_mpi *mpi = open_mpi(timeout);
    qn_transport transports[MOST];
    pthread_t threads[MOST];
    EXPECT(qn_mpi_rank(mpi) == rank && qn_mpi_ranks(mpi) == ranks);
    EXPECT(qn_mpi_members(mpi) == ranks * own);
    for (int m = 0; m < own; m++) {
        EXPECT(qn_mpi_transport(mpi, m, &transports[m]) == QN_OK);
        EXPECT(transports[m].member == rank * own + m && transports[m].members == ranks * own);
        EXPECT(pthread_create(&threads[m], NULL, work, &transports[m]) == 0);
    }
    for (int m = 0; m < own; m++)
        pthread_join(threads[m], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    qn_mpi_close(&mpi);
    EXPECT(!mpi);
}

/* --- messages --- */

/* Nothing, little, what goes at once and what does not, pieces and whole pieces. */
static const int64_t sizes[] = {0, 4, 1000, 4096, 65536, 300000, 1 << 24, (1 << 24) + 4, 40000000};
enum { SIZES = sizeof sizes / sizeof *sizes, SMALL = 6 };

static int64_t bytes_of(int n)
{
    return n < SIZES ? sizes[n] : sizes[n % SMALL];
}

/* Word i of message n from one member to another. */
static uint32_t word_of(int from, int to, int n, int64_t i)
{
    return ((uint32_t)((from * 64 + to) * MESSAGES + n)) * 2654435761u + (uint32_t)i;
}

static uint32_t *make_message(int from, int to, int n)
{
    uint32_t *words = malloc((size_t)bytes_of(n) + 4);
    for (int64_t i = 0; from >= 0 && i < bytes_of(n) / 4; i++)
        words[i] = word_of(from, to, n, i);
    return words;
}

static bool is_message(const uint32_t *words, int from, int to, int n)
{
    for (int64_t i = 0; i < bytes_of(n) / 4; i++)
        if (words[i] != word_of(from, to, n, i))
            return false;
    return true;
}

/* All messages with one other member are begun at once; receptions are waited for from the last to
 * the first. */
static void talk_with(const qn_transport *t, int other)
{
    uint32_t *out[MESSAGES], *in[MESSAGES];
    void *sent[MESSAGES] = {0}, *received[MESSAGES] = {0};
    for (int n = 0; n < MESSAGES; n++) {
        out[n] = make_message(t->member, other, n);
        in[n] = make_message(-1, 0, n);
        EXPECT(t->send(t->user, other, out[n], bytes_of(n), &sent[n]) == QN_OK);
        EXPECT(t->receive(t->user, other, in[n], bytes_of(n), &received[n]) == QN_OK);
    }
    for (int n = MESSAGES - 1; n >= 0; n--) {
        EXPECT(t->wait(t->user, &received[n]) == QN_OK && !received[n]);
        EXPECT(is_message(in[n], other, t->member, n));
    }
    for (int n = 0; n < MESSAGES; n++) {
        EXPECT(t->wait(t->user, &sent[n]) == QN_OK);
        free(out[n]);
        free(in[n]);
    }
    EXPECT(t->wait(t->user, &sent[0]) == QN_OK);
}

/* In round r, member i talks with the one for which the sum of both is r. */
static void *messages_arrive_in_order(void *user)
{
    const qn_transport *t = user;
    for (int r = 0; r < t->members; r++) {
        const int other = (r + t->members - t->member) % t->members;
        if (other != t->member)
            talk_with(t, other);
    }
    return NULL;
}

/* To all at once, and a gathering after what is sent, but before its reception in every second
 * round. */
static void *lanes_are_apart(void *user)
{
    const qn_transport *t = user;
    uint32_t own_word = (uint32_t)t->member, in[MOST], out[MOST], all[MOST];
    void *sent[MOST] = {0}, *received[MOST] = {0};
    for (uint32_t n = 0; n < ROUNDS; n++) {
        for (int m = 0; m < t->members; m++) {
            out[m] = word_of(t->member, m, 0, n);
            if (m == t->member)
                continue;
            if (n % 2)
                EXPECT(t->receive(t->user, m, &in[m], 4, &received[m]) == QN_OK);
            EXPECT(t->send(t->user, m, &out[m], 4, &sent[m]) == QN_OK);
        }
        own_word = n * MOST + (uint32_t)t->member;
        EXPECT(t->gather(t->user, &own_word, 4, all) == QN_OK);
        for (int m = 0; m < t->members; m++) {
            if (n % 2 == 0 && m != t->member)
                EXPECT(t->receive(t->user, m, &in[m], 4, &received[m]) == QN_OK);
            EXPECT(t->wait(t->user, &received[m]) == QN_OK && t->wait(t->user, &sent[m]) == QN_OK);
            EXPECT(all[m] == n * MOST + (uint32_t)m);
            EXPECT(m == t->member || in[m] == word_of(m, t->member, 0, n));
        }
    }
    return NULL;
}

static void *wrong_arguments(void *user)
{
    const qn_transport *t = user;
    uint32_t word = 0;
    void *ticket = NULL;
    EXPECT(t->send(t->user, t->member, &word, 4, &ticket) == QN_ERR_ARGUMENT);
    EXPECT(t->send(t->user, t->members, &word, 4, &ticket) == QN_ERR_ARGUMENT);
    EXPECT(t->receive(t->user, -1, &word, 4, &ticket) == QN_ERR_ARGUMENT);
    EXPECT(t->receive(t->user, (t->member + 1) % t->members, &word, -1, &ticket) ==
           QN_ERR_ARGUMENT);
    EXPECT(t->gather(t->user, NULL, 4, &word) == QN_ERR_ARGUMENT && !ticket);
    return NULL;
}

/* --- failures --- */

/* How long waiting took, which ends with these words. */
static void expect_end(const qn_transport *t, void **ticket, const char *words, double most)
{
    const double began = now();
    EXPECT(t->wait(t->user, ticket) == QN_ERR_MEMBER && !*ticket);
    EXPECT(strstr(qn_last_error(), words));
    EXPECT(now() - began < most);
}

/* The last member sends other numbers of bytes than the first one expects, of which the others
 * hear. */
static void misfit(const qn_transport *t, int64_t sends, int64_t expects)
{
    const int last = t->members - 1;
    char words[96], *bytes = calloc(1, (size_t)(sends > expects ? sends : expects) + 1);
    void *ticket = NULL, *sent = NULL;
    snprintf(words, sizeof words, "member %d (rank %d) sends other numbers of bytes than the %lld",
             last, ranks - 1, (long long)expects);
    if (t->member == last)
        EXPECT(t->send(t->user, 0, bytes, sends, &sent) == QN_OK);
    EXPECT(t->receive(t->user, t->member == 0 ? last : 0, bytes, expects, &ticket) == QN_OK);
    expect_end(t, &ticket,
               t->member == 0      ? words
               : t->member == last ? "others gave up on"
                                   : "has failed",
               20);
    t->wait(t->user, &sent);
    free(bytes);
}

static void *more_bytes(void *user)
{
    misfit(user, 100, 40);
    return NULL;
}

static void *fewer_bytes(void *user)
{
    misfit(user, 40, 100);
    return NULL;
}

/* One piece more, one less. */
static void *more_pieces(void *user)
{
    misfit(user, 2 << 24, 1 << 24);
    return NULL;
}

static void *fewer_pieces(void *user)
{
    misfit(user, 1 << 24, 2 << 24);
    return NULL;
}

/* The last member fails; the others, who would wait for ten minutes, end with its number. */
static void *one_fails_all_end(void *user)
{
    const qn_transport *t = user;
    const int last = t->members - 1;
    uint32_t word, all[MOST];
    void *ticket = NULL;
    char words[64];
    snprintf(words, sizeof words, "member %d (rank %d) has failed", last, ranks - 1);
    if (t->member == last) {
        usleep(50000);
        (t->fail)(t->user);
        (t->fail)(t->user);
        return NULL;
    }
    if (t->member % 2) {
        EXPECT(t->receive(t->user, last, &word, 4, &ticket) == QN_OK);
        expect_end(t, &ticket, words, 20);
    } else {
        EXPECT(t->gather(t->user, &word, 4, all) == QN_ERR_MEMBER);
        EXPECT(strstr(qn_last_error(), words));
    }
    EXPECT(t->gather(t->user, &word, 4, all) == QN_ERR_MEMBER);
    return NULL;
}

/* Nothing comes from the last member, and it does not fail either. */
static void *silence_ends(void *user)
{
    const qn_transport *t = user;
    const int last = t->members - 1;
    uint32_t word;
    void *ticket = NULL;
    if (t->member == last)
        return NULL;
    EXPECT(t->receive(t->user, last, &word, 4, &ticket) == QN_OK);
    const double began = now();
    EXPECT(t->wait(t->user, &ticket) == QN_ERR_MEMBER);
    EXPECT(strstr(qn_last_error(), "has failed") || strstr(qn_last_error(), "nothing from member"));
    EXPECT(now() - began < 20);
    return NULL;
}

/* Ranks with other numbers of members, and one object beside another. */
static void ranks_differ(void)
{
    qn_mpi *mpi, *other = open_mpi(60);
    const qn_mpi_params params = {.members = rank + 1, .timeout = 60};
    qn_transport t;
    EXPECT(qn_mpi_open(&mpi, &params) == QN_OK);
    EXPECT(qn_mpi_members(mpi) == ranks * (ranks + 1) / 2);
    for (int m = 0; m <= rank; m++) {
        EXPECT(qn_mpi_transport(mpi, m, &t) == QN_OK);
        EXPECT(t.member == rank * (rank + 1) / 2 + m);
    }
    EXPECT(qn_mpi_transport(mpi, rank + 1, &t) == QN_ERR_ARGUMENT);
    qn_mpi_close(&mpi);
    qn_mpi_close(&other);
}

static void count_line(void *user, qn_log_level level, const char *text)
{
    *(int *)user += level == QN_LOG_ERROR && strcmp(text, qn_last_error()) == 0;
}

static void params_are_checked(void)
{
    int lines = 0;
    qn_mpi *mpi;
    const qn_log log = {.fn = count_line, .user = &lines};
    EXPECT(qn_mpi_open(&mpi, &(qn_mpi_params){.members = -1, .log = log}) == QN_ERR_ARGUMENT);
    EXPECT(qn_mpi_open(&mpi, &(qn_mpi_params){.timeout = -1, .log = log}) == QN_ERR_ARGUMENT);
    EXPECT(!mpi && lines == 2);
    EXPECT(qn_mpi_open(NULL, NULL) == QN_ERR_ARGUMENT);
    EXPECT(qn_mpi_rank(NULL) == 0 && qn_mpi_ranks(NULL) == 0 && qn_mpi_members(NULL) == 0);
    /* More than a group has, of all ranks together: all of them refuse. */
    const qn_mpi_params many = {.members = QN_MAX_GROUP, .timeout = 60, .log = log};
    EXPECT(qn_mpi_open(&mpi, &many) == QN_ERR_ARGUMENT && lines == 3);
    EXPECT(strstr(qn_last_error(), "at most 1024"));
}

/* The last rank does not come. */
static void who_does_not_come(void)
{
    qn_mpi *mpi = NULL;
    if (rank < ranks - 1) {
        EXPECT(qn_mpi_open(&mpi, &(qn_mpi_params){.timeout = 0.2}) == QN_ERR_MEMBER);
        EXPECT(!mpi && strstr(qn_last_error(), "not all of the"));
    }
}

/* MPI that is initialised for one thread alone; and once it is finalised. */
static int refused_threads(void)
{
    qn_mpi *mpi;
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    EXPECT(provided < MPI_THREAD_MULTIPLE);
    EXPECT(qn_mpi_open(&mpi, NULL) == QN_ERR_ARGUMENT && !mpi);
    EXPECT(strstr(qn_last_error(), "initialised without MPI_THREAD_MULTIPLE"));
    MPI_Finalize();
    EXPECT(qn_mpi_open(&mpi, NULL) == QN_ERR_ARGUMENT && !mpi);
    EXPECT(strstr(qn_last_error(), "was finalised"));
    return wrong ? 1 : 0;
}

static void run_all(void)
{
    params_are_checked();
    ranks_differ();
    with_members(60, messages_arrive_in_order);
    with_members(60, lanes_are_apart);
    with_members(60, wrong_arguments);
    with_members(600, more_bytes);
    with_members(600, fewer_bytes);
    with_members(600, more_pieces);
    with_members(600, fewer_pieces);
    with_members(600, one_fails_all_end);
    with_members(0.2, silence_ends);
    who_does_not_come();
}

int main(int argc, char **argv)
{
    int provided, all_wrong = 0;
    own = argc > 1 ? atoi(argv[1]) : 1;
    if (own == 0)
        return refused_threads();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    run_all();
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all_wrong);
    fflush(stdout);
    MPI_Finalize();
    return all_wrong ? 1 : 0;
}
