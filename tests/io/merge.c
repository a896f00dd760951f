/* SPDX-License-Identifier: MIT
 *
 * Adapters merged into the weights of a file, by numbers that are worked out by hand, and adapters
 * that belong to nothing.
 */
#include "scratch.h"
#include <quern/io.h>

/* A tensor of at most four numbers, as their bytes are. */
struct small {
    qn_tensors_item item;
    uint32_t numbers[4];
};

/* f32 of 1, 2, 3, 4, 0.5; bf16 of them is the upper half. */
enum { ONE = 0x3f800000, TWO = 0x40000000, THREE = 0x40400000, FOUR = 0x40800000 };

static const struct small plain = {{"fc.bias", QN_F32, {1, {2}}}, {ONE, TWO}};
static const struct small w = {{"fc.weight", QN_F32, {2, {2, 2}}}, {ONE, TWO, THREE, FOUR}};
static const struct small brain = {{"fc.weight", QN_BF16, {2, {2, 2}}}, {0x40003f80, 0x40804040}};
static const struct small a = {{"fc.lora_A.weight", QN_F32, {2, {1, 2}}}, {ONE, THREE}};
static const struct small b = {{"fc.lora_B.weight", QN_F32, {2, {2, 1}}}, {TWO, FOUR}};
static const struct small wide = {{"fc.lora_A.weight", QN_F32, {2, {1, 4}}}, {ONE, ONE, ONE, ONE}};
static const struct small deep = {{"fc.lora_A.weight", QN_F32, {2, {2, 2}}}, {ONE, ONE, ONE, ONE}};
static const struct small square = {{"fc.lora_A.weight", QN_F32, {2, {2, 2}}},
                                    {ONE, TWO, THREE, FOUR}};
static const struct small back = {{"fc.lora_B.weight", QN_F32, {2, {2, 2}}},
                                  {ONE, TWO, THREE, FOUR}};
static const struct small whole = {{"fc.lora_A.weight", QN_I32, {2, {1, 2}}}, {1, 2}};

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    const struct small *const *list = user;
    memcpy(bytes, (const char *)list[index]->numbers + at, (size_t)size);
    return QN_OK;
}

static qn_tensors *file_of(struct scratch *scratch, const struct small *const *list)
{
    qn_tensors_item items[8];
    qn_tensors *file;
    int64_t count = 0;
    for (; list[count]; count++)
        items[count] = list[count]->item;
    const qn_tensors_params params = {.log = scratch->log, .items = items, .count = count};
    const char *path = scratch_path(scratch, "w.safetensors");
    assert_int_equal(qn_tensors_save(path, &params, give, (void *)list, NULL, NULL), QN_OK);
    assert_int_equal(qn_tensors_open(&file, path, &scratch->log), QN_OK);
    return file;
}

static void check(const qn_tensors *file, const char *name, const uint32_t *want, int64_t bytes)
{
    uint32_t got[4];
    const qn_tensors_entry *entry = qn_tensors_find(file, name);
    assert_non_null(entry);
    assert_int_equal(entry->bytes, bytes);
    assert_int_equal(qn_tensors_read(file, entry, 0, got, bytes), QN_OK);
    assert_memory_equal(got, want, (size_t)bytes);
}

/* [1 2; 3 4] + 0.5 [2; 4] [1 3] = [2 5; 5 10], and 0.5 [1 2; 3 4] [1 2; 3 4] makes [4.5 7; 10.5 15]
 * of it. */
static void the_product_is_added(void **state)
{
    struct scratch *scratch = *state;
    static const struct small *const lists[][5] = {
        {&a, &plain, &w, &b}, {&b, &brain, &a, &plain}, {&w, &square, &back, &plain}};
    static const uint32_t want[][4] = {{TWO, 0x40a00000, 0x40a00000, 0x41200000},
                                       {0x40a04000, 0x412040a0},
                                       {0x40900000, 0x40e00000, 0x41280000, 0x41700000}};
    for (int i = 0; i < 3; i++) {
        qn_tensors *file = file_of(scratch, lists[i]), *merged;
        char path[512];
        snprintf(path, sizeof path, "%s", scratch_path(scratch, "m.safetensors"));
        const qn_tensors_params params = {.log = scratch->log};
        assert_int_equal(qn_tensors_merge(path, &params, file, 0.5), QN_OK);
        assert_int_equal(qn_tensors_open(&merged, path, &scratch->log), QN_OK);
        assert_int_equal(qn_tensors_count(merged), 2);
        check(merged, "fc.weight", want[i], i == 1 ? 8 : 16);
        check(merged, "fc.bias", plain.numbers, 8);
        qn_tensors_close(&merged);
        qn_tensors_close(&file);
    }
}

static void adapters_of_nothing_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const struct small *list[5];
        const char *reason;
    } cases[] = {
        {{&w, &a}, "tensor fc.lora_A.weight: its other half is missing"},
        {{&w, &b}, "tensor fc.lora_B.weight: its other half is missing"},
        {{&plain, &a, &b}, "its layer's weight is missing"},
        {{&w, &wide, &b}, "does not fit its layer's weight"},
        {{&w, &deep, &b}, "does not fit its layer's weight"},
        {{&w, &whole, &b}, "tensor fc.lora_A.weight: is I32, not of floating point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_tensors *file = file_of(scratch, cases[i].list), *none;
        char path[512];
        snprintf(path, sizeof path, "%s", scratch_path(scratch, "none.safetensors"));
        const qn_tensors_params params = {.log = scratch->log};
        assert_int_equal(qn_tensors_merge(path, &params, file, 1), QN_ERR_FORMAT);
        assert_non_null(strstr(scratch->heard, cases[i].reason));
        assert_int_equal(qn_tensors_open(&none, path, NULL), QN_ERR_IO);
        qn_tensors_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(the_product_is_added),
        WITH_SCRATCH(adapters_of_nothing_are_refused),
    };
    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
