/* SPDX-License-Identifier: MIT
 *
 * The text of a tuning, and what a plan makes of it; no device runs.
 */
#include "support.h"

#include "base/text.h"
#include "plan/cost/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char message[512];

static void keep_message(void *user, qn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(message, sizeof message, "%s", text);
}

static const qn_log log_of_test = {keep_message, NULL};

static void reads_back_what_it_writes(void **state)
{
    (void)state;
    struct qn_tuning table = {0}, read = {0};
    const struct qn_tuned choice = {"linear/forward \"x\"", 16, "cpu", "8x2", 0.25e-3, true,
                                    .spread = 1.5};
    const struct qn_self_test test = {"linear", "gpu", "", "f16", "case: in 0: 1, wanted 2"};
    assert_true(qn_tuning_add_choice(&table, &choice));
    assert_true(qn_tuning_add_test(&table, &test));
    assert_true(qn_tuning_keep(&table, &(struct qn_kept){0xfedcba9876543210, 48}));
    assert_true(qn_tuning_keep(&table, &(struct qn_kept){0xfedcba9876543210, 64}));
    table.transfers = (struct qn_transfers){1.5e9, 2.5e9, 2e-6};
    char *text = qn_tuning_text(&table);
    assert_non_null(text);
    assert_int_equal(qn_tuning_parse(&read, text, &log_of_test), QN_OK);
    assert_int_equal(read.n_choices, 1);
    assert_string_equal(read.choices[0].task, choice.task);
    assert_string_equal(read.choices[0].setting, "8x2");
    assert_int_equal(read.choices[0].batch, 16);
    assert_true(read.choices[0].seconds == choice.seconds);
    assert_true(read.choices[0].thorough && !read.choices[0].alone);
    assert_true(read.choices[0].spread == 1.5);
    assert_int_equal(qn_tuning_kept(&read, 0xfedcba9876543210), 48);
    assert_int_equal(qn_tuning_kept(&read, 1), 0);
    assert_string_equal(qn_tuning_test(&read, &test)->reason, test.reason);
    assert_true(read.transfers.to_host == 1.5e9 && read.transfers.to_device == 2.5e9);
    assert_true(read.transfers.begin == 2e-6);
    const struct qn_self_test other = {"linear", "gpu", "", "f32", ""};
    assert_null(qn_tuning_test(&read, &other));
    free(text);
    qn_tuning_free(&table);
    qn_tuning_free(&read);
}

static void holds_many(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "task %d", i);
        assert_true(qn_tuning_add_choice(&table, &(struct qn_tuned){name, i, "cpu", "", 1, false}));
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "task %d", i);
        assert_int_equal(qn_tuning_find(&table, name, 7)->batch, i);
    }
    qn_tuning_free(&table);
}

/* Time that grows with the square of the entries would be a minute. */
static void many_are_read(void **state)
{
    enum { MANY = 300000, MOST_SECONDS = 15 };
    (void)state;
    struct qn_text text = {0};
    struct qn_tuning table = {0};
    qn_text_add(&text, "{\"quern_tuning\": 1, \"self_tests\": [], \"kept\": [");
    for (int i = 0; i < MANY; i++)
        qn_text_add(&text, "%s{\"training\": \"%x\", \"micro_batch\": %d}", i ? "," : "", i + 1,
                    i + 1);
    qn_text_add(&text, "], \"choices\": [");
    for (int i = 0; i < MANY; i++)
        qn_text_add(&text,
                    "%s{\"task\": \"%d\", \"variant\": \"cpu\", \"batch\": 1, \"seconds\": 0}",
                    i ? "," : "", i);
    qn_text_add(&text, "]}");
    char *whole = qn_text_take(&text);
    assert_non_null(whole);
    const clock_t begin = clock();
    assert_int_equal(qn_tuning_parse(&table, whole, &log_of_test), QN_OK);
    assert_true(clock() - begin < (clock_t)MOST_SECONDS * CLOCKS_PER_SEC);
    assert_int_equal(table.n_choices, MANY);
    assert_int_equal(table.n_kept, MANY);
    assert_string_equal(table.choices[MANY - 1].task, "299999");
    assert_int_equal(qn_tuning_kept(&table, MANY), MANY);
    free(whole);
    qn_tuning_free(&table);
}

/* As if they had been added one by one. */
static void repeated_entries_are_merged(void **state)
{
    (void)state;
    static const char text[] =
        "{\"quern_tuning\": 1, \"self_tests\": [],"
        "\"kept\": [{\"training\": \"a\", \"micro_batch\": 3}, {\"training\": \"9\", "
        "\"micro_batch\": 4},"
        "{\"training\": \"a\", \"micro_batch\": 5}, {\"training\": \"0a\", \"micro_batch\": 6}],"
        "\"choices\": [{\"task\": \"t\", \"variant\": \"1\", \"batch\": 8, \"seconds\": 1},"
        "{\"task\": \"s\", \"variant\": \"2\", \"batch\": 8, \"seconds\": 1},"
        "{\"task\": \"t\", \"variant\": \"3\", \"batch\": 8, \"seconds\": 1},"
        "{\"task\": \"t\", \"variant\": \"4\", \"batch\": 4, \"seconds\": 1},"
        "{\"task\": \"t\", \"variant\": \"5\", \"batch\": 8, \"seconds\": 1}]}";
    struct qn_tuning table = {0};
    assert_int_equal(qn_tuning_parse(&table, text, &log_of_test), QN_OK);
    assert_int_equal(table.n_kept, 2);
    assert_true(table.kept[0].training == 10 && table.kept[0].micro_batch == 3);
    assert_true(table.kept[1].training == 9 && table.kept[1].micro_batch == 4);
    assert_int_equal(table.n_choices, 3);
    assert_string_equal(table.choices[0].variant, "5");
    assert_string_equal(table.choices[1].variant, "2");
    assert_string_equal(table.choices[2].variant, "4");
    qn_tuning_free(&table);
}

static void a_later_choice_replaces_an_earlier_one(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    assert_true(qn_tuning_add_choice(&table, &(struct qn_tuned){"task", 4, "cpu", "", 1, false}));
    assert_true(qn_tuning_add_choice(&table, &(struct qn_tuned){"task", 8, "cpu", "", 1, false}));
    assert_true(qn_tuning_add_choice(&table, &(struct qn_tuned){"task", 4, "gpu", "", 2, true}));
    assert_int_equal(table.n_choices, 2);
    assert_string_equal(qn_tuning_find(&table, "task", 4)->variant, "gpu");
    qn_tuning_free(&table);
}

static void the_nearest_batch_counts(void **state)
{
    (void)state;
    struct qn_tuning table = {0};
    static const int64_t batches[] = {64, 4, 16};
    static const struct {
        int64_t batch, nearest;
    } cases[] = {{1, 4}, {4, 4}, {7, 4}, {8, 4}, {9, 16}, {32, 16}, {33, 64}, {1000, 64}};
    for (int i = 0; i < 3; i++)
        assert_true(qn_tuning_add_choice(
            &table, &(struct qn_tuned){"task", batches[i], "cpu", "", 1, false}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(qn_tuning_find(&table, "task", cases[i].batch)->batch, cases[i].nearest);
    assert_null(qn_tuning_find(&table, "another", 4));
    qn_tuning_free(&table);
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "JSON"},
        {"[]", "quern_tuning"},
        {"{\"quern_tuning\": 2, \"self_tests\": [], \"choices\": []}", "version 2"},
        {"{\"quern_tuning\": 1, \"choices\": []}", "self_tests"},
        {"{\"quern_tuning\": 1, \"self_tests\": [], \"choices\": {}}", "choices"},
        {"{\"quern_tuning\": 1, \"self_tests\": [{\"op\": 1}], \"choices\": []}", "op"},
        {"{\"quern_tuning\": 1, \"self_tests\": [], \"choices\": [{\"task\": \"t\", \"variant\": "
         "\"cpu\", \"batch\": -1, \"seconds\": 1}]}",
         "batch"},
        {"{\"quern_tuning\": 1, \"self_tests\": [], \"choices\": [{\"task\": \"t\", \"batch\": 1, "
         "\"seconds\": 1}]}",
         "variant"},
        {"{\"quern_tuning\": 1, \"kept\": [{\"training\": \"12 ab\", \"micro_batch\": 4}], "
         "\"self_tests\": [], \"choices\": []}",
         "training"},
        {"{\"quern_tuning\": 1, \"transfers\": {\"to_host\": 0}, \"self_tests\": [], \"choices\": "
         "[]}",
         "to_host"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct qn_tuning table = {0};
        assert_int_equal(qn_tuning_parse(&table, cases[i].text, &log_of_test), QN_ERR_FORMAT);
        assert_non_null(strstr(message, cases[i].word));
        assert_int_equal(table.n_choices, 0);
    }
}

/* A table that names `variant` for the forward pass of linear layers with these types, and says
 * that CLBlast failed its self-test for this reason. */
static void write_choice(char text[1024], const char *variant, const char *setting,
                         const char *failure)
{
    snprintf(text, 1024,
             "{\"quern_tuning\": 1, \"self_tests\": [{\"op\": \"linear\", \"variant\": "
             "\"clblast\", \"setting\": \"\", \"storage\": \"f32\", \"reason\": \"%s\"}], "
             "\"choices\": [{\"task\": \"linear/forward "
             "in0=f32[*,40] in1=f32[24,40] out0=f32[*,24]\", \"batch\": 2, \"variant\": \"%s\", "
             "\"setting\": \"%s\", \"seconds\": 0.001}]}",
             failure, variant, setting);
}

static void a_plan_takes_what_was_tuned(void **state)
{
    (void)state;
    static const struct {
        const char *variant, *setting, *failure, *wish, *taken; /* NULL: the default */
    } cases[] = {
        {"clblast", "", "", NULL, "clblast"},
        {"clblast", "", "in 0: 1, wanted 2", NULL, NULL},
        {"gpu", "large", "", NULL, "gpu"},
        {"other", "", "", NULL, NULL},
        {"gpu", "no such setting", "", NULL, NULL},
        {"gpu", "large", "", "linear=clblast", "clblast"},
    };
    struct bench_device d;
    bench_device_open(&d, NULL, NULL);
    struct layer layer = {.batch = 8, .n = 24, .k = 40};
    char text[1024], before[64], after[64];
    qn_plan *plain = layer_plan(&d, &layer);
    layer_variant(plain, before);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_choice(text, cases[i].variant, cases[i].setting, cases[i].failure);
        layer.tuning = text;
        layer.variants = cases[i].wish;
        qn_plan *plan = layer_plan(&d, &layer);
        layer_variant(plan, after);
        assert_string_equal(after, cases[i].taken ? cases[i].taken : before);
        assert_int_equal(qn_plan_facts(plan)->hash == qn_plan_facts(plain)->hash,
                         strcmp(after, before) == 0);
        qn_plan_destroy(&plan);
    }
    qn_plan_destroy(&plain);
    bench_device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_it_writes),
        cmocka_unit_test(holds_many),
        cmocka_unit_test(many_are_read),
        cmocka_unit_test(repeated_entries_are_merged),
        cmocka_unit_test(a_later_choice_replaces_an_earlier_one),
        cmocka_unit_test(the_nearest_batch_counts),
        cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(a_plan_takes_what_was_tuned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
