/* SPDX-License-Identifier: MIT
 *
 * Programs of several runs: lengths that are chosen for each micro-step, a loss over the whole
 * cycle between two passes, rings that outlive updates, forward runs alone with and without a
 * cache. Each is compared with a plain program or with the formula, and its bytes are counted from
 * outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "../support/folder.h"
#include "counted.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 24, CODE = 8, MOST_SAMPLES = 64 };

static bool poisoned; /* trainers that are opened now */

/* --- data and programs --- */

/* Rows of "x", by sample; "x.long" has LONG rows of it; "index" counts samples of the cycle; "mask"
 * is 1 of the samples that `masked` names. */
enum { SHORT = 4, LONG = 12, BUCKET_BATCH = 20, BUCKET_MICRO = 6 };
static enum { MASK_NONE = -1, MASK_OF_SHORT, MASK_OF_LONG } masked = MASK_NONE;

/* The length of a sample where lengths take turns: 0 short, 1 long. */
static int length_of(int64_t sample)
{
    return sample / BUCKET_MICRO % 2 == 0;
}

static float x_at(int64_t sample, int64_t i)
{
    return (float)qn_random_normal(7, (uint64_t)sample, (uint64_t)i);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const bool is_long = strcmp(input, "x.long") == 0, is_short = strcmp(input, "x.short") == 0;
    const int64_t width = is_long ? LONG * CODE : is_short ? SHORT * CODE : WIDE;
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(input, "index") == 0)
            ((int32_t *)rows)[i] = (int32_t)(first + i);
        else if (strcmp(input, "target") == 0)
            ((float *)rows)[i] = x_at(first + i, -1);
        else if (strcmp(input, "mask") == 0)
            ((float *)rows)[i] =
                masked == MASK_NONE || length_of((first + i) % BUCKET_BATCH) == (int)masked;
        else
            for (int64_t k = 0; k < width; k++)
                ((float *)rows)[i * width + k] = x_at(first + i, k);
    }
    return QN_OK;
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    const qn_init init = qn_init_fan_in(in);
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, in}, &init),
                     (qn_tensor){0});
}

static struct test_run open_runs(const qn_run_list *list, const qn_plan_params *params)
{
    struct test_run run;
    const qn_trainer_params trainer = {.seed = 3, .poison = poisoned};
    assert_int_equal(qn_plan_create_runs(&run.plan, list, qn_device_facts(device), params, NULL),
                     QN_OK);
    if (largest_since)
        largest_since();
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, &trainer), QN_OK);
    return run;
}

/* All buffers since the program was opened had the bytes of the plan, within the budget. */
static void close_counted(struct test_run *run)
{
    const qn_plan_info *info = qn_plan_facts(run->plan);
    assert_true(info->peak_bytes <= info->budget_bytes);
    if (largest_since)
        assert_int_equal(largest_since(), info->peak_bytes);
    test_close(run);
}

/* The weights of a run, which is closed; freed with free(). */
static float *end_of(struct test_run *run, int64_t *count)
{
    float *weights;
    *count = test_weights(run->trainer, &weights);
    close_counted(run);
    return weights;
}

static void train_updates(qn_trainer *trainer, const qn_cycle *cycle, int updates)
{
    for (int i = 0; i < updates; i++)
        assert_int_equal(qn_trainer_step(trainer, cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(trainer, NULL), QN_OK);
}

/* --- (a) two lengths over the same parameters --- */

/* Rows of CODE numbers, `length` of them a sample. */
static qn_graph *length_graph(int64_t length, const char *input)
{
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, input, QN_F32, 3, (int64_t[]){QN_BATCH, length, CODE});
    qn_tensor target = qn_input(graph, "target", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    x = qn_gelu(graph, dense(graph, x, "first", CODE, WIDE), QN_GELU_EXACT);
    x = qn_dropout(graph, dense(graph, x, "second", WIDE, WIDE), 0.25);
    x = dense(graph, qn_mean(graph, qn_transpose(graph, x, 3, (int[]){0, 2, 1}), 2), "last", WIDE,
              1);
    qn_tensor mask = qn_input(graph, "mask", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_loss(graph, qn_squared_error(graph, x, target), "loss", &(qn_loss_params){.weights = mask});
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* Micro-steps of turns: 0 short, 1 long, 2 mixed. */
static int choose(void *user, int64_t first, int64_t count)
{
    const int mode = *(const int *)user;
    assert_true(count == BUCKET_MICRO || first + count == BUCKET_BATCH);
    return mode == 2 ? length_of(first) : mode;
}

static qn_plan_params bucket_params(void)
{
    return (qn_plan_params){.budget = 64 << 10,
                            .batch = {BUCKET_BATCH},
                            .micro_batch = BUCKET_MICRO,
                            .recompute = QN_RECOMPUTE_NONE,
                            .optimizer = {.name = "adam"}};
}

static float *train_length(const qn_graph *graph, int64_t *count, int64_t *peak)
{
    const qn_plan_params params = bucket_params();
    const qn_run run = {.graph = graph};
    struct test_run opened = open_runs(&(qn_run_list){.runs = &run, .n_runs = 1}, &params);
    const qn_cycle cycle = {.samples = BUCKET_BATCH, .lr = 0.01, .fetch = fetch};
    train_updates(opened.trainer, &cycle, 3);
    *peak = qn_plan_facts(opened.plan)->peak_bytes;
    return end_of(&opened, count);
}

static float *train_lengths(const qn_graph *const graphs[2], int mode, int64_t *count,
                            int64_t *peak)
{
    const qn_plan_params params = bucket_params();
    const qn_run runs[] = {{.name = "short", .graph = graphs[0]},
                           {.name = "long", .graph = graphs[1], .alternative = true}};
    struct test_run opened = open_runs(&(qn_run_list){.runs = runs, .n_runs = 2}, &params);
    const qn_cycle cycle = {
        .samples = BUCKET_BATCH, .lr = 0.01, .fetch = fetch, .user = &mode, .choose = choose};
    train_updates(opened.trainer, &cycle, 3);
    *peak = qn_plan_facts(opened.plan)->peak_bytes;
    return end_of(&opened, count);
}

static void lengths_share_parameters(void **state)
{
    (void)state;
    qn_graph *graphs[2] = {length_graph(SHORT, "x.short"), length_graph(LONG, "x.long")};
    int64_t peaks[2], peak, count, other;
    for (int mode = 0; mode < 2; mode++) {
        float *plain = train_length(graphs[mode], &count, &peaks[mode]);
        float *chosen = train_lengths((const qn_graph *const *)graphs, mode, &other, &peak);
        assert_int_equal(count, other);
        assert_memory_equal(plain, chosen, (size_t)count * sizeof *plain);
        free(plain);
        free(chosen);
    }
    print_message("  peaks: short %" PRId64 ", long %" PRId64 ", both %" PRId64 "\n", peaks[0],
                  peaks[1], peak);
    assert_int_equal(peak, peaks[1]);
    free(train_lengths((const qn_graph *const *)graphs, 2, &count, &peak));
    qn_graph_destroy(&graphs[0]);
    qn_graph_destroy(&graphs[1]);
}

/* A cycle whose micro-steps take turns: its gradient is the mean over all samples, whatever their
 * length. Beside it two cycles of one length each, in which the samples of the other weigh nothing.
 */
static void mixed_lengths_have_one_weight(void **state)
{
    (void)state;
    static const double share[] = {8.0 / BUCKET_BATCH, 12.0 / BUCKET_BATCH};
    qn_graph *graphs[2] = {length_graph(SHORT, "x.short"), length_graph(LONG, "x.long")};
    const qn_plan_params params = bucket_params();
    const qn_run runs[] = {{.graph = graphs[0]}, {.graph = graphs[1], .alternative = true}};
    const qn_run_list list = {.runs = runs, .n_runs = 2};
    float *gradient[3];
    int64_t count = 0;
    for (int mode = 0; mode < 3; mode++) {
        struct test_run run = open_runs(&list, &params);
        const qn_cycle cycle = {
            .samples = BUCKET_BATCH, .lr = 0, .fetch = fetch, .user = &mode, .choose = choose};
        masked = mode == 2 ? MASK_NONE : (mode ? MASK_OF_LONG : MASK_OF_SHORT);
        assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
        count = test_read_gradients(run.trainer, &gradient[mode]);
        close_counted(&run);
    }
    for (int64_t i = 0; i < count; i++)
        gradient[0][i] =
            (float)(share[0] * (double)gradient[0][i] + share[1] * (double)gradient[1][i]);
    const double distance = test_distance(gradient[0], gradient[2], count);
    print_message("  %.3g\n", distance);
    assert_true(distance < 1e-6);
    for (int mode = 0; mode < 3; mode++)
        free(gradient[mode]);
    qn_graph_destroy(&graphs[0]);
    qn_graph_destroy(&graphs[1]);
}

/* --- (b) a loss over the whole cycle between two passes --- */

enum { CYCLE = 22, PASS_MICRO = 6 };

static qn_tensor encode(qn_graph *graph)
{
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    x = qn_dropout(graph, qn_tanh(graph, dense(graph, x, "hidden", WIDE, 2 * WIDE)), 0.25);
    return dense(graph, x, "code", 2 * WIDE, CODE);
}

/* Each row shall be like itself and unlike all others of the cycle, and a parameter of the loss's
 * own says by how much. */
static void compare_all(qn_graph *graph, qn_tensor z)
{
    qn_tensor index = qn_input(graph, "index", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor other = dense(graph, z, "turned", CODE, CODE);
    qn_tensor alike =
        qn_batch_matmul(graph, other, z, &(qn_batch_matmul_params){.transpose_b = true});
    qn_loss(graph, qn_softmax_cross_entropy(graph, alike, index, NULL), "loss", NULL);
    assert_int_equal(qn_graph_status(graph), QN_OK);
}

static float *cycle_gradient(const qn_run_list *list, int64_t micro_batch, int64_t *count)
{
    const qn_plan_params params = {
        .budget = 128 << 10, .batch = {CYCLE}, .micro_batch = micro_batch};
    const qn_cycle cycle = {.samples = CYCLE, .lr = 0, .fetch = fetch};
    struct test_run run = open_runs(list, &params);
    float *gradient;
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    *count = test_read_gradients(run.trainer, &gradient);
    close_counted(&run);
    return gradient;
}

static void two_passes_give_the_gradient_of_the_whole_cycle(void **state)
{
    (void)state;
    const qn_graph_params couples = {.couples = true};
    qn_graph *tower = test_graph(QN_F32), *loss, *both;
    assert_int_equal(qn_graph_create(&loss, &couples), QN_OK);
    assert_int_equal(qn_graph_create(&both, &couples), QN_OK);
    qn_output(tower, encode(tower), "z");
    compare_all(loss, qn_input(loss, "z", QN_F32, 2, (int64_t[]){QN_BATCH, CODE}));
    compare_all(both, encode(both));
    const qn_run plain = {.graph = both, .whole = true};
    const qn_run runs[] = {{.name = "forward", .graph = tower, .what = QN_RUN_FORWARD},
                           {.name = "loss", .graph = loss, .whole = true},
                           {.name = "backward", .graph = tower, .what = QN_RUN_BACKWARD}};
    const qn_cell cell = {.name = "z", .gradient = true};
    const qn_run_list list = {.runs = runs, .n_runs = 3, .cells = &cell, .n_cells = 1};
    int64_t count, other;
    float *want = cycle_gradient(&(qn_run_list){.runs = &plain, .n_runs = 1}, 0, &count);
    static const int64_t micro_batches[] = {CYCLE, PASS_MICRO, 1};
    for (int i = 0; i < 3; i++) {
        float *have = cycle_gradient(&list, micro_batches[i], &other);
        assert_int_equal(count, other);
        /* The tower's parameters come first in one program as in the other. */
        const double distance = test_distance(have, want, count);
        print_message("  micro-batch %" PRId64 ": %.3g\n", micro_batches[i], distance);
        assert_true(i ? distance < 1e-6 : distance == 0);
        free(have);
    }
    free(want);
    qn_graph_destroy(&tower);
    qn_graph_destroy(&loss);
    qn_graph_destroy(&both);
}

/* --- (c) a ring --- */

enum { RING = 48, RING_MICRO = 7, RING_BATCH = 3 * RING_MICRO };

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
    const qn_plan_params params = {
        .budget = 64 << 10, .batch = {RING_BATCH}, .micro_batch = RING_MICRO};
    const qn_run run = {.graph = graph};
    const qn_cell cell = {.name = "bank", .kind = QN_CELL_RING, .rows = RING, .first = 0.5};
    return open_runs(&(qn_run_list){&run, 1, &cell, 1}, &params);
}

/* z = x W^T of all samples of a cycle, in double. */
static void encode_on_host(const float *w, double z[RING_BATCH][CODE])
{
    for (int i = 0; i < RING_BATCH; i++)
        for (int c = 0; c < CODE; c++) {
            z[i][c] = 0;
            for (int k = 0; k < WIDE; k++)
                z[i][c] += (double)x_at(i, k) * (double)w[c * WIDE + k];
        }
}

/* The loss of one more cycle, whose rows go into the ring. */
static double cycle_on_host(double z[RING_BATCH][CODE], double ring[RING][CODE], int *rows)
{
    double sum = 0;
    for (int first = 0; first < RING_BATCH; first += RING_MICRO) {
        for (int i = first; i < first + RING_MICRO; i++)
            for (int r = 0; r < RING; r++) {
                double alike = 0;
                for (int c = 0; c < CODE; c++)
                    alike += z[i][c] * ring[r][c];
                sum += tanh(alike) / RING;
            }
        for (int i = first; i < first + RING_MICRO; i++, ++*rows)
            memcpy(ring[*rows % RING], z[i], sizeof z[i]);
    }
    return sum / RING_BATCH;
}

static void a_ring_holds_the_last_rows(void **state)
{
    (void)state;
    qn_graph *graph = ring_graph();
    struct test_run run = open_ring(graph);
    const qn_cycle cycle = {.samples = RING_BATCH, .lr = 0, .fetch = fetch};
    double z[RING_BATCH][CODE], ring[RING][CODE];
    float w[CODE * WIDE];
    int rows = 0;
    for (int i = 0; i < RING * CODE; i++)
        ring[i / CODE][i % CODE] = 0.5;
    assert_int_equal(qn_trainer_read(run.trainer, "code", w, CODE * WIDE), QN_OK);
    encode_on_host(w, z);
    for (int update = 0; update < 5; update++) {
        qn_metrics metrics;
        const double want = cycle_on_host(z, ring, &rows);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        print_message("  update %d: %.9f, wanted %.9f\n", update, metrics.loss, want);
        assert_true(fabs(metrics.loss - want) < 1e-6);
        assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), rows);
    }
    close_counted(&run);
    qn_graph_destroy(&graph);
}

/* With the plan of the checkpoint. */
static struct test_run reopen_ring(const qn_graph *graph, const qn_checkpoint *checkpoint)
{
    struct test_run run;
    const qn_run of = {.graph = graph};
    const qn_cell cell = {.name = "bank", .kind = QN_CELL_RING, .rows = RING, .first = 0.5};
    assert_int_equal(
        qn_checkpoint_plan_runs(checkpoint, &(qn_run_list){&of, 1, &cell, 1}, device, &run.plan),
        QN_OK);
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
    const qn_cycle cycle = {.samples = RING_BATCH, .lr = 0.1, .fetch = fetch};
    struct test_run whole = open_ring(graph), first = open_ring(graph), second;
    qn_checkpoint *checkpoint;
    int64_t count, other;
    train_updates(whole.trainer, &cycle, 6);
    train_updates(first.trainer, &cycle, 4);
    assert_int_equal(qn_checkpoint_save(first.trainer, dir, NULL), QN_OK);
    test_close(&first);
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    second = reopen_ring(graph, checkpoint);
    assert_int_equal(qn_checkpoint_restore(checkpoint, second.trainer), QN_OK);
    assert_int_equal(qn_trainer_cell_rows(second.trainer, "bank"), 4 * RING_BATCH);
    train_updates(second.trainer, &cycle, 2);
    float *want, *have;
    count = test_weights(whole.trainer, &want);
    other = test_weights(second.trainer, &have);
    assert_int_equal(count, other);
    assert_memory_equal(have, want, (size_t)count * sizeof *have);
    free(want);
    free(have);
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
    const qn_cycle cycle = {.samples = RING_BATCH, .lr = 0.1, .fetch = fetch};
    struct test_run whole = open_ring(graph), moved = open_ring(graph);
    float *want, *have;
    train_updates(whole.trainer, &cycle, 4);
    train_updates(moved.trainer, &cycle, 2);
    const int64_t least = qn_plan_facts(moved.plan)->smallest_budget;
    assert_int_equal(qn_trainer_set_budget(moved.trainer, least), QN_OK);
    train_updates(moved.trainer, &cycle, 2);
    const int64_t count = test_weights(whole.trainer, &want);
    assert_int_equal(test_weights(moved.trainer, &have), count);
    assert_memory_equal(have, want, (size_t)count * sizeof *have);
    free(want);
    free(have);
    test_close(&whole);
    test_close(&moved);
    qn_graph_destroy(&graph);
}

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
    const qn_cell cell = {.name = "bank", .kind = QN_CELL_RING, .rows = RING, .first = 0.5};
    const qn_plan_params params = {
        .budget = 64 << 10, .batch = {RING_BATCH, RING_MICRO}, .micro_batch = RING_MICRO};
    qn_cycle cycle = {.samples = RING_BATCH, .fetch = fetch, .choose = choose_forward_first};
    float *gradient;
    double squares = 0;
    poisoned = true;
    struct test_run run = open_runs(&(qn_run_list){runs, 2, &cell, 1}, &params);
    poisoned = false;
    assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
    const int64_t count = test_read_gradients(run.trainer, &gradient);
    for (int64_t i = 0; i < count; i++)
        squares += (double)gradient[i] * (double)gradient[i];
    free(gradient);
    print_message("  squares %g\n", squares);
    assert_true(isfinite(squares) && squares > 0);
    close_counted(&run);
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
    return fetch(NULL, input, first, count, rows);
}

/* The rows of a cycle that failed do not count. */
static void a_failed_cycle_stores_no_rows(void **state)
{
    (void)state;
    qn_graph *graph = ring_graph();
    struct test_run run = open_ring(graph);
    struct failing failing = {.fail_at = 3};
    const qn_cycle cycle = {
        .samples = RING_BATCH, .lr = 0.1, .fetch = fetch_or_fail, .user = &failing};
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_IO);
    assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), 0);
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    assert_int_equal(qn_trainer_cell_rows(run.trainer, "bank"), RING_BATCH);
    close_counted(&run);
    qn_graph_destroy(&graph);
}

/* --- (d) forward alone --- */

enum { LAYERS = 6, FORWARD_BATCH = 64, CACHE = 16 };

static void forward_needs_no_gradients(void **state)
{
    (void)state;
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
    const qn_run run = {.name = "forward", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_plan_params params = {.budget = 256 << 10, .batch = {FORWARD_BATCH}};
    struct test_run opened = open_runs(&(qn_run_list){.runs = &run, .n_runs = 1}, &params);
    const qn_plan_info *info = qn_plan_facts(opened.plan);
    const int64_t input = info->micro_batch * WIDE * 4, activation = 2 * input;
    print_message("  peak %" PRId64 ": parameters %" PRId64 ", input %" PRId64
                  ", activation %" PRId64 "\n",
                  info->peak_bytes, parameters, input, activation);
    assert_int_equal(info->bytes_by_tag[QN_TAG_GRADIENTS], 0);
    assert_int_equal(info->bytes_by_tag[QN_TAG_OPTIMIZER], 0);
    assert_true(info->peak_bytes <= parameters + input + 3 * activation + (LAYERS + 2) * alignment);
    assert_int_equal(qn_trainer_evaluate(opened.trainer, FORWARD_BATCH, fetch, NULL, NULL), QN_OK);
    assert_int_equal(qn_trainer_step(opened.trainer,
                                     &(qn_cycle){.samples = FORWARD_BATCH, .fetch = fetch}, NULL),
                     QN_ERR_ARGUMENT);
    close_counted(&opened);
    qn_graph_destroy(&graph);
}

static qn_status keep_scores(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    (void)first;
    assert_string_equal(name, "scores");
    assert_int_equal(count, 1);
    memcpy(user, rows, CACHE * sizeof(float));
    return QN_OK;
}

struct token_data {
    float scores[CACHE]; /* first, for keep_scores */
    int token;
};

static qn_status fetch_token(void *user, const char *input, int64_t first, int64_t count,
                             void *rows)
{
    const struct token_data *data = user;
    return fetch(NULL, input, first + data->token, count, rows);
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
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor keys = qn_cell_input(graph, "keys", QN_F32, 2, (int64_t[]){CACHE, CODE});
    qn_tensor key = dense(graph, x, "key", WIDE, CODE);
    qn_output(graph, key, "keys");
    qn_tensor query = dense(graph, x, "query", WIDE, CODE);
    qn_output(graph,
              qn_batch_matmul(graph, query, keys, &(qn_batch_matmul_params){.transpose_b = true}),
              "scores");
    const qn_run run = {.name = "token", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_cell cell = {.name = "keys", .kind = QN_CELL_APPEND, .rows = CACHE};
    const qn_plan_params params = {.budget = 64 << 10, .batch = {1}};
    struct test_run opened = open_runs(&(qn_run_list){&run, 1, &cell, 1}, &params);
    float w_key[CODE * WIDE], w_query[CODE * WIDE];
    assert_int_equal(qn_trainer_read(opened.trainer, "key", w_key, CODE * WIDE), QN_OK);
    assert_int_equal(qn_trainer_read(opened.trainer, "query", w_query, CODE * WIDE), QN_OK);
    for (int token = 0; token < CACHE; token++) {
        struct token_data data = {.token = token};
        assert_int_equal(
            qn_trainer_evaluate_run(opened.trainer, "token", 1, fetch_token, keep_scores, &data),
            QN_OK);
        for (int k = 0; k < CACHE; k++)
            assert_true(fabs((double)data.scores[k] -
                             (k > token ? 0 : score(w_query, token, w_key, k))) < 1e-5);
    }
    struct token_data more = {.token = 0};
    assert_int_equal(
        qn_trainer_evaluate_run(opened.trainer, "token", 1, fetch_token, keep_scores, &more),
        QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_clear_cell(opened.trainer, "keys"), QN_OK);
    assert_int_equal(
        qn_trainer_evaluate_run(opened.trainer, "token", 1, fetch_token, keep_scores, &more),
        QN_OK);
    assert_true(more.scores[0] != 0 && more.scores[1] == 0);
    close_counted(&opened);
    qn_graph_destroy(&graph);
}

struct scores {
    float values[MOST_SAMPLES];
    int64_t row;
};

static qn_status keep_rows(void *user, const char *name, int64_t first, int64_t count,
                           const void *rows)
{
    struct scores *scores = user;
    assert_string_equal(name, "scores");
    memcpy(scores->values + first * scores->row, rows,
           (size_t)(count * scores->row) * sizeof(float));
    return QN_OK;
}

/* A micro-batch that is filled up with repetitions: they are no rows of the cache, and need no room
 * in it. */
static void padding_is_not_stored(void **state)
{
    (void)state;
    enum { MICRO = 4, FIRST = 3, ROOM = 5 };
    qn_graph *graph = test_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor keys = qn_cell_input(graph, "keys", QN_F32, 2, (int64_t[]){ROOM, CODE});
    qn_tensor key = dense(graph, x, "key", WIDE, CODE);
    qn_output(graph, key, "keys");
    qn_output(graph,
              qn_batch_matmul(graph, key, keys, &(qn_batch_matmul_params){.transpose_b = true}),
              "scores");
    const qn_run run = {.name = "token", .graph = graph, .what = QN_RUN_EVALUATE};
    const qn_cell cell = {.name = "keys", .kind = QN_CELL_APPEND, .rows = ROOM};
    const qn_plan_params params = {.budget = 64 << 10, .batch = {MICRO}, .micro_batch = MICRO};
    struct test_run opened = open_runs(&(qn_run_list){&run, 1, &cell, 1}, &params);
    struct scores scores = {.row = ROOM};
    assert_int_equal(qn_trainer_evaluate(opened.trainer, FIRST, fetch, keep_rows, &scores), QN_OK);
    for (int i = 0; i < FIRST; i++)
        for (int k = 0; k < ROOM; k++)
            assert_int_equal(scores.values[i * ROOM + k] != 0, k < FIRST);
    assert_int_equal(qn_trainer_cell_rows(opened.trainer, "keys"), FIRST);
    assert_int_equal(qn_trainer_evaluate(opened.trainer, ROOM - FIRST, fetch, NULL, NULL), QN_OK);
    assert_int_equal(qn_trainer_evaluate(opened.trainer, 1, fetch, NULL, NULL), QN_ERR_ARGUMENT);
    close_counted(&opened);
    qn_graph_destroy(&graph);
}

/* What weighs is summed from the host's data, before the device computes anything. */
static void a_cell_weighs_no_loss(void **state)
{
    (void)state;
    qn_graph *tower = test_graph(QN_F32), *loss = test_graph(QN_F32);
    qn_tensor x = qn_input(tower, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_output(tower, dense(tower, x, "weigh", WIDE, 1), "weight");
    x = dense(loss, qn_input(loss, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE}), "w", WIDE, 1);
    qn_tensor target = qn_input(loss, "target", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_tensor weight = qn_input(loss, "weight", QN_F32, 2, (int64_t[]){QN_BATCH, 1});
    qn_loss(loss, qn_squared_error(loss, x, target), "loss", &(qn_loss_params){.weights = weight});
    const qn_run runs[] = {{.graph = tower, .what = QN_RUN_FORWARD},
                           {.graph = loss, .whole = true}};
    const qn_cell cell = {.name = "weight"};
    const qn_plan_params params = {.budget = 64 << 10, .batch = {CYCLE}};
    struct test_run run = open_runs(&(qn_run_list){runs, 2, &cell, 1}, &params);
    assert_int_equal(
        qn_trainer_step(run.trainer, &(qn_cycle){.samples = CYCLE, .fetch = fetch}, NULL),
        QN_ERR_ARGUMENT);
    close_counted(&run);
    qn_graph_destroy(&tower);
    qn_graph_destroy(&loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_share_parameters),
        cmocka_unit_test(mixed_lengths_have_one_weight),
        cmocka_unit_test(two_passes_give_the_gradient_of_the_whole_cycle),
        cmocka_unit_test(a_ring_holds_the_last_rows),
        cmocka_unit_test(a_ring_is_saved),
        cmocka_unit_test(a_ring_follows_the_budget),
        cmocka_unit_test(a_cycle_may_begin_without_a_backward_pass),
        cmocka_unit_test(a_failed_cycle_stores_no_rows),
        cmocka_unit_test(forward_needs_no_gradients),
        cmocka_unit_test(a_cache_grows),
        cmocka_unit_test(padding_is_not_stored),
        cmocka_unit_test(a_cell_weighs_no_loss),
    };
    return cmocka_run_group_tests_name("programs", tests, open_device, close_device);
}
