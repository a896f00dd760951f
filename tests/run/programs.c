/* SPDX-License-Identifier: MIT
 *
 * Programs with a loss between two passes: a tower encodes each micro-batch, the loss reads the
 * codes of the whole cycle from a cell, and the tower goes back from their gradient.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 22 };

static const qn_trainer_params trainer_params = {.seed = 3};

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

static float *gradient_of(const qn_run_list *list, int64_t micro_batch, int64_t *count)
{
    const qn_plan_params params = {
        .budget = 128 << 10, .batch = {BATCH}, .micro_batch = micro_batch};
    const qn_cycle cycle = {.samples = BATCH, .lr = 0, .fetch = fetch_inputs};
    return cycle_gradient(list, &params, &trainer_params, &cycle, count);
}

/* A tower, the loss of its codes, and the tower again, backward. */
struct two_passes {
    qn_graph *tower, *loss;
    qn_run runs[3];
    qn_cell cell;
    qn_run_list list;
};

static void open_two_passes(struct two_passes *p)
{
    const qn_graph_params couples = {.couples = true};
    p->tower = test_graph(QN_F32);
    assert_int_equal(qn_graph_create(&p->loss, &couples), QN_OK);
    qn_output(p->tower, encode(p->tower), "z");
    compare_all(p->loss, qn_input(p->loss, "z", QN_F32, 2, (int64_t[]){QN_BATCH, CODE}));
    p->runs[0] = (qn_run){.name = "forward", .graph = p->tower, .what = QN_RUN_FORWARD};
    p->runs[1] = (qn_run){.name = "loss", .graph = p->loss, .whole = true};
    p->runs[2] = (qn_run){.name = "backward", .graph = p->tower, .what = QN_RUN_BACKWARD};
    p->cell = (qn_cell){.name = "z", .gradient = true};
    p->list = (qn_run_list){.runs = p->runs, .n_runs = 3, .cells = &p->cell, .n_cells = 1};
}

static void close_two_passes(struct two_passes *p)
{
    qn_graph_destroy(&p->tower);
    qn_graph_destroy(&p->loss);
}

static void two_passes_give_the_gradient_of_the_whole_cycle(void **state)
{
    (void)state;
    const qn_graph_params couples = {.couples = true};
    qn_graph *both;
    struct two_passes p;
    open_two_passes(&p);
    assert_int_equal(qn_graph_create(&both, &couples), QN_OK);
    compare_all(both, encode(both));
    const qn_run plain = {.graph = both, .whole = true};
    int64_t count, other;
    float *want = gradient_of(&(qn_run_list){.runs = &plain, .n_runs = 1}, 0, &count);
    static const int64_t micro_batches[] = {BATCH, 6, 1};
    for (int i = 0; i < 3; i++) {
        float *have = gradient_of(&p.list, micro_batches[i], &other);
        assert_int_equal(count, other);
        /* The tower's parameters come first in one program as in the other. */
        const double distance = test_distance(have, want, count);
        print_message("  micro-batch %" PRId64 ": %.3g\n", micro_batches[i], distance);
        assert_true(i ? distance < 1e-6 : distance == 0);
        free(have);
    }
    free(want);
    close_two_passes(&p);
    qn_graph_destroy(&both);
}

/* First samples of the micro-steps for which rows were asked, in that order. */
struct asked {
    int64_t first[16];
    int count;
};

static qn_status note_first(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    struct asked *asked = user;
    if (strcmp(input, "x") == 0) {
        assert_in_range(asked->count, 0, 15);
        asked->first[asked->count++] = first;
    }
    return fetch_inputs(NULL, input, first, count, rows);
}

/* For how many bytes a program at micro-batch 6 is planned. */
static int64_t smallest_of(const struct two_passes *p)
{
    const qn_plan_params params = {.budget = 128 << 10, .batch = {BATCH}, .micro_batch = 6};
    int64_t smallest;
    qn_plan *plan;
    assert_int_equal(
        qn_plan_create_runs(&plan, &p->list, qn_device_facts(device), &params, &smallest), QN_OK);
    qn_plan_destroy(&plan);
    return smallest;
}

/* Gradients are added up from the last micro-step to the first. What the last one has made in its
 * forward pass is still there, if that fits. */
static void the_backward_pass_begins_with_the_last_micro_step(void **state)
{
    (void)state;
    static const int64_t kept[] = {0, 6, 12, 18, 12, 6, 0}, again[] = {0, 6, 12, 18, 18, 12, 6, 0};
    struct two_passes p;
    open_two_passes(&p);
    const int64_t budgets[] = {128 << 10, smallest_of(&p)};
    for (int i = 0; i < 2; i++) {
        struct asked asked = {.count = 0};
        const qn_plan_params params = {.budget = budgets[i], .batch = {BATCH}, .micro_batch = 6};
        struct test_run run = open_runs(&p.list, &params, &trainer_params);
        const qn_cycle cycle = {.samples = BATCH, .fetch = note_first, .user = &asked};
        train_updates(run.trainer, &cycle, 1);
        assert_int_equal(asked.count, (i ? sizeof again : sizeof kept) / sizeof *kept);
        assert_memory_equal(asked.first, i ? again : kept, i ? sizeof again : sizeof kept);
        close_counted(&run);
    }
    close_two_passes(&p);
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
    const qn_plan_params params = {.budget = 64 << 10, .batch = {BATCH}};
    struct test_run run = open_runs(&(qn_run_list){runs, 2, &cell, 1}, &params, &trainer_params);
    const qn_cycle cycle = {.samples = BATCH, .fetch = fetch_inputs};
    assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_ERR_ARGUMENT);
    close_counted(&run);
    qn_graph_destroy(&tower);
    qn_graph_destroy(&loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_passes_give_the_gradient_of_the_whole_cycle),
        cmocka_unit_test(the_backward_pass_begins_with_the_last_micro_step),
        cmocka_unit_test(a_cell_weighs_no_loss),
    };
    return cmocka_run_group_tests_name("programs", tests, open_counted, close_device);
}
