/* SPDX-License-Identifier: MIT
 *
 * What the files of cl/ share: the device, its programs, errors of OpenCL.
 */
#ifndef QN_CL_PRIVATE_H
#define QN_CL_PRIVATE_H

#include <CL/cl.h>

#include "base/arena.h"
#include "base/log.h"
#include "cl/device.h"

enum { QN_MAX_DEVICES = 64, QN_MAX_MARKS = 16 };

enum { QN_MAX_INSTANCES = 32 }; /* that are told apart; further ones share the last number */

struct qn_found {
    cl_platform_id platform;
    cl_device_id id;
};

struct qn_device {
    struct qn_log log;
    struct qn_found found;
    cl_context context;
    /* One in-order queue for kernels and transfers. Inputs gain nothing by another: they live in a
     * micro-step, in bytes that the kernels of the one before may still use, so that an upload
     * would wait for them all the same. It needs a plan that gives inputs two places by turns. */
    cl_command_queue queue;
    cl_command_queue
        aside; /* in order too, for transfers beside kernels; NULL until there is one */
    struct qn_device_info info;
    struct qn_facts facts;
    size_t max_items[3]; /* of a work-group in each dimension */
    int64_t local_bytes; /* of a work-group, as the driver counts it: see cl/limits.h */
    bool multiplies_apart; /* fma() is no instruction: see cl/limits.h */
    unsigned quirks;
    int instance; /* under QN_QUIRK_OWN_PROGRAMS: which of those that are open, from 0 */
    struct qn_arena arena;
    struct qn_program *programs;
    const char *kernel_dir;   /* NULL: embedded kernels */
    int cache;                /* folder of the disk cache, a file descriptor; -1: none */
    unsigned blas_generation; /* see blas.c; 0: CLBlast was not used */
    /* Events of commands whose fate nobody has looked at yet: a ring; see qn_device_mark. */
    cl_event marks[QN_MAX_MARKS];
    int next_mark;
    cl_int lost; /* the first error that a command met while it ran; sticky */
};

/* "CL_OUT_OF_RESOURCES"; never NULL. Thread-safety: Safe. */
const char *qn_cl_error_name(cl_int error);
/* QN_OK for CL_SUCCESS; otherwise logs `what` and the error's name and gives QN_ERR_DEVICE. */
qn_status qn_cl_check(const struct qn_log *log, cl_int error, const char *what);

/* All devices of all platforms, at most `capacity`; a platform that fails is skipped. */
int qn_find_devices(struct qn_found *found, int capacity, const struct qn_log *log);
void qn_describe_device(const struct qn_found *found, struct qn_device_info *info);
/* The best usable device that `match` names (NULL: any) and that params->others do not have, or one
 * behind it, by params->skip. */
qn_status qn_choose_device(struct qn_found *found, const char *match,
                           const struct qn_device_params *params);

/* Facts and limits of an opened device. */
void qn_device_measure(struct qn_device *device, int64_t max_alloc_bytes);
/* The facts about the device's matrix units, as trials show them. Needs the quirks and all that
 * running kernels needs. */
void qn_device_try_units(struct qn_device *device);
/* One trial: whether a tile of such factors is multiplied right, in matrix units or, where these
 * are not known to be there, emulated. */
bool qn_device_try_tile(struct qn_device *device, enum qn_matrix_layout layout,
                        enum qn_matrix_type type, bool units);
/* Whether one of f16 is right whose strips the device copies by itself: QN_MATRIX_COPIES. */
bool qn_device_try_copies(struct qn_device *device, bool units);

/* Whether this process may use a core's tile registers for factors of bf16. Asks for it, which
 * holds for all threads to the end of the process and makes what a signal saves 8 KiB larger.
 * Thread-safety: Safe. */
bool qn_tiles_allowed(void);
/* Whether the core knows dot products of bf16, fast or slow. Thread-safety: Safe. */
bool qn_has_dots(void);

/* Takes the event of a command that was enqueued, to look at its status later: an in-order queue
 * reports a failed command nowhere else. Waits for the oldest one when the ring is full. */
void qn_device_mark(struct qn_device *device, cl_event event);
/* Waits for both queues. */
cl_int qn_device_drain(struct qn_device *device);
/* QN_ERR_DEVICE if a marked command that has ended had failed. With `all`, forgets all marks. */
qn_status qn_device_check(struct qn_device *device, bool all);

/* The program `stem` built with `options` beside the base ones; owned by the device. */
qn_status qn_program_get(struct qn_device *device, const char *stem, const char *options,
                         cl_program *program);
void qn_programs_release(struct qn_device *device);

/* Bytes of CLBlast's temporary buffer for an m x n x k product in any transposition, at offsets
 * that are not 0, as CLBlast itself says; -1: it does not. */
int64_t qn_blas_ask(struct qn_device *device, int64_t m, int64_t n, int64_t k);
/* Finds the facts that the bytes follow from. Where CLBlast follows no rule of qn_blas_bytes, it
 * may not be used. */
void qn_blas_measure(struct qn_device *device);
/* Empties CLBlast's caches, which hold on to contexts, if the device used it. */
void qn_blas_release(struct qn_device *device);
/* A new kernel object. */
qn_status qn_kernel_create(struct qn_device *device, const char *stem, const char *options,
                           const char *name, cl_kernel *kernel);

/* X(name): what a driver does that code elsewhere must know.
 * OWN_CACHE: keeps compiled programs on disk by itself; asked for a binary it may build all kernels
 * of the program once more.
 * PTX_ASM: takes inline assembly in the PTX language; another might not even survive the attempt.
 * HOST_ASM: compiles for the host's own processor, and takes inline assembly in its language.
 * WRITE_BY_MAP: a memory checker that takes a buffer for uninitialised, but for the bytes that the
 * host last wrote by clEnqueueWriteBuffer; mapping does not mislead it. */
#define QN_QUIRK_MAP(X)                                                                            \
    X(OWN_CACHE)                                                                                   \
    X(PTX_ASM)                                                                                     \
    X(HOST_ASM)                                                                                    \
    X(WRITE_BY_MAP)                                                                                \
    X(OWN_PROGRAMS)

enum qn_quirk_bit {
#define QN_QUIRK_BIT(name) QN_QUIRK_BIT_##name,
    QN_QUIRK_MAP(QN_QUIRK_BIT)
#undef QN_QUIRK_BIT
};
enum qn_quirk {
#define QN_QUIRK_FLAG(name) QN_QUIRK_##name = 1 << QN_QUIRK_BIT_##name,
    QN_QUIRK_MAP(QN_QUIRK_FLAG)
#undef QN_QUIRK_FLAG
};
unsigned qn_quirks_of(const struct qn_device_info *info);
/* Numbers the devices that are open under QN_QUIRK_OWN_PROGRAMS; gives a number back.
 * Thread-safety: Safe. */
void qn_instance_take(struct qn_device *device);
void qn_instance_give_back(const struct qn_device *device);

#endif
