/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "cl/device.h"
#include "cl/slab.h"

#include <stdlib.h>
#include <string.h>

static struct kept kept;

static int setup(void **state)
{
    *state = open_device(&kept);
    return 0;
}

static int teardown(void **state)
{
    qn_device *device = *state;
    qn_device_close(&device);
    return 0;
}

static void copies_at_offsets(void **state)
{
    qn_device *device = *state;
    struct qn_slab *slab = NULL;
    unsigned char out[64], in[64] = {0};
    for (int i = 0; i < 64; i++)
        out[i] = (unsigned char)(i + 1);
    assert_int_equal(qn_slab_open(&slab, device, (int64_t[]){1000, 0, 77}, 3), QN_OK);
    assert_int_equal(qn_slab_bytes(slab), 1077);
    assert_int_equal(qn_slab_write(slab, 2, 13, out, 64, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 2, 13, in, 64, NULL), QN_OK);
    assert_memory_equal(in, out, 64);
    assert_int_equal(qn_slab_read(slab, 2, 12, in, 2, NULL), QN_OK);
    assert_int_equal(in[0], 0);
    assert_int_equal(in[1], 1);
    qn_slab_close(&slab);
    assert_null(slab);
}

static void copies_without_waiting(void **state)
{
    qn_device *device = *state;
    struct qn_slab *slab = NULL;
    struct qn_transfer up = {0}, down = {0};
    int out[100], in[100] = {0};
    for (int i = 0; i < 100; i++)
        out[i] = i * i;
    assert_int_equal(qn_slab_open(&slab, device, (int64_t[]){4096}, 1), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 8, out, sizeof out, &up), QN_OK);
    assert_int_equal(qn_slab_read(slab, 0, 8, in, sizeof in, &down), QN_OK);
    assert_int_equal(qn_slab_read(slab, 0, 8, in, sizeof in, &down), QN_ERR_ARGUMENT);
    assert_int_equal(qn_transfer_wait(device, &down), QN_OK);
    assert_int_equal(qn_transfer_wait(device, &up), QN_OK);
    assert_null(up.event);
    assert_null(down.event);
    assert_int_equal(qn_transfer_wait(device, &up), QN_OK);
    assert_memory_equal(in, out, sizeof in);
    qn_slab_close(&slab);
}

static void assert_words(const uint32_t *words, int count, uint32_t word)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(words[i], word);
}

/* A read beside the kernels sees what was there when it was asked for, and what waits for it comes
 * after it; a write likewise. */
static void copies_beside_kernels(void **state)
{
    enum { WORDS = 1 << 18, BYTES = WORDS * 4, TIMES = 20 };
    qn_device *device = *state;
    struct qn_slab *slab = NULL;
    struct qn_transfer down[TIMES] = {{0}}, up[TIMES] = {{0}};
    uint32_t *out = malloc(BYTES), *in = malloc((size_t)TIMES * BYTES);
    assert_true(out && in);
    for (int i = 0; i < WORDS; i++)
        out[i] = 77;
    assert_int_equal(qn_slab_open(&slab, device, (int64_t[]){BYTES, BYTES}, 2), QN_OK);
    for (uint32_t t = 0; t < TIMES; t++) {
        const int buffer = t % 2;
        assert_int_equal(qn_slab_fill(slab, buffer, 0, BYTES, t), QN_OK);
        assert_int_equal(qn_slab_read_aside(slab, buffer, 0, in + t * WORDS, BYTES, &down[t]),
                         QN_OK);
        assert_int_equal(qn_slab_await(slab, &down[t]), QN_OK);
        assert_int_equal(qn_slab_fill(slab, buffer, 0, BYTES, 1000), QN_OK);
        assert_int_equal(qn_slab_write_aside(slab, buffer, 0, out, BYTES, &up[t]), QN_OK);
        assert_int_equal(qn_slab_await(slab, &up[t]), QN_OK);
    }
    for (int t = 0; t < TIMES; t++) {
        assert_int_equal(qn_transfer_wait(device, &down[t]), QN_OK);
        assert_int_equal(qn_transfer_wait(device, &up[t]), QN_OK);
        assert_words(in + t * WORDS, WORDS, (uint32_t)t);
    }
    assert_int_equal(qn_slab_read(slab, 0, 0, in, BYTES, NULL), QN_OK);
    assert_words(in, WORDS, 77);
    assert_int_equal(qn_slab_read_aside(slab, 0, 4, in, BYTES, &down[0]), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_await(slab, &down[0]), QN_OK);
    qn_slab_close(&slab);
    free(out);
    free(in);
}

static void copies_nothing(void **state)
{
    struct qn_slab *slab = NULL;
    struct qn_transfer transfer = {0};
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){8, 0}, 2), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 8, NULL, 0, NULL), QN_OK);
    assert_int_equal(qn_slab_read(slab, 1, 0, NULL, 0, &transfer), QN_OK);
    assert_null(transfer.event);
    assert_int_equal(qn_slab_fill(slab, 1, 0, 0, 1), QN_OK);
    qn_slab_close(&slab);
}

static void starts_with_zeros(void **state)
{
    static const int64_t sizes[] = {1, 3, 4, 7, 4095, 8192, 8193, 20001};
    struct qn_slab *slab = NULL;
    static unsigned char bytes[20001];
    assert_int_equal(qn_slab_open(&slab, *state, sizes, 8), QN_OK);
    for (int i = 0; i < 8; i++) {
        memset(bytes, 0xff, sizeof bytes);
        assert_int_equal(qn_slab_read(slab, i, 0, bytes, sizes[i], NULL), QN_OK);
        for (int64_t k = 0; k < sizes[i]; k++)
            assert_int_equal(bytes[k], 0);
    }
    qn_slab_close(&slab);
}

static void fills(void **state)
{
    static const int64_t offsets[] = {0, 4, 12, 1000}, sizes[] = {4, 8192, 8196, 20000, 40004};
    static uint32_t words[16384];
    struct qn_slab *slab = NULL;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){sizeof words}, 1), QN_OK);
    for (int i = 0; i < 4 * 5; i++) {
        const int64_t offset = offsets[i % 4], size = sizes[i / 4];
        assert_int_equal(qn_slab_fill(slab, 0, 0, sizeof words, 0x01020304), QN_OK);
        assert_int_equal(qn_slab_fill(slab, 0, offset, size, 0x7fc00001), QN_OK);
        assert_int_equal(qn_slab_read(slab, 0, 0, words, sizeof words, NULL), QN_OK);
        for (int64_t k = 0; k < 16384; k++)
            if (words[k] !=
                (k >= offset / 4 && k < (offset + size) / 4 ? 0x7fc00001u : 0x01020304u))
                fail_msg("word %d of fill %d", (int)k, i);
    }
    qn_slab_close(&slab);
}

static void refuses_what_lies_outside(void **state)
{
    struct qn_slab *slab = NULL;
    char byte = 0;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){16, 0}, 2), QN_OK);
    assert_int_equal(qn_slab_write(slab, 0, 16, &byte, 1, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_write(slab, 0, -1, &byte, 1, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_read(slab, 0, 8, &byte, INT64_MAX, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_read(slab, 1, 0, &byte, 1, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_read(slab, 2, 0, &byte, 1, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_fill(slab, 0, 2, 4, 0), QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_fill(slab, 0, 12, 8, 0), QN_ERR_ARGUMENT);
    qn_slab_close(&slab);
}

static void says_what_was_refused(void **state)
{
    struct qn_slab *slab = NULL;
    kept.text[0] = 0;
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){4096, INT64_C(1) << 60}, 2),
                     QN_ERR_MEMORY);
    assert_null(slab);
    assert_non_null(strstr(kept.text,
                           "1152921504606851072 bytes asked in 2 buffers, 4096 obtained; "
                           "buffer 1 of 1152921504606846976 bytes: CL_"));
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){INT64_MAX, INT64_MAX}, 2),
                     QN_ERR_ARGUMENT);
    assert_int_equal(qn_slab_open(&slab, *state, (int64_t[]){-1}, 1), QN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_at_offsets),         cmocka_unit_test(copies_without_waiting),
        cmocka_unit_test(copies_beside_kernels),     cmocka_unit_test(copies_nothing),
        cmocka_unit_test(starts_with_zeros),         cmocka_unit_test(fills),
        cmocka_unit_test(refuses_what_lies_outside), cmocka_unit_test(says_what_was_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
