/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const qn_trainer_params trainer_params = {.seed = 5};

/* --- data --- */

static int64_t each_of(const struct pairs *pairs)
{
    return pairs->each ? pairs->each : 1;
}

int64_t id_of(const struct pairs *pairs, int64_t i)
{
    const int64_t number = pairs->first + i;
    return pairs->data ? number % pairs->data : number;
}

/* Passage j of a sample, from 0; j -1 is its query. */
static int64_t row_of(const struct pairs *pairs, int64_t id, int64_t j)
{
    return id + 5000 * (j + 1) + (id < pairs->changed ? 100000 : 0);
}

qn_status fetch_by_id(void *user, const char *input, const int32_t *ids, int64_t count, void *rows)
{
    const struct pairs *pairs = user;
    const int64_t each = strcmp(input, "y") == 0 ? each_of(pairs) : 1;
    float *to = rows;
    for (int64_t i = 0; i < count && strcmp(input, "ids") == 0; i++)
        ((int32_t *)rows)[i] = ids[i];
    for (int64_t i = 0; i < count && strcmp(input, "ids") != 0; i++)
        for (int64_t j = 0; j < each; j++, to += WIDE)
            fill_rows(row_of(pairs, ids[i], strcmp(input, "y") == 0 ? j : -1), 1, WIDE, to);
    return QN_OK;
}

qn_status fetch_pairs(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct pairs *pairs = user;
    const int64_t strange = pairs->strange - 1;
    int32_t ids[MOST_STORED];
    assert_true(count <= MOST_STORED);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)id_of(pairs, first + i);
    const qn_status status = fetch_by_id(user, input, ids, count, rows);
    if (strcmp(input, "x") == 0 && strange >= first && strange < first + count)
        ((float *)rows)[(strange - first) * WIDE] = NAN;
    return status;
}

static qn_tensor tower(qn_graph *graph, const char *input, const char *name, int64_t each)
{
    qn_tensor x = qn_input(graph, input, QN_F32, 2, (int64_t[]){each * QN_BATCH, WIDE});
    return qn_tanh(graph, dense(graph, x, name, WIDE, CODE));
}

qn_status pair_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    const struct pairs *pairs = user;
    *queries = tower(graph, "x", "query", 1);
    *passages = tower(graph, "y", "passage", each_of(pairs));
    return QN_OK;
}

/* --- training --- */

void open_pairs(struct pair_run *of, const qn_contrastive_params *how, int64_t batch,
                int64_t micro_batch)
{
    qn_contrastive_params params = *how;
    const qn_plan_params plan = {.budget = 1 << 20, .batch = {batch}, .micro_batch = micro_batch};
    params.towers = params.towers ? params.towers : pair_towers;
    params.user = &of->pairs;
    params.graph.log = test_log;
    of->batch = batch;
    assert_int_equal(qn_contrastive_create(&of->contrastive, &params), QN_OK);
    of->run = open_runs(qn_contrastive_program(of->contrastive), &plan, &trainer_params);
}

void close_pairs(struct pair_run *of)
{
    test_close(&of->run);
    qn_contrastive_destroy(&of->contrastive);
}

qn_metrics train_pairs(struct pair_run *of, double lr, int updates)
{
    qn_metrics last = {0};
    const qn_cycle cycle = {
        .samples = of->batch, .lr = lr, .fetch = fetch_pairs, .user = &of->pairs};
    for (int i = 0; i < updates; i++, of->pairs.first += of->batch) {
        assert_int_equal(qn_contrastive_begin(of->contrastive, of->run.trainer), QN_OK);
        assert_int_equal(qn_trainer_step(of->run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(of->run.trainer, &last), QN_OK);
    }
    return last;
}

void assert_same_training(struct pair_run *have, struct pair_run *want)
{
    float *a, *b;
    const int64_t count = test_weights(have->run.trainer, &a);
    assert_int_equal(test_weights(want->run.trainer, &b), count);
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    free(a);
    free(b);
}

/* --- in double --- */

void host_read(struct host *host, qn_trainer *trainer)
{
    static const char *const names[] = {"query", "passage"};
    for (int side = 0; side < 2; side++)
        assert_int_equal(qn_trainer_read(trainer, names[side], host->w[side], CODE * WIDE), QN_OK);
}

static void encode(const float *w, int64_t row, double z[CODE])
{
    for (int c = 0; c < CODE; c++) {
        double sum = 0;
        for (int k = 0; k < WIDE; k++)
            sum += (double)x_at(row, k) * (double)w[c * WIDE + k];
        z[c] = tanh(sum);
    }
}

void host_encode(const struct host *host, int64_t id, struct vectors *vectors)
{
    vectors->id = id;
    encode(host->w[0], row_of(host->pairs, id, -1), vectors->q);
    for (int64_t j = 0; j < each_of(host->pairs); j++)
        encode(host->w[1], row_of(host->pairs, id, j), vectors->p[j]);
}

int64_t host_fill(const struct host *host)
{
    int64_t most = host->limit && host->limit < host->how.bank ? host->limit : host->how.bank;
    most = most < host->stored - host->forgotten ? most : host->stored - host->forgotten;
    return host->update < host->how.start ? 0 : most;
}

int64_t host_queries(const struct host *host)
{
    const int64_t fill = host_fill(host), most = host->how.bank_queries;
    if (host->how.no_query_bank)
        return 0;
    return most && most < fill ? most : fill;
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int c = 0; c < CODE; c++)
        sum += a[c] * b[c];
    return sum;
}

double host_cosine(const double *a, const double *b)
{
    return dot(a, b) / sqrt(dot(a, a) * dot(b, b));
}

static double row_loss(const struct host *host, const struct vectors *all, int64_t count,
                       int64_t row)
{
    const double t = host->how.temperature;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < each_of(host->pairs); j++)
            if (j > 0 || i == row || !host->how.duplicates || all[i].id != all[row].id)
                sum += exp(dot(all[row].q, all[i].p[j]) / t);
    return log(sum) - dot(all[row].q, all[row].p[0]) / t;
}

static void host_step(struct host *host, int64_t first, int64_t n, double loss[2])
{
    struct vectors all[2 * MOST_STORED];
    const int64_t held = host_fill(host);
    for (int64_t i = 0; i < n; i++)
        host_encode(host, id_of(host->pairs, first + i), &all[i]);
    for (int64_t i = 0; i < held; i++) /* the newest first */
        all[n + i] = host->bank[(host->stored - 1 - i) % MOST_STORED];
    const int64_t rows = n + host_queries(host);
    for (int64_t row = 0; row < rows; row++) {
        const double one = row_loss(host, all, n + held, row);
        loss[0] += one / (double)(host->how.local_mean ? n : rows);
        loss[1] += row < n ? one / (double)n : 0;
    }
    for (int64_t i = 0; i < n; i++)
        host->bank[host->stored++ % MOST_STORED] = all[i];
    if (host->update < host->how.start)
        host->forgotten = host->stored;
}

void host_cycle(struct host *host, int64_t batch, int64_t micro_batch, double loss[2])
{
    int steps = 0;
    loss[0] = loss[1] = 0;
    for (int64_t first = 0; first < batch; first += micro_batch, steps++)
        host_step(host, first, batch - first < micro_batch ? batch - first : micro_batch, loss);
    loss[0] /= steps;
    loss[1] /= steps;
    host->update++;
}

double follow_pairs(struct pair_run *of, struct host *host, int64_t micro_batch, double lr,
                    int updates)
{
    double worst = 0;
    host->pairs = &of->pairs;
    for (int i = 0; i < updates; i++) {
        double want[2];
        host_read(host, of->run.trainer);
        host_cycle(host, of->batch, micro_batch, want);
        const qn_metrics have = train_pairs(of, lr, 1);
        for (int k = 0; k < 2; k++)
            worst = fmax(worst, fabs(have.losses[k] - want[k]) / fmax(1, fabs(want[k])));
        print_message("  update %d: %.7f, wanted %.7f; own %.7f, wanted %.7f\n",
                      (int)host->update - 1, have.losses[0], want[0], have.losses[1], want[1]);
        assert_true(worst < 3e-6);
    }
    return worst;
}
