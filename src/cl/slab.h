/* SPDX-License-Identifier: MIT
 *
 * Device memory: a few buffers made at once, addressed as (buffer, byte offset), never sub-buffers.
 * Everything the library puts on a device lies in a slab.
 */
#ifndef QN_CL_SLAB_H
#define QN_CL_SLAB_H

#include <quern/device.h>

enum { QN_MAX_BUFFERS = 256 };

/* Thread-safety: Unsafe. Lifetime: until qn_slab_close, which waits for the device. */
struct qn_slab;

/* Makes `count` buffers of the given sizes (0: none is made, the index stays unused) and touches
 * every page of each, because several drivers promise memory that they do not have.
 * QN_ERR_MEMORY tells bytes asked and obtained and leaves nothing behind. */
qn_status qn_slab_open(struct qn_slab **slab, qn_device *device, const int64_t *bytes, int count);
/* The same without touching anything, for buffers of which little is used. */
qn_status qn_slab_open_untouched(struct qn_slab **slab, qn_device *device, const int64_t *bytes,
                                 int count);
void qn_slab_close(struct qn_slab **slab);

/* Sum of the bytes of the buffers that were made. */
int64_t qn_slab_bytes(const struct qn_slab *slab);

/* Fills bytes with a 32-bit word (offset and size in bytes, multiples of 4). Enqueued; our own
 * kernel, since clEnqueueFillBuffer is broken for large buffers on some drivers. */
qn_status qn_slab_fill(struct qn_slab *slab, int buffer, int64_t offset, int64_t size,
                       uint32_t word);

/* A transfer that may still be running. A zeroed struct is none. qn_transfer_wait is NULL-safe
 * towards none, gives QN_ERR_DEVICE if the transfer, or what ran before it on the queue, failed,
 * and zeroes it. */
struct qn_transfer {
    void *event;
};
qn_status qn_transfer_wait(qn_device *device, struct qn_transfer *transfer);

/* Copies to and from the host. With `transfer` NULL they block; otherwise they are enqueued in
 * order with the kernels and `host` must stay until the transfer was waited for. */
qn_status qn_slab_write(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                        int64_t size, struct qn_transfer *transfer);
qn_status qn_slab_read(struct qn_slab *slab, int buffer, int64_t offset, void *host, int64_t size,
                       struct qn_transfer *transfer);

/* Copies beside the kernels, in order among themselves: each begins when all that was enqueued
 * before it, kernels and others, is done, and what is enqueued after it does not wait for it, until
 * qn_slab_await. `transfer` must be waited for, as above. */
qn_status qn_slab_write_aside(struct qn_slab *slab, int buffer, int64_t offset, const void *host,
                              int64_t size, struct qn_transfer *transfer);
qn_status qn_slab_read_aside(struct qn_slab *slab, int buffer, int64_t offset, void *host,
                             int64_t size, struct qn_transfer *transfer);
/* In `mark`: the end of all that was enqueued so far, to be waited for as a transfer. */
qn_status qn_slab_mark(struct qn_slab *slab, struct qn_transfer *mark);
/* Reads beside the kernels as soon as the mark is reached. */
qn_status qn_slab_read_after(struct qn_slab *slab, int buffer, int64_t offset, void *host,
                             int64_t size, const struct qn_transfer *mark,
                             struct qn_transfer *transfer);
/* All that is enqueued from now on begins when the transfer is done; does not wait. */
qn_status qn_slab_await(struct qn_slab *slab, const struct qn_transfer *transfer);

#endif
