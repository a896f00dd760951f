/* SPDX-License-Identifier: MIT
 *
 * Rings that forget: rows beyond a limit, and of updates before a ring's start, are again as the
 * plan says that they begin. So no kernel knows of it, and a repetition sees the limit to the row.
 * Tables of a ring follow (tables.c), unless nothing of it stays: then nobody asks them.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <inttypes.h>

static const struct qn_cell_of *cell_of(const struct qn_trainer *trainer, int c)
{
    return &trainer->plan->persist.runs.cell[c];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t qn_ring_kept(const struct qn_trainer *trainer, int c)
{
    const int64_t capacity = cell_of(trainer, c)->operand.shape.dim[0];
    const int64_t limit = trainer->cell_limits[c];
    if (trainer->updates < cell_of(trainer, c)->start)
        return 0;
    return limit ? least(limit, capacity) : capacity;
}

int64_t qn_ring_fill(const struct qn_trainer *trainer, int c)
{
    return least(trainer->cell_rows[c], qn_ring_kept(trainer, c));
}

/* Does something with `count` rows of ring c from the place `first` on. */
typedef qn_status (*rows_fn)(struct qn_trainer *trainer, int c, int64_t first, int64_t count);

static qn_status empty_places(struct qn_trainer *trainer, int c, int64_t first, int64_t count)
{
    const struct qn_cell_of *cell = cell_of(trainer, c);
    const int64_t bytes = qn_cell_row_bytes(cell);
    return qn_trainer_fill_part(trainer, cell->value, first * bytes, count * bytes,
                                (float)cell->first);
}

/* Rows first .. end - 1, counted since the ring was empty, where they are; those that others have
 * replaced are gone already. */
static qn_status visit_rows(struct qn_trainer *trainer, int c, int64_t first, int64_t end,
                            rows_fn visit)
{
    const int64_t capacity = cell_of(trainer, c)->operand.shape.dim[0];
    const int64_t oldest = trainer->cell_rows[c] - capacity;
    first = first < 0 ? 0 : first;
    for (int64_t row = first < oldest ? oldest : first, count; row < end; row += count) {
        const int64_t place = row % capacity;
        count = least(end - row, capacity - place);
        QN_TRY(visit(trainer, c, place, count));
    }
    return QN_OK;
}

static qn_status empty_rows(struct qn_trainer *trainer, int c, int64_t first, int64_t end)
{
    QN_TRY(visit_rows(trainer, c, first, end, empty_places));
    return qn_ring_kept(trainer, c) ? visit_rows(trainer, c, first, end, qn_tables_forget) : QN_OK;
}

qn_status qn_ring_forget(struct qn_trainer *trainer, int c, int64_t before)
{
    const int64_t kept = qn_ring_kept(trainer, c);
    if (kept == cell_of(trainer, c)->operand.shape.dim[0])
        return QN_OK;
    return empty_rows(trainer, c, before - kept, trainer->cell_rows[c] - kept);
}

static qn_status limit(struct qn_trainer *trainer, int c, int64_t rows)
{
    QN_TRY(qn_trainer_settle(trainer));
    trainer->cell_limits[c] = rows;
    return empty_rows(trainer, c, 0, trainer->cell_rows[c] - qn_ring_kept(trainer, c));
}

qn_status qn_trainer_limit_cell(qn_trainer *trainer, const char *name, int64_t rows)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, name && rows >= 0);
    QN_REQUIRE(&trainer->log, trainer->stage_of_update == QN_UPDATE_IDLE);
    const int c = qn_cells_find(trainer, name);
    if (c < 0 || cell_of(trainer, c)->kind != QN_CELL_RING)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "%s: no ring of the plan", name);
    if (!qn_cell_forgets(cell_of(trainer, c)))
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "%s: its rows have %" PRId64 " bytes, no multiple of 4, and no limit", name,
                       qn_cell_row_bytes(cell_of(trainer, c)));
    if (rows > 0 && !qn_tables_let_forget(trainer, c))
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                       "%s: a table is made of all its rows, which have no limit", name);
    return qn_trainer_check(trainer, limit(trainer, c, rows));
}

int64_t qn_trainer_cell_limit(const qn_trainer *trainer, const char *name)
{
    const int c = trainer && name ? qn_cells_find(trainer, name) : -1;
    return c < 0 || cell_of(trainer, c)->kind != QN_CELL_RING ? -1 : trainer->cell_limits[c];
}
