/* SPDX-License-Identifier: MIT
 *
 * Contrastive cycles as programs of runs: graphs, runs and cells of each mode.
 */
#include <quern/contrastive.h>
#include <quern/ops.h>

#include <math.h>
#include <stdlib.h>

enum { MOST_RUNS = 4, MOST_CELLS = 4 };

struct qn_contrastive {
    qn_contrastive_params params;
    qn_graph *towers, *step, *loss; /* vectors alone; vectors and loss; loss of vectors in cells */
    int64_t features, each;         /* of a vector; passages of a sample */
    qn_dtype dtype;                 /* of vectors */
    qn_run runs[MOST_RUNS];
    qn_cell cells[MOST_CELLS];
    qn_run_list list;
};

/* --- graphs --- */

static qn_status open_graph(const qn_contrastive *c, bool couples, qn_graph **graph)
{
    qn_graph_params params = c->params.graph;
    params.couples = couples;
    return qn_graph_create(graph, &params);
}

static qn_status put_towers(qn_contrastive *c, qn_graph *graph, qn_tensor *queries,
                            qn_tensor *passages)
{
    const qn_status status = c->params.towers(c->params.user, graph, queries, passages);
    return status == QN_OK ? qn_graph_status(graph) : status;
}

static bool are_vectors(const qn_shape *queries, const qn_shape *passages)
{
    return queries->rank == 2 && passages->rank == 2 && queries->dim[1] == passages->dim[1] &&
           queries->dim[0] == QN_BATCH && passages->dim[0] < 0;
}

/* Refused before any graph is made of it; the line is told by the graph that is there. */
static qn_status check(const qn_contrastive *c)
{
    const qn_contrastive_params *p = &c->params;
    const char *why = NULL;
    if ((int)p->mode < 0 || p->mode > QN_CONTRASTIVE_CONTACCUM)
        why = "there is no such mode";
    else if (!isfinite(p->temperature) || p->temperature < 0)
        why = "the temperature must be above 0";
    else if (p->bank < 0 || p->bank > INT32_MAX)
        why = "a bank has from 0 to 2^31 - 1 samples";
    else if (p->mode != QN_CONTRASTIVE_CONTACCUM &&
             (p->bank || p->bank_queries || p->no_query_bank || p->local_mean || p->forget ||
              p->start))
        why = "contaccum alone has banks";
    else if (p->bank_queries < 0 || p->bank_queries > p->bank)
        why = "a bank of queries has from 0 to as many samples as that of passages";
    else if (p->bank_queries && p->no_query_bank)
        why = "a bank of queries of so many samples, and none";
    else if (p->start < 0 || (p->start && !p->bank))
        why = "banks start after 0 or more updates, where there are any";
    return why ? qn_graph_refuse(c->towers, "contrastive: %s", why) : QN_OK;
}

static qn_status make_towers(qn_contrastive *c)
{
    qn_tensor queries, passages;
    qn_status status = open_graph(c, false, &c->towers);
    if (status == QN_OK)
        status = check(c);
    if (status == QN_OK)
        status = put_towers(c, c->towers, &queries, &passages);
    if (status != QN_OK)
        return status;
    const qn_shape q = qn_shape_of(c->towers, queries), p = qn_shape_of(c->towers, passages);
    c->dtype = qn_dtype_of(c->towers, queries);
    if (!are_vectors(&q, &p) || c->dtype != qn_dtype_of(c->towers, passages))
        return qn_graph_refuse(c->towers,
                               "contrastive: the towers must give queries (batch, d) and passages "
                               "(p * batch, d) of one type and one d");
    c->features = q.dim[1];
    c->each = -p.dim[0];
    qn_output(c->towers, queries, "queries");
    qn_output(c->towers, passages, "passages");
    return qn_graph_status(c->towers);
}

static qn_tensor rows_in(const qn_contrastive *c, qn_graph *graph, const char *name, int64_t rows)
{
    return qn_input(graph, name, c->dtype, 2, (int64_t[]){rows, c->features});
}

static qn_tensor bank_of(const qn_contrastive *c, qn_graph *graph, const char *name, int64_t rows)
{
    return qn_cell_input(graph, name, c->dtype, 2, (int64_t[]){rows, c->features});
}

/* Samples in the bank of queries. */
static int64_t stored_queries(const qn_contrastive_params *params)
{
    if (params->no_query_bank)
        return 0;
    return params->bank_queries ? params->bank_queries : params->bank;
}

/* Rows of the table of what samples of the banks know of each other. 0: there is none, since scores
 * change with a learned temperature, and without queries nobody looks. */
static int64_t table_rows(const qn_contrastive_params *params)
{
    return params->table && !params->learned
               ? qn_bank_table_rows(params->bank, stored_queries(params), params->symmetric)
               : 0;
}

static void fill_bank(const qn_contrastive *c, qn_graph *graph, qn_tensor queries,
                      qn_tensor passages, qn_tensor ids)
{
    qn_tensor entry[3];
    if (!qn_bank_entry(graph, queries, passages, ids, entry))
        return;
    if (stored_queries(&c->params))
        qn_output(graph, entry[0], "bank.queries");
    qn_output(graph, entry[1], "bank.passages");
    qn_output(graph, entry[2], "bank.ids");
}

static qn_info_nce_params loss_params(const qn_contrastive *c, qn_graph *graph)
{
    const qn_contrastive_params *p = &c->params;
    qn_info_nce_params how = {.temperature = p->temperature,
                              .symmetric = p->symmetric,
                              .local_mean = p->local_mean,
                              .duplicates = p->duplicates};
    if (p->learned) {
        const qn_init init = qn_init_constant(-log(p->temperature == 0 ? 1 : p->temperature));
        how.temperature = 1;
        how.logit_scale = qn_parameter(graph, "logit_scale", 1, (int64_t[]){1}, &init);
    }
    if (p->duplicates || p->bank)
        how.ids = qn_input(graph, "ids", QN_I32, 1, (int64_t[]){QN_BATCH});
    if (p->bank) {
        how.bank_passages = bank_of(c, graph, "bank.passages", p->bank * c->each);
        how.bank_ids = qn_cell_input(graph, "bank.ids", QN_I32, 1, (int64_t[]){p->bank});
    }
    if (stored_queries(p))
        how.bank_queries = bank_of(c, graph, "bank.queries", stored_queries(p));
    if (table_rows(p))
        how.bank_table = qn_cell_input(graph, "bank.table", QN_F32, 2,
                                       (int64_t[]){table_rows(p), stored_queries(p)});
    return how;
}

static void put_loss(const qn_contrastive *c, qn_graph *graph, qn_tensor queries,
                     qn_tensor passages)
{
    const qn_info_nce_params how = loss_params(c, graph);
    qn_tensor local;
    qn_tensor loss = qn_info_nce(graph, queries, passages, &how, &local);
    qn_loss(graph, loss, "loss", NULL);
    if (c->params.bank) {
        qn_loss(graph, local, "local_loss", &(qn_loss_params){.monitor = true});
        fill_bank(c, graph, queries, passages, how.ids);
        if (table_rows(&c->params))
            qn_output(graph, qn_bank_table(graph, &how), "bank.table");
    }
}

/* Towers and loss in one graph. */
static qn_status make_step(qn_contrastive *c)
{
    qn_tensor queries, passages;
    qn_status status = open_graph(c, true, &c->step);
    if (status == QN_OK)
        status = put_towers(c, c->step, &queries, &passages);
    if (status != QN_OK)
        return status;
    put_loss(c, c->step, queries, passages);
    return qn_graph_status(c->step);
}

/* The loss of vectors that cells hold. */
static qn_status make_loss(qn_contrastive *c)
{
    const qn_status status = open_graph(c, true, &c->loss);
    if (status != QN_OK)
        return status;
    put_loss(c, c->loss, rows_in(c, c->loss, "queries", QN_BATCH),
             rows_in(c, c->loss, "passages", c->each * QN_BATCH));
    return qn_graph_status(c->loss);
}

/* --- programs --- */

static void add_run(qn_contrastive *c, const char *name, const qn_graph *graph, qn_run_what what,
                    bool whole)
{
    c->runs[c->list.n_runs++] =
        (qn_run){.name = name, .graph = graph, .what = what, .whole = whole};
}

static void add_cell(qn_contrastive *c, const qn_cell *cell)
{
    c->cells[c->list.n_cells++] = *cell;
}

static qn_status add_gradcache(qn_contrastive *c)
{
    const qn_status status = make_loss(c);
    if (status != QN_OK)
        return status;
    add_run(c, "encode all", c->towers, QN_RUN_FORWARD, false);
    add_run(c, "loss", c->loss, QN_RUN_TRAIN, true);
    add_run(c, "backward", c->towers, QN_RUN_BACKWARD, false);
    add_cell(c, &(qn_cell){.name = "queries", .gradient = true});
    add_cell(c, &(qn_cell){.name = "passages", .gradient = true});
    return QN_OK;
}

static void add_banks(qn_contrastive *c)
{
    const int64_t rows = c->params.bank, queries = stored_queries(&c->params);
    if (queries)
        add_cell(c, &(qn_cell){.name = "bank.queries", .kind = QN_CELL_RING, .rows = queries});
    add_cell(c, &(qn_cell){.name = "bank.passages", .kind = QN_CELL_RING, .rows = rows * c->each});
    add_cell(c, &(qn_cell){.name = "bank.ids",
                           .kind = QN_CELL_RING,
                           .rows = rows,
                           .first = -1,
                           .start = c->params.start});
    if (table_rows(&c->params))
        add_cell(c, &(qn_cell){.name = "bank.table",
                               .kind = QN_CELL_TABLE,
                               .rows = table_rows(&c->params)});
}

static qn_status add_step(qn_contrastive *c)
{
    const qn_status status = make_step(c);
    if (status != QN_OK)
        return status;
    add_run(c, "train", c->step, QN_RUN_TRAIN, c->params.mode == QN_CONTRASTIVE_WHOLE);
    if (c->params.bank)
        add_banks(c);
    return QN_OK;
}

static qn_status make(qn_contrastive *c)
{
    qn_status status = make_towers(c);
    if (status == QN_OK)
        status = c->params.mode == QN_CONTRASTIVE_GRADCACHE ? add_gradcache(c) : add_step(c);
    if (status == QN_OK)
        add_run(c, "encode", c->towers, QN_RUN_EVALUATE, false);
    return status;
}

qn_status qn_contrastive_create(qn_contrastive **out, const qn_contrastive_params *params)
{
    if (out)
        *out = NULL;
    if (!out || !params || !params->towers)
        return QN_ERR_ARGUMENT;
    qn_contrastive *c = calloc(1, sizeof *c);
    if (!c)
        return QN_ERR_MEMORY;
    c->params = *params;
    c->list = (qn_run_list){.runs = c->runs, .cells = c->cells};
    const qn_status status = make(c);
    if (status != QN_OK)
        qn_contrastive_destroy(&c);
    *out = c;
    return status;
}

void qn_contrastive_destroy(qn_contrastive **contrastive)
{
    if (!contrastive || !*contrastive)
        return;
    qn_graph_destroy(&(*contrastive)->towers);
    qn_graph_destroy(&(*contrastive)->step);
    qn_graph_destroy(&(*contrastive)->loss);
    free(*contrastive);
    *contrastive = NULL;
}

const qn_run_list *qn_contrastive_program(const qn_contrastive *contrastive)
{
    return contrastive ? &contrastive->list : NULL;
}

qn_status qn_contrastive_begin(const qn_contrastive *contrastive, qn_trainer *trainer)
{
    if (!contrastive || !trainer)
        return QN_ERR_ARGUMENT;
    qn_status status = QN_OK;
    for (int i = 0; contrastive->params.forget && i < contrastive->list.n_cells; i++)
        if (status == QN_OK && contrastive->cells[i].kind == QN_CELL_RING)
            status = qn_trainer_clear_cell(trainer, contrastive->cells[i].name);
    return status;
}
