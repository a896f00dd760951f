/* SPDX-License-Identifier: MIT
 *
 * Made-up pairs for contrastive cycles with banks, and the same cycles on the host in double. All
 * abort the test on failure.
 */
#ifndef QN_TESTS_RUN_PAIRS_H
#define QN_TESTS_RUN_PAIRS_H

#include "runs.h"

enum { MOST_EACH = 3, MOST_STORED = 256 };

/* Sample i of a cycle is number first + i of the set, which begins anew after `data` samples. */
struct pairs {
    int64_t first, data; /* data 0: endless */
    int64_t each;        /* passages of a sample; 0: 1 */
    int64_t changed;     /* samples below it have other numbers, for those who look again */
    int64_t strange;     /* place in the cycle, from 1, of one with a number that is none */
};

int64_t id_of(const struct pairs *pairs, int64_t i);
/* qn_fetch_fn and qn_samples_fn: "x", "y" and "ids". */
qn_status fetch_pairs(void *user, const char *input, int64_t first, int64_t count, void *rows);
qn_status fetch_by_id(void *user, const char *input, const int32_t *ids, int64_t count, void *rows);

/* tanh(W x): parameters "query" and "passage"; `user` is a struct pairs. */
qn_status pair_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages);

/* A program of such towers, and its trainer. */
struct pair_run {
    struct pairs pairs;
    qn_contrastive *contrastive;
    struct test_run run;
    int64_t batch;
};
void open_pairs(struct pair_run *of, const qn_contrastive_params *how, int64_t batch,
                int64_t micro_batch);
void close_pairs(struct pair_run *of);
/* Updates of the next samples; gives what the last one did. */
qn_metrics train_pairs(struct pair_run *of, double lr, int updates);
/* The weights of both are the same to the bit. */
void assert_same_training(struct pair_run *have, struct pair_run *want);

/* --- in double --- */

struct vectors {
    double q[CODE], p[MOST_EACH][CODE];
    int64_t id;
};

/* The same training: weights are read before each cycle. */
struct host {
    const struct pairs *pairs;
    qn_contrastive_params how;
    float w[2][CODE * WIDE];
    struct vectors bank[MOST_STORED]; /* entry number i at i % MOST_STORED */
    int64_t stored, limit;            /* so far; that count, 0: as many as the bank has room for */
    int64_t forgotten;                /* number of the oldest that a lifted limit left */
    int64_t update;
};

void host_read(struct host *host, qn_trainer *trainer);
void host_encode(const struct host *host, int64_t id, struct vectors *vectors);
/* Entries that count; of these, the newest that have queries, too. */
int64_t host_fill(const struct host *host);
int64_t host_queries(const struct host *host);
/* The losses of the next cycle, of all rows and of own ones, after which its vectors are in the
 * bank. */
void host_cycle(struct host *host, int64_t batch, int64_t micro_batch, double loss[2]);
double host_cosine(const double *a, const double *b);

/* Trains and compares each cycle's losses with those of the host; leaves both for more. Gives the
 * largest difference, relative to losses above 1. */
double follow_pairs(struct pair_run *of, struct host *host, int64_t micro_batch, double lr,
                    int updates);

#endif
