/* SPDX-License-Identifier: MIT
 *
 * An optimizer that the library does not know: its momentum is kept as u8 codes with an f32 scale
 * for each 256 of them (blockwise.cl, whose path is the argument). It is compared with the formula
 * in double, counted, saved, resumed, moved to other budgets and timed like those of the list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "base/log.h"
#include "base/shape.h"
#include "check/number.h"
#include "ops/common.h"
#include "ops/update.h"
#include "plan/plan.h"
#include "run/trainer.h"
#include "two_layers.h"
#include "tune/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in blockwise.cl. */
enum { SHARED = 256, SCALES_OF_A_CHUNK = QN_CHUNK / SHARED };

/* --- the optimizer --- */

/* Of its second slot, which only a test of first values changes. */
static qn_dtype scale_type = QN_F32;

static qn_status shape(struct qn_shape_call *call)
{
    const int64_t scales = call->in[2].shape.dim[0] * SCALES_OF_A_CHUNK;
    QN_TRY(qn_update_shape(call, 0));
    qn_shape_set(&call->state[0], QN_U8, 1, call->in[0].shape.dim);
    qn_shape_set(&call->state[1], scale_type, 1, &scales);
    return QN_OK;
}

static void cost(const struct qn_call *call, struct qn_cost *result)
{
    qn_update_cost(call, 20, result);
}

static qn_status step(struct qn_emit *emit, const struct qn_call *call)
{
    const struct qn_optimizer_attr *attr = call->attr;
    struct qn_launch launch = {.program = "blockwise",
                               .kernel = "blockwise",
                               .args = {QN_BUF(&call->in[0]), QN_BUF(&call->in[1]),
                                        QN_BUF(&call->in[2]), QN_BUF(&call->control),
                                        QN_BUF(&call->state[0]), QN_BUF(&call->state[1]),
                                        QN_BUF(&call->out[0]), QN_FLOAT((float)attr->momentum)}};
    return qn_update_launch(emit, call, &call->in[2], &launch);
}

/* Code 128 is 0, whatever the scale. */
static const struct qn_op blockwise = {
    .name = "blockwise",
    .attr_size = sizeof(struct qn_optimizer_attr),
    .n_in = 3,
    .n_required = 3,
    .n_out = 1,
    .shape = shape,
    .optimizer = true,
    .state = {{.name = "moment", .initial = 128},
              {.name = "scale", .initial = 1, .per_chunk = SCALES_OF_A_CHUNK}},
    .groups = {{.name = "step",
                .phase = QN_PHASE_UPDATE,
                .read = {{QN_IN(0)}, {QN_IN(1)}, {QN_IN(2)}, {QN_STATE(0)}, {QN_STATE(1)}},
                .write = {{QN_OUT(0), QN_IN(0)}, {QN_STATE(0)}, {QN_STATE(1)}},
                .variant = QN_BOTH_SHAPES(qn_fits_row_group, cost, step)}}};

/* --- what it trains --- */

static const qn_plan_params base = {.budget = 64 << 20,
                                    .batch = {SAMPLES},
                                    .micro_batch = SAMPLES,
                                    .effort = QN_EFFORT_INSTANT,
                                    .cache_dir = "",
                                    .optimizer = {.name = "blockwise", .momentum = 0.9}};
static const qn_trainer_params trainer_params = {.seed = 11, .weight_decay = 0.01};

static int64_t count_of(int parameter)
{
    return parameters[parameter].dim[0] *
           (parameters[parameter].rank == 2 ? parameters[parameter].dim[1] : 1);
}

/* --- the formula --- */

/* A parameter in double. An element is `open` once what was rounded to a code lay so near the
 * middle of two that the device may have taken the other. */
struct exact {
    double p[MOST_ELEMENTS], moment[MOST_ELEMENTS];
    bool open[MOST_ELEMENTS];
};
static const double near_the_middle = 1e-3;

static void update_exact(struct exact *e, int parameter, const float *gradient, double rate)
{
    const double decay = parameters[parameter].rank == 2 ? trainer_params.weight_decay : 0;
    const int64_t count = count_of(parameter);
    for (int64_t begin = 0; begin < count; begin += SHARED) {
        const int64_t end = begin + SHARED < count ? begin + SHARED : count;
        double top = 0;
        for (int64_t i = begin; i < end; i++) {
            e->moment[i] =
                base.optimizer.momentum * e->moment[i] + (double)gradient[i] + decay * e->p[i];
            e->p[i] -= rate * e->moment[i];
            top = fmax(top, fabs(e->moment[i]));
        }
        for (int64_t i = begin; i < end && top > 0; i++) {
            const double code = e->moment[i] / top * 127;
            e->open[i] |= fabs(fabs(code - rint(code)) - 0.5) < near_the_middle;
            e->moment[i] = rint(code) / 127 * top;
        }
    }
}

static const float *read_parameter(qn_trainer *trainer, int parameter, bool gradient)
{
    static float values[MOST_ELEMENTS];
    assert_int_equal((gradient ? qn_trainer_read_gradient : qn_trainer_read)(
                         trainer, parameters[parameter].name, values, count_of(parameter)),
                     QN_OK);
    return values;
}

static void begin_exact(struct exact *e, qn_trainer *trainer, int parameter)
{
    const float *values = read_parameter(trainer, parameter, false);
    memset(e, 0, sizeof *e);
    for (int64_t i = 0; i < count_of(parameter); i++)
        e->p[i] = (double)values[i];
}

/* The largest difference of those that are not open, which are counted. */
static double compare_exact(const struct exact *e, qn_trainer *trainer, int parameter, int *open)
{
    const float *values = read_parameter(trainer, parameter, false);
    double worst = 0;
    for (int64_t i = 0; i < count_of(parameter); i++) {
        const double far = fabs((double)values[i] - e->p[i]);
        worst = e->open[i] || far <= worst ? worst : far;
        *open += e->open[i];
    }
    return worst;
}

/* Weights of about 0.1 in f32 after six updates: 1e-7. The gradients are the device's own. */
static void updates_are_those_of_the_formula(void **state)
{
    (void)state;
    static struct exact exact[PARAMETERS];
    struct test_data data;
    int open = 0;
    double worst = 0;
    qn_graph *graph = two_layers(QN_F32);
    test_data_make(&data, SAMPLES, WIDTH);
    const qn_cycle cycle = {SAMPLES, 0.05, test_fetch, &data};
    struct test_run run = test_open(device, graph, &base, &trainer_params);
    for (int p = 0; p < PARAMETERS; p++)
        begin_exact(&exact[p], run.trainer, p);
    for (int update = 0; update < 6; update++) {
        assert_int_equal(qn_trainer_accumulate(run.trainer, &cycle), QN_OK);
        for (int p = 0; p < PARAMETERS; p++)
            update_exact(&exact[p], p, read_parameter(run.trainer, p, true), cycle.lr);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
    }
    for (int p = 0; p < PARAMETERS; p++)
        worst = fmax(worst, compare_exact(&exact[p], run.trainer, p, &open));
    print_message("  weights differ by %.2g at most; %d may have been rounded to either side\n",
                  worst, open);
    assert_true(worst < 1e-7 && open < 100);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

/* --- its bytes --- */

static void its_bytes_are_those_of_its_slots(void **state)
{
    (void)state;
    int64_t elements = 0, chunks = 0;
    qn_graph *graph = two_layers(QN_F32);
    struct trained end = train(graph, &base, &trainer_params, false);
    for (int p = 0; p < PARAMETERS; p++) {
        elements += stored_bytes(count_of(p) * 4) / 4;
        chunks += qn_div_up(count_of(p), QN_CHUNK);
    }
    assert_int_equal(end.info.bytes_by_tag[QN_TAG_OPTIMIZER],
                     stored_bytes(elements) + stored_bytes(chunks * SCALES_OF_A_CHUNK * 4) +
                         stored_bytes(chunks * (int64_t)sizeof(struct qn_chunk)));
    assert_string_equal(end.info.optimizer, "blockwise");
    free(end.weights);
    qn_graph_destroy(&graph);
}

/* Checkpoints and early updates go by per_chunk: a shape rule that says other sizes is refused. */
static void slots_of_other_sizes_are_refused(void **state)
{
    (void)state;
    qn_plan *plan;
    qn_graph *graph = two_layers(QN_F32);
    for (int s = 0; s < 2; s++) {
        struct qn_op other = blockwise;
        other.state[s].per_chunk = s ? SCALES_OF_A_CHUNK / 2 : SHARED;
        qn_op_lend(&other);
        assert_int_equal(qn_plan_create(&plan, graph, qn_device_facts(device), &base, NULL),
                         QN_ERR_SHAPE);
        assert_null(plan);
    }
    qn_op_lend(&blockwise);
    qn_graph_destroy(&graph);
}

static void settings_of_0_are_its_own(void **state)
{
    (void)state;
    const struct qn_optimizer_attr own = {.beta1 = 0.75, .beta2 = 0.5};
    const qn_optimizer zero = {.name = "blockwise"}, some = {.name = "blockwise", .beta2 = 0.25};
    struct qn_op other = blockwise;
    assert_true(qn_optimizer_settings(&zero, false).beta2 == 0.999);
    other.defaults = &own;
    qn_op_lend(&other);
    assert_true(qn_optimizer_settings(&zero, false).beta1 == 0.75);
    assert_true(qn_optimizer_settings(&zero, false).beta2 == 0.5);
    assert_true(qn_optimizer_settings(&some, false).beta2 == 0.25);
    qn_op_lend(&blockwise);
}

static void slots_begin_with_their_first_values(void **state)
{
    (void)state;
    static const qn_dtype types[] = {QN_F32, QN_F16, QN_BF16, QN_I32};
    qn_graph *graph = two_layers(QN_F32);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        scale_type = types[i];
        struct test_run run = test_open(device, graph, &base, &trainer_params);
        const struct qn_block *block = &run.plan->persist.blocks[0];
        for (int s = 0; s < 2; s++) {
            const struct qn_value *slot = &run.plan->persist.values[block->state[s]];
            const int64_t count = qn_operand_count(&slot->operand);
            char bytes[8 * QN_CHUNK];
            double values[2 * QN_CHUNK];
            assert_in_range(count, 1, 2 * QN_CHUNK);
            assert_int_equal(
                qn_trainer_read_value(run.trainer, block->state[s], 0, bytes, slot->bytes), QN_OK);
            qn_number_decode(slot->operand.dtype, bytes, count, values);
            for (int64_t k = 0; k < count; k++)
                assert_true(values[k] == (double)blockwise.state[s].initial);
        }
        test_close(&run);
    }
    scale_type = QN_F32;
    qn_graph_destroy(&graph);
}

/* --- saved --- */

static void check_tensor(const qn_tensors *file, const char *name, const char *slot,
                         const char *type, int64_t count)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, slot);
    const qn_tensors_entry *entry = qn_tensors_find(file, full);
    assert_non_null(entry);
    assert_string_equal(entry->type, type);
    assert_int_equal(qn_shape_count(&entry->shape), count);
}

static void its_slots_are_saved_as_they_are(void **state)
{
    (void)state;
    struct test_data data;
    qn_tensors *file;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 64];
    qn_graph *graph = two_layers(QN_F32);
    make_folder(folder);
    test_data_make(&data, SAMPLES, WIDTH);
    struct test_run run = test_open(device, graph, &base, &trainer_params);
    test_train(run.trainer, &data, SAMPLES, 2);
    assert_int_equal(qn_checkpoint_save(run.trainer, folder, NULL), QN_OK);
    snprintf(path, sizeof path, "%s/last/optimizer.safetensors", folder);
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_count(file), 2 * PARAMETERS);
    for (int p = 0; p < PARAMETERS; p++) {
        check_tensor(file, parameters[p].name, "moment", "U8", count_of(p));
        check_tensor(file, parameters[p].name, "scale", "F32",
                     qn_div_up(count_of(p), QN_CHUNK) * SCALES_OF_A_CHUNK);
    }
    qn_tensors_close(&file);
    remove_folder(folder);
    test_close(&run);
    test_data_free(&data);
    qn_graph_destroy(&graph);
}

static void a_resumed_training_is_the_same(void **state)
{
    (void)state;
    qn_graph *graph = two_layers(QN_F32);
    const qn_plan_params params[] = {base, smallest_early(graph, &base)};
    for (int early = 0; early < 2; early++)
        assert_int_equal(check_resumes(graph, &params[early], &trainer_params).early_updates,
                         early);
    qn_graph_destroy(&graph);
}

/* --- other budgets --- */

static void a_budget_that_changes(void **state)
{
    (void)state;
    qn_graph *graph = two_layers(QN_F32);
    check_budgets(graph, &base, &trainer_params);
    qn_graph_destroy(&graph);
}

/* --- timed --- */

/* Times a step, as tuning does; gives the elements that the rig's table has. */
static int64_t time_step(const struct qn_problem *problem, const struct qn_task *task)
{
    struct qn_watch watch = {0};
    const struct qn_rig_task what = {problem, task, 1, base.budget, &watch};
    struct qn_rig_run run = {.least = 1e-4};
    struct qn_verdict verdict = {0};
    struct qn_rig rig;
    struct qn_chunk table[8];
    const int64_t chunks = task->reads[2].operand.shape.dim[0];
    int64_t elements = 0;
    assert_in_range(chunks, 1, 8);
    assert_int_equal(qn_rig_open(&rig, device, &what), QN_OK);
    assert_int_equal(qn_rig_time(&rig, &run, &verdict), QN_OK);
    assert_false(verdict.failed);
    assert_true(run.seconds > 0);
    assert_int_equal(qn_slab_read(rig.slab, 2, 0, table, chunks * (int64_t)sizeof *table, NULL),
                     QN_OK);
    for (int64_t i = 0; i < chunks; i++)
        elements += table[i].count;
    qn_rig_close(&rig);
    return elements;
}

/* All elements are those of one step, or of one step for each parameter. */
static void its_steps_are_timed(void **state)
{
    (void)state;
    qn_graph *graph = two_layers(QN_F32);
    const qn_plan_params params[] = {base, smallest_early(graph, &base)};
    for (int early = 0; early < 2; early++) {
        qn_plan *plan;
        int steps = 0;
        int64_t elements = 0;
        assert_int_equal(
            qn_plan_create(&plan, graph, qn_device_facts(device), &params[early], NULL), QN_OK);
        for (int p = 0; p < plan->program.n_phases; p++) {
            const struct qn_phase_run *phase = &plan->program.phases[p];
            for (int i = 0; i < phase->n_steps; i++) {
                const struct qn_task *task = &phase->problem->tasks[phase->steps[i].task];
                if (task->op != &blockwise)
                    continue;
                elements += time_step(phase->problem, task);
                steps++;
            }
        }
        assert_int_equal(steps, early ? PARAMETERS : 1);
        for (int p = 0; p < PARAMETERS; p++)
            elements -= count_of(p);
        assert_int_equal(elements, 0);
        qn_plan_destroy(&plan);
    }
    qn_graph_destroy(&graph);
}

/* --- the kernel's folder --- */

static char kernels[FOLDER_BYTES], source[4096];

static void link_into_folder(const char *from, const char *name)
{
    char path[2 * FOLDER_BYTES + 16];
    snprintf(path, sizeof path, "%s/%s", kernels, name);
    assert_int_equal(symlink(from, path), 0);
}

/* The library's kernels, and the test's own. */
static void make_kernels(void)
{
    const char *library = getenv("QN_KERNELS");
    assert_non_null(library);
    make_folder(kernels);
    DIR *dir = opendir(library);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char from[4096];
        snprintf(from, sizeof from, "%s/%s", library, entry->d_name);
        if (entry->d_name[0] != '.')
            link_into_folder(from, entry->d_name);
    }
    closedir(dir);
    link_into_folder(source, "blockwise.cl");
}

static void reopen_device(int64_t max_alloc_bytes)
{
    const qn_device_params params = {
        .log = test_log, .kernel_dir = kernels, .max_alloc_bytes = max_alloc_bytes};
    qn_device_close(&device);
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
}

/* Where a buffer has room for the first weight and its bias, the others are a block of their own.
 */
static void in_two_blocks(void **state)
{
    reopen_device(20 << 10);
    updates_are_those_of_the_formula(state);
    a_resumed_training_is_the_same(state);
    a_budget_that_changes(state);
    reopen_device(0);
}

static int lend(void **state)
{
    make_kernels();
    open_counted(state);
    reopen_device(0);
    qn_op_lend(&blockwise);
    return 0;
}

static int take_back(void **state)
{
    qn_op_lend(NULL);
    close_device(state);
    remove_folder(kernels);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_the_formula),
        cmocka_unit_test(its_bytes_are_those_of_its_slots),
        cmocka_unit_test(slots_of_other_sizes_are_refused),
        cmocka_unit_test(settings_of_0_are_its_own),
        cmocka_unit_test(slots_begin_with_their_first_values),
        cmocka_unit_test(its_slots_are_saved_as_they_are),
        cmocka_unit_test(a_resumed_training_is_the_same),
        cmocka_unit_test(a_budget_that_changes),
        cmocka_unit_test(its_steps_are_timed),
        cmocka_unit_test(in_two_blocks),
    };
    if (argc != 2 || !realpath(argv[1], source)) {
        fprintf(stderr, "usage: %s blockwise.cl\n", argv[0]);
        return 2;
    }
    return cmocka_run_group_tests(tests, lend, take_back);
}
