/* SPDX-License-Identifier: MIT
 *
 * A test bed: the operands of one subject in device memory, with guard zones around each, for one
 * choice of variants. Groups run one by one; before each the whole memory is written from an image
 * on the host, afterwards it is read back and compared with the image: a byte that changed outside
 * the operands that the group declares as written is a failure.
 */
#ifndef QN_CHECK_BED_H
#define QN_CHECK_BED_H

#include "check/choose.h"
#include "cl/slab.h"

enum { QN_BED_BUFFERS = 2 }; /* buffers for operands: one operand lies in 0, the next in 1, .. */

struct qn_bed_contents {
    uint8_t *value; /* contents of the operand between groups; NULL: there is no such operand */
    uint8_t *kept;  /* earlier contents, to compare with */
    int64_t bytes;
    bool written; /* in the last pass */
};

struct qn_bed {
    const struct qn_subject *subject;
    qn_device *device;
    const struct qn_picks *picks;
    struct qn_verdict *verdict;
    /* the rest is filled in by qn_bed_open */
    struct qn_call call; /* every operand has its buffer and offset */
    struct qn_bed_contents contents[QN_OPERANDS];
    struct qn_slab *slab;
    uint8_t *image[QN_BED_BUFFERS], *result[QN_BED_BUFFERS];
    int64_t size[QN_BED_BUFFERS];
    int64_t poison_at;                 /* byte in buffer 0 of NaNs, for undeclared operands */
    int64_t scratch_at, scratch_bytes; /* byte in buffer 1; largest scratch of any group */
    struct qn_control control;         /* contents after the last group */
    struct qn_control kept_control;    /* earlier contents, to compare with */
    struct qn_arena arena;
};

bool qn_bed_open(struct qn_bed *bed);
void qn_bed_close(struct qn_bed *bed);

/* How the groups of one pass run. Group `group` reads `or_` instead of `ref` for its read number
 * `alternative`, or does its write number `in_place` in the bytes of the operand that it may write
 * over; all other reads take `ref`, all other writes have bytes of their own. */
struct qn_pass {
    unsigned phase;                   /* the pass: one enum qn_phase */
    float beta;                       /* of the first write to each gradient and gathered sum */
    unsigned wanted;                  /* bit i: the gradient of in i is wanted */
    int group, alternative, in_place; /* -1: none */
};

/* Runs the groups of a pass in order. Gradients start with the contents that the subject gives them
 * if beta is not 0, else with NaN; state and control block start with those of the subject. */
bool qn_bed_run(struct qn_bed *bed, const struct qn_pass *pass);

/* Runs one group of a pass. */
bool qn_bed_run_group(struct qn_bed *bed, const struct qn_pass *pass, int group);

/* What a group does with each operand in a pass. */
enum qn_use { QN_USE_NONE, QN_USE_READ = 1, QN_USE_WRITE = 2, QN_USE_ABSENT = 4 };
void qn_bed_uses(const struct qn_bed *bed, const struct qn_pass *pass, int group,
                 unsigned use[QN_OPERANDS]);

/* The image: what device memory should hold. qn_image_paint makes it before a group runs;
 * qn_image_check compares memory with it and copies the written operands into it. */
void qn_image_paint(struct qn_bed *bed, const struct qn_call *call,
                    const unsigned use[QN_OPERANDS]);
bool qn_image_check(struct qn_bed *bed, const struct qn_call *call, const unsigned use[QN_OPERANDS],
                    const char *group);

/* Guard bytes on either side of every operand; no other operand lies in them. */
enum { QN_GUARD = 2048 };

/* Byte offset of the control block in its buffer: not 0, as in training. The rest of the buffer is
 * guarded. */
enum { QN_CONTROL_AT = 512, QN_CONTROL_BYTES = QN_CONTROL_AT + 1024 };
/* NaN in f32, f16 and bf16. */
#define QN_NAN_WORD UINT32_C(0x7fc57fc5)

#endif
