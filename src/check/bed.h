/* SPDX-License-Identifier: MIT
 *
 * A test bed: the operands of one subject in device memory, with guard zones around each, for one
 * choice of variants. Groups run one by one; before each the whole memory is written from an image
 * on the host, after it everything is read back and compared with the image, so that any byte
 * changed outside the operands that the group declares as written is found.
 */
#ifndef QN_CHECK_BED_H
#define QN_CHECK_BED_H

#include "check/choose.h"
#include "cl/slab.h"

enum { QN_BED_PARTS = 2 }; /* buffers that operands lie in, by turns */

struct qn_bed_slot {
    uint8_t *value; /* what the operand holds between the groups; NULL: not there */
    uint8_t *kept;  /* an earlier value, to compare with */
    int64_t bytes;
    bool written; /* in the pass that ran last */
};

struct qn_bed {
    const struct qn_subject *subject;
    qn_device *device;
    const struct qn_picks *picks;
    struct qn_verdict *verdict;
    /* the rest is filled in by qn_bed_open */
    struct qn_call call; /* with the place of every operand */
    struct qn_bed_slot slot[QN_SLOTS];
    struct qn_slab *slab;
    uint8_t *image[QN_BED_PARTS], *result[QN_BED_PARTS];
    int64_t size[QN_BED_PARTS];
    int64_t poison_at;                 /* room for the largest operand, never declared */
    int64_t scratch_at, scratch_bytes; /* the most that any group asks for */
    struct qn_control control;         /* as the last group left it */
    struct qn_control kept_control;    /* an earlier one, to compare with */
    struct qn_arena arena;
};

bool qn_bed_open(struct qn_bed *bed);
void qn_bed_close(struct qn_bed *bed);

/* How the groups of one phase run. By default reads take their first choice and writes lie apart;
 * group `group` instead reads `or_` of its read `alternative`, or lets its write `in_place` share
 * the bytes of the operand that it may write over. */
struct qn_pass {
    unsigned phase;                   /* one enum qn_phase */
    float beta;                       /* of the first write to each gradient and gathered sum */
    unsigned wanted;                  /* bit i: the gradient of in i is there */
    int group, alternative, in_place; /* -1: none */
};

/* Runs the groups of a phase in order. Gradients start with the values of the subject if beta is
 * not 0, else with NaN; state and the control block start as the subject says. */
bool qn_bed_run(struct qn_bed *bed, const struct qn_pass *pass);

/* Runs one group of a pass. */
bool qn_bed_run_group(struct qn_bed *bed, const struct qn_pass *pass, int group);

/* What a group does with each operand in a pass. */
enum qn_use { QN_USE_NONE, QN_USE_READ = 1, QN_USE_WRITE = 2, QN_USE_ABSENT = 4 };
void qn_bed_uses(const struct qn_bed *bed, const struct qn_pass *pass, int group,
                 unsigned use[QN_SLOTS]);

/* The memory image: what device memory should hold. It is written before a group; afterwards memory
 * is compared with it and the written operands are taken over. */
void qn_image_paint(struct qn_bed *bed, const struct qn_call *call, const unsigned use[QN_SLOTS]);
bool qn_image_check(struct qn_bed *bed, const struct qn_call *call, const unsigned use[QN_SLOTS],
                    const char *group);

/* Guard bytes on either side of every operand; no other operand lies in them. */
enum { QN_GUARD = 2048 };

/* Where the control block lies in its buffer, in bytes: not at the start, as in training; the rest
 * of the buffer is guarded. */
enum { QN_CONTROL_AT = 512, QN_CONTROL_BYTES = QN_CONTROL_AT + 1024 };
/* NaN in f32, f16 and bf16. */
#define QN_NAN_WORD UINT32_C(0x7fc57fc5)

#endif
