/* SPDX-License-Identifier: MIT */
#include "mistakes.h"
#include "logits.h"

#include <stdlib.h>
#include <string.h>

static int pixels_of(const struct mistakes *m)
{
    return m->data.masks ? m->data.height * m->data.width : 1;
}

int mistakes_open(struct mistakes *m, const struct session *s)
{
    const char *name;
    qn_tensor output;
    *m = (struct mistakes){.data = s->data.model, .failure = s->failure};
    for (int i = 0; (name = qn_graph_output(s->graph, i, &output)); i++)
        if (strcmp(name, "logits") == 0)
            m->dtype = qn_dtype_of(s->graph, output);
    const size_t classes = (size_t)m->data.classes, pixels = (size_t)pixels_of(m);
    m->logits = calloc(classes * pixels, sizeof *m->logits);
    m->share = calloc(classes, sizeof *m->share);
    m->mask = calloc(pixels, 1);
    return m->logits && m->share && m->mask ? CODE_DONE
                                            : failure_set(m->failure, CODE_FAILED, "out of memory");
}

static void drop(struct mistake *mistake)
{
    free(mistake->image);
    free(mistake->truth);
    free(mistake->mask);
}

void mistakes_close(struct mistakes *m)
{
    while (m->count)
        drop(&m->worst[--m->count]);
    free(m->logits);
    free(m->share);
    free(m->mask);
    *m = (struct mistakes){0};
}

/* --- one sample --- */

/* False: a logit is not finite. A sample that is right has no `wrong`. */
static bool judge_class(struct mistakes *m, int label, struct mistake *found)
{
    int guess = 0;
    if (!logits_share(m->share, m->logits, m->data.classes))
        return false;
    for (int c = 1; c < m->data.classes; c++)
        guess = m->share[c] > m->share[guess] ? c : guess;
    found->label = label;
    found->guess = guess;
    found->sure = m->share[guess];
    found->wrong = guess == label ? 0 : 1 - m->share[label];
    return true;
}

static bool judge_mask(struct mistakes *m, const uint8_t *truth, struct mistake *found)
{
    const int pixels = pixels_of(m);
    int wrong = 0;
    if (!logits_mask(m->mask, m->logits, m->data.classes, pixels))
        return false;
    for (int i = 0; i < pixels; i++)
        wrong += m->mask[i] != truth[i];
    found->wrong = (double)wrong / pixels;
    return true;
}

static uint8_t *copy(struct mistakes *m, const void *bytes, int64_t size)
{
    uint8_t *made = malloc((size_t)size);
    if (made)
        memcpy(made, bytes, (size_t)size);
    else
        failure_set(m->failure, CODE_FAILED, "out of memory");
    return made;
}

/* Row `row` of a column of the batch; NULL: the data has no such column. */
static const void *row_of(const qn_batch *batch, const char *name, int64_t row, int64_t *size)
{
    const qn_column *column = qn_batch_column(batch, name);
    *size = column ? qn_column_bytes(column) : 0;
    return column ? (const char *)column->data + row * *size : NULL;
}

/* What is shown of the sample. */
static void take_pictures(struct mistakes *m, const qn_batch *batch, int64_t row,
                          struct mistake *found)
{
    int64_t size;
    const void *image = row_of(batch, "images", row, &size);
    if (image && !m->data.real)
        found->image = copy(m, image, size);
    if (!m->data.masks)
        return;
    const void *truth = row_of(batch, "labels", row, &size);
    found->truth = copy(m, truth, size);
    found->mask = copy(m, m->mask, size);
}

/* Puts the sample where it belongs; of equally wrong ones the first stands first. */
static void insert(struct mistakes *m, const qn_batch *batch, int64_t row, struct mistake found)
{
    int at = m->count;
    while (at > 0 && m->worst[at - 1].wrong < found.wrong)
        at--;
    if (at == MOST_MISTAKES)
        return;
    if (m->count == MOST_MISTAKES)
        drop(&m->worst[--m->count]);
    memmove(&m->worst[at + 1], &m->worst[at], (size_t)(m->count - at) * sizeof found);
    take_pictures(m, batch, row, &found);
    m->worst[at] = found;
    m->count++;
}

static int take_one(struct mistakes *m, const qn_batch *batch, int64_t row)
{
    int64_t size;
    const void *label = row_of(batch, "labels", row, &size);
    struct mistake found = {.sample = batch->position + row};
    const bool finite = m->data.masks ? judge_mask(m, label, &found)
                                      : judge_class(m, *(const int32_t *)label, &found);
    if (!finite)
        return failure_set(m->failure, CODE_FAILED, "sample %lld: a logit is not finite",
                           (long long)found.sample);
    if (found.wrong > 0) {
        m->wrong++;
        insert(m, batch, row, found);
    }
    return m->failure->code;
}

qn_status mistakes_take(struct mistakes *m, const char *output, int64_t first, int64_t count,
                        const void *rows, const qn_batch *batch)
{
    const int64_t row = (int64_t)m->data.classes * pixels_of(m);
    const int64_t bytes = row * qn_dtype_size(m->dtype);
    if (strcmp(output, "logits") != 0)
        return QN_OK;
    for (int64_t i = 0; i < count; i++) {
        qn_number_decode(m->dtype, (const char *)rows + i * bytes, row, m->logits);
        if (take_one(m, batch, first + i))
            return QN_ERR_ARGUMENT;
    }
    return QN_OK;
}
