/* SPDX-License-Identifier: MIT
 *
 * Rows of cells of samples: each member has made those of its own, and all get those of all, before
 * each computes what comes of the whole cycle.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/shape.h"
#include "group/exchange.h"
#include "run/trainer.h"

bool qn_exchange_open_rows(struct qn_exchange *x, const struct qn_trainer *trainer)
{
    const struct qn_run_set *runs = &trainer->plan->runs;
    int64_t most = 0;
    for (int c = 0; c < runs->n_cells; c++)
        if (runs->cell[c].kind == QN_CELL_SAMPLES && qn_cell_sample_bytes(&runs->cell[c]) > most)
            most = qn_cell_sample_bytes(&runs->cell[c]);
    most = qn_mul(most, qn_largest_cycle(&trainer->plan->params));
    x->rows = qn_arena_new(&x->arena, unsigned char, (size_t)most + 1);
    return x->rows;
}

int qn_first_member(const struct qn_exchange *x)
{
    int first = 0;
    while (first + 1 < x->transport->members && !x->samples[first])
        first++;
    return first;
}

/* Where a member's rows begin, and how many bytes they are. */
static struct qn_numbers rows_of(const struct qn_exchange *x, int member, int64_t each)
{
    struct qn_numbers rows = {0, x->samples[member] * each};
    for (int m = 0; m < member; m++)
        rows.first += x->samples[m] * each;
    return rows;
}

/* Members without samples send nothing and need nothing. */
static qn_status send_all(struct qn_exchange *x, struct qn_slot *slot, int64_t each)
{
    const int self = x->transport->member, members = x->transport->members;
    const struct qn_numbers mine = rows_of(x, self, each);
    for (int r = 1; r < members; r++) {
        const int to = (self + r) % members, from = (self + members - r) % members;
        const struct qn_numbers theirs = rows_of(x, from, each);
        QN_TRY(qn_slot_send(x, slot, to, x->rows + mine.first, x->samples[to] ? mine.count : 0));
        QN_TRY(qn_slot_receive(x, slot, from, x->rows + theirs.first, theirs.count));
    }
    return qn_slot_arrive(x, slot);
}

/* The rows of the others lie before this member's and behind them. */
static qn_status write_others(const struct qn_exchange *x, struct qn_trainer *trainer, int value,
                              int64_t each)
{
    const struct qn_numbers mine = rows_of(x, x->transport->member, each);
    const struct qn_numbers last = rows_of(x, x->transport->members - 1, each);
    const int64_t after = mine.first + mine.count, end = last.first + last.count;
    if (mine.first)
        QN_TRY(qn_trainer_write_value(trainer, value, 0, x->rows, mine.first));
    return after < end ? qn_trainer_write_value(trainer, value, after, x->rows + after, end - after)
                       : QN_OK;
}

qn_status qn_exchange_rows(void *user, struct qn_trainer *trainer, const char *cell)
{
    struct qn_exchange *x = user;
    const struct qn_cell_of *of = qn_cell_named(&trainer->plan->persist.runs, cell);
    const int64_t each = qn_cell_sample_bytes(of);
    const struct qn_numbers mine = rows_of(x, x->transport->member, each);
    QN_TRY(qn_trainer_read_value(trainer, of->value, mine.first, x->rows + mine.first, mine.count));
    QN_TRY(send_all(x, &x->slots[0], each));
    return write_others(x, trainer, of->value, each);
}
