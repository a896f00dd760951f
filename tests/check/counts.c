/* SPDX-License-Identifier: MIT
 *
 * What the harness tells while it runs: how many checks run kernels, and which one begins; and
 * what it leaves out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <quern/check.h>

#include <string.h>

/* What the callbacks of a run saw. */
struct seen {
    int begun, records, failed;
    int total;        /* of the newest record */
    bool in_order;    /* numbers rise by one, and the total stays */
    bool began_first; /* each record that ran kernels began before */
    bool types[3];    /* f32, f16, bf16 */
    int other[2];     /* in variants that do not fit the device: f32, 16 bits */
    int asked, turn;  /* operators asked for; of each two this run takes the one of this turn */
};

static void begin(void *user, const qn_check_record *record)
{
    struct seen *s = user;
    s->in_order =
        s->in_order && record->number == s->begun + 1 && (!s->begun || record->total == s->total);
    s->begun++;
    s->total = record->total;
}

static void end(void *user, const qn_check_record *record)
{
    struct seen *s = user;
    const bool wide = strcmp(record->storage, "f32") == 0;
    s->records++;
    s->failed += record->outcome == QN_CHECK_FAILED;
    s->began_first = s->began_first && record->number == s->begun;
    s->types[0] = s->types[0] || wide;
    s->types[1] = s->types[1] || strncmp(record->storage, "f16", 3) == 0;
    s->types[2] = s->types[2] || strncmp(record->storage, "bf16", 4) == 0;
    s->other[!wide] += strstr(record->variant, " as ") != NULL;
}

static struct seen run_from(struct seen seen, qn_device *device, qn_check_params params)
{
    seen.in_order = seen.began_first = true;
    params.fn = end;
    params.begin = begin;
    params.user = &seen;
    assert_int_equal(qn_check_run(device, &params, NULL), QN_OK);
    return seen;
}

static struct seen run(qn_device *device, qn_check_params params)
{
    return run_from((struct seen){0}, device, params);
}

static void every_check_is_counted_before(void **state)
{
    const char *const filters[] = {"add,relu", "reshape", "loss,sgd/plain",
                                   "adafactor/bf16, skipped update,reshape"};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        const struct seen s = run(*state, (qn_check_params){.filter = filters[i], .small = true});
        assert_true(s.in_order && s.began_first);
        assert_int_equal(s.begun, s.total);
        assert_int_equal(s.failed, 0);
    }
}

static void a_quick_run_is_a_part_of_a_short_one(void **state)
{
    qn_check_params params = {.filter = "add,gelu,bias,softmax", .small = true};
    const struct seen all = run(*state, params);
    params.quick = true;
    const struct seen quick = run(*state, params);
    assert_true(all.other[1] > 0);
    assert_true(quick.other[0] > 0 && quick.other[0] < all.other[0]);
    assert_int_equal(quick.other[1], 0);
    assert_true(quick.begun > 0 && quick.begun < all.begun);
    assert_int_equal(quick.begun, quick.total);
    assert_true(quick.types[0] && quick.types[1] && quick.types[2]);
    assert_int_equal(quick.failed, 0);
}

/* Each has one case of 16 bits. */
static void types_of_16_bits_take_turns(void **state)
{
    const struct seen s =
        run(*state, (qn_check_params){.filter = "add,multiply", .small = true, .quick = true});
    assert_true(s.types[0] && s.types[1] && s.types[2]);
}

static bool take_every_other(void *user, const char *op)
{
    struct seen *s = user;
    assert_non_null(strstr("add,softmax,gelu", op));
    return s->asked++ % 2 == s->turn;
}

static void two_runs_share_a_check(void **state)
{
    qn_check_params params = {.filter = "add,softmax,gelu/a tail", .small = true};
    struct seen half[2];
    const struct seen all = run(*state, params);
    params.take = take_every_other;
    for (int turn = 0; turn < 2; turn++) {
        half[turn] = run_from((struct seen){.turn = turn}, *state, params);
        assert_int_equal(half[turn].asked, 3);
        assert_int_equal(half[turn].total, all.total);
        assert_true(half[turn].in_order && half[turn].begun > 0);
    }
    assert_int_equal(half[0].begun + half[1].begun, all.total);
    assert_int_equal(half[0].records + half[1].records, all.records);
}

static void named_variants_alone_are_checked(void **state)
{
    qn_check_params params = {.filter = "linear", .small = true};
    const struct seen all = run(*state, params);
    params.variants = "thin,clblast";
    const struct seen some = run(*state, params);
    assert_true(some.begun > 0 && some.begun < all.begun);
    params.variants = "cpu,gpu,any,units,tiles";
    const struct seen others = run(*state, params);
    assert_true(others.begun < all.begun && some.begun + others.begun >= all.begun);
    assert_int_equal(some.failed + others.failed, 0);
    params.variants = "cpu,cp";
    assert_int_equal(qn_check_run(*state, &params, NULL), QN_ERR_ARGUMENT);
}

static int open_device(void **state)
{
    return qn_device_open((qn_device **)state, NULL) != QN_OK;
}

static int close_device(void **state)
{
    qn_device_close((qn_device **)state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_check_is_counted_before),
        cmocka_unit_test(a_quick_run_is_a_part_of_a_short_one),
        cmocka_unit_test(types_of_16_bits_take_turns),
        cmocka_unit_test(two_runs_share_a_check),
        cmocka_unit_test(named_variants_alone_are_checked),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
