/* SPDX-License-Identifier: MIT
 *
 * What the forward pass makes goes to host memory and comes back: the same training in fewer bytes.
 * Bytes are counted from outside where clcount is preloaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/trainer.h"
#include "same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO = 8, MOST_POINTS = 600 };

static const qn_plan_params base = {
    .budget = 64 << 20, .batch = {SAMPLES}, .micro_batch = MICRO, .effort = QN_EFFORT_INSTANT};
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01, .clip = 1};

/* --- plans --- */

enum which { SMALLEST, MIDDLE, FASTEST };

/* One of the plans that park, as params for it alone. */
static qn_plan_params parked(const qn_graph *graph, const qn_plan_params *params, enum which which)
{
    static qn_plan_point points[MOST_POINTS];
    qn_plan_params found = *params;
    qn_plan *plan;
    int64_t budgets[MOST_POINTS];
    int parking = 0;
    found.park = true;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &found, NULL), QN_OK);
    const int count = qn_plan_frontier(plan, points, MOST_POINTS);
    for (int i = 0; i < count; i++)
        if (points[i].parked_bytes)
            budgets[parking++] = points[i].bytes;
    assert_in_range(parking, 1, count - 1);
    found.budget = budgets[(parking - 1) * (int)which / FASTEST];
    qn_plan_destroy(&plan);
    return found;
}

static int64_t smallest(const qn_graph *graph, qn_plan_params params, bool park)
{
    int64_t bytes;
    qn_plan *plan;
    params.park = park;
    params.budget = 1;
    assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &params, &bytes),
                     QN_ERR_BUDGET);
    return bytes;
}

/* --- training --- */

/* Keeping all against plans that park, in the fewest bytes and in more. */
static void check(const qn_graph *graph, const qn_plan_params *params, bool mixed)
{
    qn_plan_params keep = *params;
    qn_trainer_params trainer = trainer_params;
    keep.recompute = QN_RECOMPUTE_NONE;
    trainer.clip = params->early_updates ? 0 : trainer.clip;
    struct trained want = train(graph, &keep, &trainer, mixed);
    assert_int_equal(want.info.parked_bytes, 0);
    for (int which = SMALLEST; which <= FASTEST; which++) {
        const qn_plan_params small = parked(graph, params, which);
        trainer.poison = which != MIDDLE;
        struct trained have = train(graph, &small, &trainer, mixed);
        assert_true(have.info.parked_bytes > 0);
        assert_same(&have, &want);
        free(have.weights);
    }
    free(want.weights);
}

/* Parking alone, and beside recomputation. */
static void check_modes(qn_graph *graph, qn_plan_params params)
{
    static const qn_recompute_mode modes[] = {QN_RECOMPUTE_NONE, QN_RECOMPUTE_AUTO};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        params.recompute = modes[i];
        check(graph, &params, false);
    }
    qn_graph_destroy(&graph);
}

static void the_same_bits(void **state)
{
    (void)state;
    qn_plan_params params = base;
    params.optimizer.name = "adamw";
    check_modes(test_cnn(QN_F32), params);
    check_modes(test_cnn(QN_BF16), params);
    check_modes(test_mlp(WIDTH, true), params);
}

static void the_same_bits_under_a_loss_scale(void **state)
{
    (void)state;
    check_modes(test_cnn(QN_F16), base);
}

static void the_same_bits_of_one_micro_step(void **state)
{
    (void)state;
    qn_plan_params params = base;
    params.micro_batch = SAMPLES;
    check_modes(test_cnn(QN_F32), params);
}

static void the_same_bits_beside_early_updates(void **state)
{
    (void)state;
    qn_plan_params params = base;
    params.micro_batch = SAMPLES;
    params.early_updates = true;
    check_modes(test_cnn(QN_F32), params);
}

static void the_same_bits_of_lists_found_by_local_search(void **state)
{
    (void)state;
    qn_plan_params params = base;
    params.effort = QN_EFFORT_DEFAULT;
    check_modes(test_cnn(QN_F32), params);
}

static void the_same_bits_at_several_batch_sizes(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    qn_plan_params params = base;
    params.batch[1] = FEWER;
    params.optimizer.name = "adam";
    check(graph, &params, true);
    qn_graph_destroy(&graph);
}

static void the_same_bits_in_small_pools(void **state)
{
    (void)state;
    qn_device *whole = device;
    const qn_device_params small = {.max_alloc_bytes = 16 << 10};
    assert_int_equal(qn_device_open(&device, &small), QN_OK);
    check_modes(test_cnn(QN_F32), base);
    qn_device_close(&device);
    device = whole;
}

/* --- beside the kernels --- */

static bool share(const struct qn_plan *plan, int a, int b)
{
    const struct qn_storage *x = &plan->program.storages[a], *y = &plan->program.storages[b];
    return x->pool == y->pool && x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes;
}

/* Whether the step writes to the bytes of the storage, or where `reads` uses them at all. */
static bool touches(const struct qn_plan *plan, const struct qn_phase_run *phase, int step,
                    int storage, bool reads)
{
    const struct qn_step *at = &phase->steps[step];
    const struct qn_task *task = &phase->problem->tasks[at->task];
    bool any = at->scratch >= 0 && share(plan, at->scratch, storage);
    for (int w = 0; w < task->n_writes; w++)
        any |= share(plan, at->write[w], storage);
    for (int r = 0; reads && r < task->n_reads; r++)
        any |= share(plan, at->read[r], storage);
    return any;
}

/* What else happens while a transfer may be under way. */
static void check_item(const struct qn_plan *plan, const struct qn_phase_run *phase,
                       const struct qn_phase_parking *parking, const struct qn_parked *item)
{
    const struct qn_step *at = &phase->steps[item->step];
    const bool stores = phase->problem->tasks[at->task].kind == QN_TASK_STORE;
    const int bytes = stores ? at->read[0] : at->write[0];
    assert_true(item->begin < item->end && item->end <= phase->n_steps);
    assert_int_equal(stores ? item->begin : item->end, item->step);
    for (int i = item->begin + 1; i < item->end; i++)
        assert_false(touches(plan, phase, i, bytes, !stores));
    for (int k = 0; k < parking->count && !stores; k++) {
        const struct qn_parked *other = &parking->items[k];
        const struct qn_step *step = &phase->steps[other->step];
        const int task = phase->problem->tasks[step->task].kind;
        if (step->task == at->task - 1)
            assert_true(other->begin <= item->begin);
        if (task == QN_TASK_FETCH && other != item && other->begin < item->end &&
            item->begin < other->end)
            assert_false(share(plan, step->write[0], bytes));
    }
}

/* Gives how many begin before their place, or are over after it. */
static int check_times(const struct qn_plan *plan)
{
    int moved = 0;
    for (int p = 0; p < plan->program.n_phases; p++) {
        struct qn_arena arena = {0};
        struct qn_phase_parking parking;
        const struct qn_phase_run *phase = &plan->program.phases[p];
        assert_true(qn_parking_lay(&plan->program, phase, &arena, &parking));
        for (int k = 0; k < parking.count; k++) {
            const struct qn_parked *item = &parking.items[k];
            check_item(plan, phase, &parking, item);
            moved += item->end - item->begin > 1;
            assert_true(!k || item[-1].begin <= item->begin);
            assert_true(!k || parking.ends[k - 1]->end <= parking.ends[k]->end);
        }
        qn_arena_free(&arena);
    }
    return moved;
}

static void nothing_happens_to_bytes_under_way(void **state)
{
    (void)state;
    static const qn_recompute_mode modes[] = {QN_RECOMPUTE_NONE, QN_RECOMPUTE_AUTO};
    qn_graph *graph = test_cnn(QN_F32);
    int moved = 0, plans = 0;
    for (int i = 0; i < 12; i++) {
        qn_plan *plan;
        qn_plan_params params = base;
        params.recompute = modes[i % 2];
        params.micro_batch = i / 6 ? SAMPLES : MICRO;
        params = parked(graph, &params, (enum which)(i / 2 % 3));
        assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &params, NULL),
                         QN_OK);
        moved += check_times(plan);
        plans++;
        qn_plan_destroy(&plan);
    }
    print_message("  %d transfers of %d plans have time beside kernels\n", moved, plans);
    assert_true(moved > 2 * plans);
    qn_graph_destroy(&graph);
}

/* The bytes that the fetch fills were never used: what it copies has to be stored first. */
static void a_fetch_comes_after_its_store(void **state)
{
    (void)state;
    enum { MAKE, OTHER, STORE, FETCH, TASKS };
    struct qn_task tasks[TASKS] = {[MAKE] = {.n_writes = 1},
                                   [OTHER] = {.n_reads = 1},
                                   [STORE] = {.kind = QN_TASK_STORE, .n_reads = 1, .n_writes = 1},
                                   [FETCH] = {.kind = QN_TASK_FETCH, .n_reads = 1, .n_writes = 1}};
    struct qn_storage storages[] = {{.bytes = 64, .start = 0, .end = 2},
                                    {.start = 1, .end = 3, .pool = -1, .host_bytes = 64},
                                    {.bytes = 64, .start = 3, .end = 4, .offset = 64}};
    struct qn_step steps[] = {{.task = MAKE, .write = {0}, .scratch = -1},
                              {.task = STORE, .read = {0}, .write = {1}, .scratch = -1},
                              {.task = OTHER, .read = {0}, .scratch = -1},
                              {.task = FETCH, .read = {1}, .write = {2}, .scratch = -1},
                              {.task = OTHER, .read = {2}, .scratch = -1}};
    const struct qn_problem problem = {.tasks = tasks, .n_tasks = TASKS};
    const struct qn_phase_run phase = {.problem = &problem, .steps = steps, .n_steps = 5};
    const struct qn_program program = {.storages = storages, .n_storages = 3, .length = 5};
    struct qn_arena arena = {0};
    struct qn_phase_parking parking;
    assert_true(qn_parking_lay(&program, &phase, &arena, &parking));
    assert_int_equal(parking.count, 2);
    assert_int_equal(parking.items[0].step, 1);
    assert_int_equal(parking.items[0].end, 5);
    assert_int_equal(parking.items[1].step, 3);
    assert_int_equal(parking.items[1].begin, 1);
    qn_arena_free(&arena);
}

/* --- what it is worth --- */

static void needs_fewer_bytes(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    qn_plan_params params = base;
    for (int i = 0; i < 2; i++) {
        params.recompute = i ? QN_RECOMPUTE_AUTO : QN_RECOMPUTE_NONE;
        const int64_t without = smallest(graph, params, false),
                      with = smallest(graph, params, true);
        print_message("  smallest budget %lld, parked %lld\n", (long long)without, (long long)with);
        assert_true(with < without);
    }
    qn_graph_destroy(&graph);
}

/* --- what a training meets --- */

static void gradients_of_a_cycle(void **state)
{
    (void)state;
    struct test_data data;
    float *gradients[2];
    qn_graph *graph = test_cnn(QN_F32);
    const qn_plan_params plans[] = {base, parked(graph, &base, SMALLEST)};
    int64_t count = 0;
    test_data_make(&data, SAMPLES, WIDTH);
    for (int i = 0; i < 2; i++) {
        struct test_run run = test_open(device, graph, &plans[i], &trainer_params);
        count = test_gradients(run.trainer, &data, SAMPLES, &gradients[i]);
        test_close(&run);
    }
    assert_memory_equal(gradients[0], gradients[1], (size_t)count * sizeof(float));
    free(gradients[0]);
    free(gradients[1]);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* From a plan that parks to one that does not and back. */
static void a_budget_that_changes(void **state)
{
    (void)state;
    struct test_data data;
    struct trained have;
    qn_graph *graph = test_cnn(QN_F32);
    qn_plan_params params = parked(graph, &base, SMALLEST);
    const int64_t budgets[] = {base.budget, params.budget, parked(graph, &base, FASTEST).budget};
    struct trained want = train(graph, &base, &trainer_params, false);
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    for (int i = 0; i < UPDATES; i++) {
        const qn_plan_info *info = qn_plan_facts(qn_trainer_plan(run.trainer));
        assert_int_equal(info->parked_bytes > 0, i != 1);
        have.metrics[i] = test_train(run.trainer, &data, SAMPLES, 1);
        if (i + 1 < UPDATES)
            assert_int_equal(qn_trainer_set_budget(run.trainer, budgets[i]), QN_OK);
    }
    check_end(run.trainer, &have, &want);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* A cycle that fails in the middle, in a graph without state, changes nothing: what it parked is
 * not mistaken for what the next one parks. */
static void data_that_cannot_be_fetched(void **state)
{
    (void)state;
    qn_graph *graph = test_mlp(WIDTH, true);
    const qn_plan_params params = parked(graph, &base, SMALLEST);
    check_fetch_fails(graph, &params, &trainer_params, 5);
    qn_graph_destroy(&graph);
}

static void goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    qn_graph *graph = test_cnn(QN_F32);
    const qn_plan_params params = parked(graph, &base, SMALLEST);
    assert_true(check_resumes(graph, &params, &trainer_params).parked_bytes > 0);
    qn_graph_destroy(&graph);
}

struct transfers {
    int stores, fetches;
};

static void count_transfers(void *user, const qn_profile_step *step)
{
    struct transfers *count = user;
    count->stores += step->kind == QN_PROFILE_TRANSFER && strcmp(step->group, "store") == 0;
    count->fetches += step->kind == QN_PROFILE_TRANSFER && strcmp(step->group, "fetch") == 0;
}

static void a_profile_shows_them(void **state)
{
    (void)state;
    struct test_data data;
    struct transfers count = {0};
    qn_graph *graph = test_cnn(QN_F32);
    const qn_plan_params params = parked(graph, &base, SMALLEST);
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &params, &trainer_params);
    qn_trainer_profile(run.trainer, count_transfers, &count);
    test_train(run.trainer, &data, SAMPLES, 1);
    assert_true(count.stores > 5 && count.fetches >= count.stores);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(the_same_bits_under_a_loss_scale),
        cmocka_unit_test(the_same_bits_of_one_micro_step),
        cmocka_unit_test(the_same_bits_beside_early_updates),
        cmocka_unit_test(the_same_bits_of_lists_found_by_local_search),
        cmocka_unit_test(the_same_bits_at_several_batch_sizes),
        cmocka_unit_test(the_same_bits_in_small_pools),
        cmocka_unit_test(nothing_happens_to_bytes_under_way),
        cmocka_unit_test(a_fetch_comes_after_its_store),
        cmocka_unit_test(needs_fewer_bytes),
        cmocka_unit_test(gradients_of_a_cycle),
        cmocka_unit_test(a_budget_that_changes),
        cmocka_unit_test(data_that_cannot_be_fetched),
        cmocka_unit_test(goes_on_from_a_checkpoint),
        cmocka_unit_test(a_profile_shows_them),
    };
    return cmocka_run_group_tests(tests, open_counted, close_device);
}
