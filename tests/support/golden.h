/* SPDX-License-Identifier: MIT
 *
 * Numbers of other implementations, in safetensors files that a script of tools/golden made, beside
 * those of a trainer.
 */
#ifndef QN_TESTS_SUPPORT_GOLDEN_H
#define QN_TESTS_SUPPORT_GOLDEN_H

#include <math.h>
#include <quern/quern.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/shape.h"

/* Relative distances: of all numbers of a tensor together; of a loss after updates. */
static const double GOLDEN_NEAR = 1e-4, GOLDEN_NEAR_UPDATES = 1e-3;

/* FOLDER/NAME.safetensors; the caller closes it. */
static inline qn_tensors *golden_open(const char *folder, const char *name)
{
    char path[1024];
    qn_tensors *file;
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    return file;
}

/* A tensor of at most `room` elements of four bytes each; gives how many it has. */
static inline int64_t golden_read(const qn_tensors *golden, const char *name, void *values,
                                  int64_t room)
{
    const qn_tensors_entry *entry = qn_tensors_find(golden, name);
    if (!entry)
        fail_msg("no %s", name);
    assert_true(entry->bytes <= room * 4);
    assert_int_equal(qn_tensors_read(golden, entry, 0, values, entry->bytes), QN_OK);
    return entry->bytes / 4;
}

/* A batch of a golden file, where an evaluation's logits go. */
enum { GOLDEN_ELEMENTS = 4096 };
struct golden_batch {
    qn_tensors *golden;
    int64_t samples, row; /* row: logits of a sample */
    float logits[GOLDEN_ELEMENTS];
};

static inline qn_status golden_fetch(void *user, const char *input, int64_t first, int64_t count,
                                     void *rows)
{
    const struct golden_batch *batch = user;
    static int32_t all[GOLDEN_ELEMENTS];
    const int64_t row = golden_read(batch->golden, input, all, GOLDEN_ELEMENTS) / batch->samples;
    memcpy(rows, all + first * row, (size_t)(count * row) * sizeof *all);
    return QN_OK;
}

static inline qn_status golden_logits(void *user, const char *name, int64_t first, int64_t count,
                                      const void *rows)
{
    struct golden_batch *batch = user;
    if (strcmp(name, "logits") == 0)
        memcpy(batch->logits + first * batch->row, rows,
               (size_t)(count * batch->row) * sizeof *batch->logits);
    return QN_OK;
}

/* |got - want| <= GOLDEN_NEAR |want| + rounding, in the Euclidean norm. */
static inline void golden_near(const char *what, const float *got, const float *want, int64_t count,
                               double rounding)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += pow((double)got[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    if (!(sqrt(apart) <= GOLDEN_NEAR * sqrt(size) + rounding))
        fail_msg("%s: %g of its norm away", what, sqrt(apart / size));
}

/* All gradients of a cycle beside the tensors "gradient.NAME", of at most `room` elements each;
 * gives how many there are. */
static inline int golden_gradients(qn_trainer *trainer, const qn_cycle *cycle,
                                   const qn_tensors *golden, int64_t room, double rounding)
{
    float *got = malloc((size_t)room * sizeof *got), *want = malloc((size_t)room * sizeof *want);
    const char *name;
    char there[128];
    int i;
    assert_true(got && want);
    assert_int_equal(qn_trainer_accumulate(trainer, cycle), QN_OK);
    for (i = 0; (name = qn_trainer_tensor(trainer, i, NULL)); i++) {
        snprintf(there, sizeof there, "gradient.%s", name);
        const int64_t count = golden_read(golden, there, want, room);
        assert_int_equal(qn_trainer_read_gradient(trainer, name, got, count), QN_OK);
        golden_near(name, got, want, count, rounding);
    }
    free(got);
    free(want);
    return i;
}

/* Updates, each with the loss that `losses` has. */
static inline void golden_updates(qn_trainer *trainer, const qn_cycle *cycle, const float *losses,
                                  int updates)
{
    for (int i = 0; i < updates; i++) {
        qn_metrics metrics;
        assert_int_equal(qn_trainer_step(trainer, cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(trainer, &metrics), QN_OK);
        const double want = (double)losses[i];
        const double near = i ? GOLDEN_NEAR_UPDATES : GOLDEN_NEAR;
        if (!(fabs(metrics.loss - want) <= near * want))
            fail_msg("update %d: loss %.7g, not %.7g", i, metrics.loss, want);
    }
}

/* The file at `path` has every tensor of the original, of the same type and shape and to the bit,
 * and no other. */
static inline void golden_same(const char *path, const qn_tensors *original)
{
    qn_tensors *file;
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_count(file), qn_tensors_count(original));
    for (int64_t i = 0; i < qn_tensors_count(original); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(original, i);
        const qn_tensors_entry *found = qn_tensors_find(file, entry->name);
        if (!found)
            fail_msg("%s: no %s", path, entry->name);
        assert_string_equal(found->type, entry->type);
        assert_true(qn_shape_equal(&found->shape, &entry->shape));
        void *got = malloc((size_t)entry->bytes), *want = malloc((size_t)entry->bytes);
        assert_true(got && want);
        assert_int_equal(qn_tensors_read(file, found, 0, got, found->bytes), QN_OK);
        assert_int_equal(qn_tensors_read(original, entry, 0, want, entry->bytes), QN_OK);
        assert_memory_equal(got, want, (size_t)entry->bytes);
        free(got);
        free(want);
    }
    qn_tensors_close(&file);
}

#endif
