/* SPDX-License-Identifier: MIT
 *
 * Contrastive cycles: what the modes have in common to the bit or to rounding, losses and banks
 * beside a second computation in double, and cycles that change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 21, MICRO = 7, STEPS = 3, MOST_PLANS = 64 };

static const qn_trainer_params trainer_params = {.seed = 5};

/* --- data and towers --- */

/* Sample i of update u is number u * BATCH + i of an endless set. */
struct feed {
    int64_t update;
    bool strange; /* one number is no number */
};

static int64_t number_of(const struct feed *feed, int64_t i)
{
    return feed->update * BATCH + i;
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    const struct feed *feed = user;
    const int64_t from = number_of(feed, first);
    if (strcmp(input, "ids") == 0) {
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)rows)[i] = (int32_t)(from + i);
        return QN_OK;
    }
    fill_rows(from + (strcmp(input, "y") == 0 ? 5000 : 0), count, WIDE, rows);
    if (feed->strange && first == MICRO)
        ((float *)rows)[3] = NAN;
    return QN_OK;
}

static qn_tensor tower(qn_graph *graph, const char *input, const char *name)
{
    qn_tensor x = qn_input(graph, input, QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    return qn_tanh(graph, dense(graph, x, name, WIDE, CODE));
}

static qn_status dropped_towers(void *user, qn_graph *graph, qn_tensor *queries,
                                qn_tensor *passages)
{
    (void)user;
    *queries = qn_dropout(graph, tower(graph, "x", "query"), 0.4);
    *passages = qn_dropout(graph, tower(graph, "y", "passage"), 0.2);
    return QN_OK;
}

static qn_status towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    (void)user;
    *queries = tower(graph, "x", "query");
    *passages = tower(graph, "y", "passage");
    return QN_OK;
}

/* --- programs --- */

static qn_contrastive *open_mode(qn_contrastive_mode mode, const qn_contrastive_params *how)
{
    qn_contrastive_params params = how ? *how : (qn_contrastive_params){.temperature = 0.5};
    qn_contrastive *contrastive;
    params.mode = mode;
    params.towers = params.towers ? params.towers : towers;
    params.graph.log = test_log;
    assert_int_equal(qn_contrastive_create(&contrastive, &params), QN_OK);
    return contrastive;
}

static qn_plan_params at(int64_t batch, int64_t micro_batch)
{
    return (qn_plan_params){.budget = 1 << 20, .batch = {batch}, .micro_batch = micro_batch};
}

/* The gradient of the first cycle. */
static float *gradient_of(const qn_contrastive *contrastive, int64_t micro_batch, int64_t *count)
{
    struct feed feed = {0};
    const qn_plan_params plan = at(BATCH, micro_batch);
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.1, .fetch = fetch, .user = &feed};
    return cycle_gradient(qn_contrastive_program(contrastive), &plan, &trainer_params, &cycle,
                          count);
}

static double distance(const float *a, const float *b, int64_t count, double factor)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = factor * (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(apart / size);
}

struct side {
    qn_contrastive_mode mode;
    int64_t micro_batch;
    double factor;
};

static void compare(const struct side *a, const struct side *b, const qn_contrastive_params *how,
                    double bound)
{
    const struct side *side[] = {a, b};
    float *gradient[2];
    int64_t count[2];
    for (int i = 0; i < 2; i++) {
        qn_contrastive *contrastive = open_mode(side[i]->mode, how);
        gradient[i] = gradient_of(contrastive, side[i]->micro_batch, &count[i]);
        qn_contrastive_destroy(&contrastive);
    }
    assert_int_equal(count[0], count[1]);
    const double apart = distance(gradient[0], gradient[1], count[0], a->factor);
    print_message("  mode %d at %d, mode %d at %d: %.2e\n", (int)a->mode, (int)a->micro_batch,
                  (int)b->mode, (int)b->micro_batch, apart);
    assert_true(apart <= bound);
    free(gradient[0]);
    free(gradient[1]);
}

/* --- identities --- */

static const qn_contrastive_params learned = {
    .temperature = 0.25, .learned = true, .symmetric = true, .duplicates = true};

static void one_micro_step_is_the_whole_batch(void **state)
{
    (void)state;
    const struct side whole = {QN_CONTRASTIVE_WHOLE, BATCH, 1};
    compare(&(struct side){QN_CONTRASTIVE_ACCUMULATE, BATCH, 1}, &whole, NULL, 0);
    compare(&(struct side){QN_CONTRASTIVE_ACCUMULATE, BATCH, 1}, &whole, &learned, 0);
    compare(&(struct side){QN_CONTRASTIVE_GRADCACHE, BATCH, 1}, &whole, NULL, 0);
    compare(&(struct side){QN_CONTRASTIVE_CONTACCUM, BATCH, 1}, &whole, NULL, 0);
}

static void gradcache_is_the_whole_batch(void **state)
{
    (void)state;
    const struct side whole = {QN_CONTRASTIVE_WHOLE, BATCH, 1};
    for (int64_t micro = 1; micro < BATCH; micro += 4) {
        compare(&(struct side){QN_CONTRASTIVE_GRADCACHE, micro, 1}, &whole, NULL, 1e-5);
        compare(&(struct side){QN_CONTRASTIVE_GRADCACHE, micro, 1}, &whole, &learned, 1e-5);
    }
}

/* The second pass draws what the first drew, and what the whole batch draws. */
static void dropout_is_the_same_in_both_passes(void **state)
{
    (void)state;
    const qn_contrastive_params how = {.temperature = 0.5, .towers = dropped_towers};
    for (int64_t micro = 4; micro <= BATCH; micro += 17)
        compare(&(struct side){QN_CONTRASTIVE_GRADCACHE, micro, 1},
                &(struct side){QN_CONTRASTIVE_WHOLE, BATCH, 1}, &how, 1e-5);
}

static void no_bank_is_plain_accumulation(void **state)
{
    (void)state;
    for (int64_t micro = 2; micro < BATCH; micro += 5)
        compare(&(struct side){QN_CONTRASTIVE_CONTACCUM, micro, 1},
                &(struct side){QN_CONTRASTIVE_ACCUMULATE, micro, 1}, NULL, 0);
}

/* With all other pairs of the cycle in the bank, as they are encoded now, micro-steps see what the
 * whole batch sees: their mean is its gradient / the number of micro-steps. */
static void a_fresh_and_complete_bank_is_the_whole_batch(void **state)
{
    (void)state;
    const qn_contrastive_params how = {.temperature = 0.5, .bank = BATCH - MICRO};
    qn_contrastive *banks = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    qn_contrastive *whole = open_mode(QN_CONTRASTIVE_WHOLE, NULL);
    struct feed feed = {0};
    const qn_plan_params plan = at(BATCH, MICRO);
    const qn_cycle still = {.samples = BATCH, .lr = 0, .fetch = fetch, .user = &feed};
    int64_t count, of_whole;
    float *gradient, *want = gradient_of(whole, 0, &of_whole);
    struct test_run run = open_runs(qn_contrastive_program(banks), &plan, &trainer_params);
    train_updates(run.trainer, &still, 1);
    assert_int_equal(qn_trainer_accumulate(run.trainer, &still), QN_OK);
    count = test_read_gradients(run.trainer, &gradient);
    assert_int_equal(count, of_whole);
    const double apart = distance(gradient, want, count, STEPS);
    print_message("  %.2e apart\n", apart);
    assert_true(apart <= 1e-5);
    close_counted(&run);
    free(gradient);
    free(want);
    qn_contrastive_destroy(&banks);
    qn_contrastive_destroy(&whole);
}

/* --- a second computation --- */

/* Weights stay, data changes, so that what is in the bank tells which pairs it holds. */
static void follow(int64_t bank, int64_t batch, int64_t micro, bool no_queries, bool local_mean)
{
    const qn_contrastive_params how = {.mode = QN_CONTRASTIVE_CONTACCUM,
                                       .temperature = 0.5,
                                       .bank = bank,
                                       .no_query_bank = no_queries,
                                       .local_mean = local_mean,
                                       .table = true};
    struct pair_run of = {0};
    struct host host = {.how = how};
    print_message(" bank %d, %d by %d\n", (int)bank, (int)batch, (int)micro);
    open_pairs(&of, &how, batch, micro);
    assert_true(follow_pairs(&of, &host, micro, 0, 4) < 4e-7);
    assert_int_equal(qn_trainer_cell_rows(of.run.trainer, "bank.ids"), host.stored);
    close_counted(&of.run);
    qn_contrastive_destroy(&of.contrastive);
}

static void banks_hold_the_last_pairs(void **state)
{
    (void)state;
    follow(7, 21, 7, false, false);  /* one micro-step */
    follow(10, 21, 7, false, false); /* the ring ends within one */
    follow(11, 16, 5, false, false); /* a last micro-step of one */
    follow(13, 13, 1, false, false); /* micro-steps of one */
    follow(61, 21, 7, false, false); /* never full */
    follow(10, 16, 5, true, false);
    follow(10, 16, 5, false, true);
    follow(2, 2, 2, false, false);
    follow(67, 21, 7, false, false); /* a table of two tiles */
}

/* --- cycles that change nothing, and what outlives a trainer --- */

static void train_on(struct test_run *run, struct feed *feed, int updates)
{
    const qn_cycle cycle = {.samples = BATCH, .lr = 0.05, .fetch = fetch, .user = feed};
    for (int i = 0; i < updates; i++, feed->update++)
        assert_int_equal(qn_trainer_step(run->trainer, &cycle, NULL), QN_OK);
}

static void assert_same_weights(qn_trainer *have, qn_trainer *want)
{
    float *a, *b;
    assert_int_equal(qn_trainer_finish(have, NULL), QN_OK);
    assert_int_equal(qn_trainer_finish(want, NULL), QN_OK);
    const int64_t count = test_weights(have, &a);
    assert_int_equal(test_weights(want, &b), count);
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    free(a);
    free(b);
}

/* --- the last micro-step, kept or not --- */

/* The budgets of all plans of gradcache, from the smallest on; gives their number. */
static int budgets_of(const qn_contrastive *contrastive, int64_t micro_batch,
                      qn_plan_point points[MOST_PLANS])
{
    const qn_plan_params params = at(BATCH, micro_batch);
    qn_plan *plan;
    assert_int_equal(qn_plan_create_runs(&plan, qn_contrastive_program(contrastive),
                                         qn_device_facts(device), &params, NULL),
                     QN_OK);
    const int count = qn_plan_frontier(plan, points, MOST_PLANS);
    assert_in_range(count, 2, MOST_PLANS);
    qn_plan_destroy(&plan);
    return count;
}

static struct test_run open_within(const qn_contrastive *contrastive, int64_t micro_batch,
                                   int64_t budget)
{
    qn_plan_params params = at(BATCH, micro_batch);
    const qn_trainer_params poison = {.seed = 5, .poison = true};
    params.budget = budget;
    return open_runs(qn_contrastive_program(contrastive), &params, &poison);
}

static void count_tanh(void *user, const qn_profile_step *step)
{
    if (strncmp(step->name, "tanh", 4) == 0 && strcmp(step->group, "forward") == 0)
        ++*(int *)user;
}

/* How often a cycle runs the forward pass of a micro-step, in which both towers have one tanh. */
static int forward_passes(struct test_run *run)
{
    struct feed feed = {.update = 90};
    const qn_cycle cycle = {.samples = BATCH, .fetch = fetch, .user = &feed};
    int count = 0;
    assert_int_equal(qn_trainer_finish(run->trainer, NULL), QN_OK);
    qn_trainer_profile(run->trainer, count_tanh, &count);
    assert_int_equal(qn_trainer_accumulate(run->trainer, &cycle), QN_OK);
    qn_trainer_profile(run->trainer, NULL, NULL);
    return count / 2;
}

/* The weights after three updates within a budget, freed with free(). *passes: forward passes of a
 * cycle; *again: those that the plan tells of. */
static float *weights_within(const qn_contrastive *contrastive, int64_t micro_batch, int64_t budget,
                             int *passes, int64_t *again)
{
    struct test_run run = open_within(contrastive, micro_batch, budget);
    struct feed feed = {0};
    float *weights;
    train_on(&run, &feed, 3);
    *passes = forward_passes(&run);
    *again = qn_plan_facts(run.plan)->micro_steps_again;
    assert_true(test_weights(run.trainer, &weights) == 2 * CODE * WIDE);
    close_counted(&run);
    return weights;
}

/* At every budget the bits are the same, and plans that keep the last micro-step spare its second
 * forward pass. */
static void compare_budgets(int64_t micro_batch)
{
    qn_plan_point points[MOST_PLANS];
    const qn_contrastive_params how = {.temperature = 0.5, .towers = dropped_towers};
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_GRADCACHE, &how);
    const int steps = (int)((BATCH + micro_batch - 1) / micro_batch);
    const int count = budgets_of(contrastive, micro_batch, points);
    int passes, kept = 0;
    int64_t again;
    float *want = weights_within(contrastive, micro_batch, points[0].bytes, &passes, &again);
    assert_int_equal(passes, 2 * steps);
    for (int i = 1; i < count; i++) {
        float *have = weights_within(contrastive, micro_batch, points[i].bytes, &passes, &again);
        assert_memory_equal(have, want, 2 * CODE * WIDE * sizeof *have);
        assert_int_equal(passes, steps + again);
        kept += again == steps - 1;
        free(have);
    }
    print_message("  micro-batch %d: %d budgets, %d of them keep the last micro-step\n",
                  (int)micro_batch, count, kept);
    assert_true(kept > 0);
    free(want);
    qn_contrastive_destroy(&contrastive);
}

static void keeping_the_last_micro_step_changes_no_bit(void **state)
{
    (void)state;
    compare_budgets(MICRO);
    compare_budgets(4); /* a remainder of one */
    compare_budgets(BATCH);
}

/* Of a checkpoint that a large plan wrote, with a small one, and by a change of the budget. */
static void nor_does_a_resume_with_another_budget(void **state)
{
    (void)state;
    char dir[FOLDER_BYTES];
    qn_plan_point points[MOST_PLANS];
    const qn_contrastive_params how = {.temperature = 0.5, .towers = dropped_towers};
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_GRADCACHE, &how);
    const int count = budgets_of(contrastive, MICRO, points);
    const int64_t small = points[0].bytes, large = points[count - 1].bytes;
    struct test_run whole = open_within(contrastive, MICRO, large);
    struct test_run first = open_within(contrastive, MICRO, large);
    struct test_run second = open_within(contrastive, MICRO, small);
    struct feed feed = {0};
    qn_checkpoint *checkpoint;
    make_folder(dir);
    train_on(&whole, &feed, 6);
    feed = (struct feed){0};
    train_on(&first, &feed, 2);
    assert_int_equal(qn_checkpoint_save(first.trainer, dir, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, second.trainer), QN_OK);
    assert_int_equal(forward_passes(&second), 2 * STEPS);
    feed = (struct feed){.update = 2};
    train_on(&second, &feed, 2);
    assert_int_equal(qn_trainer_set_budget(second.trainer, large), QN_OK);
    train_on(&second, &feed, 2);
    assert_int_equal(forward_passes(&second), 2 * STEPS - 1);
    assert_same_weights(second.trainer, whole.trainer);
    qn_checkpoint_close(&checkpoint);
    test_close(&whole);
    test_close(&first);
    test_close(&second);
    qn_contrastive_destroy(&contrastive);
    remove_folder(dir);
}

/* --- skipped cycles and checkpoints --- */

/* A cycle whose gradient is not finite leaves the banks as they were, wherever it comes: the ring
 * has been overwritten in its middle by then. */
static void skip_with(int64_t queries)
{
    const qn_contrastive_params how = {
        .temperature = 0.5, .bank = 10, .bank_queries = queries, .table = true};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    struct test_run with = open_runs(qn_contrastive_program(contrastive), &plan, &trainer_params);
    struct feed feed = {0};
    train_on(&with, &feed, 2);
    feed.strange = true;
    train_on(&with, &feed, 1);
    feed.update--;
    feed.strange = false;
    train_on(&with, &feed, 3);
    struct test_run without =
        open_runs(qn_contrastive_program(contrastive), &plan, &trainer_params);
    feed = (struct feed){0};
    train_on(&without, &feed, 5);
    assert_same_weights(with.trainer, without.trainer);
    assert_int_equal(qn_trainer_cell_rows(with.trainer, "bank.ids"), 5 * BATCH);
    test_close(&with);
    test_close(&without);
    qn_contrastive_destroy(&contrastive);
}

static void a_skipped_cycle_leaves_the_banks(void **state)
{
    (void)state;
    skip_with(0);
    skip_with(8);
}

static double loss_after(qn_dtype storage, int updates)
{
    const qn_contrastive_params how = {
        .temperature = 0.5, .bank = 10, .table = true, .graph = {.storage = storage}};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    struct test_run run = open_runs(qn_contrastive_program(contrastive), &plan, &trainer_params);
    qn_metrics metrics;
    for (struct feed feed = {0}; updates > 0; feed.update++) {
        const qn_cycle cycle = {.samples = BATCH, .lr = 0.05, .fetch = fetch, .user = &feed};
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        feed.update -= metrics.skipped; /* again, with a smaller loss scale */
        updates -= !metrics.skipped;
    }
    close_counted(&run);
    qn_contrastive_destroy(&contrastive);
    return metrics.loss;
}

/* Banks of 16 bits; f16 skips cycles until the loss scale is found. */
static void banks_may_be_short(void **state)
{
    (void)state;
    const double exact = loss_after(QN_F32, 8);
    for (int i = 0; i < 2; i++) {
        const double loss = loss_after(i ? QN_BF16 : QN_F16, 8);
        print_message("  %s: %.5f beside %.5f\n", i ? "bf16" : "f16", loss, exact);
        assert_true(fabs(loss - exact) < (i ? 0.02 : 0.003));
    }
}

/* Saved right after a cycle that is skipped, before anybody has asked how it went. */
static void save_banks_with(int64_t queries)
{
    char dir[FOLDER_BYTES];
    make_folder(dir);
    const qn_contrastive_params how = {
        .temperature = 0.5, .bank = 10, .bank_queries = queries, .symmetric = true, .table = true};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    const qn_run_list *program = qn_contrastive_program(contrastive);
    struct test_run whole = open_runs(program, &plan, &trainer_params);
    struct test_run first = open_runs(program, &plan, &trainer_params), second;
    struct feed feed = {0};
    train_on(&whole, &feed, 6);
    feed = (struct feed){0};
    train_on(&first, &feed, 3);
    feed.strange = true;
    train_on(&first, &feed, 1);
    assert_int_equal(qn_checkpoint_save(first.trainer, dir, NULL), QN_OK);
    test_close(&first);
    qn_checkpoint *checkpoint;
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_plan_runs(checkpoint, program, device, &second.plan), QN_OK);
    assert_int_equal(qn_trainer_open(&second.trainer, device, second.plan,
                                     &qn_checkpoint_describe(checkpoint)->trainer),
                     QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, second.trainer), QN_OK);
    feed = (struct feed){.update = 3};
    train_on(&second, &feed, 3);
    assert_same_weights(second.trainer, whole.trainer);
    qn_checkpoint_close(&checkpoint);
    test_close(&whole);
    test_close(&second);
    qn_contrastive_destroy(&contrastive);
    remove_folder(dir);
}

static void banks_are_saved(void **state)
{
    (void)state;
    save_banks_with(0);
    save_banks_with(9);
}

/* --- tables --- */

enum { IDS = 17, UPDATES = 12, SKIPPED = 3, RESUMED = 6, LIMITS = 3 };

/* Banks with a table or without. */
struct banked {
    int64_t bank, batch, micro_batch;
    int64_t queries; /* of how many samples of the bank; 0: of all */
    int64_t each;    /* passages of a sample */
    bool symmetric, duplicates, local_mean;
    qn_dtype storage;
    int64_t
        limit[LIMITS]; /* rows that stay from an update on, and from the next of these; 0: all */
};

static qn_status fetch_twins(void *user, const char *input, int64_t first, int64_t count,
                             void *rows)
{
    const qn_status status = fetch(user, input, first, count, rows);
    for (int64_t i = 0; i < count && strcmp(input, "ids") == 0; i++)
        ((int32_t *)rows)[i] %= IDS;
    return status;
}

static qn_tensor bank_input(qn_graph *graph, const struct banked *b, const char *name, int64_t rows)
{
    const qn_dtype dtype = b->storage ? b->storage : QN_F32;
    return qn_cell_input(graph, name, dtype, 2, (int64_t[]){rows, CODE});
}

static int64_t queries_of(const struct banked *b)
{
    return b->queries ? b->queries : b->bank;
}

static qn_graph *banked_graph(const struct banked *b, bool table)
{
    qn_graph *graph;
    qn_tensor local, entry[3];
    assert_int_equal(
        qn_graph_create(
            &graph, &(qn_graph_params){.couples = true, .storage = b->storage, .log = test_log}),
        QN_OK);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor y = qn_input(graph, "y", QN_F32, 2, (int64_t[]){QN_BATCH, WIDE});
    qn_tensor q = qn_tanh(graph, dense(graph, x, "query", WIDE, CODE));
    qn_tensor p = qn_tanh(graph, dense(graph, y, "passage", WIDE, CODE * b->each));
    p = qn_reshape(graph, p, 2, (int64_t[]){b->each * QN_BATCH, CODE});
    const int64_t rows = qn_bank_table_rows(b->bank, queries_of(b), b->symmetric);
    qn_info_nce_params how = {
        .temperature = 0.5,
        .symmetric = b->symmetric,
        .local_mean = b->local_mean,
        .duplicates = b->duplicates,
        .ids = qn_input(graph, "ids", QN_I32, 1, (int64_t[]){QN_BATCH}),
        .bank_queries = bank_input(graph, b, "bank.queries", queries_of(b)),
        .bank_passages = bank_input(graph, b, "bank.passages", b->bank * b->each),
        .bank_ids = qn_cell_input(graph, "bank.ids", QN_I32, 1, (int64_t[]){b->bank})};
    if (table)
        how.bank_table =
            qn_cell_input(graph, "bank.table", QN_F32, 2, (int64_t[]){rows, queries_of(b)});
    qn_loss(graph, qn_info_nce(graph, q, p, &how, &local), "loss", NULL);
    qn_loss(graph, local, "local_loss", &(qn_loss_params){.monitor = true});
    assert_true(qn_bank_entry(graph, q, p, how.ids, entry));
    qn_output(graph, entry[0], "bank.queries");
    qn_output(graph, entry[1], "bank.passages");
    qn_output(graph, entry[2], "bank.ids");
    if (table)
        qn_output(graph, qn_bank_table(graph, &how), "bank.table");
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

/* A program of banks; `run` and `cells` are what it borrows. */
struct banked_program {
    qn_graph *graph;
    qn_run run;
    qn_cell cells[4];
    qn_run_list list;
};

static void make_banked(struct banked_program *program, const struct banked *b, bool table)
{
    *program = (struct banked_program){
        .graph = banked_graph(b, table),
        .cells = {{.name = "bank.passages", .kind = QN_CELL_RING, .rows = b->bank * b->each},
                  {.name = "bank.queries", .kind = QN_CELL_RING, .rows = queries_of(b)},
                  {.name = "bank.ids", .kind = QN_CELL_RING, .rows = b->bank, .first = -1},
                  {.name = "bank.table",
                   .kind = QN_CELL_TABLE,
                   .rows = qn_bank_table_rows(b->bank, queries_of(b), b->symmetric)}}};
    program->run = (qn_run){.name = "train", .graph = program->graph};
    program->list = (qn_run_list){&program->run, 1, program->cells, table ? 4 : 3};
}

/* Through a checkpoint, to another trainer. */
static void resume(struct test_run *run, const qn_run_list *list)
{
    char dir[FOLDER_BYTES];
    qn_checkpoint *checkpoint;
    make_folder(dir);
    assert_int_equal(qn_checkpoint_save(run->trainer, dir, NULL), QN_OK);
    test_close(run);
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_plan_runs(checkpoint, list, device, &run->plan), QN_OK);
    assert_int_equal(qn_trainer_open(&run->trainer, device, run->plan,
                                     &qn_checkpoint_describe(checkpoint)->trainer),
                     QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, run->trainer), QN_OK);
    qn_checkpoint_close(&checkpoint);
    remove_folder(dir);
}

static void same_loss(double have, double want)
{
    assert_true(fabs(have - want) <= 1e-6 * fabs(want));
}

/* One more update of both; gives how far apart their gradients of it are. */
static double step_both(struct test_run run[2], const qn_cycle *cycle, bool compares)
{
    float *gradient[2];
    qn_metrics metrics[2];
    int64_t count = 0;
    double apart = 0;
    for (int i = 0; i < 2 && compares; i++) {
        assert_int_equal(qn_trainer_accumulate(run[i].trainer, cycle), QN_OK);
        count = test_read_gradients(run[i].trainer, &gradient[i]);
    }
    if (compares) {
        apart = distance(gradient[0], gradient[1], count, 1);
        free(gradient[0]);
        free(gradient[1]);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qn_trainer_step(run[i].trainer, cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run[i].trainer, &metrics[i]), QN_OK);
    }
    assert_int_equal(metrics[0].skipped, metrics[1].skipped);
    for (int i = 0; i < 2 && !metrics[0].skipped; i++)
        same_loss(metrics[0].losses[i], metrics[1].losses[i]);
    return apart;
}

/* Limits both banks, and lifts it: after 5, 7 and 10 updates. */
static void limit_both(struct test_run run[2], const struct banked *b, int64_t update)
{
    static const int64_t when[LIMITS] = {5, 7, 10};
    for (int k = 0; k < LIMITS; k++)
        for (int i = 0; i < 2 && update == when[k]; i++)
            assert_int_equal(qn_trainer_limit_cell(run[i].trainer, "bank.ids", b->limit[k]), QN_OK);
}

/* Many micro-steps with a table and without, of weights that stay. */
static void follow_table(const struct banked *b)
{
    struct banked_program program[2];
    struct test_run run[2];
    struct feed feed = {0};
    const qn_plan_params plan = at(b->batch, b->micro_batch);
    const qn_cycle cycle = {.samples = b->batch, .lr = 0, .fetch = fetch_twins, .user = &feed};
    double apart = 0;
    for (int i = 0; i < 2; i++) {
        make_banked(&program[i], b, i == 0);
        run[i] = open_runs(&program[i].list, &plan, &trainer_params);
    }
    for (; feed.update < UPDATES; feed.update++) {
        feed.strange = feed.update == SKIPPED;
        limit_both(run, b, feed.update);
        if (feed.update == RESUMED)
            resume(&run[0], &program[0].list);
        const double now = step_both(run, &cycle, feed.update % 4 == 1);
        apart = now > apart ? now : apart;
    }
    print_message("  bank %d, %d by %d: gradients %.2e apart\n", (int)b->bank, (int)b->batch,
                  (int)b->micro_batch, apart);
    assert_true(apart <= 1e-6);
    for (int i = 0; i < 2; i++) {
        test_close(&run[i]);
        qn_graph_destroy(&program[i].graph);
    }
}

/* With scores of the bank's samples that are kept the numbers are those of scores that are made
 * anew: with rings that end within a micro-step, a last micro-step of one, a cycle that is skipped
 * in their midst, after a checkpoint, partly full and going round. */
static void a_table_changes_rounding_alone(void **state)
{
    (void)state;
    follow_table(&(struct banked){.bank = 67, .batch = 21, .micro_batch = 7, .each = 1});
    follow_table(&(struct banked){.bank = 71,
                                  .batch = 16,
                                  .micro_batch = 5,
                                  .each = 1,
                                  .symmetric = true,
                                  .duplicates = true});
    follow_table(&(struct banked){.bank = 131,
                                  .batch = 49,
                                  .micro_batch = 16,
                                  .each = 2,
                                  .symmetric = true,
                                  .duplicates = true,
                                  .local_mean = true});
    follow_table(&(struct banked){.bank = 13, .batch = 21, .micro_batch = 7, .each = 3});
    follow_table(&(struct banked){.bank = 251, .batch = 21, .micro_batch = 1, .each = 1});
    follow_table(
        &(struct banked){.bank = 67, .batch = 21, .micro_batch = 7, .each = 2, .storage = QN_BF16});
}

/* Also where fewer samples have queries: in one tile of the table where passages are in several, in
 * several, and those of a micro-step alone. */
static void a_table_of_fewer_queries_does_so_too(void **state)
{
    (void)state;
    follow_table(
        &(struct banked){.bank = 133, .queries = 10, .batch = 21, .micro_batch = 7, .each = 1});
    follow_table(&(struct banked){.bank = 71,
                                  .queries = 66,
                                  .batch = 16,
                                  .micro_batch = 5,
                                  .each = 2,
                                  .symmetric = true,
                                  .duplicates = true});
    follow_table(&(struct banked){.bank = 201,
                                  .queries = 131,
                                  .batch = 49,
                                  .micro_batch = 16,
                                  .each = 1,
                                  .symmetric = true,
                                  .local_mean = true});
    follow_table(&(struct banked){.bank = 67,
                                  .queries = 7,
                                  .batch = 21,
                                  .micro_batch = 7,
                                  .each = 3,
                                  .symmetric = true,
                                  .storage = QN_BF16});
}

/* Also where entries of the bank count no more: few or many at once, in one tile of the table and
 * in several, again and again, fewer than a micro-step has, or until the limit is lifted. */
static void a_table_follows_limits(void **state)
{
    (void)state;
    follow_table(&(struct banked){
        .bank = 67, .batch = 21, .micro_batch = 7, .each = 1, .limit = {40, 23, 9}});
    follow_table(&(struct banked){.bank = 71,
                                  .batch = 16,
                                  .micro_batch = 5,
                                  .each = 1,
                                  .symmetric = true,
                                  .duplicates = true,
                                  .limit = {70, 3, 0}});
    follow_table(&(struct banked){.bank = 227,
                                  .batch = 49,
                                  .micro_batch = 16,
                                  .each = 2,
                                  .symmetric = true,
                                  .local_mean = true,
                                  .limit = {150, 60, 200}});
    follow_table(&(struct banked){
        .bank = 195, .batch = 70, .micro_batch = 70, .each = 1, .limit = {130, 69, 1}});
    follow_table(&(struct banked){.bank = 200,
                                  .batch = 21,
                                  .micro_batch = 1,
                                  .each = 1,
                                  .symmetric = true,
                                  .limit = {90, 80, 0}});
    follow_table(&(struct banked){.bank = 133,
                                  .queries = 70,
                                  .batch = 21,
                                  .micro_batch = 7,
                                  .each = 2,
                                  .symmetric = true,
                                  .duplicates = true,
                                  .limit = {90, 23, 0}});
    follow_table(&(struct banked){.bank = 200,
                                  .queries = 100,
                                  .batch = 36,
                                  .micro_batch = 5,
                                  .each = 1,
                                  .symmetric = true,
                                  .limit = {104, 26, 90}});
}

/* What others know of vectors that are no more is not made anew: ids alone say which those are. */
static void vectors_with_a_table_have_no_limit(void **state)
{
    (void)state;
    const qn_contrastive_params how = {.temperature = 0.5, .bank = 33, .table = true};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    struct test_run run = open_runs(qn_contrastive_program(contrastive), &plan, &trainer_params);
    assert_int_equal(qn_trainer_limit_cell(run.trainer, "bank.queries", 9), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "bank.queries: a table"));
    assert_int_equal(qn_trainer_limit_cell(run.trainer, "bank.passages", 9), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_limit_cell(run.trainer, "bank.ids", 9), QN_OK);
    test_close(&run);
    qn_contrastive_destroy(&contrastive);
}

/* A table is of rings, and in a cell of tables. */
static void tables_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const struct banked b = {.bank = 67, .batch = BATCH, .micro_batch = MICRO, .each = 1};
    const qn_plan_params params = at(BATCH, MICRO);
    for (int i = 0; i < 3; i++) {
        struct banked_program program;
        qn_plan *plan;
        make_banked(&program, &b, true);
        if (i == 0)
            program.cells[3].kind = QN_CELL_RING;
        if (i == 1)
            program.cells[3].rows--;
        if (i == 2)
            program.cells[2].kind = QN_CELL_TABLE;
        assert_int_not_equal(
            qn_plan_create_runs(&plan, &program.list, qn_device_facts(device), &params, NULL),
            QN_OK);
        print_message("  %s\n", qn_last_error());
        qn_graph_destroy(&program.graph);
    }
}

/* Emptied before each cycle, banks know the same cycle alone. */
static void forgotten_banks_begin_empty(void **state)
{
    (void)state;
    const qn_contrastive_params how = {
        .temperature = 0.5, .bank = 14, .forget = true, .symmetric = true, .table = true};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *contrastive = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    struct test_run run = open_runs(qn_contrastive_program(contrastive), &plan, &trainer_params);
    double loss[2];
    for (int i = 0; i < 2; i++) {
        struct feed feed = {0};
        qn_metrics metrics;
        const qn_cycle cycle = {.samples = BATCH, .lr = 0, .fetch = fetch, .user = &feed};
        assert_int_equal(qn_contrastive_begin(contrastive, run.trainer), QN_OK);
        assert_int_equal(qn_trainer_step(run.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(run.trainer, &metrics), QN_OK);
        loss[i] = metrics.loss;
    }
    assert_true(loss[0] == loss[1]);
    test_close(&run);
    qn_contrastive_destroy(&contrastive);
}

/* --- bytes, and what is refused --- */

/* Bytes of so many numbers of four bytes where they are placed. */
static int64_t placed(int64_t count)
{
    const int64_t unit = qn_device_facts(device)->alignment;
    return (count * 4 + unit - 1) / unit * unit;
}

/* What persists is what plain accumulation has, and the banks with their table. */
static void count_banks(int64_t bank, int64_t queries, int64_t table)
{
    const qn_contrastive_params how = {
        .temperature = 0.5, .bank = bank, .bank_queries = queries, .table = true};
    const qn_plan_params plan = at(BATCH, MICRO);
    qn_contrastive *with = open_mode(QN_CONTRASTIVE_CONTACCUM, &how);
    qn_contrastive *without = open_mode(QN_CONTRASTIVE_ACCUMULATE, NULL);
    struct test_run a = open_runs(qn_contrastive_program(with), &plan, &trainer_params);
    struct test_run b = open_runs(qn_contrastive_program(without), &plan, &trainer_params);
    const int64_t *have = qn_plan_facts(a.plan)->bytes_by_tag;
    const int64_t *want = qn_plan_facts(b.plan)->bytes_by_tag;
    assert_int_equal(have[QN_TAG_BANKS], placed((queries ? queries : bank) * CODE) +
                                             placed(bank * CODE) + placed(bank));
    assert_int_equal(want[QN_TAG_BANKS], 0);
    assert_int_equal(have[QN_TAG_TABLES], placed(table));
    assert_int_equal(want[QN_TAG_TABLES], 0);
    assert_int_equal(have[QN_TAG_PARAMETERS], want[QN_TAG_PARAMETERS]);
    assert_int_equal(have[QN_TAG_GRADIENTS], want[QN_TAG_GRADIENTS]);
    assert_int_equal(have[QN_TAG_OPTIMIZER], want[QN_TAG_OPTIMIZER]);
    test_close(&a);
    test_close(&b);
    qn_contrastive_destroy(&with);
    qn_contrastive_destroy(&without);
}

static void banks_are_in_the_plan(void **state)
{
    (void)state;
    count_banks(33, 0, qn_bank_table_rows(33, 33, false) * 33);
    count_banks(33, 33, qn_bank_table_rows(33, 33, false) * 33);
    count_banks(133, 8, qn_bank_table_rows(133, 8, false) * 8);
}

enum { MANY = 65536, LONG = 512 };

static qn_status long_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    (void)user;
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, CODE});
    *queries = dense(graph, x, "query", CODE, LONG);
    *passages = dense(graph, x, "passage", CODE, LONG);
    return QN_OK;
}

/* The loss of 65,536 pairs of 512 numbers: scores of 16 GiB, of which few are ever there. */
static void a_large_loss_takes_few_bytes(void **state)
{
    (void)state;
    const qn_contrastive_params params = {
        .mode = QN_CONTRASTIVE_GRADCACHE, .towers = long_towers, .symmetric = true};
    const qn_plan_params how = {.budget = (int64_t)1 << 30, .batch = {MANY}, .micro_batch = 64};
    qn_contrastive *contrastive;
    qn_plan *plan;
    assert_int_equal(qn_contrastive_create(&contrastive, &params), QN_OK);
    assert_int_equal(qn_plan_create_runs(&plan, qn_contrastive_program(contrastive),
                                         qn_device_facts(device), &how, NULL),
                     QN_OK);
    const int64_t vectors = 4ll * MANY * LONG * (int64_t)sizeof(float);
    const int64_t more = qn_plan_facts(plan)->peak_bytes - vectors;
    print_message("  %.2f MiB beside vectors and their gradients\n", (double)more / (1 << 20));
    assert_true(more <= 16 << 20);
    qn_plan_destroy(&plan);
    qn_contrastive_destroy(&contrastive);
}

static qn_status one_tower(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    (void)user;
    *queries = tower(graph, "x", "query");
    *passages = qn_mean(graph, *queries, 1);
    return QN_OK;
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const struct {
        qn_contrastive_params params;
        const char *why;
    } bad[] = {
        {{.mode = QN_CONTRASTIVE_WHOLE, .bank = 4}, "contaccum alone has banks"},
        {{.mode = QN_CONTRASTIVE_ACCUMULATE, .start = 4}, "contaccum alone has banks"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .start = 4}, "banks start after"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .bank = 4, .start = -1}, "banks start after"},
        {{.mode = (qn_contrastive_mode)9}, "no such mode"},
        {{.temperature = -1}, "above 0"},
        {{.temperature = NAN}, "above 0"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .bank = -1}, "from 0"},
        {{.mode = QN_CONTRASTIVE_ACCUMULATE, .bank_queries = 4}, "contaccum alone has banks"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .bank = 4, .bank_queries = 5}, "as many samples as"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .bank = 4, .bank_queries = -1}, "as many samples as"},
        {{.mode = QN_CONTRASTIVE_CONTACCUM, .bank = 4, .bank_queries = 4, .no_query_bank = true},
         "and none"},
        {{.towers = one_tower}, "passages (p * batch, d)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_contrastive_params params = bad[i].params;
        qn_contrastive *contrastive;
        params.towers = params.towers ? params.towers : towers;
        assert_int_equal(qn_contrastive_create(&contrastive, &params), QN_ERR_ARGUMENT);
        print_message("  %s\n", qn_last_error());
        assert_null(contrastive);
        assert_non_null(strstr(qn_last_error(), bad[i].why));
    }
}

/* A bank that a micro-step does not fit into, and modes that want a micro-batch without one. */
static void plans_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const struct {
        qn_contrastive_mode mode;
        int64_t bank, micro_batch;
        const char *why;
    } bad[] = {{QN_CONTRASTIVE_CONTACCUM, 6, 7, "has 6 rows"},
               {QN_CONTRASTIVE_ACCUMULATE, 0, 0, "the micro-batch must be given"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const qn_contrastive_params how = {.temperature = 0.5, .bank = bad[i].bank};
        const qn_plan_params params = at(BATCH, bad[i].micro_batch);
        qn_contrastive *contrastive = open_mode(bad[i].mode, &how);
        qn_plan *plan;
        assert_int_not_equal(qn_plan_create_runs(&plan, qn_contrastive_program(contrastive),
                                                 qn_device_facts(device), &params, NULL),
                             QN_OK);
        assert_non_null(strstr(qn_last_error(), bad[i].why));
        qn_contrastive_destroy(&contrastive);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_micro_step_is_the_whole_batch),
        cmocka_unit_test(gradcache_is_the_whole_batch),
        cmocka_unit_test(dropout_is_the_same_in_both_passes),
        cmocka_unit_test(no_bank_is_plain_accumulation),
        cmocka_unit_test(a_fresh_and_complete_bank_is_the_whole_batch),
        cmocka_unit_test(banks_hold_the_last_pairs),
        cmocka_unit_test(keeping_the_last_micro_step_changes_no_bit),
        cmocka_unit_test(nor_does_a_resume_with_another_budget),
        cmocka_unit_test(a_skipped_cycle_leaves_the_banks),
        cmocka_unit_test(banks_may_be_short),
        cmocka_unit_test(banks_are_saved),
        cmocka_unit_test(a_table_changes_rounding_alone),
        cmocka_unit_test(a_table_of_fewer_queries_does_so_too),
        cmocka_unit_test(a_table_follows_limits),
        cmocka_unit_test(vectors_with_a_table_have_no_limit),
        cmocka_unit_test(tables_that_cannot_be_are_refused),
        cmocka_unit_test(forgotten_banks_begin_empty),
        cmocka_unit_test(banks_are_in_the_plan),
        cmocka_unit_test(a_large_loss_takes_few_bytes),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(plans_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("contrastive", tests, open_counted, close_device);
}
