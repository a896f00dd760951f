/* SPDX-License-Identifier: MIT
 *
 * Programs that run forward alone: they need no gradients, and a cell to which rows are appended is
 * a cache, from one evaluation to the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const qn_trainer_params trainer_params = {.seed = 3};

/* --- without a cache --- */

static void forward_needs_no_gradients(void **state)
{
    (void)state;
    enum { LAYERS = 6, BATCH = 64 };
    const int64_t alignment = qn_device_facts(device)->alignment;
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    int64_t parameters = 0;
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", i);
        const int64_t in = i ? 2 * WIDE : WIDE;
        x = qn_tanh(graph, dense(graph, x, name, in, 2 * WIDE));
        parameters += in * 2 * WIDE * 4;
    }
    qn_output(graph, x, "y");
    const qn_run forward = {.name = "forward", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_plan_params params = {.budget = 256 << 10, .batch = {BATCH}};
    struct test_run run =
        open_runs(&(qn_run_list){.runs = &forward, .n_runs = 1}, &params, &trainer_params);
    const qn_plan_info *info = qn_plan_facts(run.plan);
    const int64_t input = info->micro_batch * WIDE * 4, activation = 2 * input;
    print_message("  peak %" PRId64 ": parameters %" PRId64 ", input %" PRId64
                  ", activation %" PRId64 "\n",
                  info->peak_bytes, parameters, input, activation);
    assert_int_equal(info->bytes_by_tag[QN_TAG_GRADIENTS], 0);
    assert_int_equal(info->bytes_by_tag[QN_TAG_OPTIMIZER], 0);
    assert_true(info->peak_bytes <= parameters + input + 3 * activation + (LAYERS + 2) * alignment);
    assert_int_equal(qn_trainer_evaluate(run.trainer, BATCH, fetch_inputs, NULL, NULL), QN_OK);
    const qn_cycle cycle = {.samples = BATCH, .fetch = fetch_inputs};
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    close_counted(&run);
    qn_graph_destroy(&graph);
}

/* --- with a cache --- */

enum { MOST_SCORES = 16 };

/* The key of each row goes into the cache of `room` rows; its query is compared with all keys. */
static qn_graph *cache_graph(int64_t room)
{
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor keys = qn_cell_input(graph, "keys", QN_F32, 2, (int64_t[]){room, CODE});
    qn_output(graph, dense(graph, x, "key", WIDE, CODE), "keys");
    qn_tensor query = dense(graph, x, "query", WIDE, CODE);
    const qn_batch_matmul_params transposed = {.transpose_b = true};
    qn_output(graph, qn_batch_matmul(graph, query, keys, &transposed), "scores");
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static struct test_run open_cache(const qn_graph *graph, int64_t room, int64_t micro_batch)
{
    const qn_run run = {.name = "token", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_cell cell = {.name = "keys", .kind = QN_CELL_APPEND, .rows = room};
    const qn_plan_params params = {
        .budget = 64 << 10, .batch = {micro_batch}, .micro_batch = micro_batch};
    return open_runs(&(qn_run_list){&run, 1, &cell, 1}, &params, &trainer_params);
}

/* Tokens that are evaluated at a time. */
struct tokens {
    int64_t first, count; /* as samples of fetch_inputs */
    int64_t room;
    float scores[MOST_SCORES]; /* room of each token */
};

static qn_status fetch_tokens(void *user, const char *input, int64_t first, int64_t count,
                              void *rows)
{
    const struct tokens *tokens = user;
    return fetch_inputs(NULL, input, tokens->first + first, count, rows);
}

static qn_status keep_scores(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    struct tokens *tokens = user;
    assert_string_equal(name, "scores");
    assert_true(first + count <= tokens->count);
    memcpy(tokens->scores + first * tokens->room, rows,
           (size_t)(count * tokens->room) * sizeof(float));
    return QN_OK;
}

static qn_status evaluate(const struct test_run *run, struct tokens *tokens)
{
    assert_true(tokens->count * tokens->room <= MOST_SCORES);
    return qn_trainer_evaluate_run(run->trainer, "token", tokens->count, fetch_tokens, keep_scores,
                                   tokens);
}

/* The query of one token times the key of another, in double. */
static double score(const float *w_query, int token, const float *w_key, int other)
{
    double sum = 0;
    for (int c = 0; c < CODE; c++) {
        double query = 0, key = 0;
        for (int k = 0; k < WIDE; k++) {
            query += (double)x_at(token, k) * (double)w_query[c * WIDE + k];
            key += (double)x_at(other, k) * (double)w_key[c * WIDE + k];
        }
        sum += query * key;
    }
    return sum;
}

/* One token after another: its key is appended and compared with its query, as all keys before it.
 */
static void a_cache_grows(void **state)
{
    (void)state;
    enum { ROOM = MOST_SCORES };
    qn_graph *graph = cache_graph(ROOM);
    struct test_run run = open_cache(graph, ROOM, 1);
    struct tokens tokens = {.count = 1, .room = ROOM};
    float w_key[CODE * WIDE], w_query[CODE * WIDE];
    assert_int_equal(qn_trainer_read(run.trainer, "key", w_key, CODE * WIDE), QN_OK);
    assert_int_equal(qn_trainer_read(run.trainer, "query", w_query, CODE * WIDE), QN_OK);
    for (int token = 0; token < ROOM; token++) {
        tokens.first = token;
        assert_int_equal(evaluate(&run, &tokens), QN_OK);
        for (int k = 0; k < ROOM; k++)
            assert_true(fabs((double)tokens.scores[k] -
                             (k > token ? 0 : score(w_query, token, w_key, k))) < 1e-5);
    }
    tokens.first = 0;
    assert_int_equal(evaluate(&run, &tokens), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_clear_cell(run.trainer, "keys"), QN_OK);
    assert_int_equal(evaluate(&run, &tokens), QN_OK);
    assert_true(tokens.scores[0] != 0 && tokens.scores[1] == 0);
    close_counted(&run);
    qn_graph_destroy(&graph);
}

/* A micro-batch that is filled up with repetitions: they are no rows of the cache, and need no room
 * in it. */
static void padding_is_not_stored(void **state)
{
    (void)state;
    enum { MICRO = 4, FIRST = 3, ROOM = 5 };
    qn_graph *graph = cache_graph(ROOM);
    struct test_run run = open_cache(graph, ROOM, MICRO);
    struct tokens tokens = {.count = FIRST, .room = ROOM};
    assert_int_equal(qn_trainer_evaluate(run.trainer, FIRST, fetch_tokens, keep_scores, &tokens),
                     QN_OK);
    for (int i = 0; i < FIRST; i++)
        for (int k = 0; k < ROOM; k++)
            assert_int_equal(tokens.scores[i * ROOM + k] != 0, k < FIRST);
    assert_int_equal(qn_trainer_cell_rows(run.trainer, "keys"), FIRST);
    assert_int_equal(qn_trainer_evaluate(run.trainer, ROOM - FIRST, fetch_inputs, NULL, NULL),
                     QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, 1, fetch_inputs, NULL, NULL),
                     QN_ERR_ARGUMENT);
    close_counted(&run);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_needs_no_gradients),
        cmocka_unit_test(a_cache_grows),
        cmocka_unit_test(padding_is_not_stored),
    };
    return cmocka_run_group_tests_name("caches", tests, open_counted, close_device);
}
