/* SPDX-License-Identifier: MIT
 *
 * Contrastive training: two towers learn to give the two sides of a pair alike vectors, by a loss
 * over other pairs. How many others there are is what the modes differ in.
 *
 *     qn_contrastive_create(&contrastive, &params);
 *     qn_plan_create_runs(&plan, qn_contrastive_program(contrastive), facts, &plan_params, NULL);
 */
#ifndef QUERN_CONTRASTIVE_H
#define QUERN_CONTRASTIVE_H

#include <quern/model.h>
#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. */
typedef struct qn_info_nce_params {
    double temperature;    /* scores are divided by it, in f32; 0: 1 */
    qn_tensor logit_scale; /* (1) in f32, which may be trained: scores are multiplied by its
                              exponential, too; none: 1 */
    qn_tensor ids;         /* (n) in i32: which sample each is; for `duplicates` */
    /* What earlier micro-steps made of m samples, as inputs of rings (qn_cell_input), or none:
     * queries (m, d), passages (m * p, d) and ids (m) in i32. A sample whose id is negative is not
     * there. Queries may be left out: then those of the bank are not asked for their passages. They
     * may be fewer, (k, d) with k < m: then those of the k newest samples are. */
    qn_tensor bank_queries, bank_passages, bank_ids;
    /* What qn_bank_table made of these with the same params, as the input of its cell; none: scores
     * of the bank's queries with its passages are made anew each time, whose number is k * m * p.
     * There is no table without a bank of queries, nor with a logit scale. */
    qn_tensor bank_table;
    bool symmetric;  /* half of the loss is that of own passages, which look for their queries */
    bool local_mean; /* the sum over all queries is divided by n, not by n and those of the bank */
    bool duplicates; /* an own passage of the same id is no negative */
} qn_info_nce_params;

/* InfoNCE of queries (n, d) and passages (n * p, d), for qn_loss: sample i has the rows i * p to
 * i * p + p - 1 of the passages, of which the first is its own and the others are hard negatives.
 * Scores are dot products. Gives (n) in f32, whose sum is the mean over all queries of
 *
 *     -log(e^score(i, own) / sum over passages j of e^score(i, j));
 *
 * that of a bank's queries is in the first. `local` (may be NULL) receives the same without them.
 *
 * With banks of c samples that are there, and the queries of r of them, rows i are the n + r
 * queries and columns j the (n + c) * p passages; the mean is over n + r rows. Samples without
 * their query are columns alone, as all are where a bank has no queries (Kim et al. 2024, equations
 * 5 to 7 with r < c). A query without its own passage would have no loss, so that r is never above
 * c: of a symmetric loss one may exchange the sides.
 *
 * In a loss each repetition weighs 1, so that a cycle's loss is the mean over its micro-steps.
 * Samples see each other: qn_graph_params.couples. */
QN_API qn_tensor qn_info_nce(qn_graph *graph, qn_tensor queries, qn_tensor passages,
                             const qn_info_nce_params *params, qn_tensor *local);

/* What a micro-step adds to its banks, for qn_output with the names of rings: queries, passages and
 * ids as they are, but zeros and the id -1 for a sample of which a number is not finite. False: the
 * graph has an error. */
QN_API bool qn_bank_entry(qn_graph *graph, qn_tensor queries, qn_tensor passages, qn_tensor ids,
                          qn_tensor entry[3]);

/* What the samples of banks know of each other, for qn_output with the name of a cell of the kind
 * QN_CELL_TABLE: of each query the sums of its softmax over stretches of the banks' passages,
 * which stay until rows of them change. (qn_bank_table_rows, k) in f32; reads of `params` all but
 * what is the micro-step's own. */
QN_API qn_tensor qn_bank_table(qn_graph *graph, const qn_info_nce_params *params);
/* Rows of the table of a bank of `samples`, of which so many have queries; 0: there is none, since
 * one of these is 0. */
QN_API int64_t qn_bank_table_rows(int64_t samples, int64_t queries, bool symmetric);

/* --- programs --- */

/* Puts both towers into a graph: queries (n, d) and passages (n * p, d) of the inputs that it
 * makes, the same whenever it is asked. What it returns but QN_OK ends qn_contrastive_create. */
typedef qn_status (*qn_towers_fn)(void *user, qn_graph *graph, qn_tensor *queries,
                                  qn_tensor *passages);

/* A model that ships as a tower: data.embedding is above 0. Borrowed. */
typedef struct qn_tower {
    const char *model;
    qn_model_data data;
    const qn_model_option *options;
    int n_options;
} qn_tower;

typedef struct qn_towers {
    qn_tower query, passage; /* of one data.embedding */
    int negatives; /* hard ones of each pair, as of qn_dataset_pair: inputs of passages are
                      (batch, 1 + negatives, ...), a pair's own passage first */
    bool tied;     /* parameters of one name and shape are the same in both */
    bool dot;      /* scores are dot products as they are; false: vectors have length 1,
                      so that scores are cosines */
} qn_towers;

/* A qn_towers_fn, whose `user` is a const qn_towers: the inputs are "query.images",
 * "passage.tokens" and so on, parameters begin with "query." and "passage.", or if they are tied
 * with neither. A sample has one passage. */
QN_API qn_status qn_towers_build(void *towers, qn_graph *graph, qn_tensor *queries,
                                 qn_tensor *passages);

typedef enum qn_contrastive_mode {
    QN_CONTRASTIVE_WHOLE,      /* the pairs of the whole cycle, in one micro-step */
    QN_CONTRASTIVE_GRADCACHE,  /* the same gradient from micro-steps of any size: all vectors, the
                                  loss over all of them, all micro-steps again with the gradients of
                                  their vectors (Gao et al., "GradCache", 2021), but for the forward
                                  pass of the last where the plan keeps it. Running averages
                                  would be gathered twice: not with batch norm */
    QN_CONTRASTIVE_ACCUMULATE, /* the pairs of a micro-step, whose size is part of the method */
    QN_CONTRASTIVE_CONTACCUM,  /* those, and the last ones of earlier micro-steps in banks (Kim et
                                  al., "ContAccum", NeurIPS 2024) */
} qn_contrastive_mode;

/* Zero means default. */
typedef struct qn_contrastive_params {
    qn_graph_params graph; /* without `couples` */
    qn_contrastive_mode mode;
    qn_towers_fn towers;
    void *user;
    double temperature; /* scores are divided by it; 0: 1 */
    bool learned;       /* it is trained: the parameter "logit_scale" begins as log(1 / temperature)
                           (Radford et al. 2021, who also bound it: here it is free) */
    bool symmetric;     /* as in qn_info_nce_params; `duplicates` wants the input "ids" i32 (n) */
    bool duplicates;
    int64_t bank; /* of contaccum: samples that banks hold; 0: none. At least a micro-step */
    int64_t bank_queries; /* of contaccum: of how many of them, the newest, there are queries, too;
                             0: of all. At least a micro-step, at most `bank` */
    bool no_query_bank;   /* there are banks of passages alone, with which gradients of the towers
                             grow apart (the authors' figure 5) */
    bool local_mean;      /* as in qn_info_nce_params */
    bool forget;          /* banks are emptied before each cycle (the authors' "without past
                             encoder"), by qn_contrastive_begin */
    int64_t start; /* of contaccum: updates, skipped ones included, before the first that fills
                      the banks: until then it is accumulate. 0: none, as the authors have it;
                      where weights still move fast, banks may begin later (Wang et al.,
                      "Cross-batch memory for embedding learning", CVPR 2020) */
    bool table;    /* what samples of the banks know of each other stays (qn_bank_table), where
                      there are both banks and the temperature is not learned: faster where they
                      are large */
} qn_contrastive_params;

/* Graphs, runs and cells of a contrastive cycle. Thread-safety: Unsafe. Lifetime: until
 * qn_contrastive_destroy; plans copy what they need. */
typedef struct qn_contrastive qn_contrastive;

/* QN_ERR_ARGUMENT, QN_ERR_SHAPE: params or what the towers gave cannot be, in one line. Inputs are
 * the towers' own and, with `duplicates` or contaccum, "ids": which sample each is, not below 0.
 *
 * Losses are "loss" and, with a bank, "local_loss", which has no part in the gradient: that of the
 * micro-step's own queries. The run of kind QN_RUN_EVALUATE, "encode", gives the outputs "queries"
 * and "passages". The banks are rings "bank.queries", "bank.passages" and "bank.ids"; with
 * `table`, "bank.table" is what they know of each other. */
QN_API qn_status qn_contrastive_create(qn_contrastive **contrastive,
                                       const qn_contrastive_params *params);
QN_API void qn_contrastive_destroy(qn_contrastive **contrastive);

/* For qn_plan_create_runs; borrowed. Accumulate and contaccum want qn_plan_params.micro_batch. */
QN_API const qn_run_list *qn_contrastive_program(const qn_contrastive *contrastive);
/* Before each cycle of a trainer of such a plan: empties the banks if they are to be forgotten. */
QN_API qn_status qn_contrastive_begin(const qn_contrastive *contrastive, qn_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
