/* SPDX-License-Identifier: MIT
 *
 * Programs of two graphs over the same parameters, for short and for long samples: each micro-step
 * chooses one. Where all choose the same, the training is that of a plain program; where lengths
 * take turns, every sample of the cycle weighs the same.
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

/* Rows of CODE numbers in a sample; samples of a cycle and of a micro-step. */
enum { SHORT = 4, LONG = 12, BATCH = 20, MICRO = 6 };

enum lengths { ALL_SHORT, ALL_LONG, IN_TURNS };

/* What the micro-steps of a cycle choose. */
struct choice {
    enum lengths lengths;
    bool masked; /* samples that would choose the other length IN_TURNS weigh nothing */
};

static const qn_plan_params params = {.budget = 64 << 10,
                                      .batch = {BATCH},
                                      .micro_batch = MICRO,
                                      .recompute = QN_RECOMPUTE_NONE,
                                      .optimizer = {.name = "adam"}};
static const qn_trainer_params trainer_params = {.seed = 3};

/* --- data --- */

/* The length of a sample where lengths take turns: 12 samples are long, 8 short. */
static enum lengths length_of(int64_t sample)
{
    return sample / MICRO % 2 == 0 ? ALL_LONG : ALL_SHORT;
}

/* "mask" weighs the samples; "x.short" and "x.long" have the same numbers, one has more of them. */
static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct choice *choice = user;
    if (strcmp(input, "x.short") == 0)
        fill_rows(first, count, SHORT * CODE, rows);
    else if (strcmp(input, "x.long") == 0)
        fill_rows(first, count, LONG * CODE, rows);
    else if (strcmp(input, "mask") == 0)
        for (int64_t i = 0; i < count; i++)
            ((float *)rows)[i] = !choice->masked || length_of(first + i) == choice->lengths;
    else
        return fetch_inputs(NULL, input, first, count, rows);
    return QN_OK;
}

static int choose(void *user, int64_t first, int64_t count)
{
    const struct choice *choice = user;
    assert_true(count == MICRO || first + count == BATCH);
    return choice->lengths == IN_TURNS ? length_of(first) : choice->lengths;
}

/* --- programs --- */

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

/* Both graphs as alternatives, in the order of enum lengths. */
struct program {
    qn_graph *graphs[2];
    qn_run runs[2];
    qn_run_list list;
};

static void open_program(struct program *p)
{
    p->graphs[0] = length_graph(SHORT, "x.short");
    p->graphs[1] = length_graph(LONG, "x.long");
    p->runs[0] = (qn_run){.name = "short", .graph = p->graphs[0]};
    p->runs[1] = (qn_run){.name = "long", .graph = p->graphs[1], .alternative = true};
    p->list = (qn_run_list){.runs = p->runs, .n_runs = 2};
}

static void close_program(struct program *p)
{
    qn_graph_destroy(&p->graphs[0]);
    qn_graph_destroy(&p->graphs[1]);
}

/* --- cases --- */

/* The weights after three updates, freed with free(). */
static float *train(const qn_run_list *list, enum lengths lengths, int64_t *count, int64_t *peak)
{
    struct choice choice = {.lengths = lengths};
    const qn_cycle cycle = {
        .samples = BATCH, .lr = 0.01, .fetch = fetch, .user = &choice, .choose = choose};
    struct test_run run = open_runs(list, &params, &trainer_params);
    float *weights;
    train_updates(run.trainer, &cycle, 3);
    *peak = qn_plan_facts(run.plan)->peak_bytes;
    *count = test_weights(run.trainer, &weights);
    close_counted(&run);
    return weights;
}

static void lengths_share_parameters(void **state)
{
    (void)state;
    struct program program;
    int64_t peaks[2], peak, count, other;
    open_program(&program);
    for (int length = ALL_SHORT; length <= ALL_LONG; length++) {
        const qn_run alone = {.graph = program.graphs[length]};
        const qn_run_list list = {.runs = &alone, .n_runs = 1};
        float *plain = train(&list, (enum lengths)length, &count, &peaks[length]);
        float *chosen = train(&program.list, (enum lengths)length, &other, &peak);
        assert_int_equal(count, other);
        assert_memory_equal(plain, chosen, (size_t)count * sizeof *plain);
        free(plain);
        free(chosen);
    }
    print_message("  peaks: short %" PRId64 ", long %" PRId64 ", both %" PRId64 "\n",
                  peaks[ALL_SHORT], peaks[ALL_LONG], peak);
    assert_int_equal(peak, peaks[ALL_LONG]);
    free(train(&program.list, IN_TURNS, &count, &peak));
    close_program(&program);
}

/* A cycle whose micro-steps take turns: its gradient is the mean over all samples, whatever their
 * length. Beside it two cycles of one length each, in which the samples of the other weigh nothing.
 */
static void mixed_lengths_have_one_weight(void **state)
{
    (void)state;
    static const double share[] = {8.0 / BATCH, 12.0 / BATCH};
    struct program program;
    float *gradient[3];
    int64_t count = 0;
    open_program(&program);
    for (int lengths = ALL_SHORT; lengths <= IN_TURNS; lengths++) {
        struct choice choice = {.lengths = (enum lengths)lengths, .masked = lengths != IN_TURNS};
        const qn_cycle cycle = {
            .samples = BATCH, .lr = 0, .fetch = fetch, .user = &choice, .choose = choose};
        gradient[lengths] = cycle_gradient(&program.list, &params, &trainer_params, &cycle, &count);
    }
    for (int64_t i = 0; i < count; i++)
        gradient[ALL_SHORT][i] = (float)(share[ALL_SHORT] * (double)gradient[ALL_SHORT][i] +
                                         share[ALL_LONG] * (double)gradient[ALL_LONG][i]);
    const double distance = test_distance(gradient[ALL_SHORT], gradient[IN_TURNS], count);
    print_message("  %.3g\n", distance);
    assert_true(distance < 1e-6);
    for (int lengths = ALL_SHORT; lengths <= IN_TURNS; lengths++)
        free(gradient[lengths]);
    close_program(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_share_parameters),
        cmocka_unit_test(mixed_lengths_have_one_weight),
    };
    return cmocka_run_group_tests_name("lengths", tests, open_counted, close_device);
}
