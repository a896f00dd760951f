/* SPDX-License-Identifier: MIT
 *
 * How many kernels a plan launches, by phase and operator.
 */
#include "plan/showing/launches.h"

static const struct qn_task *task_at(const struct qn_phase_run *phase, int step)
{
    return &phase->problem->tasks[phase->steps[step].task];
}

/* Those of one operator from step `first` on; op NULL: of all. */
static int count_from(const struct qn_phase_run *phase, const struct qn_op *op, int first)
{
    int count = 0;
    for (int i = first; i < phase->n_steps; i++)
        if (!op || task_at(phase, i)->op == op)
            count += task_at(phase, i)->launches;
    return count;
}

int qn_launches_of_phase(const struct qn_phase_run *phase)
{
    return count_from(phase, NULL, 0);
}

void qn_launches_text(struct qn_text *text, const struct qn_program *program)
{
    for (int p = 0; p < program->n_phases; p++)
        qn_text_add(text, "%s%s %d", p ? ", " : "launches: ", program->phases[p].name,
                    qn_launches_of_phase(&program->phases[p]));
    qn_text_add(text, "\n");
}

void qn_launches_json(struct qn_text *text, const struct qn_phase_run *phase)
{
    int shown = 0;
    qn_text_add(text, "\"launches\": %d, \"launches_by_operator\": {", qn_launches_of_phase(phase));
    for (int i = 0; i < phase->n_steps; i++) {
        const struct qn_op *op = task_at(phase, i)->op;
        const int all = op ? count_from(phase, op, 0) : 0;
        if (all && all == count_from(phase, op, i))
            qn_text_add(text, "%s\"%s\": %d", shown++ ? ", " : "", op->name, all);
    }
    qn_text_add(text, "}");
}
