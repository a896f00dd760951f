/* SPDX-License-Identifier: MIT
 *
 * Where rows go in rings and caches: the host counts them, the kernels read the position. What
 * rings and tables hold outlives a cycle that changes nothing.
 */
#include "base/log.h"
#include "run/trainer.h"

#include <inttypes.h>
#include <string.h>

int64_t qn_cell_rows_each(const struct qn_phase_run *phase, const struct qn_cell_of *cell)
{
    for (int i = 0; i < phase->n_steps; i++) {
        const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
        if (task->n_writes && task->writes[0].value == cell->value)
            return task->reads[0].operand.shape.dim[0] / phase->problem->batch;
    }
    return 0;
}

static bool counts_rows(const struct qn_cell_of *cell)
{
    return cell->kind == QN_CELL_RING || cell->kind == QN_CELL_APPEND;
}

qn_status qn_cells_begin(const struct qn_trainer *trainer, const struct qn_phase_run *phase,
                         const struct qn_feed *feed, struct qn_start *start)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    start->padding = (uint32_t)(phase->problem->batch - feed->count);
    for (int c = 0; c < runs->n_cells; c++) {
        const struct qn_cell_of *cell = &runs->cell[c];
        const int64_t capacity = cell->operand.shape.dim[0], rows = trainer->cell_rows[c];
        const int64_t more = qn_cell_rows_each(phase, cell) * feed->count;
        const int64_t at[] = {[QN_CELL_SAMPLES] = (feed->base + feed->first) * -capacity,
                              [QN_CELL_RING] = rows % capacity,
                              [QN_CELL_APPEND] = rows,
                              [QN_CELL_TABLE] = 0};
        start->position[cell->slot] = (uint32_t)at[cell->kind];
        if (cell->kind == QN_CELL_APPEND && more > capacity - rows)
            return qn_fail(&trainer->log, QN_ERR_ARGUMENT,
                           "cell '%s': has %" PRId64 " of %" PRId64
                           " rows, and no room for %" PRId64 " more",
                           cell->name, rows, capacity, more);
    }
    return QN_OK;
}

qn_status qn_cells_end(struct qn_trainer *trainer, const struct qn_phase_run *phase,
                       int64_t samples)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    int64_t more[QN_MAX_POSITIONS] = {0};
    for (int c = 0; c < runs->n_cells; c++) {
        if (counts_rows(&runs->cell[c]))
            more[c] = samples * qn_cell_rows_each(phase, &runs->cell[c]);
        trainer->cell_rows[c] += more[c];
    }
    for (int c = 0; c < runs->n_cells; c++)
        if (runs->cell[c].kind == QN_CELL_RING)
            QN_TRY(qn_ring_forget(trainer, c, phase, trainer->cell_rows[c] - more[c]));
    return QN_OK;
}

/* --- rings of a cycle that changes nothing --- */

/* Bytes of ring or table c; 0: it is neither. */
static int64_t kept_bytes(const struct qn_trainer *trainer, int c)
{
    const struct qn_persist *persist = &trainer->plan->persist;
    const struct qn_cell_of *cell = &persist->runs.cell[c];
    return qn_cell_is_kept(cell) ? persist->values[cell->value].bytes : 0;
}

qn_status qn_cells_open(struct qn_trainer *trainer)
{
    int64_t bytes = 0;
    for (int c = 0; c < trainer->plan->runs.n_cells; c++)
        bytes += kept_bytes(trainer, c);
    trainer->rings = NULL;
    if (bytes == 0)
        return QN_OK;
    trainer->rings = qn_arena_new(&trainer->plan_arena, unsigned char, (size_t)bytes);
    return trainer->rings ? QN_OK
                          : qn_fail(&trainer->log, QN_ERR_MEMORY, "rings: out of host memory");
}

/* Between the device and trainer->rings, cell after cell. */
static qn_status copy_rings(struct qn_trainer *trainer, bool back)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    unsigned char *host = trainer->rings;
    for (int c = 0; c < runs->n_cells; c++) {
        const int64_t bytes = kept_bytes(trainer, c);
        const int value = runs->cell[c].value;
        if (bytes == 0)
            continue;
        QN_TRY(back ? qn_trainer_write_value(trainer, value, 0, host, bytes)
                    : qn_trainer_read_value(trainer, value, 0, host, bytes));
        host += bytes;
    }
    return QN_OK;
}

qn_status qn_cells_keep(struct qn_trainer *trainer)
{
    memcpy(trainer->cell_rows_before, trainer->cell_rows, sizeof trainer->cell_rows);
    return copy_rings(trainer, false);
}

qn_status qn_cells_go_back(struct qn_trainer *trainer)
{
    memcpy(trainer->cell_rows, trainer->cell_rows_before, sizeof trainer->cell_rows);
    return copy_rings(trainer, true);
}

/* --- by name --- */

int qn_cells_find(const struct qn_trainer *trainer, const char *name)
{
    const struct qn_run_set *runs = &trainer->plan->persist.runs;
    for (int c = 0; c < runs->n_cells; c++)
        if (counts_rows(&runs->cell[c]) && strcmp(runs->cell[c].name, name) == 0)
            return c;
    return -1;
}

int64_t qn_trainer_cell_rows(const qn_trainer *trainer, const char *name)
{
    const int cell = trainer && name ? qn_cells_find(trainer, name) : -1;
    return cell < 0 ? -1 : trainer->cell_rows[cell];
}

qn_status qn_cells_clear(struct qn_trainer *trainer, int cell)
{
    const struct qn_cell_of *of = &trainer->plan->persist.runs.cell[cell];
    trainer->cell_rows[cell] = 0;
    return of->kind == QN_CELL_SAMPLES
               ? QN_OK
               : qn_trainer_fill_value(trainer, of->value, (float)of->first);
}

qn_status qn_trainer_clear_cell(qn_trainer *trainer, const char *name)
{
    QN_REQUIRE(NULL, trainer);
    QN_TRY(qn_trainer_failure(trainer));
    QN_REQUIRE(&trainer->log, name);
    const int cell = qn_cells_find(trainer, name);
    if (cell < 0)
        return qn_fail(&trainer->log, QN_ERR_ARGUMENT, "%s: no ring or cache of the plan", name);
    QN_TRY(qn_trainer_check(trainer, qn_trainer_settle(trainer)));
    return qn_cells_clear(trainer, cell);
}
