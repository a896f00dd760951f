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

/* Neighbouring places of a ring. */
struct places {
    int64_t first, count;
};

/* Where rows first .. end - 1 are, counted since the ring was empty; those that others have
 * replaced are gone already. Gives how many of `places` that takes. */
static int find_places(const struct qn_trainer *trainer, int c, int64_t first, int64_t end,
                       struct places places[2])
{
    const int64_t capacity = cell_of(trainer, c)->operand.shape.dim[0];
    const int64_t oldest = trainer->cell_rows[c] - capacity;
    int n = 0;
    first = first < 0 ? 0 : first;
    for (int64_t row = first < oldest ? oldest : first; row < end; row += places[n++].count) {
        const int64_t place = row % capacity;
        places[n] = (struct places){place, least(end - row, capacity - place)};
    }
    return n;
}

/* `phase` as in qn_tables_forget. */
static qn_status empty_rows(struct qn_trainer *trainer, int c, const struct qn_phase_run *phase,
                            int64_t first, int64_t end)
{
    const struct qn_cell_of *cell = cell_of(trainer, c);
    const int64_t bytes = qn_cell_row_bytes(cell);
    struct places places[2];
    const int n = find_places(trainer, c, first, end, places);
    for (int i = 0; i < n; i++)
        QN_TRY(qn_trainer_fill_part(trainer, cell->value, places[i].first * bytes,
                                    places[i].count * bytes, (float)cell->first));
    for (int i = 0; i < n && qn_ring_kept(trainer, c); i++)
        QN_TRY(qn_tables_forget(trainer, c, phase, places[i].first, places[i].count));
    return QN_OK;
}

qn_status qn_ring_forget(struct qn_trainer *trainer, int c, const struct qn_phase_run *phase,
                         int64_t before)
{
    const int64_t kept = qn_ring_kept(trainer, c);
    if (kept == cell_of(trainer, c)->operand.shape.dim[0])
        return QN_OK;
    return empty_rows(trainer, c, phase, before - kept, trainer->cell_rows[c] - kept);
}

static qn_status limit(struct qn_trainer *trainer, int c, int64_t rows)
{
    QN_TRY(qn_trainer_settle(trainer));
    trainer->cell_limits[c] = rows;
    return empty_rows(trainer, c, NULL, 0, trainer->cell_rows[c] - qn_ring_kept(trainer, c));
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
