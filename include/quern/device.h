/* SPDX-License-Identifier: MIT
 *
 * OpenCL devices: listing them, choosing one by text, opening one or wrapping the caller's own, and
 * the facts about it that a plan is made from.
 */
#ifndef QUERN_DEVICE_H
#define QUERN_DEVICE_H

#include <quern/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One OpenCL device: context, queue, limits, compiled programs.
 * Thread-safety: Unsafe; one thread at a time per device. Several devices live side by side.
 * Lifetime: until qn_device_close; must outlive the trainers opened on it. */
typedef struct qn_device qn_device;

/* Types of factors; tf32 is f32 with 10 bits of fraction. Tiles (AMX) and dot products (AVX-512
 * BF16, where they are at least 1.3 times as fast as f32) are those of a CPU's core, the others
 * those of a GPU's teams of work-items. For the tiles qn_device_open asks Linux, whose permission
 * holds for all threads until the process ends and makes what a signal saves 8 KiB larger. Copies
 * are no type: the device brings factors of 16 bits to local memory by itself (cp.async) and from
 * there, in rows or in columns, to registers (ldmatrix). Nor are strips: a kernel may declare
 * 48 KiB of local memory, though the driver counts some of its own with them. */
enum qn_matrix_type {
    QN_MATRIX_F16 = 1,
    QN_MATRIX_BF16 = 2,
    QN_MATRIX_TF32 = 4,
    QN_MATRIX_F32 = 8,
    QN_MATRIX_BF16_TILES = 16,
    QN_MATRIX_BF16_DOTS = 32,
    QN_MATRIX_COPIES = 64,
    QN_MATRIX_STRIPS = 128
};

/* How matrix units spread a tile over work-items, by the name of their instruction. */
enum qn_matrix_layout {
    QN_MATRIX_MMA =
        1,            /* mma.sync, by 32 work-items; what is emulated where nothing else is asked */
    QN_MATRIX_MFMA,   /* v_mfma, by 64 */
    QN_MATRIX_WMMA,   /* v_wmma, by 32 */
    QN_MATRIX_DPAS8,  /* dpas, by 8 */
    QN_MATRIX_DPAS16, /* dpas, by 16 */
};

/* All that a plan knows about a device: numbers, so that a plan can be made elsewhere from a file
 * of them. To a plan each number of 0 and an empty name mean the default of qn_facts_default. */
typedef struct qn_facts {
    char name[96];    /* device and platform, for people */
    bool cpu;         /* one work-item per work-group with long vectors is the right shape */
    int vector_width; /* native width in floats: 4, 8 or 16 */
    int compute_units;
    int max_work_group;
    int64_t local_bytes; /* local memory that a kernel may declare */
    int64_t global_bytes;
    int64_t max_alloc_bytes; /* of one buffer, capped to a power of two and to 1 GiB, since drivers
                                report values that change from run to run */
    int64_t alignment;       /* of a tensor inside a pool, bytes */
    int matrix_units;  /* the types of factors that it multiplies in matrix units, with sums in
                          f32: bits of enum qn_matrix_type */
    int matrix_layout; /* of these, of enum qn_matrix_layout */
    bool blas;         /* CLBlast may be used: the library was built with it, and it keeps the rule
                          that follows */
    /* What the bytes of CLBlast's temporary buffer follow from: rows, columns and terms of the sum
     * that a tile of its kernel has, and the side of the smallest cube of multiplications for which
     * it copies the matrices into the buffer. */
    int blas_rows, blas_columns, blas_terms, blas_side;
    double flops; /* multiply-adds count two; per second */
    double bytes_per_second;
    double launch_seconds;
} qn_facts;

/* The numbers among the facts, for whoever writes, reads and checks them: X(name, type, least,
 * most) with FLAG (bool), INTEGER (int), BITS (int, may be 0), NEWER (int; files of before lack
 * it), WHOLE (int64_t) or REAL (double). With numbers from `least` to `most` neither bytes nor
 * seconds of a plan overflow. */
#define QN_FACTS_LIST(X)                                                                           \
    X(cpu, FLAG, 0, 1)                                                                             \
    X(vector_width, INTEGER, 4, 16)                                                                \
    X(compute_units, INTEGER, 1, 1048576)                                                          \
    X(max_work_group, INTEGER, 1, 1048576)                                                         \
    X(local_bytes, WHOLE, 1, 281474976710656)                                                      \
    X(global_bytes, WHOLE, 1, 281474976710656)                                                     \
    X(max_alloc_bytes, WHOLE, 1, 281474976710656)                                                  \
    X(alignment, WHOLE, 4, 1048576)                                                                \
    X(matrix_units, BITS, 0, 255)                                                                  \
    X(matrix_layout, NEWER, 1, 5)                                                                  \
    X(blas, FLAG, 0, 1)                                                                            \
    X(blas_rows, NEWER, 1, 65536)                                                                  \
    X(blas_columns, NEWER, 1, 65536)                                                               \
    X(blas_terms, NEWER, 1, 65536)                                                                 \
    X(blas_side, NEWER, 1, 8192)                                                                   \
    X(flops, REAL, 1, 1e24)                                                                        \
    X(bytes_per_second, REAL, 1, 1e24)                                                             \
    X(launch_seconds, REAL, 1e-12, 1e3)

/* The default facts of a CPU (`cpu`) or GPU nobody has looked at; for plans without a device. */
QN_API void qn_facts_default(qn_facts *facts, bool cpu);

/* Sets environment variables with which known drivers run faster (worker threads that stay on their
 * cores), unless they are set. For programs that own their process: before the first call of OpenCL
 * and before there are other threads. The library never does it by itself. Thread-safety: Unsafe.
 */
QN_API void qn_device_hints(void);

typedef struct qn_device_info {
    char platform[96], device[96], vendor[64], driver[64], version[64];
    const char *type; /* "cpu", "gpu", "accelerator" or "other" */
    bool usable;      /* compiles kernels and is available */
    int64_t global_bytes, max_alloc_bytes;
    int compute_units;
    int number;   /* in the list of all devices */
    char bus[24]; /* its place on the PCI bus, "0000:3b:00.0"; "": the driver does not say */
} qn_device_info;

/* Lists every device of every platform, in the order of the loader. Writes at most `capacity`
 * entries and gives the number there are through `count`. Never fails for want of a platform: the
 * count is then 0. Thread-safety: Safe. */
QN_API qn_status qn_device_list(qn_device_info *info, int capacity, int *count, const qn_log *log);

typedef struct qn_device_params {
    qn_log log;
    const char *match; /* text in platform, device or version, any case; NULL: QN_DEVICE, else "".
                          The best usable device of those that have it is taken (GPU, accelerator,
                          CPU; then compute units) */
    const qn_device *const *others; /* open devices that are not taken once more, borrowed
                                              for the call; of the same loader */
    int n_others;
    int skip; /* passes over so many of those that could be taken, the best first; behind the last
                 one it begins anew. For several processes on one machine */
    void *cl_context; /* the caller's own cl_context, cl_device_id and, if wanted, in-order
                         command queue; borrowed (retained until close). All three or the first
                         two; NULL: our own */
    void *cl_device_id;
    void *cl_queue;
    const char *cache_dir;   /* what tuning found and, unless the driver keeps them by itself,
                                compiled kernels; NULL: QN_CACHE_DIR, else the user's cache folder;
                                "": no cache on disk. It is made if it is missing. A folder that
                                others own or may write to is not used; the log's debug level says
                                so */
    const char *kernel_dir;  /* read *.cl from this folder rather than from the library; NULL: no */
    int64_t max_alloc_bytes; /* cap of one buffer; 0: the device's, at most 1 GiB. At equal
                                micro-batch it changes no bit; where a tensor does not fit into one
                                the micro-batch is smaller, and sums over the batch, of which a
                                gradient consists, round otherwise: by 1e-7, which Adam multiplies
                                where a gradient is near 0 */
} qn_device_params;

/* Opens a device. `params` may be NULL. QN_ERR_NO_DEVICE when nothing matches. */
QN_API qn_status qn_device_open(qn_device **device, const qn_device_params *params);
/* Closes and sets to NULL; accepts a pointer to NULL. Waits for what still runs. */
QN_API void qn_device_close(qn_device **device);

/* Borrowed, valid while the device is open; NULL of NULL. */
QN_API const qn_facts *qn_device_facts(const qn_device *device);
QN_API const qn_device_info *qn_device_describe(const qn_device *device);

#ifdef __cplusplus
}
#endif
#endif
