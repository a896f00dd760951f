/* SPDX-License-Identifier: MIT
 *
 * What must hold of contrastive cycles whatever the numbers are: sums over micro-steps, banks that
 * get no gradient, the balance of pulls and pushes, the gradient of each vector, anchors and their
 * hard negatives, and sets of samples as small as can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"
#include "run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 21, MICRO = 7, STEPS = BATCH / MICRO };

static qn_contrastive_params with_bank(int64_t bank)
{
    return (qn_contrastive_params){
        .mode = QN_CONTRASTIVE_CONTACCUM, .temperature = 0.5, .bank = bank};
}

static void accumulate(struct pair_run *of)
{
    const qn_cycle cycle = {.samples = of->batch, .fetch = fetch_pairs, .user = &of->pairs};
    assert_int_equal(qn_trainer_accumulate(of->run.trainer, &cycle), QN_OK);
}

static void gradient_of(struct pair_run *of, const char *name, float *values, int64_t count)
{
    assert_int_equal(qn_trainer_read_gradient(of->run.trainer, name, values, count), QN_OK);
}

static double distance(const float *have, const float *want, int64_t count, double factor)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += pow(factor * (double)have[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    return sqrt(apart / size);
}

/* --- sums over micro-steps --- */

/* A bank of all other pairs as they are encoded now makes each micro-step's loss that of the whole
 * batch, of which it differentiates its own share: the sum over micro-steps is the gradient of the
 * towers, and a cycle's mean over K of them 1 / K of it (as OpenCLIP's accumulation, which sums).
 * The temperature has its whole gradient in each: its mean is the gradient, K times what the
 * towers have of theirs. */
static void the_sum_over_micro_steps_is_the_whole_batch(void **state)
{
    (void)state;
    static const char *const names[] = {"query", "passage", "logit_scale"};
    static const int64_t counts[] = {CODE * WIDE, CODE * WIDE, 1};
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        qn_contrastive_params how = with_bank(BATCH - MICRO), plain = {.temperature = 0.5};
        how.symmetric = plain.symmetric = symmetric;
        how.learned = plain.learned = true;
        struct pair_run banks = {0}, whole = {0};
        open_pairs(&banks, &how, BATCH, MICRO);
        open_pairs(&whole, &plain, BATCH, 0);
        train_pairs(&banks, 0, 1);
        banks.pairs.first = 0;
        accumulate(&banks);
        accumulate(&whole);
        for (int i = 0; i < 3; i++) {
            float have[CODE * WIDE], want[CODE * WIDE];
            gradient_of(&banks, names[i], have, counts[i]);
            gradient_of(&whole, names[i], want, counts[i]);
            const double apart = distance(have, want, counts[i], i < 2 ? STEPS : 1);
            print_message("  %s: %.2e apart\n", names[i], apart);
            assert_true(apart < 1e-5);
        }
        close_pairs(&banks);
        close_pairs(&whole);
    }
}

/* Which the mean over the micro-step's own rows alone is not. */
static void the_mean_of_own_rows_is_another_loss(void **state)
{
    (void)state;
    qn_contrastive_params how = with_bank(BATCH - MICRO), plain = {.temperature = 0.5};
    how.local_mean = true;
    struct pair_run banks = {0}, whole = {0};
    float have[CODE * WIDE], want[CODE * WIDE];
    open_pairs(&banks, &how, BATCH, MICRO);
    open_pairs(&whole, &plain, BATCH, 0);
    train_pairs(&banks, 0, 1);
    banks.pairs.first = 0;
    accumulate(&banks);
    accumulate(&whole);
    gradient_of(&banks, "query", have, CODE * WIDE);
    gradient_of(&whole, "query", want, CODE * WIDE);
    assert_true(distance(have, want, CODE * WIDE, STEPS) > 1);
    assert_true(distance(have, want, CODE * WIDE, 1) < 1e-5); /* R / n = K times as large */
    close_pairs(&banks);
    close_pairs(&whole);
}

/* --- banks --- */

struct taken {
    struct pair_run *of;
    int64_t seen;
};

/* The rows of the bank of these samples are what they are encoded as. */
static qn_status compare_rows(void *user, const char *name, int64_t first, int64_t count,
                              const void *rows)
{
    struct taken *taken = user;
    qn_trainer *trainer = taken->of->run.trainer;
    char cell[32];
    snprintf(cell, sizeof cell, "bank.%s", name);
    const struct qn_cell_of *of = qn_cell_named(&trainer->plan->persist.runs, cell);
    const int64_t each = of->operand.shape.dim[0] / 40,
                  bytes = each * CODE * (int64_t)sizeof(float);
    const int64_t stored = qn_trainer_cell_rows(trainer, "bank.ids");
    for (int64_t i = 0; i < count; i++, taken->seen++) {
        float held[MOST_EACH * CODE];
        const float *fresh = (const float *)rows + i * each * CODE;
        assert_int_equal(qn_trainer_read_value(trainer, of->value,
                                               (stored - 40 + first + i) % 40 * bytes, held, bytes),
                         QN_OK);
        for (int64_t k = 0; k < each * CODE; k++)
            assert_true(fabs((double)held[k] - (double)fresh[k]) < 1e-6);
    }
    return QN_OK;
}

static qn_status fetch_taken(void *user, const char *input, int64_t first, int64_t count,
                             void *rows)
{
    return fetch_pairs(&((struct taken *)user)->of->pairs, input, first, count, rows);
}

/* lr 0: each entry is its sample's vectors, queries beside their passages. */
static void banks_hold_what_is_encoded(void **state)
{
    (void)state;
    const qn_contrastive_params how = with_bank(40);
    struct pair_run of = {.pairs = {.each = 2}};
    struct taken taken = {.of = &of};
    open_pairs(&of, &how, 16, 5);
    train_pairs(&of, 0, 7);
    of.pairs.first -= 40;
    assert_int_equal(
        qn_trainer_evaluate_run(of.run.trainer, "encode", 40, fetch_taken, compare_rows, &taken),
        QN_OK);
    assert_int_equal(taken.seen, 2 * 40);
    close_pairs(&of);
}

/* Samples in the bank may have become other ones: nobody encodes them again. */
static void banks_get_no_gradient(void **state)
{
    (void)state;
    const qn_contrastive_params how = with_bank(40);
    struct pair_run of = {0};
    float before[2][CODE * WIDE], after[2][CODE * WIDE];
    open_pairs(&of, &how, BATCH, MICRO);
    train_pairs(&of, 0.1, 3);
    accumulate(&of);
    gradient_of(&of, "query", before[0], CODE * WIDE);
    gradient_of(&of, "passage", before[1], CODE * WIDE);
    of.pairs.changed = of.pairs.first;
    accumulate(&of);
    gradient_of(&of, "query", after[0], CODE * WIDE);
    gradient_of(&of, "passage", after[1], CODE * WIDE);
    assert_memory_equal(before, after, sizeof before);
    of.pairs.changed = of.pairs.first + 1; /* one of the cycle's own */
    accumulate(&of);
    gradient_of(&of, "query", after[0], CODE * WIDE);
    assert_memory_not_equal(before[0], after[0], sizeof before[0]);
    close_pairs(&of);
}

/* --- balance --- */

/* Passages have a bias. Where the first number of every query is 1, its gradient in the first
 * number is (1 / (R t)) * the sum over own passages l of (the sum over rows i of the share of l in
 * row i)
 * - 1: what pushes a passage away, less what pulls it to its query. */
static qn_status balanced_towers(void *user, qn_graph *graph, qn_tensor *queries,
                                 qn_tensor *passages)
{
    static const float one[CODE] = {1};
    const qn_init zero = qn_init_constant(0);
    const qn_status status = pair_towers(user, graph, queries, passages);
    *queries = qn_bias(graph, *queries, qn_constant(graph, "one", one, CODE));
    *passages =
        qn_bias(graph, *passages, qn_parameter(graph, "shift", 1, (int64_t[]){CODE}, &zero));
    return status;
}

/* Makes the first number of every query that of the constant. */
static void make_ones(qn_trainer *trainer)
{
    float w[CODE * WIDE];
    assert_int_equal(qn_trainer_read(trainer, "query", w, CODE * WIDE), QN_OK);
    memset(w, 0, WIDE * sizeof *w);
    assert_int_equal(qn_trainer_write(trainer, "query", w, CODE * WIDE), QN_OK);
}

/* The mean of it over own passages. */
static double balance(const qn_contrastive_params *how)
{
    struct pair_run of = {0};
    float shift[CODE];
    open_pairs(&of, how, BATCH, MICRO);
    make_ones(of.run.trainer);
    train_pairs(&of, 0, 3);
    accumulate(&of);
    gradient_of(&of, "shift", shift, CODE);
    const int64_t rows = MICRO + (how->no_query_bank ? 0 : how->bank);
    close_pairs(&of);
    return (double)shift[0] * 0.5 * (double)rows / MICRO;
}

static void banks_of_both_sides_are_balanced(void **state)
{
    (void)state;
    qn_contrastive_params how = with_bank(0);
    how.towers = balanced_towers;
    const double none = balance(&how);
    how.bank = 42;
    const double both = balance(&how);
    how.no_query_bank = true;
    const double alone = balance(&how);
    print_message("  no bank %.1e, both %.3f, passages alone %.3f\n", none, both, alone);
    assert_true(fabs(none) < 1e-6);
    assert_true(fabs(both) < 0.1);
    assert_true(alone < -0.5);
}

/* --- vectors that are parameters --- */

/* Each vector is a parameter: the row of a table that the sample's id names. `user` is a struct
 * pairs of a set of `data` samples with `each` passages. */
static qn_status table_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    const struct pairs *pairs = user;
    const int64_t each = pairs->each;
    const qn_init init = qn_init_fan_in(2 * CODE);
    qn_tensor x = qn_input(graph, "x", QN_I32, 1, (int64_t[]){QN_BATCH});
    qn_tensor y = qn_input(graph, "y", QN_I32, 1, (int64_t[]){each * QN_BATCH});
    *queries = qn_embedding(graph, x,
                            qn_parameter(graph, "query", 2, (int64_t[]){pairs->data, CODE}, &init));
    *passages = qn_embedding(
        graph, y, qn_parameter(graph, "passage", 2, (int64_t[]){pairs->data * each, CODE}, &init));
    return QN_OK;
}

/* Own, negative, negative; own, negative, negative; ... */
static qn_status fetch_places(void *user, const char *input, int64_t first, int64_t count,
                              void *rows)
{
    const struct pairs *pairs = user;
    const int64_t each = strcmp(input, "y") == 0 ? pairs->each : 1;
    for (int64_t i = 0; i < count * each; i++)
        ((int32_t *)rows)[i] = (int32_t)(id_of(pairs, first + i / each) * each + i % each);
    return QN_OK;
}

/* --- the gradient of each vector --- */

enum { OWN = 7, LATER = 3, SET = OWN * (LATER + 1) };

/* Vectors of samples, or their gradients. */
struct sides {
    double q[SET * CODE], p[SET * MOST_EACH * CODE];
};

/* The scores of all queries with all passages: the first OWN samples are the micro-step's, the
 * others the bank's. */
struct matrix {
    struct sides at;
    int64_t rows, columns, each; /* `each` columns of a sample, its own passage first */
    double temperature, mean;    /* the sum over rows is divided by `mean` */
    bool symmetric;              /* rows' own passages look for their queries among the rows, too */
};

static double score_of(const struct matrix *m, int64_t row, int64_t column)
{
    double sum = 0;
    for (int c = 0; c < CODE; c++)
        sum += m->at.q[row * CODE + c] * m->at.p[column * CODE + c];
    return sum / m->temperature;
}

static double sum_of_row(const struct matrix *m, int64_t row)
{
    double sum = 0;
    for (int64_t j = 0; j < m->columns; j++)
        sum += exp(score_of(m, row, j));
    return sum;
}

static double sum_of_column(const struct matrix *m, int64_t column)
{
    double sum = 0;
    for (int64_t i = 0; i < m->rows; i++)
        sum += exp(score_of(m, i, column));
    return sum;
}

static double loss_of(const struct matrix *m)
{
    double forth = 0, back = 0;
    for (int64_t i = 0; i < m->rows; i++) {
        forth += log(sum_of_row(m, i)) - score_of(m, i, i * m->each);
        back += log(sum_of_column(m, i * m->each)) - score_of(m, i, i * m->each);
    }
    return (m->symmetric ? (forth + back) / 2 : forth) / m->mean;
}

/* Equations 8 and 9 of Kim et al. 2024: where s is the softmax of each row, and o its own column,
 *
 *     dL/dq_i = (sum over columns j of s_ij p_j - p_o(i)) / (R t),
 *     dL/dp_j = (sum over rows i of s_ij q_i - the q_i with o(i) = j) / (R t),
 *
 * and of a symmetric loss the mean of that and the same with the softmax of each own column. */
static void by_equations(const struct matrix *m, struct sides *to)
{
    *to = (struct sides){0};
    for (int64_t i = 0; i < m->rows; i++) {
        const double sum = sum_of_row(m, i);
        for (int64_t j = 0; j < m->columns; j++) {
            const bool looks = m->symmetric && j % m->each == 0 && j / m->each < m->rows;
            const double e = exp(score_of(m, i, j)), own = j == i * m->each ? 1 : 0;
            double g = e / sum - own;
            g += looks ? e / sum_of_column(m, j) - own : 0;
            g /= m->mean * m->temperature * (m->symmetric ? 2 : 1);
            for (int c = 0; c < CODE; c++) {
                to->q[i * CODE + c] += g * m->at.p[j * CODE + c];
                to->p[j * CODE + c] += g * m->at.q[i * CODE + c];
            }
        }
    }
}

/* The derivative by one number of `m`, from the loss alone. */
static double derivative(struct matrix *m, double *number)
{
    const double at = *number, step = 1e-5;
    *number = at + step;
    const double above = loss_of(m);
    *number = at - step;
    const double below = loss_of(m);
    *number = at;
    return (above - below) / (2 * step);
}

static void by_differences(struct matrix *m, struct sides *to)
{
    for (int64_t k = 0; k < OWN * CODE; k++)
        to->q[k] = derivative(m, &m->at.q[k]);
    for (int64_t k = 0; k < OWN * m->each * CODE; k++)
        to->p[k] = derivative(m, &m->at.p[k]);
}

/* Of the micro-step's own samples. */
static double sides_apart(const struct sides *have, const struct sides *want, int64_t each)
{
    double apart = 0, size = 0;
    for (int64_t k = 0; k < OWN * CODE; k++) {
        apart += pow(have->q[k] - want->q[k], 2);
        size += pow(want->q[k], 2);
    }
    for (int64_t k = 0; k < OWN * each * CODE; k++) {
        apart += pow(have->p[k] - want->p[k], 2);
        size += pow(want->p[k], 2);
    }
    return sqrt(apart / size);
}

typedef qn_status (*read_fn)(qn_trainer *, const char *, float *, int64_t);

/* What tables hold of the next OWN samples, and of the `held` ones before them, the last of which
 * is the first. */
static void read_sides(struct pair_run *of, read_fn read, int64_t held, struct sides *to)
{
    const int64_t each = of->pairs.each;
    float q[SET * CODE], p[SET * MOST_EACH * CODE];
    assert_int_equal(read(of->run.trainer, "query", q, SET * CODE), QN_OK);
    assert_int_equal(read(of->run.trainer, "passage", p, SET * each * CODE), QN_OK);
    for (int64_t i = 0; i < OWN + held; i++) {
        const int64_t id = of->pairs.first + (i < OWN ? i : OWN - 1 - i);
        for (int64_t k = 0; k < CODE; k++)
            to->q[i * CODE + k] = (double)q[id * CODE + k];
        for (int64_t k = 0; k < each * CODE; k++)
            to->p[i * each * CODE + k] = (double)p[id * each * CODE + k];
    }
}

/* After so many updates that only filled the bank. */
static void compare_with_equations(const qn_contrastive_params *how, int64_t each, int updates)
{
    struct pair_run of = {.pairs = {.data = SET, .each = each}};
    const qn_cycle cycle = {.samples = OWN, .fetch = fetch_places, .user = &of.pairs};
    struct sides have, equations, differences;
    open_pairs(&of, how, OWN, OWN);
    for (int i = 0; i < updates; i++, of.pairs.first += OWN)
        train_updates(of.run.trainer, &cycle, 1);
    assert_int_equal(qn_trainer_accumulate(of.run.trainer, &cycle), QN_OK);
    const int64_t held = updates * OWN < how->bank ? updates * OWN : how->bank;
    const int64_t most = how->bank_queries ? how->bank_queries : how->bank;
    const int64_t queries = how->no_query_bank ? 0 : held < most ? held : most;
    struct matrix m = {.rows = OWN + queries,
                       .columns = (OWN + held) * each,
                       .each = each,
                       .temperature = how->temperature,
                       .symmetric = how->symmetric};
    m.mean = (double)(how->local_mean ? OWN : m.rows);
    read_sides(&of, qn_trainer_read, held, &m.at);
    read_sides(&of, qn_trainer_read_gradient, held, &have);
    by_equations(&m, &equations);
    by_differences(&m, &differences);
    const double apart = sides_apart(&have, &equations, each);
    print_message(
        "  %d of bank %d, queries %d, own mean %d, symmetric %d, passages %d: %.2e apart\n",
        (int)held, (int)how->bank, (int)queries, how->local_mean, how->symmetric, (int)each, apart);
    assert_true(sides_apart(&equations, &differences, each) < 1e-8);
    assert_true(apart < 1e-5);
    close_pairs(&of);
}

/* The bank empty, filled in part, and full after it began anew; with two hard negatives, too. */
static void compare_all(qn_contrastive_params how)
{
    how.towers = table_towers;
    for (int64_t each = 1; each <= MOST_EACH; each += MOST_EACH - 1)
        for (int updates = 0; updates <= LATER; updates++)
            compare_with_equations(&how, each, updates);
}

/* Without queries in the bank, and by the mean over own rows. */
static void gradients_are_those_of_the_equations(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        qn_contrastive_params how = with_bank(OWN * 2 + 2);
        how.no_query_bank = way % 2;
        how.local_mean = way / 2;
        compare_all(how);
    }
}

/* With queries of the newest samples alone, whose ring begins anew elsewhere. */
static void gradients_are_those_of_banks_of_two_sizes(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        qn_contrastive_params how = with_bank(OWN * 2 + 2);
        how.bank_queries = way == 1 ? OWN : OWN + 2;
        how.local_mean = way == 1;
        how.symmetric = way == 2;
        compare_all(how);
    }
}

/* --- hard negatives --- */

enum { ANCHORS = 6, EACH = 3 };

struct tables {
    float q[ANCHORS][CODE], p[ANCHORS * EACH][CODE];
};

/* Columns that an anchor of a micro-step sees: all of its own, and all of the bank. */
static bool sees(int64_t anchor, int64_t passage, int64_t micro, bool all)
{
    return all || passage / EACH / micro == anchor / micro;
}

/* The gradient of the mean loss by every vector, in double. Of a bank of all that is not of the
 * micro-step, as it is now, rows see everything, and each micro-step differentiates its own. */
static void table_gradient(const struct tables *at, int64_t micro, bool bank, struct tables *to)
{
    const double t = 0.5, rows = (double)(bank ? ANCHORS : micro);
    *to = (struct tables){0};
    for (int i = 0; i < ANCHORS; i++) {
        double share[ANCHORS * EACH], sum = 0;
        for (int j = 0; j < ANCHORS * EACH; j++) {
            double score = 0;
            for (int c = 0; c < CODE; c++)
                score += (double)at->q[i][c] * (double)at->p[j][c] / t;
            share[j] = sees(i, j, micro, bank) ? exp(score) : 0;
            sum += share[j];
        }
        for (int j = 0; j < ANCHORS * EACH; j++) {
            const double steps = (double)ANCHORS / (double)micro;
            const double g = (share[j] / sum - (j == i * EACH)) / (rows * t * steps);
            for (int c = 0; c < CODE; c++) {
                to->q[i][c] += (float)(g * (double)at->p[j][c]);
                to->p[j][c] += (float)(g * (double)at->q[i][c]);
            }
        }
    }
}

static void read_tables(qn_trainer *trainer, bool gradients, struct tables *tables)
{
    const read_fn read = gradients ? qn_trainer_read_gradient : qn_trainer_read;
    assert_int_equal(read(trainer, "query", tables->q[0], ANCHORS * CODE), QN_OK);
    assert_int_equal(read(trainer, "passage", tables->p[0], ANCHORS * EACH * CODE), QN_OK);
}

/* Anchors are near one another, so that what pulls a passage to one pulls it to all. */
static void place_anchors(qn_trainer *trainer, struct tables *at)
{
    read_tables(trainer, false, at);
    for (int i = 0; i < ANCHORS; i++)
        for (int c = 0; c < CODE; c++)
            at->q[i][c] = 0.3F + 0.1F * at->q[i][c];
    assert_int_equal(qn_trainer_write(trainer, "query", at->q[0], ANCHORS * CODE), QN_OK);
}

/* Descent takes passage j nearer to the anchor. */
static bool is_pulled(const struct tables *at, const struct tables *gradient, int anchor, int j)
{
    double nearer = 0;
    for (int c = 0; c < CODE; c++)
        nearer -= (double)gradient->p[j][c] * (double)at->q[anchor][c];
    return nearer > 0;
}

static void train_anchors(qn_contrastive_mode mode, int64_t micro, int64_t bank)
{
    qn_contrastive_params how = with_bank(bank);
    struct pair_run of = {.pairs = {.data = ANCHORS, .each = EACH}};
    struct tables at, want, have;
    how.mode = mode;
    how.towers = table_towers;
    open_pairs(&of, &how, ANCHORS, micro);
    place_anchors(of.run.trainer, &at);
    const qn_cycle cycle = {.samples = ANCHORS, .fetch = fetch_places, .user = &of.pairs};
    if (bank)
        train_updates(of.run.trainer, &cycle, 1);
    assert_int_equal(qn_trainer_accumulate(of.run.trainer, &cycle), QN_OK);
    read_tables(of.run.trainer, true, &have);
    const bool all = mode == QN_CONTRASTIVE_GRADCACHE || bank;
    table_gradient(&at, all && !bank ? ANCHORS : micro, all, &want);
    const double apart = distance(have.q[0], want.q[0], sizeof want / sizeof(float), 1);
    print_message("  mode %d at %d: %.2e apart\n", (int)mode, (int)micro, apart);
    assert_true(apart < 1e-5);
    for (int j = 0; j < ANCHORS * EACH; j++)
        assert_true(is_pulled(&at, &have, j / EACH, j) == (j % EACH == 0));
    close_pairs(&of);
}

static void anchors_are_never_trained_towards_negatives(void **state)
{
    (void)state;
    train_anchors(QN_CONTRASTIVE_WHOLE, ANCHORS, 0);
    train_anchors(QN_CONTRASTIVE_GRADCACHE, 2, 0);
    train_anchors(QN_CONTRASTIVE_GRADCACHE, 1, 0);
    train_anchors(QN_CONTRASTIVE_ACCUMULATE, 2, 0);
    train_anchors(QN_CONTRASTIVE_CONTACCUM, 3, 3);
    train_anchors(QN_CONTRASTIVE_CONTACCUM, 2, 4);
    train_anchors(QN_CONTRASTIVE_CONTACCUM, 1, 5);
}

/* --- as small as can be --- */

static void few_samples(int64_t data, int64_t batch, int64_t micro, int64_t bank, int64_t queries,
                        bool duplicates)
{
    qn_contrastive_params how = with_bank(bank);
    how.bank_queries = queries;
    how.duplicates = duplicates;
    struct pair_run of = {.pairs = {.data = data}};
    struct host host = {.how = how};
    print_message(" %d samples, %d by %d, a bank of %d, queries of %d\n", (int)data, (int)batch,
                  (int)micro, (int)bank, (int)queries);
    open_pairs(&of, &how, batch, micro);
    follow_pairs(&of, &host, micro, 0.1, 6);
    close_pairs(&of);
}

/* Sets that the bank holds more than once, and cycles of one sample. */
static void sets_may_be_small(void **state)
{
    (void)state;
    for (int duplicates = 0; duplicates < 2; duplicates++) {
        few_samples(1, 1, 1, 1, 0, duplicates);
        few_samples(1, 1, 1, 5, 0, duplicates);
        few_samples(1, 1, 1, 5, 2, duplicates);
        few_samples(2, 2, 1, 7, 0, duplicates);
        few_samples(2, 2, 1, 7, 1, duplicates);
        few_samples(2, 2, 2, 2, 0, duplicates);
        few_samples(13, 13, 5, 40, 0, duplicates);
        few_samples(13, 13, 5, 40, 17, duplicates);
        few_samples(17, 7, 7, 53, 0, duplicates);
        few_samples(17, 7, 7, 53, 52, duplicates);
        few_samples(19, 13, 11, 12, 0, duplicates);
        few_samples(19, 13, 11, 12, 11, duplicates);
    }
}

/* One pair alone has nothing to learn from, and one loss. */
static void one_pair_alone_has_no_loss(void **state)
{
    (void)state;
    const qn_contrastive_mode modes[] = {QN_CONTRASTIVE_WHOLE, QN_CONTRASTIVE_GRADCACHE,
                                         QN_CONTRASTIVE_ACCUMULATE, QN_CONTRASTIVE_CONTACCUM};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        qn_contrastive_params how = with_bank(0);
        struct pair_run of = {0};
        how.mode = modes[i];
        open_pairs(&of, &how, 1, 1);
        const qn_metrics last = train_pairs(&of, 0.1, 2);
        assert_true(last.loss == 0 && last.grad_norm == 0);
        close_pairs(&of);
    }
}

/* --- batch norm --- */

static qn_status normed_towers(void *user, qn_graph *graph, qn_tensor *queries, qn_tensor *passages)
{
    const qn_status status = pair_towers(user, graph, queries, passages);
    const qn_batch_norm_params group = {.group = MICRO};
    *passages = qn_batch_norm(graph, *passages, (qn_tensor){0}, (qn_tensor){0}, &group);
    qn_name(graph, *passages, "bn");
    return status;
}

/* Running averages would be gathered in both passes: refused by the plan, before a device does
 * anything. */
static void gradcache_refuses_batch_norm(void **state)
{
    (void)state;
    struct pairs pairs = {0};
    const qn_plan_params plan = {.budget = 1 << 20, .batch = {BATCH}, .micro_batch = MICRO};
    for (int mode = QN_CONTRASTIVE_WHOLE; mode <= QN_CONTRASTIVE_ACCUMULATE; mode++) {
        const qn_contrastive_params how = {.graph = {.log = test_log},
                                           .mode = (qn_contrastive_mode)mode,
                                           .towers = normed_towers,
                                           .user = &pairs};
        qn_contrastive *contrastive;
        qn_plan *made;
        assert_int_equal(qn_contrastive_create(&contrastive, &how), QN_OK);
        const qn_status status = qn_plan_create_runs(&made, qn_contrastive_program(contrastive),
                                                     qn_device_facts(device), &plan, NULL);
        assert_int_equal(status, mode == QN_CONTRASTIVE_GRADCACHE ? QN_ERR_ARGUMENT : QN_OK);
        if (status != QN_OK) {
            assert_non_null(strstr(qn_last_error(), "batch norm 'bn'"));
            assert_non_null(strstr(qn_last_error(), "gradcache"));
        }
        qn_plan_destroy(&made);
        qn_contrastive_destroy(&contrastive);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_over_micro_steps_is_the_whole_batch),
        cmocka_unit_test(the_mean_of_own_rows_is_another_loss),
        cmocka_unit_test(banks_hold_what_is_encoded),
        cmocka_unit_test(banks_get_no_gradient),
        cmocka_unit_test(banks_of_both_sides_are_balanced),
        cmocka_unit_test(gradients_are_those_of_the_equations),
        cmocka_unit_test(gradients_are_those_of_banks_of_two_sizes),
        cmocka_unit_test(anchors_are_never_trained_towards_negatives),
        cmocka_unit_test(sets_may_be_small),
        cmocka_unit_test(one_pair_alone_has_no_loss),
        cmocka_unit_test(gradcache_refuses_batch_norm),
    };
    return cmocka_run_group_tests_name("identities", tests, open_counted, close_device);
}
