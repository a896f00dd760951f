/* SPDX-License-Identifier: MIT
 *
 * The drift of banks: entries, chosen by age, beside their samples as they are encoded now.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <quern/drift.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES, PASSAGES, SIDES };

static const char *const outputs[SIDES] = {"queries", "passages"};
static const char *const cells[SIDES] = {"bank.queries", "bank.passages"};

/* One of the two banks: vectors of so many elements, so many for each of its samples, which are
 * the newest. */
struct bank {
    const struct qn_cell_of *cell; /* NULL: there is none */
    int64_t samples;
    int64_t each, features, bytes; /* of a sample */
    unsigned char *rows;           /* what it holds of each entry that is looked at */
};

/* What is being looked at. */
struct look {
    struct qn_trainer *trainer;
    struct qn_drift_params params; /* defaults filled in */
    struct qn_drift *drift;
    int ring; /* number of bank.ids */
    struct bank bank[SIDES];
    int64_t room, count; /* entries that there can be, and are */
    int32_t *id;
    int64_t *ago;                   /* samples that were stored after it */
    int *age;                       /* index in drift->age */
    int64_t queries[QN_DRIFT_AGES]; /* entries of each age whose queries are stored */
    int64_t features;
    double *vector[2]; /* of so many */
};

static const struct qn_cell_of *cell_of(const struct look *l, int number)
{
    return &l->trainer->plan->persist.runs.cell[number];
}

/* --- what is there --- */

/* The ring of the name, whose rows have so many dimensions; -1: there is none. */
static int find_ring(const struct look *l, const char *name, int rank)
{
    const int number = qn_cells_find(l->trainer, name);
    if (number < 0 || cell_of(l, number)->kind != QN_CELL_RING)
        return -1;
    const struct qn_operand *operand = &cell_of(l, number)->operand;
    return (operand->dtype == QN_I32) == (rank == 1) && operand->shape.rank == rank ? number : -1;
}

static void find_bank(struct look *l, int side, int64_t samples)
{
    const int number = find_ring(l, cells[side], 2);
    const int64_t rows = number < 0 ? 0 : cell_of(l, number)->operand.shape.dim[0];
    if (number < 0 || (side == QUERIES ? rows > samples : rows % samples != 0))
        return;
    const int64_t features = cell_of(l, number)->operand.shape.dim[1];
    l->features = features > l->features ? features : l->features;
    struct bank *bank = &l->bank[side];
    bank->cell = cell_of(l, number);
    bank->samples = rows < samples ? rows : samples;
    bank->each = rows / bank->samples;
    bank->features = features;
    bank->bytes = bank->each * qn_cell_row_bytes(bank->cell);
}

static qn_status find_banks(struct look *l)
{
    l->ring = find_ring(l, "bank.ids", 1);
    for (int side = 0; side < SIDES && l->ring >= 0; side++)
        find_bank(l, side, cell_of(l, l->ring)->operand.shape.dim[0]);
    return l->bank[PASSAGES].cell
               ? QN_OK
               : qn_fail(&l->trainer->log, QN_ERR_ARGUMENT,
                         "drift: the plan has no banks (bank.ids and bank.passages)");
}

static qn_status fill_params(struct look *l, const struct qn_drift_params *params)
{
    struct qn_drift_params *p = &l->params;
    *p = *params;
    p->ages = p->ages ? p->ages : 8;
    p->entries = p->entries ? p->entries : 16;
    p->threshold = p->threshold == 0 ? 0.995 : p->threshold;
    p->least = p->least ? p->least : qn_largest_batch(&l->trainer->plan->params);
    const char *why = NULL;
    if (!p->samples)
        why = "nobody gives samples by their ids";
    else if (p->ages < 1 || p->ages > QN_DRIFT_AGES)
        why = "there are from 1 to 64 ages";
    else if (p->entries < 1 || p->entries > INT32_MAX || p->least < 1)
        why = "of each age at least one entry is looked at, and at least one is left";
    else if (!(p->threshold > 0 && p->threshold <= 1))
        why = "the threshold is above 0 and not above 1";
    return why ? qn_fail(&l->trainer->log, QN_ERR_ARGUMENT, "drift: %s", why) : QN_OK;
}

/* Divides what the banks hold into ages. */
static void make_ages(struct look *l)
{
    const int64_t fill = qn_ring_fill(l->trainer, l->ring);
    struct qn_drift *drift = l->drift;
    drift->ages = fill < l->params.ages ? (int)fill : l->params.ages;
    for (int a = 0; a < drift->ages; a++) {
        struct qn_drift_age *age = &drift->age[a];
        age->first = a * fill / drift->ages;
        age->end = (a + 1) * fill / drift->ages;
        l->room +=
            l->params.entries < age->end - age->first ? l->params.entries : age->end - age->first;
    }
}

static qn_status take_memory(struct look *l)
{
    const size_t room = (size_t)l->room + 1;
    bool complete = (l->id = calloc(room, sizeof *l->id)) != NULL;
    complete &= (l->ago = calloc(room, sizeof *l->ago)) != NULL;
    complete &= (l->age = calloc(room, sizeof *l->age)) != NULL;
    for (int i = 0; i < 2; i++)
        complete &= (l->vector[i] = calloc((size_t)l->features, sizeof *l->vector[i])) != NULL;
    for (int side = 0; side < SIDES; side++)
        if (l->bank[side].cell)
            complete &= (l->bank[side].rows = calloc(room, (size_t)l->bank[side].bytes)) != NULL;
    return complete ? QN_OK : qn_fail(&l->trainer->log, QN_ERR_MEMORY, "drift: out of host memory");
}

static void free_memory(struct look *l)
{
    free(l->id);
    free(l->ago);
    free(l->age);
    for (int i = 0; i < 2; i++)
        free(l->vector[i]);
    for (int side = 0; side < SIDES; side++)
        free(l->bank[side].rows);
}

/* --- entries --- */

static bool has(const struct bank *bank, int64_t ago)
{
    return bank->cell && ago < bank->samples;
}

/* Adds the entry of so many samples ago, unless it is empty. */
static qn_status add_entry(struct look *l, int a, int64_t ago)
{
    const struct qn_cell_of *ids = cell_of(l, l->ring);
    const int64_t number = l->trainer->cell_rows[l->ring] - 1 - ago; /* also of its query */
    const int64_t at = number % ids->operand.shape.dim[0] * (int64_t)sizeof(int32_t);
    int32_t id;
    QN_TRY(qn_trainer_read_value(l->trainer, ids->value, at, &id, sizeof id));
    if (id < 0)
        return QN_OK;
    for (int side = 0; side < SIDES; side++) {
        const struct bank *bank = &l->bank[side];
        if (has(bank, ago))
            QN_TRY(qn_trainer_read_value(l->trainer, bank->cell->value,
                                         number % bank->samples * bank->bytes,
                                         bank->rows + l->count * bank->bytes, bank->bytes));
    }
    l->id[l->count] = id;
    l->ago[l->count] = ago;
    l->age[l->count++] = a;
    l->drift->age[a].entries++;
    l->queries[a] += has(&l->bank[QUERIES], ago);
    return QN_OK;
}

/* Of each age some entries, evenly apart, of which the oldest is the first. */
static qn_status choose(struct look *l)
{
    for (int a = 0; a < l->drift->ages; a++) {
        const struct qn_drift_age *age = &l->drift->age[a];
        const int64_t span = age->end - age->first;
        const int64_t count = l->params.entries < span ? l->params.entries : span;
        for (int64_t i = 0; i < count; i++)
            QN_TRY(add_entry(l, a, age->end - 1 - i * span / count));
    }
    return QN_OK;
}

/* --- comparing --- */

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct look *l = user;
    return l->params.samples(l->params.user, input, l->id + first, count, rows);
}

/* Of two vectors of zeros 1. */
static double cosine(const double *a, const double *b, int64_t count)
{
    double dot = 0, of_a = 0, of_b = 0;
    for (int64_t i = 0; i < count; i++) {
        dot += a[i] * b[i];
        of_a += a[i] * a[i];
        of_b += b[i] * b[i];
    }
    return of_a == 0 && of_b == 0 ? 1 : dot / sqrt(of_a * of_b);
}

/* The mean cosine of an entry with what its sample is now. */
static double compare_entry(struct look *l, const struct bank *bank, const unsigned char *then,
                            const unsigned char *now)
{
    const qn_dtype dtype = bank->cell->operand.dtype;
    const int64_t bytes = bank->bytes / bank->each;
    double sum = 0;
    for (int64_t i = 0; i < bank->each; i++) {
        qn_number_decode(dtype, then + i * bytes, bank->features, l->vector[0]);
        qn_number_decode(dtype, now + i * bytes, bank->features, l->vector[1]);
        sum += cosine(l->vector[0], l->vector[1], bank->features);
    }
    return sum / (double)bank->each;
}

/* Adds up; divided later. */
static qn_status compare(void *user, const char *name, int64_t first, int64_t count,
                         const void *rows)
{
    struct look *l = user;
    for (int side = 0; side < SIDES; side++) {
        const struct bank *bank = &l->bank[side];
        if (!bank->cell || strcmp(name, outputs[side]) != 0)
            continue;
        for (int64_t i = 0; i < count; i++) {
            const unsigned char *then = bank->rows + (first + i) * bank->bytes;
            const unsigned char *now = (const unsigned char *)rows + i * bank->bytes;
            struct qn_drift_age *age = &l->drift->age[l->age[first + i]];
            if (has(bank, l->ago[first + i]))
                *(side == QUERIES ? &age->queries : &age->passages) +=
                    compare_entry(l, bank, then, now);
        }
    }
    return QN_OK;
}

/* Sums become means. */
static void divide(struct look *l)
{
    l->drift->oldest = NAN;
    for (int a = 0; a < l->drift->ages; a++) {
        struct qn_drift_age *age = &l->drift->age[a];
        age->queries = l->queries[a] ? age->queries / (double)l->queries[a] : NAN;
        age->passages /= (double)age->entries;
        if (age->entries)
            l->drift->oldest = fmin(age->queries, age->passages);
    }
}

/* --- what follows from it --- */

/* fmin leaves out what is no number: a mean over something strange must not pass for the other. */
static bool is_stale(const struct look *l, int a)
{
    const struct qn_drift_age *age = &l->drift->age[a];
    return !(age->passages >= l->params.threshold) ||
           (l->queries[a] && !(age->queries >= l->params.threshold));
}

static int oldest_age(const struct qn_drift *drift)
{
    int a = drift->ages - 1;
    while (a >= 0 && !drift->age[a].entries)
        a--;
    return a;
}

/* How many samples are not stale. */
static int64_t fresh_samples(const struct look *l)
{
    int64_t fresh = 0;
    for (int a = 0; a < l->drift->ages; a++)
        if (l->drift->age[a].entries && !is_stale(l, a))
            fresh = l->drift->age[a].end;
    return fresh > l->params.least ? fresh : l->params.least;
}

static qn_status judge(struct look *l)
{
    struct qn_trainer *trainer = l->trainer;
    struct qn_drift *drift = l->drift;
    const int last = oldest_age(drift);
    drift->stale = last >= 0 && is_stale(l, last);
    drift->limit = trainer->cell_limits[l->ring];
    const bool told = trainer->told_of_drift;
    trainer->told_of_drift = drift->stale;
    if (!drift->stale)
        return QN_OK;
    if (!told)
        qn_log_write(
            &trainer->log, QN_LOG_WARNING,
            "drift: entries of %" PRId64 " to %" PRId64 " samples ago have a mean cosine of "
            "%.4f with what their samples are now, below %g",
            drift->age[last].first, drift->age[last].end - 1, drift->oldest, l->params.threshold);
    const int64_t fresh = fresh_samples(l);
    if (!l->params.cap || fresh >= qn_ring_kept(trainer, l->ring))
        return QN_OK;
    qn_log_write(&trainer->log, QN_LOG_WARNING,
                 "drift: from now on the newest %" PRId64 " samples of the bank count", fresh);
    drift->limit = fresh;
    return qn_trainer_limit_cell(trainer, "bank.ids", fresh);
}

/* --- all of it --- */

static qn_status measure(struct look *l)
{
    QN_TRY(qn_trainer_check(l->trainer, qn_trainer_settle(l->trainer)));
    QN_TRY(qn_trainer_check(l->trainer, qn_device_finish(l->trainer->device)));
    make_ages(l);
    QN_TRY(take_memory(l));
    QN_TRY(choose(l));
    if (l->count)
        QN_TRY(qn_trainer_evaluate_run(l->trainer, "encode", l->count, fetch, compare, l));
    divide(l);
    return judge(l);
}

qn_status qn_drift_measure(qn_trainer *trainer, const qn_drift_params *params, qn_drift *drift)
{
    QN_REQUIRE(NULL, trainer && params && drift);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, trainer->stage_of_update == QN_UPDATE_IDLE);
    *drift = (struct qn_drift){.ages = 0};
    struct look l = {.trainer = trainer, .drift = drift};
    QN_TRY(fill_params(&l, params));
    QN_TRY(find_banks(&l));
    const qn_status status = measure(&l);
    free_memory(&l);
    return status;
}
