/* SPDX-License-Identifier: MIT
 *
 * Banks that age: their drift beside a second computation in double, limits of their fill, banks
 * that start later, and that looking changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "pairs.h"

#include <math.h>
#include <string.h>

enum { BATCH = 21, MICRO = 7 };

static const qn_contrastive_params banks = {
    .mode = QN_CONTRASTIVE_CONTACCUM, .temperature = 0.5, .bank = 40};
static const qn_contrastive_params banks_with_table = {
    .mode = QN_CONTRASTIVE_CONTACCUM, .temperature = 0.5, .bank = 40, .table = true};

static qn_drift measure(struct pair_run *of, const qn_drift_params *params)
{
    qn_drift_params all = *params;
    qn_drift drift;
    all.samples = fetch_by_id;
    all.user = &of->pairs;
    assert_int_equal(qn_drift_measure(of->run.trainer, &all, &drift), QN_OK);
    return drift;
}

/* --- cosines --- */

/* The mean cosines of the entries of these ages with what their samples are now; NAN: of none. */
static void drift_on_host(const struct host *host, int64_t first, int64_t end, double mean[2])
{
    const int64_t each = host->pairs->each ? host->pairs->each : 1;
    const int64_t queries = host_queries(host) < end ? host_queries(host) : end;
    mean[0] = mean[1] = 0;
    for (int64_t age = first; age < end; age++) {
        const struct vectors *then = &host->bank[(host->stored - 1 - age) % MOST_STORED];
        struct vectors now;
        host_encode(host, then->id, &now);
        mean[0] += age < queries ? host_cosine(then->q, now.q) / (double)(queries - first) : 0;
        for (int64_t j = 0; j < each; j++)
            mean[1] += host_cosine(then->p[j], now.p[j]) / (double)((end - first) * each);
    }
    mean[0] = queries > first ? mean[0] : NAN;
}

static void assert_drift(const struct host *host, const qn_drift *drift)
{
    int64_t end = 0;
    for (int a = 0; a < drift->ages; a++) {
        const qn_drift_age *age = &drift->age[a];
        double want[2];
        assert_int_equal(age->first, end);
        assert_int_equal(age->entries, age->end - age->first);
        end = age->end;
        drift_on_host(host, age->first, age->end, want);
        print_message("  ages %d to %d: %.7f and %.7f, wanted %.7f and %.7f\n", (int)age->first,
                      (int)age->end - 1, age->queries, age->passages, want[0], want[1]);
        assert_true(isnan(want[0]) ? isnan(age->queries) : fabs(age->queries - want[0]) < 1e-6);
        assert_true(fabs(age->passages - want[1]) < 1e-6);
        assert_true(want[1] < 1 - 1e-5);
    }
    assert_int_equal(end, host_fill(host));
    const qn_drift_age *last = &drift->age[drift->ages - 1];
    assert_true(drift->oldest == fmin(last->queries, last->passages));
}

/* Trains, and looks at every entry. */
static void look(const qn_contrastive_params *how, int64_t each, int64_t batch, int64_t micro,
                 int updates)
{
    struct pair_run of = {.pairs = {.each = each}};
    struct host host = {.how = *how};
    open_pairs(&of, how, batch, micro);
    follow_pairs(&of, &host, micro, 0.3, updates);
    host_read(&host, of.run.trainer);
    const qn_drift drift = measure(&of, &(qn_drift_params){.ages = 5, .entries = 1000});
    assert_drift(&host, &drift);
    assert_true(drift.stale == (drift.oldest < 0.995) && drift.limit == 0);
    close_counted(&of.run);
    qn_contrastive_destroy(&of.contrastive);
}

static void drift_is_that_of_the_samples(void **state)
{
    (void)state;
    qn_contrastive_params how = banks;
    look(&how, 1, BATCH, MICRO, 5);
    look(&how, 1, BATCH, MICRO, 1); /* not full */
    how.bank = 37;
    look(&how, 1, 16, 5, 7); /* a last micro-step of one, the ring ends anywhere */
    look(&how, 3, 16, 5, 7);
    how.bank_queries = 20; /* the third of the ages has some of them */
    look(&how, 2, 16, 5, 7);
    look(&how, 1, 16, 5, 1);
    how.bank_queries = 0;
    how.no_query_bank = true;
    look(&how, 2, BATCH, MICRO, 4);
}

/* lr 0: what is in the banks is what the samples are. */
static void still_weights_do_not_drift(void **state)
{
    (void)state;
    for (int storage = 0; storage < 3; storage++) {
        const qn_dtype dtypes[] = {QN_F32, QN_F16, QN_BF16};
        qn_contrastive_params how = banks;
        struct pair_run of = {.pairs = {.each = 2}};
        how.graph.storage = dtypes[storage];
        open_pairs(&of, &how, BATCH, MICRO);
        train_pairs(&of, 0, 5);
        const qn_drift drift = measure(&of, &(qn_drift_params){.cap = true});
        assert_int_equal(drift.ages, 8);
        for (int a = 0; a < drift.ages; a++) {
            assert_int_equal(drift.age[a].entries, 5);
            assert_true(fabs(drift.age[a].queries - 1) < 1e-6);
            assert_true(fabs(drift.age[a].passages - 1) < 1e-6);
        }
        assert_true(!drift.stale && drift.limit == 0);
        close_pairs(&of);
    }
}

/* Not all entries: evenly apart, the oldest of each age among them. */
static void few_entries_stand_for_an_age(void **state)
{
    (void)state;
    struct pair_run of = {0};
    struct host host = {.how = banks};
    open_pairs(&of, &banks, BATCH, MICRO);
    follow_pairs(&of, &host, MICRO, 0.1, 4);
    host_read(&host, of.run.trainer);
    const qn_drift drift = measure(&of, &(qn_drift_params){.ages = 2, .entries = 2});
    for (int a = 0; a < 2; a++) {
        double want = 0, one[2];
        for (int i = 0; i < 2; i++) {
            const int64_t age = 20 * a + 19 - 10 * i;
            drift_on_host(&host, age, age + 1, one);
            want += one[0] / 2;
        }
        assert_int_equal(drift.age[a].entries, 2);
        assert_true(fabs(drift.age[a].queries - want) < 1e-6);
    }
    close_pairs(&of);
}

static void empty_banks_have_no_age(void **state)
{
    (void)state;
    struct pair_run of = {0};
    open_pairs(&of, &banks, BATCH, MICRO);
    const qn_drift drift = measure(&of, &(qn_drift_params){.cap = true});
    assert_int_equal(drift.ages, 0);
    assert_true(isnan(drift.oldest) && !drift.stale && drift.limit == 0);
    close_pairs(&of);
}

/* Samples that are other ones by now are seen by the look alone. */
static void looking_changes_nothing(void **state)
{
    (void)state;
    struct pair_run looked = {0}, plain = {0};
    open_pairs(&looked, &banks, BATCH, MICRO);
    open_pairs(&plain, &banks, BATCH, MICRO);
    for (int i = 0; i < 6; i++) {
        const qn_metrics have = train_pairs(&looked, 0.05, 1), want = train_pairs(&plain, 0.05, 1);
        assert_true(have.loss == want.loss && have.grad_norm == want.grad_norm);
        looked.pairs.changed = i % 2 ? looked.pairs.first : 0;
        const qn_drift drift = measure(&looked, &(qn_drift_params){.entries = i + 1});
        assert_true(i % 2 ? drift.oldest < 0.9 : drift.oldest > 0.9);
        looked.pairs.changed = 0;
    }
    assert_same_training(&looked, &plain);
    close_pairs(&looked);
    close_pairs(&plain);
}

/* --- limits --- */

static void limit(struct pair_run *of, struct host *host, int64_t rows)
{
    assert_int_equal(qn_trainer_limit_cell(of->run.trainer, "bank.ids", rows), QN_OK);
    assert_int_equal(qn_trainer_cell_limit(of->run.trainer, "bank.ids"), rows);
    const int64_t fill = host_fill(host);
    host->forgotten = host->stored - (rows && rows < fill ? rows : fill);
    host->limit = rows;
}

/* No micro-step sees more, and none less, than the limit; a limit that is lifted lets the bank fill
 * up again. */
static void micro_steps_see_the_limit(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, micro, each, queries, limits[4];
    } cases[] = {{21, 7, 1, 0, {40, 25, 9, 0}},   {16, 5, 2, 0, {3, 1, 0, 17}},
                 {16, 5, 2, 0, {3, 1, 0, 17}},    {16, 5, 2, 23, {30, 11, 0, 17}},
                 {13, 13, 1, 0, {20, 13, 12, 5}}, {5, 1, 3, 0, {39, 41, 8, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_contrastive_params how = i % 2 ? banks : banks_with_table;
        how.bank_queries = cases[i].queries;
        struct pair_run of = {.pairs = {.each = cases[i].each}};
        struct host host = {.how = how};
        open_pairs(&of, &how, cases[i].batch, cases[i].micro);
        follow_pairs(&of, &host, cases[i].micro, 0.1, 4);
        for (int k = 0; k < 4; k++) {
            limit(&of, &host, cases[i].limits[k]);
            follow_pairs(&of, &host, cases[i].micro, 0.1, 3);
        }
        close_counted(&of.run);
        qn_contrastive_destroy(&of.contrastive);
    }
}

/* What the oldest fresh age is, no micro-step sees beyond it. */
static void cap(const qn_contrastive_params *params)
{
    struct pair_run of = {0};
    struct host host = {.how = *params};
    open_pairs(&of, params, BATCH, MICRO);
    follow_pairs(&of, &host, MICRO, 0.5, 4);
    const qn_drift_params all = {.ages = 10, .entries = 1000, .least = 1};
    qn_drift_params how = all;
    const qn_drift before = measure(&of, &how);
    how.threshold = fmin(before.age[5].queries, before.age[5].passages);
    assert_true(before.stale && before.limit == 0 && how.threshold < 0.995);
    const qn_drift told = measure(&of, &how);
    assert_true(told.stale && told.limit == 0);
    int64_t want = 0;
    for (int a = 0; a < before.ages; a++)
        if (fmin(before.age[a].queries, before.age[a].passages) >= how.threshold)
            want = before.age[a].end;
    how.cap = true;
    const qn_drift capped = measure(&of, &how);
    print_message("  threshold %.5f, oldest %.5f: %d entries stay\n", how.threshold, capped.oldest,
                  (int)capped.limit);
    assert_true(want >= before.age[5].end && want < 40);
    assert_int_equal(capped.limit, want);
    assert_int_equal(qn_trainer_cell_limit(of.run.trainer, "bank.ids"), want);
    host.limit = want;
    follow_pairs(&of, &host, MICRO, 0.5, 2);
    host_read(&host, of.run.trainer);
    const qn_drift after = measure(&of, &all);
    assert_drift(&host, &after);
    how.threshold = 0.1;
    assert_int_equal(measure(&of, &how).limit, want); /* it does not rise */
    how.threshold = 1;
    how.least = 0;
    assert_int_equal(measure(&of, &how).limit, BATCH); /* nor fall below a cycle */
    close_pairs(&of);
}

static void stale_entries_are_capped(void **state)
{
    (void)state;
    cap(&banks);
    cap(&banks_with_table);
}

/* --- what a limit outlives --- */

static void reopen(struct pair_run *of, const char *dir)
{
    qn_checkpoint *checkpoint;
    test_close(&of->run);
    assert_int_equal(qn_checkpoint_open(&checkpoint, dir, NULL), QN_OK);
    assert_int_equal(qn_checkpoint_plan_runs(checkpoint, qn_contrastive_program(of->contrastive),
                                             device, &of->run.plan),
                     QN_OK);
    assert_int_equal(qn_trainer_open(&of->run.trainer, device, of->run.plan,
                                     &qn_checkpoint_describe(checkpoint)->trainer),
                     QN_OK);
    assert_int_equal(qn_checkpoint_restore(checkpoint, of->run.trainer), QN_OK);
    qn_checkpoint_close(&checkpoint);
}

/* In the middle of a training, between two cycles. */
static void save_with_cap(const qn_contrastive_params *params)
{
    char dir[FOLDER_BYTES];
    make_folder(dir);
    struct pair_run whole = {0}, parts = {0}, *each[] = {&whole, &parts};
    const qn_drift_params how = {.threshold = 0.9999, .cap = true, .least = 12};
    for (int i = 0; i < 2; i++) {
        open_pairs(each[i], params, BATCH, MICRO);
        train_pairs(each[i], 0.1, 3);
        assert_int_equal(measure(each[i], &how).limit, 12);
    }
    assert_int_equal(qn_checkpoint_save(parts.run.trainer, dir, NULL), QN_OK);
    reopen(&parts, dir);
    assert_int_equal(qn_trainer_cell_limit(parts.run.trainer, "bank.ids"), 12);
    for (int i = 0; i < 2; i++)
        train_pairs(each[i], 0.1, 3);
    assert_same_training(&parts, &whole);
    close_pairs(&whole);
    close_pairs(&parts);
    remove_folder(dir);
}

static void a_cap_is_saved(void **state)
{
    (void)state;
    qn_contrastive_params fewer = banks;
    fewer.bank_queries = 17;
    save_with_cap(&banks);
    save_with_cap(&banks_with_table);
    save_with_cap(&fewer);
}

/* Another budget, and a cycle that is skipped: its rows go, and the limit stays. */
static void outlive(const qn_contrastive_params *params)
{
    struct pair_run plain = {0}, other = {0}, *each[] = {&plain, &other};
    for (int i = 0; i < 2; i++) {
        open_pairs(each[i], params, BATCH, MICRO);
        train_pairs(each[i], 0.1, 3);
        assert_int_equal(qn_trainer_limit_cell(each[i]->run.trainer, "bank.ids", 10), QN_OK);
    }
    const int64_t budget = qn_plan_facts(other.run.plan)->smallest_budget;
    assert_int_equal(qn_trainer_set_budget(other.run.trainer, budget), QN_OK);
    train_pairs(&plain, 0.1, 1);
    train_pairs(&other, 0.1, 1);
    other.pairs.strange = MICRO + 1;
    assert_true(train_pairs(&other, 0.1, 1).skipped);
    other.pairs.first -= BATCH;
    other.pairs.strange = 0;
    train_pairs(&plain, 0.1, 2);
    train_pairs(&other, 0.1, 2);
    assert_int_equal(qn_trainer_cell_limit(other.run.trainer, "bank.ids"), 10);
    assert_same_training(&other, &plain);
    close_pairs(&plain);
    close_pairs(&other);
}

static void a_cap_outlives_budgets_and_skipped_cycles(void **state)
{
    (void)state;
    outlive(&banks);
    outlive(&banks_with_table);
}

/* --- a later start --- */

/* Until then it is accumulate, to the bit; then banks fill from nothing, in the same cycle. */
static void banks_may_start_later(void **state)
{
    (void)state;
    static const qn_contrastive_params accumulate = {.mode = QN_CONTRASTIVE_ACCUMULATE,
                                                     .temperature = 0.5};
    qn_contrastive_params how = banks;
    how.start = 4;
    how.table = true;
    struct pair_run of = {0}, plain = {0};
    struct host host = {.how = how};
    open_pairs(&of, &how, 16, 5);
    open_pairs(&plain, &accumulate, 16, 5);
    follow_pairs(&of, &host, 5, 0.1, 4);
    train_pairs(&plain, 0.1, 4);
    assert_same_training(&of, &plain);
    assert_int_equal(measure(&of, &(qn_drift_params){.entries = 1}).oldest > 0, 0);
    follow_pairs(&of, &host, 5, 0.1, 4);
    close_pairs(&of);
    close_pairs(&plain);
}

static void banks_that_start_later_may_be_limited(void **state)
{
    (void)state;
    qn_contrastive_params how = banks_with_table;
    how.start = 3;
    struct pair_run of = {0};
    struct host host = {.how = how};
    open_pairs(&of, &how, 16, 5);
    follow_pairs(&of, &host, 5, 0.1, 2);
    limit(&of, &host, 13);
    follow_pairs(&of, &host, 5, 0.1, 4);
    close_pairs(&of);
}

static void a_start_is_kept(void **state)
{
    (void)state;
    char dir[FOLDER_BYTES];
    make_folder(dir);
    qn_contrastive_params how = banks;
    how.start = 3;
    struct pair_run whole = {0}, parts = {0};
    open_pairs(&whole, &how, BATCH, MICRO);
    open_pairs(&parts, &how, BATCH, MICRO);
    train_pairs(&whole, 0.1, 6);
    for (int i = 0; i < 3; i++) { /* before the start, as it starts, behind it */
        train_pairs(&parts, 0.1, i == 1 ? 2 : 1);
        assert_int_equal(qn_checkpoint_save(parts.run.trainer, dir, NULL), QN_OK);
        reopen(&parts, dir);
        const int64_t budget = qn_plan_facts(parts.run.plan)->smallest_budget;
        assert_int_equal(qn_trainer_set_budget(parts.run.trainer, budget), QN_OK);
    }
    train_pairs(&parts, 0.1, 2);
    assert_same_training(&parts, &whole);
    close_pairs(&whole);
    close_pairs(&parts);
    remove_folder(dir);
}

/* --- what cannot be --- */

static qn_status fail_to_give(void *user, const char *input, const int32_t *ids, int64_t count,
                              void *rows)
{
    (void)user, (void)input, (void)ids, (void)count, (void)rows;
    return QN_ERR_IO;
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        qn_drift_params params;
        const char *why;
    } bad[] = {{{.ages = 65}, "from 1 to 64 ages"},   {{.ages = -1}, "from 1 to 64 ages"},
               {{.entries = -1}, "at least one"},     {{.least = -1}, "at least one"},
               {{.threshold = 1.5}, "the threshold"}, {{.threshold = NAN}, "the threshold"}};
    static const qn_contrastive_params none = {.mode = QN_CONTRASTIVE_CONTACCUM,
                                               .temperature = 0.5};
    struct pair_run of = {0}, without = {0};
    qn_drift drift;
    open_pairs(&of, &banks, BATCH, MICRO);
    open_pairs(&without, &none, BATCH, MICRO);
    train_pairs(&of, 0.1, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_drift_params params = bad[i].params;
        params.samples = fetch_by_id;
        assert_int_equal(qn_drift_measure(of.run.trainer, &params, &drift), QN_ERR_ARGUMENT);
        assert_non_null(strstr(qn_last_error(), bad[i].why));
    }
    qn_drift_params params = {0};
    assert_int_equal(qn_drift_measure(of.run.trainer, &params, &drift), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "by their ids"));
    params.samples = fail_to_give;
    assert_int_equal(qn_drift_measure(of.run.trainer, &params, &drift), QN_ERR_IO);
    assert_int_equal(qn_drift_measure(without.run.trainer, &params, &drift), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "has no banks"));
    assert_int_equal(qn_trainer_limit_cell(of.run.trainer, "bank", 3), QN_ERR_ARGUMENT);
    assert_non_null(strstr(qn_last_error(), "bank: no ring"));
    assert_int_equal(qn_trainer_limit_cell(of.run.trainer, "bank.ids", -3), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_cell_limit(of.run.trainer, "bank"), -1);
    train_pairs(&of, 0.1, 1);
    close_pairs(&of);
    close_pairs(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_is_that_of_the_samples),
        cmocka_unit_test(still_weights_do_not_drift),
        cmocka_unit_test(few_entries_stand_for_an_age),
        cmocka_unit_test(empty_banks_have_no_age),
        cmocka_unit_test(looking_changes_nothing),
        cmocka_unit_test(micro_steps_see_the_limit),
        cmocka_unit_test(stale_entries_are_capped),
        cmocka_unit_test(a_cap_is_saved),
        cmocka_unit_test(a_cap_outlives_budgets_and_skipped_cycles),
        cmocka_unit_test(banks_may_start_later),
        cmocka_unit_test(banks_that_start_later_may_be_limited),
        cmocka_unit_test(a_start_is_kept),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("drift", tests, open_counted, close_device);
}
