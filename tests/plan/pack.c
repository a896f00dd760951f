/* SPDX-License-Identifier: MIT
 *
 * The exact search beside one that tries everything; tables of the planner at their bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/placement/pack.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST = 10, LENGTH = 7, SEEDS = 300, NODES = 1 << 20 };

static int draw(uint64_t seed, int index, int below)
{
    return (int)(qn_random_bits(seed, 11, (uint64_t)index) % (uint64_t)below);
}

static int make(qn_lifetime *boxes, uint64_t seed)
{
    const int count = 1 + draw(seed, 0, MOST);
    for (int i = 0; i < count; i++) {
        const int lower = draw(seed, 3 * i + 1, LENGTH);
        const int upper = lower + 1 + draw(seed, 3 * i + 2, LENGTH - lower);
        boxes[i] = (qn_lifetime){lower, upper, draw(seed, 3 * i + 3, 4), 0};
    }
    return count;
}

static bool together(const qn_lifetime *a, const qn_lifetime *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

static int64_t top_of(const qn_lifetime *boxes, int count)
{
    int64_t top = 0;
    for (int i = 0; i < count; i++)
        if (boxes[i].offset + boxes[i].size > top)
            top = boxes[i].offset + boxes[i].size;
    return top;
}

/* Some order of placing, each box on top of those placed before, does it if anything does. */
static bool try_all(const qn_lifetime *boxes, int count, int64_t height, unsigned placed,
                    const int64_t *offset)
{
    if (placed == (1u << count) - 1)
        return true;
    for (int i = 0; i < count; i++) {
        int64_t own[MOST], under = 0;
        if (placed >> i & 1)
            continue;
        for (int j = 0; j < count; j++) {
            own[j] = offset[j];
            if ((placed >> j & 1) && together(&boxes[i], &boxes[j]) &&
                offset[j] + boxes[j].size > under)
                under = offset[j] + boxes[j].size;
        }
        own[i] = under;
        if (under + boxes[i].size <= height && try_all(boxes, count, height, placed | 1u << i, own))
            return true;
    }
    return false;
}

static void assert_packed(const qn_lifetime *boxes, int count, int64_t height)
{
    for (int i = 0; i < count; i++) {
        assert_true(boxes[i].offset >= 0 && boxes[i].offset + boxes[i].size <= height);
        for (int j = 0; j < i; j++)
            assert_false(together(&boxes[i], &boxes[j]) &&
                         boxes[i].offset < boxes[j].offset + boxes[j].size &&
                         boxes[j].offset < boxes[i].offset + boxes[i].size);
    }
}

static void assert_same(qn_lifetime *boxes, int count, int64_t height)
{
    struct qn_arena arena = {0};
    const bool fits = try_all(boxes, count, height, 0, (int64_t[MOST]){0});
    assert_int_equal(qn_pack(boxes, count, height, NODES, &arena),
                     fits ? QN_PACKED : QN_PACK_IMPOSSIBLE);
    if (fits)
        assert_packed(boxes, count, height);
    qn_arena_free(&arena);
}

static void finds_what_trying_everything_finds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        qn_lifetime boxes[MOST];
        struct qn_arena arena = {0};
        const int count = make(boxes, seed);
        const int64_t bound = qn_pack_bound(boxes, count, &arena);
        for (int64_t height = bound ? bound - 1 : 0; height <= bound + 1; height++)
            assert_same(boxes, count, height);
        qn_arena_free(&arena);
    }
}

/* Eight bytes live at the same time, but nine are needed; nearly all small tables fit their bound.
 */
static void knows_that_the_bound_is_not_enough(void **state)
{
    (void)state;
    qn_lifetime boxes[MOST] = {{4, 5, 3, 0}, {6, 7, 3, 0}, {2, 4, 2, 0}, {5, 6, 2, 0},
                               {5, 6, 2, 0}, {2, 6, 2, 0}, {1, 5, 1, 0}, {3, 6, 2, 0},
                               {0, 2, 3, 0}, {1, 3, 3, 0}};
    struct qn_arena arena = {0};
    assert_int_equal(qn_pack_bound(boxes, MOST, &arena), 8);
    assert_int_equal(qn_pack(boxes, MOST, 8, NODES, &arena), QN_PACK_IMPOSSIBLE);
    assert_same(boxes, MOST, 8);
    assert_same(boxes, MOST, 9);
    qn_arena_free(&arena);
}

static void gives_up_when_told(void **state)
{
    (void)state;
    qn_lifetime boxes[60];
    struct qn_arena arena = {0};
    for (int i = 0; i < 60; i++) {
        const int lower = draw(5, 3 * i, 40);
        boxes[i] = (qn_lifetime){lower, lower + 1 + draw(5, 3 * i + 1, 20),
                                 1000 + draw(5, 3 * i + 2, 9000), 0};
    }
    const int64_t bound = qn_pack_bound(boxes, 60, &arena);
    assert_int_equal(qn_pack(boxes, 60, bound, 1, &arena), QN_PACK_GAVE_UP);
    assert_int_equal(qn_pack(boxes, 60, bound - 1, NODES, &arena), QN_PACK_IMPOSSIBLE);
    assert_int_equal(qn_pack(boxes, 60, 2 * bound, NODES, &arena), QN_PACKED);
    assert_packed(boxes, 60, 2 * bound);
    qn_arena_free(&arena);
}

static void nothing_is_placed_at_once(void **state)
{
    (void)state;
    int64_t bound = -1;
    qn_lifetime empty = {3, 4, 0, -1};
    assert_int_equal(qn_place(&empty, 0, NULL, &bound), QN_OK);
    assert_int_equal(bound, 0);
    assert_int_equal(qn_place(&empty, 1, NULL, NULL), QN_OK);
    assert_int_equal(empty.offset, 0);
    empty.upper = 3;
    assert_int_equal(qn_place(&empty, 1, NULL, NULL), QN_ERR_ARGUMENT);
}

/* The pairs that live together cannot be counted in 32 bits; modulo 2^32 they are few. Those of the
 * second take gigabytes. */
static void too_many_that_live_together(void **state)
{
    (void)state;
    enum { COUNT = 65600 };
    int64_t bound;
    qn_lifetime *boxes = calloc(COUNT, sizeof *boxes);
    assert_non_null(boxes);
    for (int i = 0; i < COUNT; i++)
        boxes[i] = (qn_lifetime){0, 1, 64, 0};
    assert_int_equal(qn_place(boxes, COUNT, NULL, &bound), QN_ERR_MEMORY);
    assert_int_equal(bound, 64 * COUNT);
    assert_int_equal(qn_place(boxes, COUNT / 4, NULL, &bound), QN_ERR_MEMORY);
    assert_int_equal(bound, 64 * (COUNT / 4));
    free(boxes);
}

/* Boxes one after another and boxes on top of each other, on the stack of a small thread. */
static void *pack_many(void *bottom)
{
    enum { COUNT = 4000 };
    struct qn_arena arena = {0};
    qn_lifetime *boxes = calloc(COUNT, sizeof *boxes);
    for (int stacked = 0; boxes && stacked < 2; stacked++) {
        for (int i = 0; i < COUNT; i++)
            boxes[i] = (qn_lifetime){stacked ? 0 : i, stacked ? 1 : i + 1, 64, 0};
        if (qn_pack(boxes, COUNT, stacked ? 64 * COUNT : 64, NODES, &arena) != QN_PACKED)
            bottom = NULL;
    }
    qn_arena_free(&arena);
    free(boxes);
    return bottom;
}

static void needs_no_stack_for_many(void **state)
{
    pthread_attr_t small;
    pthread_t thread;
    void *packed = NULL;
    assert_non_null(state);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &small, pack_many, state), 0);
    assert_int_equal(pthread_join(thread, &packed), 0);
    assert_non_null(packed);
    pthread_attr_destroy(&small);
}

/* The same offsets on every machine and in every run. */
static void repeats(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        qn_lifetime a[MOST], b[MOST];
        const int count = make(a, seed);
        make(b, seed);
        const qn_place_params params = {.capacity = 100};
        assert_int_equal(qn_place(a, count, &params, NULL), QN_OK);
        assert_int_equal(qn_place(b, count, &params, NULL), QN_OK);
        for (int i = 0; i < count; i++)
            assert_int_equal(a[i].offset, b[i].offset);
        assert_true(top_of(a, count) <= 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_trying_everything_finds),
        cmocka_unit_test(knows_that_the_bound_is_not_enough),
        cmocka_unit_test(gives_up_when_told),
        cmocka_unit_test(nothing_is_placed_at_once),
        cmocka_unit_test(needs_no_stack_for_many),
        cmocka_unit_test(too_many_that_live_together),
        cmocka_unit_test(repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
