/* SPDX-License-Identifier: MIT
 *
 * A ring: a cell that holds the last rows of the training, over updates, budgets and checkpoints.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the ring; samples of a micro-step and of a cycle. */
enum { RING = 48, MICRO = 7, BATCH = 3 * MICRO };

static const qn_cell ring_cell = {.name = "bank", .kind = QN_CELL_RING, .rows = RING, .first = 0.5};
static const qn_trainer_params trainer_params = {.seed = 3};

/* Every row is compared with those that the ring holds. */
static qn_graph *ring_graph(void)
{
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor bank = qn_cell_input(graph, "bank", QN_F32, 2, (int64_t[]){RING, CODE});
    qn_tensor z = dense(graph, x, "code", WIDE, CODE);
    qn_tensor alike =
        qn_batch_matmul(graph, z, bank, &(qn_batch_matmul_params){.transpose_b = true});
    qn_output(graph, z, "bank");
    qn_loss(graph, qn_mean(graph, qn_tanh(graph, alike), 1), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static struct test_run open_ring(const qn_graph *graph)
{
    const qn_plan_params params = {.budget = 64 << 10, .batch = {BATCH}, .micro_batch = MICRO};
    const qn_run run = {.graph = graph};
    return open_runs(&(qn_run_list){&run, 1, &ring_cell, 1}, &params, &trainer_params);
}

static void assert_same_weights(qn_trainer *have, qn_trainer *want)
{
    float *a, *b;
    const int64_t count = test_weights(have, &a);
    assert_int_equal(test_weights(want, &b), count);
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    free(a);
    free(b);
}

/* --- what a ring holds --- */

/* z = x W^T of all samples of a cycle, in double. */
static void encode_on_host(const float *w, double z[BATCH][CODE])
{
    for (int i = 0; i < BATCH; i++)
        for (int c = 0; c < CODE; c++) {
            z[i][c] = 0;
            for (int k = 0; k < WIDE; k++)
                z[i][c] += (double)x_at(i, k) * (double)w[c * WIDE + k];
        }
}

/* Rows that are not among the newest `limit` are as they were at the beginning. */
static void forget_on_host(double ring[RING][CODE], int rows, int limit)
{
    for (int row = rows < RING ? 0 : rows - RING; row < rows - limit; row++)
        for (int c = 0; c < CODE; c++)
            ring[row % RING][c] = ring_cell.first;
}

/* The loss of one more cycle, whose rows go into the ring. */
static double cycle_on_host(double z[BATCH][CODE], double ring[RING][CODE], int *rows, int limit)
{
    double sum = 0;
    for (int first = 0; first < BATCH; first += MICRO) {
        for (int i = first; i < first + MICRO; i++)
            for (int r = 0; r < RING; r++) {
                double alike = 0;
                for (int c = 0; c < CODE; c++)
                    alike += z[i][c] * ring[r][c];
                sum += tanh(alike) / RING;
            }
        for (int i = first; i < first + MICRO; i++, ++*rows)
            memcpy(ring[*rows % RING], z[i], sizeof z[i]);
        forget_on_host(ring, *rows, limit);
    }
    return sum / BATCH;
}

/* Of which there may be a limit from update to update; 0: there is none. */
static void follow(const int limits[5])
{
    qn_graph *graph = ring_graph();
    struct test_run run = open_ring(graph);
    const qn_cycle cycle = {.samples = BATCH, .lr = 0, .fetch = fetch_inputs};
    double z[BATCH][CODE], ring[RING][CODE];
    float w[CODE * WIDE];
    int rows = 0;
    for (int i = 0; i < RING * CODE; i++)
        ring[i / CODE][i % CODE] = ring_cell.first;
    assert_int_equal(qn_trainer_read(run.trainer, "code", w, CODE * WIDE), QN_OK);
    encode_on_host(w, z);
    for (int update = 0; update < 5; update++) {
        qn_metrics metrics;
        const int limit = limits[update] ? limits[update] : RING;
        assert_int_equal(qn_trainer_limit_cell(run.trainer, "bank", limits[update]), QN_OK);
        forget_on_host(ring, rows, limit);
        const double want = cycle_on_host(z, ring, &rows, limit);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        print_message("  update %d: %.9f, wanted %.9f\n", update, metrics.loss, want);
        assert_true(fabs(metrics.loss - want) < 1e-6);
        assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), rows);
    }
    close_counted(&run);
    qn_graph_destroy(&graph);
}

static void a_ring_holds_the_last_rows(void **state)
{
    (void)state;
    follow((int[]){0, 0, 0, 0, 0});
}

static void a_ring_may_be_limited(void **state)
{
    (void)state;
    follow((int[]){0, 0, 30, 5, 12});
    follow((int[]){1, 48, 47, 100, 20});
    follow((int[]){10, 0, 21, 0, 22});
}

/* --- what a ring outlives --- */

/* By the plan of the checkpoint. */
static struct test_run reopen_ring(const qn_graph *graph, const qn_checkpoint *checkpoint)
{
    struct test_run run;
    const qn_run of = {.graph = graph};
    const qn_run_list list = {&of, 1, &ring_cell, 1};
    assert_int_equal(qn_checkpoint_plan_runs(checkpoint, &list, device, &run.plan), QN_OK);
    const qn_checkpoint_info *info = qn_checkpoint_describe(checkpoint);
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, &info->trainer), QN_OK);
    return run;
}

static void a_ring_is_saved(void **state)
{
    (void)state;
    char dir[FOLDER_BYTES];
    make_folder(dir);
    qn_graph *graph = ring_graph();
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.1, .fetch = fetch_inputs};
    struct test_run whole = open_ring(graph), first = open_ring(graph), second;
    qn_checkpoint *checkpoint;
    train_updates(whole.trainer, &cycle, 6);
    train_updates(first.trainer, &cycle, 4);
    assert_int_equal(qn_checkpoint_save(first.trainer, dir, NULL), QN_OK);
    test_close(&first);
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    second = reopen_ring(graph, checkpoint);
    assert_int_equal(qn_checkpoint_restore(checkpoint, second.trainer), QN_OK);
    assert_int_equal(qn_trainer_cell_rows(second.trainer, "bank"), 4 * BATCH);
    train_updates(second.trainer, &cycle, 2);
    assert_same_weights(second.trainer, whole.trainer);
    qn_checkpoint_close(&checkpoint);
    test_close(&whole);
    test_close(&second);
    qn_graph_destroy(&graph);
    remove_folder(dir);
}

/* Another budget in the middle: the ring goes along. */
static void a_ring_follows_the_budget(void **state)
{
    (void)state;
    qn_graph *graph = ring_graph();
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.1, .fetch = fetch_inputs};
    struct test_run whole = open_ring(graph), moved = open_ring(graph);
    train_updates(whole.trainer, &cycle, 4);
    train_updates(moved.trainer, &cycle, 2);
    const int64_t least = qn_plan_facts(moved.plan)->smallest_budget;
    assert_int_equal(qn_trainer_set_budget(moved.trainer, least), QN_OK);
    train_updates(moved.trainer, &cycle, 2);
    assert_same_weights(moved.trainer, whole.trainer);
    test_close(&whole);
    test_close(&moved);
    qn_graph_destroy(&graph);
}

/* --- cycles that are not whole --- */

/* The first micro-step only fills the ring. */
static int choose_forward_first(void *user, int64_t first, int64_t count)
{
    (void)user;
    (void)count;
    return first == 0;
}

/* A run that some micro-steps leave out: what they do not add is zero, and no memory that nobody
 * wrote. */
static void a_cycle_may_begin_without_a_backward_pass(void **state)
{
    (void)state;
    qn_graph *graph = ring_graph();
    const qn_run runs[] = {
        {.name = "train", .graph = graph},
        {.name = "fill", .graph = graph, .what = QN_RUN_FORWARD, .alternative = true}};
    const qn_plan_params params = {
        .budget = 64 << 10, .batch = {BATCH, MICRO}, .micro_batch = MICRO};
    const qn_trainer_params poison = {.seed = 3, .poison = true};
    const qn_cycle cycle = {
        .samples = BATCH, .fetch = fetch_inputs, .choose = choose_forward_first};
    int64_t count;
    float *gradient =
        cycle_gradient(&(qn_run_list){runs, 2, &ring_cell, 1}, &params, &poison, &cycle, &count);
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)gradient[i] * (double)gradient[i];
    free(gradient);
    print_message("  squares %g\n", squares);
    assert_true(isfinite(squares) && squares > 0);
    qn_graph_destroy(&graph);
}

struct failing {
    int calls, fail_at;
};

static qn_status fetch_or_fail(void *user, const char *input, int64_t first, int64_t count,
                               void *rows)
{
    struct failing *failing = user;
    if (++failing->calls == failing->fail_at)
        return QN_ERR_IO;
    return fetch_inputs(NULL, input, first, count, rows);
}

/* The rows of a cycle that failed do not count. */
static void a_failed_cycle_stores_no_rows(void **state)
{
    (void)state;
    qn_graph *graph = ring_graph();
    struct test_run run = open_ring(graph);
    struct failing failing = {.fail_at = 3};
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.1, .fetch = fetch_or_fail, .user = &failing};
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_IO);
    assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), 0);
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), BATCH);
    close_counted(&run);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_holds_the_last_rows),
        cmocka_unit_test(a_ring_may_be_limited),
        cmocka_unit_test(a_ring_is_saved),
        cmocka_unit_test(a_ring_follows_the_budget),
        cmocka_unit_test(a_cycle_may_begin_without_a_backward_pass),
        cmocka_unit_test(a_failed_cycle_stores_no_rows),
    };
    return cmocka_run_group_tests_name("rings", tests, open_counted, close_device);
}
