/* SPDX-License-Identifier: MIT
 *
 * Datasets that are some of the samples of another one.
 */
#include "base/log.h"
#include "base/shape.h"
#include "data/order.h"
#include "data/source.h"

#include <math.h>
#include <zlib.h>

/* Samples that are read from the whole at a time. */
enum { AT_ONCE = 64 };

struct part {
    struct qn_dataset base;
    const struct qn_dataset *whole;
    uint32_t *sample; /* (count) of the whole, rising */
};

/* What is drawn for a sample is what the whole would draw for it. */
static qn_status read_some(const struct part *part, const struct qn_draw *draws, int64_t count,
                           void *const *rows, struct qn_rooms *rooms, const struct qn_log *log)
{
    struct qn_draw drawn[AT_ONCE];
    for (int64_t i = 0; i < count; i++) {
        drawn[i] = draws[i];
        drawn[i].sample = part->sample[draws[i].sample];
    }
    return part->whole->source->read(part->whole, drawn, count, rows, rooms, log);
}

static qn_status read_rows(const struct qn_dataset *dataset, const struct qn_draw *draws,
                           int64_t count, void *const *rows, struct qn_rooms *rooms,
                           const struct qn_log *log)
{
    const struct part *part = (const struct part *)dataset;
    void *at[QN_MAX_COLUMNS];
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int64_t n = count - first < AT_ONCE ? count - first : AT_ONCE;
        for (int c = 0; c < dataset->facts.n_columns; c++)
            at[c] = (char *)rows[c] + first * qn_column_bytes(&dataset->facts.columns[c]);
        QN_TRY(read_some(part, draws + first, n, at, rooms, log));
    }
    return QN_OK;
}

static int bucket(const struct qn_dataset *dataset, int64_t sample)
{
    const struct part *part = (const struct part *)dataset;
    const struct qn_source *whole = part->whole->source;
    return whole->bucket ? whole->bucket(part->whole, part->sample[sample]) : 0;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct part *part = (const struct part *)dataset;
    const uint32_t whole = qn_dataset_checksum(part->whole);
    return (uint32_t)crc32_z(whole, (const Bytef *)part->sample,
                             (size_t)dataset->facts.count * sizeof *part->sample);
}

static const char *name(const struct qn_dataset *dataset, int64_t sample)
{
    const struct part *part = (const struct part *)dataset;
    return qn_dataset_sample_name(part->whole, part->sample[sample]);
}

static const struct qn_source source = {read_rows, checksum, NULL, bucket, name};

/* Keeps the samples of the split: the first `held_out` of a random order are those of the test. */
static qn_status choose(struct part *part, const qn_part_params *params, int64_t held_out)
{
    const int64_t all = part->whole->facts.count;
    struct qn_order order;
    QN_TRY(qn_order_make(&order, params->seed, all, false, &params->log));
    bool *chosen = qn_arena_new(&part->base.arena, bool, (size_t)all);
    part->sample = qn_arena_new(&part->base.arena, uint32_t, (size_t)all);
    for (int64_t i = 0; chosen && i < held_out; i++)
        chosen[qn_order_at(&order, i)] = true;
    int64_t count = 0;
    for (int64_t i = 0; chosen && part->sample && i < all; i++)
        if (chosen[i] == (params->split == QN_SPLIT_TEST))
            part->sample[count++] = (uint32_t)i;
    qn_order_free(&order);
    return count ? QN_OK : qn_fail(&params->log, QN_ERR_MEMORY, "dataset: out of memory");
}

static qn_status make(struct part *part, const qn_part_params *params)
{
    const struct qn_dataset_facts *whole = &params->whole->facts;
    const int64_t held_out = (int64_t)floor(params->fraction * (double)whole->count + 0.5);
    struct qn_column columns[QN_MAX_COLUMNS];
    if (held_out < 1 || held_out >= whole->count)
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "dataset: %g of %lld samples leaves one part without any", params->fraction,
                       (long long)whole->count);
    part->whole = params->whole;
    QN_TRY(choose(part, params, held_out));
    for (int c = 0; c < whole->n_columns; c++) {
        columns[c] = whole->columns[c];
        columns[c].data = NULL;
    }
    const int64_t count = params->split == QN_SPLIT_TEST ? held_out : whole->count - held_out;
    const qn_dataset_facts facts = {count, whole->n_columns, columns};
    return qn_dataset_set(&part->base, &facts, &params->log);
}

qn_status qn_dataset_part(qn_dataset **dataset, const qn_part_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params && params->whole);
    QN_REQUIRE(log, params->fraction > 0 && params->fraction < 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    *dataset = NULL;
    struct part *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, make(made, params));
}
