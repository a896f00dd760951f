/* SPDX-License-Identifier: MIT
 *
 * Placement alone: random lifetimes never overlap, pools hold, the bound is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/placement/place.h"

#include <stdio.h>

enum { COUNT = 120, LENGTH = 60, MOST_ROWS = 1000 };

static int draw(uint64_t seed, uint64_t index, int below)
{
    return (int)(qn_random_bits(seed, 7, index) % (uint64_t)below);
}

static void fill(struct qn_storage *storages, uint64_t seed)
{
    for (int i = 0; i < COUNT; i++) {
        int start = draw(seed, 3 * (uint64_t)i, LENGTH);
        int end = start + draw(seed, 3 * (uint64_t)i + 1, LENGTH - start);
        storages[i] = (struct qn_storage){.start = start,
                                          .end = end,
                                          .pool = -1,
                                          .bytes = 512 * draw(seed, 3 * (uint64_t)i + 2, 40)};
    }
}

static int64_t live_bound(const struct qn_storage *storages, int count, int length)
{
    int64_t most = 0;
    for (int t = 0; t < length; t++) {
        int64_t live = 0;
        for (int i = 0; i < count; i++)
            if (storages[i].start <= t && storages[i].end >= t)
                live += storages[i].bytes;
        most = live > most ? live : most;
    }
    return most;
}

static bool collide(const struct qn_storage *a, const struct qn_storage *b)
{
    return a->bytes && b->bytes && a->pool == b->pool && a->start <= b->end && b->start <= a->end &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void check(const struct qn_storage *storages, int count,
                  const struct qn_placement *placement, int64_t capacity)
{
    int64_t total = 0;
    for (int p = 0; p < placement->n_pools; p++) {
        assert_true(placement->pool_bytes[p] <= capacity);
        total += placement->pool_bytes[p];
    }
    assert_int_equal(total, placement->total);
    for (int i = 0; i < count; i++) {
        if (storages[i].bytes)
            assert_true(storages[i].offset + storages[i].bytes <=
                        placement->pool_bytes[storages[i].pool]);
        for (int j = 0; j < i; j++)
            assert_false(collide(&storages[i], &storages[j]));
    }
}

static void random_lifetimes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct qn_arena arena = {0};
        struct qn_storage storages[COUNT];
        struct qn_placement placement;
        fill(storages, seed);
        int64_t bound = live_bound(storages, COUNT, LENGTH);
        assert_int_equal(qn_place_storages(storages, COUNT, INT64_C(1) << 40, &arena, &placement),
                         QN_OK);
        check(storages, COUNT, &placement, INT64_C(1) << 40);
        assert_int_equal(placement.total, bound);
        assert_int_equal(qn_place_storages(storages, COUNT, bound / 4, &arena, &placement), QN_OK);
        check(storages, COUNT, &placement, bound / 4);
        qn_arena_free(&arena);
    }
}

/* --- lifetimes of training steps (data/README.md) --- */

static int read_table(const char *name, struct qn_storage *storages, int *length)
{
    char path[512];
    int count = 0, number, first, after;
    long bytes;
    snprintf(path, sizeof path, "%s/%s.csv", TEST_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "id,lower,upper,size"), 0);
    *length = 0;
    while (fscanf(file, "%d,%d,%d,%ld", &number, &first, &after, &bytes) == 4) {
        assert_true(number == count && count < MOST_ROWS && first < after);
        storages[count++] = (struct qn_storage){.start = first, .end = after - 1, .bytes = bytes};
        *length = after > *length ? after : *length;
    }
    fclose(file);
    return count;
}

static void lifetimes_of_training(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rows;
    } tables[] = {{"lt_12_0.25", 311}, {"lt_24_0.6", 554}};
    static struct qn_storage storages[MOST_ROWS];
    for (int i = 0; i < 2; i++) {
        struct qn_arena arena = {0};
        struct qn_placement placement;
        int length, count = read_table(tables[i].name, storages, &length);
        int64_t bound = live_bound(storages, count, length);
        assert_int_equal(count, tables[i].rows);
        assert_int_equal(qn_place_storages(storages, count, bound * 2, &arena, &placement), QN_OK);
        check(storages, count, &placement, bound * 2);
        assert_int_equal(placement.total, bound);
        qn_arena_free(&arena);
    }
}

static void what_no_pool_holds(void **state)
{
    (void)state;
    struct qn_arena arena = {0};
    struct qn_placement placement;
    struct qn_storage storage = {.bytes = 1024, .start = 0, .end = 1};
    assert_int_equal(qn_place_storages(&storage, 1, 512, &arena, &placement), QN_ERR_BUDGET);
    assert_int_equal(qn_place_storages(&storage, 1, 1024, &arena, &placement), QN_OK);
    assert_int_equal(placement.total, 1024);
    qn_arena_free(&arena);
}

/* What lives at once and fills a pool each needs as many pools as there are. */
static void as_many_pools_as_there_may_be(void **state)
{
    (void)state;
    struct qn_arena arena = {0};
    struct qn_placement placement;
    struct qn_storage storages[QN_MAX_POOLS + 1];
    for (int i = 0; i <= QN_MAX_POOLS; i++)
        storages[i] = (struct qn_storage){.bytes = 1024, .end = 1};
    assert_int_equal(qn_place_storages(storages, QN_MAX_POOLS, 1024, &arena, &placement), QN_OK);
    assert_int_equal(placement.n_pools, QN_MAX_POOLS);
    assert_true(QN_MAX_POOLS > 200);
    assert_int_equal(qn_place_storages(storages, QN_MAX_POOLS + 1, 1024, &arena, &placement),
                     QN_ERR_BUDGET);
    qn_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lifetimes),
        cmocka_unit_test(lifetimes_of_training),
        cmocka_unit_test(what_no_pool_holds),
        cmocka_unit_test(as_many_pools_as_there_may_be),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
