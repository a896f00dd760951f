/* SPDX-License-Identifier: MIT
 *
 * Processes that share a check. Drivers compile kernels one after another in a process, however
 * many threads ask, and compiling is most of a check; and a driver that crashes ends one process,
 * not the report. Each process opens the device by itself and takes whole operators, each the next
 * that nobody has taken.
 */
#ifndef QUERN_TOOL_CHECK_WORKERS_H
#define QUERN_TOOL_CHECK_WORKERS_H

#include "failure.h"

#include <quern/check.h>
#include <quern/device.h>

enum check_kind {
    CHECK_DEVICE,   /* the device is open: info */
    CHECK_OPERATOR, /* the operator is taken, the process's one before it is done */
    CHECK_BEGIN,    /* a check begins: `number` of all processes, of `total` */
    CHECK_RECORD,   /* and has its outcome */
    CHECK_CRASHED,  /* the process ended in the middle of `op`, with `reason` */
    CHECK_DONE,     /* the process's last operator is done */
    CHECK_FAILED,   /* the process cannot go on: code, reason */
};

/* What a process tells; the bytes that go through a pipe in one piece. */
struct check_message {
    enum check_kind kind;
    int worker, place; /* the process; the operator's place in the list of those to check */
    char op[64], item[96], storage[8], variant[64];
    char reason[FAILURE_BYTES];
    qn_check_outcome outcome;
    int number, total, code;
    uint64_t seed; /* of CHECK_DONE */
    qn_device_info info;
};

typedef void (*check_told_fn)(void *user, const struct check_message *message);

/* Checks as params say (their callbacks are not used), in as many processes as there are cores, at
 * most 8. `told` is called in this process, which never calls OpenCL. Fails if a process cannot be
 * started or cannot go on, and if all end before any operator is taken. */
int check_workers_run(const qn_device_params *device, const qn_check_params *params,
                      check_told_fn told, void *user, struct failure *failure);

#endif
