/* SPDX-License-Identifier: MIT */
#include "plan/runs.h"

#include "base/log.h"
#include "base/shape.h"
#include "op/loss.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct making {
    struct qn_plan *plan;
    const struct qn_run_list *list;
    struct qn_run_set *runs;
    const qn_graph *source[QN_MAX_RUNS]; /* by graph of the plan: the caller's graph it copies */
};

/* Refuses with one line: "plan: run 'NAME': reason". */
__attribute__((format(printf, 5, 6))) static qn_status refuse(const struct making *m,
                                                              qn_status status, const char *what,
                                                              const char *name, const char *format,
                                                              ...)
{
    char reason[160];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return qn_fail(&m->plan->log, status, "plan: %s '%s': %s", what, name, reason);
}

static qn_status out_of_memory(const struct making *m)
{
    return qn_fail(&m->plan->log, QN_ERR_MEMORY, "plan: out of host memory");
}

/* --- graphs --- */

/* Losses of the same name, in whichever graphs, are one loss with one loss index. */
static qn_status share_losses(struct making *m, qn_graph *graph)
{
    struct qn_plan *plan = m->plan;
    for (int i = 0; i < graph->n_losses; i++) {
        struct qn_graph_loss *loss = &graph->losses[i];
        struct qn_node *node = &graph->nodes[loss->node];
        int index = 0;
        while (index < plan->n_losses && strcmp(plan->losses[index].name, node->name) != 0)
            index++;
        if (index == QN_MAX_LOSSES)
            return refuse(m, QN_ERR_ARGUMENT, "loss", node->name, "there are more than %d",
                          QN_MAX_LOSSES);
        if (index == plan->n_losses)
            plan->losses[plan->n_losses++] =
                (struct qn_plan_loss){node->name, loss->reduction, loss->coefficient};
        if (plan->losses[index].reduction != loss->reduction ||
            plan->losses[index].coefficient != loss->coefficient)
            return refuse(m, QN_ERR_ARGUMENT, "loss", node->name,
                          "two graphs give it different coefficients or reductions");
        loss->index = index;
        node->attr = qn_arena_copy(&graph->arena, &(struct qn_loss_attr){.index = index},
                                   sizeof(struct qn_loss_attr));
        if (!node->attr)
            return out_of_memory(m);
    }
    return QN_OK;
}

static qn_status copy_graph(struct making *m, const qn_graph *graph)
{
    struct qn_plan *plan = m->plan;
    if (graph->status != QN_OK)
        return qn_fail(&plan->log, graph->status, "%s", graph->error);
    qn_graph *copy = qn_graph_clone(graph);
    if (!copy)
        return out_of_memory(m);
    m->source[plan->n_graphs] = graph;
    plan->graphs[plan->n_graphs++] = copy;
    qn_plan_mark_chosen(copy, plan->params.chosen);
    return qn_graph_fuse(copy) ? share_losses(m, copy) : out_of_memory(m);
}

/* The number in plan->graphs of the copy of `graph`, which is made when first asked for. */
static qn_status own_graph(struct making *m, const qn_graph *graph, int *number)
{
    for (*number = 0; *number < m->plan->n_graphs; ++*number)
        if (m->source[*number] == graph)
            return QN_OK;
    return copy_graph(m, graph);
}

/* --- runs --- */

static qn_status name_run(struct making *m, int number, const char **name)
{
    char made[16];
    snprintf(made, sizeof made, "run %d", number);
    const char *given = m->list->runs[number].name ? m->list->runs[number].name : made;
    for (int i = 0; i < number; i++)
        if (strcmp(m->runs->run[i].name, given) == 0)
            return refuse(m, QN_ERR_ARGUMENT, "run", given, "two runs have this name");
    *name = qn_arena_strdup(&m->plan->arena, given);
    return *name ? QN_OK : out_of_memory(m);
}

/* Runs of a cycle get pass numbers upwards; alternatives share one. */
static qn_status add_run(struct making *m, int number)
{
    const qn_run *from = &m->list->runs[number];
    struct qn_run_of *run = &m->runs->run[number];
    const struct qn_run_of *before = number ? run - 1 : NULL;
    QN_TRY(name_run(m, number, &run->name));
    m->runs->n_runs = number + 1;
    if (!from->graph || (int)from->what < 0 || from->what > QN_RUN_EVALUATE)
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name, "needs a graph and a kind");
    QN_TRY(own_graph(m, from->graph, &run->graph));
    run->what = from->what;
    run->whole = from->whole;
    run->samples = from->samples;
    const bool evaluates = run->what == QN_RUN_EVALUATE;
    if (evaluates && (from->whole || from->alternative))
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name, "evaluations are no part of a cycle");
    if (from->samples < 0 || (from->samples && !evaluates))
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name,
                      "only evaluations have a number of samples of their own");
    if (from->alternative && (!before || before->pass < 0 || before->whole || from->whole))
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name,
                      "is an alternative to no run for each micro-step");
    if (m->plan->graphs[run->graph]->storage != m->plan->graphs[0]->storage)
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name, "graphs have one storage type");
    int pass = -1;
    for (int i = 0; i < number; i++)
        pass = m->runs->run[i].pass > pass ? m->runs->run[i].pass : pass;
    run->partner = -1;
    run->pass = evaluates ? -1 : from->alternative ? before->pass : pass + 1;
    return QN_OK;
}

/* --- cells --- */

static qn_status add_cell(struct making *m, int number)
{
    const qn_cell *from = &m->list->cells[number];
    struct qn_cell_of *cell = &m->runs->cell[number];
    const bool samples = from->kind == QN_CELL_SAMPLES;
    if (!from->name || !*from->name || qn_cell_named(m->runs, from->name))
        return refuse(m, QN_ERR_ARGUMENT, "cell", from->name ? from->name : "",
                      "the name is empty or already taken");
    if ((int)from->kind < 0 || from->kind > QN_CELL_TABLE || !isfinite((float)from->first))
        return refuse(m, QN_ERR_ARGUMENT, "cell", from->name, "there is no such kind or start");
    if (samples ? from->rows != 0 : from->rows < 1 || from->rows > INT32_MAX)
        return refuse(m, QN_ERR_ARGUMENT, "cell", from->name,
                      "all but cells of samples have rows, these as many as the cycle");
    if (from->gradient && !samples)
        return refuse(m, QN_ERR_ARGUMENT, "cell", from->name,
                      "only cells of samples have gradients");
    if (from->start < 0 || (from->start && from->kind != QN_CELL_RING))
        return refuse(m, QN_ERR_ARGUMENT, "cell", from->name, "only rings start later");
    *cell = (struct qn_cell_of){.name = qn_arena_strdup(&m->plan->arena, from->name),
                                .kind = from->kind,
                                .first = from->first,
                                .start = from->start,
                                .gradient = from->gradient ? 0 : -1,
                                .slot = number};
    m->runs->n_cells = number + 1;
    return cell->name ? QN_OK : out_of_memory(m);
}

static const struct qn_operand *output_named(const struct qn_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_outputs; i++)
        if (strcmp(graph->outputs[i].name, name) == 0)
            return &graph->tensors[graph->outputs[i].tensor].symbolic;
    return NULL;
}

static const struct qn_node *input_named(const struct qn_graph *graph, const char *name)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_INPUT && strcmp(graph->nodes[n].name, name) == 0)
            return &graph->nodes[n];
    return NULL;
}

static bool same_rows(const struct qn_operand *a, const struct qn_operand *b)
{
    struct qn_shape x = a->shape, y = b->shape;
    x.dim[0] = y.dim[0];
    return a->dtype == b->dtype && qn_shape_equal(&x, &y);
}

/* Whether the size of a row of this shape does not depend on the batch. */
static bool rows_are_fixed(const struct qn_shape *shape)
{
    for (int d = 1; d < shape->rank; d++)
        if (shape->dim[d] < 0)
            return false;
    return true;
}

/* How many runs use a cell: write its rows, read them, give its gradient (sources, which also read
 * it), and go backward from it. */
struct users {
    int writers, readers, sources, backward;
    int last_writer, first_reader, last_reader, first_backward; /* passes */
};

static void note_writer(struct users *users, const struct qn_run_of *run)
{
    users->writers++;
    users->last_writer = run->pass > users->last_writer ? run->pass : users->last_writer;
}

static void note_reader(struct users *users, const struct qn_run_of *run)
{
    users->first_reader =
        users->readers && users->first_reader < run->pass ? users->first_reader : run->pass;
    users->last_reader = run->pass > users->last_reader ? run->pass : users->last_reader;
    users->readers++;
    users->sources += qn_run_trains(run);
}

static void note_backward(struct users *users, const struct qn_run_of *run)
{
    users->first_backward =
        users->backward && users->first_backward < run->pass ? users->first_backward : run->pass;
    users->backward++;
}

/* Whether all inputs of a node are rings, but for the cell `name` itself. */
static bool reads_rings(const struct making *m, const qn_graph *graph, const struct qn_node *node,
                        const char *name)
{
    for (int i = 0; i < node->op->n_in; i++) {
        const struct qn_node *input = &graph->nodes[graph->tensors[node->in[i]].node];
        const struct qn_cell_of *cell = qn_cell_named(m->runs, input->name);
        if (input->kind != QN_NODE_INPUT || !cell ||
            (cell->kind != QN_CELL_RING && strcmp(cell->name, name) != 0))
            return false;
    }
    return true;
}

/* Whether the output is of an operator that keeps a table of the rings that are its inputs. */
static bool keeps_table(const struct making *m, const qn_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct qn_node *node = &graph->nodes[graph->tensors[graph->outputs[i].tensor].node];
        if (strcmp(graph->outputs[i].name, name) != 0)
            continue;
        return node->kind == QN_NODE_OPERATOR && node->op->table &&
               reads_rings(m, graph, node, name);
    }
    return false;
}

/* A cell gets the shape of its rows from the first output written to it. */
static qn_status use_output(struct making *m, struct qn_cell_of *cell, const struct qn_run_of *run,
                            const struct qn_operand *output, struct users *users)
{
    if (!cell->operand.dtype) {
        cell->operand = *output;
        for (int c = 0; c < m->list->n_cells; c++)
            if (m->list->cells[c].rows && strcmp(m->list->cells[c].name, cell->name) == 0)
                cell->operand.shape.dim[0] = m->list->cells[c].rows;
    }
    if (cell->kind == QN_CELL_TABLE && !keeps_table(m, m->plan->graphs[run->graph], cell->name))
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "its output is of no operator that keeps a table of rings");
    if (output->dtype == QN_U8)
        return refuse(m, QN_ERR_SHAPE, "cell", cell->name,
                      "its elements are of one byte, not of two or four");
    if (!rows_are_fixed(&output->shape))
        return refuse(m, QN_ERR_SHAPE, "cell", cell->name,
                      "the size of its rows has the batch in it");
    if (cell->start && !qn_cell_forgets(cell))
        return refuse(m, QN_ERR_SHAPE, "cell", cell->name,
                      "starts later, and its rows have no multiple of 4 bytes");
    const bool whole = cell->kind == QN_CELL_SAMPLES || cell->kind == QN_CELL_TABLE;
    if (!same_rows(&cell->operand, output) ||
        (whole && cell->operand.shape.dim[0] != output->shape.dim[0]))
        return refuse(m, QN_ERR_SHAPE, "cell", cell->name, "two outputs differ in their rows");
    if (run->what == QN_RUN_BACKWARD)
        note_backward(users, run);
    else if (run->whole && cell->kind != QN_CELL_APPEND)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "is written by run '%s', which is not one for each micro-step", run->name);
    else if (run->what != QN_RUN_EVALUATE || cell->kind == QN_CELL_APPEND)
        note_writer(users, run);
    if (cell->kind == QN_CELL_APPEND && qn_run_trains(run))
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "run '%s' has a backward pass, which would read what it appends", run->name);
    return QN_OK;
}

static qn_status use_input(struct making *m, const struct qn_cell_of *cell,
                           const struct qn_run_of *run, const struct qn_node *input,
                           struct users *users)
{
    const bool samples = cell->kind == QN_CELL_SAMPLES;
    if (!cell->operand.dtype)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name, "no run writes it");
    if (!same_rows(&cell->operand, &input->leaf) || samples == input->cell ||
        cell->operand.shape.dim[0] != input->leaf.shape.dim[0])
        return refuse(m, QN_ERR_SHAPE, "cell", cell->name,
                      "the input of run '%s' has another shape or type", run->name);
    if (samples && !run->whole)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "run '%s' reads it, and sees less than the whole cycle", run->name);
    note_reader(users, run);
    return QN_OK;
}

/* Every alternative must write the cell, so that each sample gets its row. */
static qn_status check_alternatives(const struct making *m, const struct qn_cell_of *cell)
{
    const struct qn_run_set *runs = m->runs;
    for (int r = 1; r < runs->n_runs; r++) {
        const struct qn_run_of *pair[] = {&runs->run[r - 1], &runs->run[r]};
        bool writes[2];
        for (int i = 0; i < 2; i++)
            writes[i] = pair[i]->what != QN_RUN_BACKWARD &&
                        output_named(m->plan->graphs[pair[i]->graph], cell->name);
        if (pair[0]->pass >= 0 && pair[0]->pass == pair[1]->pass && writes[0] != writes[1])
            return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                          "is written by run '%s', and not by its alternative '%s'",
                          pair[!writes[0]]->name, pair[writes[0]]->name);
    }
    return QN_OK;
}

static qn_status check_order(const struct making *m, const struct qn_cell_of *cell,
                             const struct users *users)
{
    if (!users->writers || !users->readers)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name, "%s",
                      users->readers ? "no run writes it" : "no run reads it");
    if (cell->kind != QN_CELL_SAMPLES)
        return QN_OK;
    QN_TRY(check_alternatives(m, cell));
    if (users->first_reader <= users->last_writer)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "is read before all samples are written");
    if (cell->gradient >= 0 && !users->sources)
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "no run that reads it has a backward pass, which would give its gradient");
    if (cell->gradient >= 0 && (!users->backward || users->first_backward <= users->last_reader))
        return refuse(m, QN_ERR_ARGUMENT, "cell", cell->name,
                      "no backward run after those that read it takes its gradient");
    return QN_OK;
}

static qn_status check_cell(struct making *m, struct qn_cell_of *cell)
{
    struct users users = {.last_writer = -1};
    for (int r = 0; r < m->runs->n_runs; r++) {
        const struct qn_run_of *run = &m->runs->run[r];
        const struct qn_operand *output = output_named(m->plan->graphs[run->graph], cell->name);
        if (output)
            QN_TRY(use_output(m, cell, run, output, &users));
    }
    for (int r = 0; r < m->runs->n_runs; r++) {
        const struct qn_run_of *run = &m->runs->run[r];
        const struct qn_node *input = input_named(m->plan->graphs[run->graph], cell->name);
        if (input)
            QN_TRY(use_input(m, cell, run, input, &users));
    }
    return check_order(m, cell, &users);
}

/* --- what a run needs --- */

static qn_status check_inputs(const struct making *m, const struct qn_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_INPUT && graph->nodes[n].cell &&
            !qn_cell_named(m->runs, graph->nodes[n].name))
            return refuse(m, QN_ERR_ARGUMENT, "cell", graph->nodes[n].name,
                          "an input of a graph, but no cell of the plan");
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct qn_node *node = &graph->nodes[graph->tensors[graph->outputs[i].tensor].node];
        const struct qn_cell_of *cell = qn_cell_named(m->runs, graph->outputs[i].name);
        if (node->op->table && (!cell || cell->kind != QN_CELL_TABLE))
            return refuse(m, QN_ERR_ARGUMENT, "cell", graph->outputs[i].name,
                          "an output that is a table, but no cell of tables of the plan");
    }
    return QN_OK;
}

static bool has_output_for(const struct making *m, const struct qn_run_of *run)
{
    const struct qn_graph *graph = m->plan->graphs[run->graph];
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct qn_cell_of *cell = qn_cell_named(m->runs, graph->outputs[i].name);
        if (run->what == QN_RUN_EVALUATE || (cell && run->what == QN_RUN_FORWARD) ||
            (cell && cell->gradient >= 0))
            return true;
    }
    return false;
}

static bool gathers(const struct qn_node *node)
{
    return node->kind == QN_NODE_OPERATOR && node->op->state[0].name;
}

/* Whether a run of another pass gathers the running averages of this name. */
static bool gathered_elsewhere(struct making *m, const struct qn_run_of *run, const char *name)
{
    for (int r = 0; r < m->runs->n_runs; r++) {
        const struct qn_run_of *other = &m->runs->run[r];
        const struct qn_graph *graph = m->plan->graphs[other->graph];
        bool *used = qn_arena_new(&m->plan->arena, bool, (size_t)graph->n_nodes + 1);
        if (!used || other->pass < 0 || other->pass == run->pass)
            continue;
        qn_run_mark(m->runs, other, graph, used);
        for (int n = 0; n < graph->n_nodes; n++)
            if (used[n] && gathers(&graph->nodes[n]) && strcmp(graph->nodes[n].name, name) == 0)
                return true;
    }
    return false;
}

/* A run that goes backward may not gather running averages that the forward run has gathered. */
static qn_status check_averages(struct making *m, const struct qn_run_of *run)
{
    const struct qn_graph *graph = m->plan->graphs[run->graph];
    bool *used = qn_arena_new(&m->plan->arena, bool, (size_t)graph->n_nodes + 1);
    if (!used)
        return out_of_memory(m);
    qn_run_mark(m->runs, run, graph, used);
    for (int n = 0; n < graph->n_nodes && run->pass >= 0; n++)
        if (used[n] && gathers(&graph->nodes[n]) &&
            (run->what == QN_RUN_BACKWARD || gathered_elsewhere(m, run, graph->nodes[n].name)))
            return refuse(m, QN_ERR_ARGUMENT, "run", run->name,
                          "batch norm '%s' gathers running averages, which two passes, as those "
                          "of gradcache, would count twice",
                          graph->nodes[n].name);
    return QN_OK;
}

static qn_status check_run(struct making *m, const struct qn_run_of *run)
{
    const struct qn_graph *graph = m->plan->graphs[run->graph];
    QN_TRY(check_inputs(m, graph));
    QN_TRY(check_averages(m, run));
    if (graph->couples && !run->whole && !m->plan->params.micro_batch)
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name,
                      "samples of the graph see each other, and it sees less than the whole cycle: "
                      "the micro-batch must be given");
    if (run->samples % qn_one_group(&m->plan->params, graph) != 0)
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name,
                      "its samples are no multiple of batch norm's group");
    if (run->what == QN_RUN_TRAIN && !graph->n_losses)
        return qn_fail(&m->plan->log, QN_ERR_ARGUMENT, "plan: the graph has no loss (qn_loss)");
    if (run->what != QN_RUN_TRAIN && !has_output_for(m, run))
        return refuse(m, QN_ERR_ARGUMENT, "run", run->name, "%s",
                      run->what == QN_RUN_EVALUATE  ? "the graph has no outputs (qn_output)"
                      : run->what == QN_RUN_FORWARD ? "no cell takes an output of the graph"
                                                    : "no cell has the gradient of an output");
    return QN_OK;
}

/* Whether accumulators of the cycle must begin with zeros: not where a single run goes backward, in
 * every micro-step, since its first repetition writes every accumulator. */
static bool adds_to_zeros(const struct qn_run_set *runs)
{
    int backward = 0;
    bool alternatives = false;
    for (int r = 0; r < runs->n_runs; r++) {
        backward += qn_run_trains(&runs->run[r]);
        alternatives |= r && runs->run[r].pass >= 0 && runs->run[r].pass == runs->run[r - 1].pass;
    }
    return backward > 1 || (backward && alternatives);
}

/* --- micro-steps that may be kept --- */

static bool has_alternative(const struct qn_run_set *runs, int number)
{
    int same = 0;
    for (int r = 0; r < runs->n_runs; r++)
        same += runs->run[r].pass == runs->run[number].pass;
    return same > 1;
}

static bool reads_cells(const struct qn_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_INPUT && graph->nodes[n].cell)
            return true;
    return false;
}

/* Whether the backward run goes back from what the forward run has computed: rings and caches could
 * hold something else by then. */
static bool go_together(const struct making *m, int forward, int backward)
{
    const struct qn_run_of *a = &m->runs->run[forward], *b = &m->runs->run[backward];
    return a->what == QN_RUN_FORWARD && b->what == QN_RUN_BACKWARD && a->graph == b->graph &&
           a->partner < 0 && !a->whole && !b->whole && !has_alternative(m->runs, forward) &&
           !has_alternative(m->runs, backward) && !reads_cells(m->plan->graphs[a->graph]);
}

static void find_partners(struct making *m)
{
    struct qn_run_of *run = m->runs->run;
    for (int b = 0; b < m->runs->n_runs; b++)
        for (int f = b - 1; f >= 0 && run[b].partner < 0; f--)
            if (go_together(m, f, b)) {
                run[b].partner = f;
                run[f].partner = b;
            }
}

static void mark_evaluated(struct making *m)
{
    for (int g = 0; g < m->plan->n_graphs; g++)
        m->plan->graphs[g]->evaluated = true;
    for (int r = 0; r < m->runs->n_runs; r++)
        if (m->runs->run[r].what != QN_RUN_EVALUATE)
            m->plan->graphs[m->runs->run[r].graph]->evaluated = false;
}

qn_status qn_runs_make(struct qn_plan *plan, const qn_run_list *list)
{
    struct qn_run_set *runs = &plan->runs;
    struct making m = {.plan = plan, .list = list, .runs = runs};
    *runs = (struct qn_run_set){.n_runs = 0};
    if (!list->runs || list->n_runs < 1 || list->n_runs > QN_MAX_RUNS || list->n_cells < 0 ||
        list->n_cells > QN_MAX_CELLS || (list->n_cells && !list->cells))
        return qn_fail(&plan->log, QN_ERR_ARGUMENT,
                       "plan: a program has 1 to %d runs and up to %d cells", QN_MAX_RUNS,
                       QN_MAX_CELLS);
    for (int r = 0; r < list->n_runs; r++)
        QN_TRY(add_run(&m, r));
    mark_evaluated(&m);
    for (int c = 0; c < list->n_cells; c++)
        QN_TRY(add_cell(&m, c));
    for (int c = 0; c < list->n_cells; c++)
        QN_TRY(check_cell(&m, &runs->cell[c]));
    for (int r = 0; r < list->n_runs; r++)
        QN_TRY(check_run(&m, &runs->run[r]));
    if (runs->run[0].pass >= 0 && !qn_runs_train(runs))
        return refuse(&m, QN_ERR_ARGUMENT, "run", runs->run[0].name,
                      "a cycle without a backward pass trains nothing; evaluations are no cycle");
    runs->zeroed = adds_to_zeros(runs);
    find_partners(&m);
    return QN_OK;
}

void qn_runs_again(const struct qn_plan *plan, struct qn_runs_again *again)
{
    const struct qn_run_set *runs = &plan->runs;
    *again = (struct qn_runs_again){.list = {.n_runs = runs->n_runs, .n_cells = runs->n_cells}};
    again->list.runs = again->runs;
    again->list.cells = again->cells;
    for (int r = 0; r < runs->n_runs; r++) {
        const struct qn_run_of *run = &runs->run[r];
        again->runs[r] = (qn_run){.name = run->name,
                                  .graph = plan->graphs[run->graph],
                                  .what = run->what,
                                  .whole = run->whole,
                                  .samples = run->samples,
                                  .alternative = r && run->pass >= 0 && run->pass == run[-1].pass};
    }
    for (int c = 0; c < runs->n_cells; c++) {
        const struct qn_cell_of *cell = &runs->cell[c];
        again->cells[c] =
            (qn_cell){.name = cell->name,
                      .kind = cell->kind,
                      .rows = cell->kind == QN_CELL_SAMPLES ? 0 : cell->operand.shape.dim[0],
                      .first = cell->first,
                      .gradient = cell->gradient >= 0,
                      .start = cell->start};
    }
}
