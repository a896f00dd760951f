/* SPDX-License-Identifier: MIT
 *
 * Programs of several runs at random: two passes over a cycle, of one graph or two, lengths that
 * take turns, rings, in every storage type and with every way to recompute and park. The smallest
 * plan of a program, and one from the middle of its frontier, give the bits of the one that keeps
 * everything, on poisoned memory. At one micro-step two passes give the bits of the whole cycle in
 * one graph.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "counted.h"
#include "support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 12, CODE = 6, SHORT = 3, LONG = 7, RING = 40 };

/* Each kind in each storage type once; more by the first argument. */
static int programs = 15;

/* Some are skipped until the loss scale of f16 is found. */
enum { UPDATES = 3, MOST_UPDATES = 20 };

enum kind { TWO_PASSES, LENGTHS, A_RING, PASSES_AND_RING, TWO_TOWERS, KINDS };

/* A program, its graphs and what was drawn for it. */
struct program {
    enum kind kind;
    qn_dtype storage;
    int layers;
    double dropout;
    qn_graph *graphs[3];
    qn_run runs[5];
    qn_cell cells[3];
    qn_run_list list;
    int64_t batch[2], micro_batch;
    bool park;
    bool still; /* the loss of two passes reads an output whose gradient nobody wants, too */
};

static uint64_t draws;

static int64_t draw(int64_t below)
{
    return (int64_t)(qn_random_bits(11, 0, draws++) % (uint64_t)below);
}

/* --- data --- */

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const int64_t width = strcmp(input, "long") == 0    ? LONG * WIDTH
                          : strcmp(input, "short") == 0 ? SHORT * WIDTH
                                                        : WIDTH;
    (void)user;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < width; k++)
            if (strcmp(input, "index") != 0)
                ((float *)rows)[i * width + k] =
                    (float)qn_random_normal(7, (uint64_t)(first + i), (uint64_t)k);
            else
                ((int32_t *)rows)[i] = (int32_t)(first + i);
    return QN_OK;
}

static int choose(void *user, int64_t first, int64_t count)
{
    (void)user;
    return (int)(first / count % 2);
}

/* --- graphs --- */

static qn_graph *coupled_graph(qn_dtype storage)
{
    const qn_graph_params params = {.storage = storage, .couples = true};
    qn_graph *graph;
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    return graph;
}

static qn_tensor dense(qn_graph *graph, qn_tensor x, const char *name, int64_t in, int64_t out)
{
    const qn_init init = qn_init_fan_in(in);
    return qn_linear(graph, x, qn_parameter(graph, name, 2, (int64_t[]){out, in}, &init),
                     (qn_tensor){0});
}

static qn_tensor encode(const struct program *p, qn_graph *graph, qn_tensor x)
{
    for (int i = 0; i < p->layers; i++) {
        x = dense(graph, x, (const char[]){'h', (char)('0' + i), 0}, WIDTH, WIDTH);
        x = i % 2 ? qn_tanh(graph, x) : qn_gelu(graph, x, QN_GELU_EXACT);
        x = p->dropout > 0 ? qn_dropout(graph, x, p->dropout) : x;
    }
    return dense(graph, x, "code", WIDTH, CODE);
}

static qn_tensor alike(qn_graph *graph, qn_tensor a, qn_tensor b)
{
    return qn_batch_matmul(graph, a, b, &(qn_batch_matmul_params){.transpose_b = true});
}

static void compare(qn_graph *graph, qn_tensor z)
{
    qn_tensor index = qn_input(graph, "index", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor all = alike(graph, dense(graph, z, "turned", CODE, CODE), z);
    qn_loss(graph, qn_softmax_cross_entropy(graph, all, index, NULL), "loss", NULL);
}

static void compare_with_ring(qn_graph *graph, qn_tensor z, qn_dtype storage)
{
    qn_tensor bank = qn_cell_input(graph, "bank", storage, 2, (int64_t[]){RING, CODE});
    qn_loss(graph, qn_mean(graph, qn_tanh(graph, alike(graph, z, bank)), 1), "ring", NULL);
}

static qn_tensor sample(qn_graph *graph)
{
    return qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDTH});
}

static qn_graph *length_graph(const struct program *p, const char *input, int64_t length)
{
    qn_graph *graph = test_graph(p->storage);
    qn_tensor x = qn_input(graph, input, QN_F32, 3, (int64_t[]){QN_BATCH, length, WIDTH});
    x = qn_transpose(graph, encode(p, graph, x), 3, (int[]){0, 2, 1});
    qn_loss(graph, qn_mean(graph, qn_tanh(graph, qn_mean(graph, x, 2)), 1), "loss", NULL);
    return graph;
}

/* --- programs --- */

static void make_passes(struct program *p, bool ring)
{
    qn_graph *tower = test_graph(p->storage), *loss = coupled_graph(p->storage);
    qn_tensor z = encode(p, tower, sample(tower));
    qn_output(tower, z, "z");
    if (ring)
        qn_output(tower, z, "bank");
    if (p->still)
        qn_output(tower, qn_tanh(tower, qn_gelu(tower, z, QN_GELU_EXACT)), "still");
    z = qn_input(loss, "z", p->storage, 2, (int64_t[]){QN_BATCH, CODE});
    if (p->still)
        z = qn_add(loss, z, qn_input(loss, "still", p->storage, 2, (int64_t[]){QN_BATCH, CODE}));
    compare(loss, z);
    if (ring)
        compare_with_ring(loss, z, p->storage);
    p->graphs[0] = tower;
    p->graphs[1] = loss;
    p->runs[0] = (qn_run){.graph = tower, .what = QN_RUN_FORWARD};
    p->runs[1] = (qn_run){.graph = loss, .whole = true};
    p->runs[2] = (qn_run){.graph = tower, .what = QN_RUN_BACKWARD};
    p->cells[0] = (qn_cell){.name = "z", .gradient = true};
    p->cells[1] = (qn_cell){.name = "bank", .kind = QN_CELL_RING, .rows = RING};
    p->list = (qn_run_list){p->runs, 3, p->cells, 1 + ring};
    if (p->still)
        p->cells[p->list.n_cells++] = (qn_cell){.name = "still"};
}

/* The second tower goes forward last, and backward first or last. They may have the same
 * parameters.
 */
static void make_towers(struct program *p)
{
    const bool crossed = draw(2), tied = draw(2);
    qn_graph *loss = p->graphs[2] = coupled_graph(p->storage);
    qn_tensor z[2];
    for (int i = 0; i < 2; i++) {
        const char *const name = i ? "w" : "z";
        qn_graph *tower = p->graphs[i] = test_graph(p->storage);
        if (i && !tied)
            qn_graph_begin_scope(tower, &(qn_scope){.prefix = "other."});
        qn_tensor code = encode(p, tower, sample(tower));
        if (i && !tied)
            qn_graph_end_scope(tower);
        qn_output(tower, code, name);
        z[i] = qn_input(loss, name, p->storage, 2, (int64_t[]){QN_BATCH, CODE});
        p->runs[i] = (qn_run){.graph = tower, .what = QN_RUN_FORWARD};
        p->runs[3 + (i ^ crossed)] = (qn_run){.graph = tower, .what = QN_RUN_BACKWARD};
        p->cells[i] = (qn_cell){.name = name, .gradient = true};
    }
    compare(loss, qn_multiply(loss, z[0], z[1]));
    p->runs[2] = (qn_run){.graph = loss, .whole = true};
    p->list = (qn_run_list){p->runs, 5, p->cells, 2};
}

static void make_lengths(struct program *p)
{
    p->graphs[0] = length_graph(p, "short", SHORT);
    p->graphs[1] = length_graph(p, "long", LONG);
    p->runs[0] = (qn_run){.graph = p->graphs[0]};
    p->runs[1] = (qn_run){.graph = p->graphs[1], .alternative = true};
    p->list = (qn_run_list){.runs = p->runs, .n_runs = 2};
}

static void make_ring(struct program *p)
{
    qn_graph *graph = p->graphs[0] = test_graph(p->storage);
    qn_tensor z = encode(p, graph, sample(graph));
    qn_output(graph, z, "bank");
    compare_with_ring(graph, z, p->storage);
    p->runs[0] = (qn_run){.graph = graph};
    p->cells[0] = (qn_cell){.name = "bank", .kind = QN_CELL_RING, .rows = RING};
    p->list = (qn_run_list){p->runs, 1, p->cells, 1};
}

static void make(struct program *p, enum kind kind, int number, bool still)
{
    static const qn_dtype storages[] = {QN_F32, QN_F16, QN_BF16};
    *p = (struct program){.kind = kind,
                          .storage = storages[number % 3],
                          .layers = 1 + (int)draw(4),
                          .dropout = draw(2) ? 0.25 : 0,
                          .batch = {9 + draw(20), 1 + draw(8)},
                          .micro_batch = 1 + draw(9),
                          .park = draw(2),
                          .still = still && draw(2)};
    if (kind == LENGTHS)
        make_lengths(p);
    else if (kind == A_RING)
        make_ring(p);
    else if (kind == TWO_TOWERS)
        make_towers(p);
    else
        make_passes(p, kind == PASSES_AND_RING);
}

static void destroy(struct program *p)
{
    for (int i = 0; i < 3; i++)
        qn_graph_destroy(&p->graphs[i]);
}

/* --- training --- */

static void check_shown(const qn_plan *plan)
{
    char *texts[] = {qn_plan_text(plan), qn_plan_json(plan), qn_plan_svg(plan),
                     qn_plan_variants_json(plan)};
    for (int i = 0; i < 4; i++) {
        assert_non_null(texts[i]);
        qn_free(texts[i]);
    }
}

/* The smallest plan, one from the middle of the frontier, or that of a large budget. */
enum size { SMALLEST, MIDDLE, LARGE };

static int64_t budget_of(const qn_plan *plan, enum size size)
{
    static qn_plan_point points[800];
    const int count = qn_plan_frontier(plan, points, 800);
    assert_in_range(count, 1, 800);
    return points[size == SMALLEST ? 0 : count / 2].bytes;
}

/* The weights after UPDATES updates, of both batch sizes in turn, with a plan of that size in
 * `mode`. */
static float *train(const struct program *p, enum size size, qn_recompute_mode mode, int64_t *count,
                    int64_t *peak)
{
    qn_plan_params params = {.budget = 64 << 20,
                             .batch = {p->batch[0], p->batch[1]},
                             .micro_batch = p->micro_batch,
                             .recompute = mode,
                             .park = p->park && size != LARGE,
                             .optimizer = {.name = "adam"}};
    const qn_facts *facts = qn_device_facts(device);
    struct test_run run;
    float *weights;
    assert_int_equal(qn_plan_create_runs(&run.plan, &p->list, facts, &params, NULL), QN_OK);
    if (size != LARGE) {
        params.budget = budget_of(run.plan, size);
        qn_plan_destroy(&run.plan);
        assert_int_equal(qn_plan_create_runs(&run.plan, &p->list, facts, &params, NULL), QN_OK);
    }
    check_shown(run.plan);
    *peak = qn_plan_facts(run.plan)->peak_bytes;
    const qn_trainer_params poison = {.seed = 3, .poison = true};
    assert_int_equal(qn_trainer_open(&run.trainer, device, run.plan, &poison), QN_OK);
    int applied = 0;
    for (int i = 0; i < MOST_UPDATES && applied < UPDATES; i++) {
        const qn_cycle cycle = {
            .samples = p->batch[i % 2], .lr = 0.01, .fetch = fetch, .choose = choose};
        qn_metrics metrics;
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        applied += !metrics.skipped;
    }
    assert_int_equal(applied, UPDATES);
    *count = test_weights(run.trainer, &weights);
    test_close(&run);
    return weights;
}

static void a_small_plan_gives_the_bits_of_a_large_one(void **state)
{
    (void)state;
    for (int i = 0; i < programs; i++) {
        struct program p;
        int64_t count, other, large, small, middle, all;
        make(&p, (enum kind)(i / 3 % KINDS), i, true);
        float *want = train(&p, LARGE, QN_RECOMPUTE_NONE, &count, &large);
        float *have = train(&p, SMALLEST, QN_RECOMPUTE_AUTO, &other, &small);
        float *between = train(&p, MIDDLE, QN_RECOMPUTE_AUTO, &other, &middle);
        float *again = train(&p, LARGE, QN_RECOMPUTE_ALL, &other, &all);
        print_message("  %2d: kind %d, storage %s, batch %" PRId64 " and %" PRId64
                      ", micro-batch %" PRId64 "%s: %" PRId64 ", %" PRId64 ", %" PRId64
                      " and %" PRId64 " bytes\n",
                      i, (int)p.kind, qn_dtype_name(p.storage), p.batch[0], p.batch[1],
                      p.micro_batch, p.park ? ", parked" : "", large, all, middle, small);
        assert_true(small <= middle && small <= large);
        assert_memory_equal(have, want, (size_t)count * sizeof *have);
        assert_memory_equal(between, want, (size_t)count * sizeof *between);
        assert_memory_equal(again, want, (size_t)count * sizeof *again);
        free(want);
        free(have);
        free(between);
        free(again);
        destroy(&p);
    }
}

/* What the cell's gradient holds has the loss scale in it, once. */
static void one_micro_step_gives_the_bits_of_one_graph(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct program p, whole;
        int64_t count, other, bytes;
        make(&p, TWO_PASSES, i, false);
        p.micro_batch = p.batch[0];
        whole = p;
        qn_graph *both = coupled_graph(p.storage);
        compare(both, encode(&p, both, sample(both)));
        whole.runs[0] = (qn_run){.graph = both, .whole = true};
        whole.list = (qn_run_list){.runs = whole.runs, .n_runs = 1};
        float *have = train(&p, LARGE, QN_RECOMPUTE_NONE, &count, &bytes);
        float *want = train(&whole, LARGE, QN_RECOMPUTE_NONE, &other, &bytes);
        assert_int_equal(count, other);
        print_message("  %s: %.3g\n", qn_dtype_name(p.storage), test_distance(have, want, count));
        assert_memory_equal(have, want, (size_t)count * sizeof *have);
        free(have);
        free(want);
        qn_graph_destroy(&both);
        destroy(&p);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        programs = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_plan_gives_the_bits_of_a_large_one),
        cmocka_unit_test(one_micro_step_gives_the_bits_of_one_graph),
    };
    return cmocka_run_group_tests_name("passes", tests, open_counted, close_device);
}
