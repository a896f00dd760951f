/* SPDX-License-Identifier: MIT */
#include "check_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORKERS = 8 };

_Static_assert(sizeof(struct check_message) <= PIPE_BUF, "messages of processes must not mix");

/* One process, as it sees itself. */
struct worker {
    int number, pipe;
    atomic_int *next; /* place of the first operator that nobody has taken; shared memory */
    int asked, taken; /* operators that were asked for; place of the newest taken, -1: none */
    struct check_message message;
};

static void tell(struct worker *w, enum check_kind kind)
{
    w->message.kind = kind;
    w->message.worker = w->number;
    if (write(w->pipe, &w->message, sizeof w->message) != (ssize_t)sizeof w->message)
        exit(CODE_FAILED); /* nobody listens any more */
}

static void tell_record(struct worker *w, enum check_kind kind, const qn_check_record *record)
{
    struct check_message *m = &w->message;
    snprintf(m->op, sizeof m->op, "%s", record->op);
    snprintf(m->item, sizeof m->item, "%s", record->item);
    snprintf(m->storage, sizeof m->storage, "%s", record->storage);
    snprintf(m->variant, sizeof m->variant, "%s", record->variant);
    snprintf(m->reason, sizeof m->reason, "%s", record->reason ? record->reason : "");
    m->outcome = record->outcome;
    m->total = record->total;
    tell(w, kind);
}

static void record_begins(void *user, const qn_check_record *record)
{
    tell_record(user, CHECK_BEGIN, record);
}

static void record_ends(void *user, const qn_check_record *record)
{
    tell_record(user, CHECK_RECORD, record);
}

/* All processes are asked for the same operators in the same order. One takes a place when it is
 * done with all before; so no place is passed by all. */
static bool take(void *user, const char *op)
{
    struct worker *w = user;
    const int place = w->asked++;
    if (w->taken < place)
        w->taken = atomic_fetch_add(w->next, 1);
    if (w->taken != place)
        return false;
    w->message.place = place;
    snprintf(w->message.op, sizeof w->message.op, "%s", op);
    tell(w, CHECK_OPERATOR);
    return true;
}

static int check_device(struct worker *w, qn_device *device, const qn_check_params *given,
                        struct failure *failure)
{
    qn_check_params params = *given;
    qn_check_summary summary = {0};
    params.fn = record_ends;
    params.begin = record_begins;
    params.take = take;
    params.user = w;
    w->message.info = *qn_device_describe(device);
    tell(w, CHECK_DEVICE);
    TRY_LIBRARY(failure, params.filter ? "--op" : NULL, qn_check_run(device, &params, &summary));
    w->message.seed = summary.seed;
    return CODE_DONE;
}

/* What a process does. Warnings are the same in all: the first gives them. */
static void work(struct worker *w, const qn_device_params *given, const qn_check_params *params)
{
    struct failure failure = FAILURE_NONE;
    qn_device_params device_params = *given;
    qn_device *device = NULL;
    device_params.log = failure_log(&failure);
    if (w->number > 0)
        device_params.log.level = QN_LOG_ERROR;
    const qn_status status = qn_device_open(&device, &device_params);
    int code = status ? failure_library(&failure, status, given->match ? "--device" : NULL)
                      : check_device(w, device, params, &failure);
    qn_device_close(&device);
    w->message.code = code;
    if (code)
        snprintf(w->message.reason, sizeof w->message.reason, "%s", failure.text);
    tell(w, code ? CHECK_FAILED : CHECK_DONE);
}

/* The processes, as the one sees them that started them. */
struct crew {
    const qn_device_params *device;
    const qn_check_params *params;
    check_told_fn told;
    void *user;
    atomic_int *next;
    int count, begun, crashed; /* processes, checks that began, processes that crashed */
    pid_t pid[MAX_WORKERS];
    struct check_message last[MAX_WORKERS]; /* the newest of each */
};

static int start(struct crew *crew, const int pipe[2], struct failure *failure)
{
    fflush(stdout);
    for (int i = 0; i < crew->count; i++) {
        struct worker worker = {.number = i, .pipe = pipe[1], .next = crew->next, .taken = -1};
        crew->last[i] = (struct check_message){.kind = CHECK_DEVICE, .worker = i};
        crew->pid[i] = fork();
        if (crew->pid[i] < 0) {
            crew->count = i;
            return failure_set(failure, CODE_FAILED, "check: fork: %s", strerror(errno));
        }
        if (crew->pid[i] == 0) {
            close(pipe[0]);
            work(&worker, crew->device, crew->params);
            exit(CODE_DONE);
        }
    }
    return CODE_DONE;
}

/* False: all processes have ended. */
static bool hear(int pipe, struct check_message *message)
{
    size_t have = 0;
    while (have < sizeof *message) {
        const ssize_t got = read(pipe, (char *)message + have, sizeof *message - have);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        have += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void listen_to_all(struct crew *crew, int pipe, struct failure *failure)
{
    struct check_message message;
    while (hear(pipe, &message)) {
        if (message.kind == CHECK_BEGIN)
            message.number = ++crew->begun;
        if (message.kind == CHECK_FAILED)
            failure_set(failure, message.code, "%s", message.reason);
        crew->last[message.worker] = message;
        crew->told(crew->user, &message);
    }
}

/* Of a process that ended otherwise than by itself: what it was at. */
static void tell_crash(struct crew *crew, int i, int status, struct failure *failure)
{
    struct check_message *m = &crew->last[i];
    if (WIFSIGNALED(status))
        snprintf(m->reason, sizeof m->reason, "the driver ended the process by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(m->reason, sizeof m->reason, "the driver ended the process with status %d",
                 WEXITSTATUS(status));
    if (m->kind == CHECK_DEVICE) {
        failure_set(failure, CODE_FAILED, "check: %s before an operator was checked", m->reason);
        return;
    }
    m->kind = CHECK_CRASHED;
    crew->crashed++;
    crew->told(crew->user, m);
}

static void end(struct crew *crew, struct failure *failure)
{
    crew->crashed = 0;
    for (int i = 0; i < crew->count; i++) {
        int status = 0;
        while (waitpid(crew->pid[i], &status, 0) < 0 && errno == EINTR)
            ;
        const enum check_kind kind = crew->last[i].kind;
        const bool over = kind == CHECK_DONE || kind == CHECK_FAILED;
        if (!over)
            tell_crash(crew, i, status, failure);
        else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
            failure_set(failure, CODE_FAILED, "check: a process ended with status %d",
                        WEXITSTATUS(status));
    }
}

/* All processes from their start to their end. */
static int run_crew(struct crew *crew, struct failure *failure)
{
    int ends[2];
    if (pipe(ends))
        return failure_set(failure, CODE_FAILED, "check: pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    start(crew, ends, failure);
    close(ends[1]);
    listen_to_all(crew, ends[0], failure);
    close(ends[0]);
    end(crew, failure);
    return failure->code;
}

static int count_workers(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > MAX_WORKERS ? MAX_WORKERS : (int)cores;
}

int check_workers_run(const qn_device_params *device, const qn_check_params *params,
                      check_told_fn told, void *user, struct failure *failure)
{
    struct crew crew = {
        .device = device, .params = params, .told = told, .user = user, .count = count_workers()};
    crew.next =
        mmap(NULL, sizeof *crew.next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew.next == MAP_FAILED)
        return failure_set(failure, CODE_FAILED, "check: mmap: %s", strerror(errno));
    atomic_init(crew.next, 0);
    int code = CODE_DONE;
    do /* operators are left only if none of the processes came to its end */
        code = run_crew(&crew, failure);
    while (!code && crew.crashed == crew.count);
    munmap(crew.next, sizeof *crew.next);
    return code;
}
