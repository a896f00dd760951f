/* SPDX-License-Identifier: MIT */
#include "io/idx.h"
#include "idx_file.h"

enum { U8 = 0x08, I32 = 0x0c, ROOM = 1 << 16 };

static const uint32_t cube[] = {4, 5, 6};
static unsigned char values[120];
static unsigned char bytes[ROOM];

static size_t build_cube(void)
{
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (unsigned char)(i / 9 * 37);
    return idx_build(bytes, U8, 3, cube, values, sizeof values);
}

static void check_cube(const struct qn_idx *idx)
{
    assert_int_equal(idx->dtype, QN_U8);
    assert_int_equal(idx->shape.rank, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(idx->shape.dim[i], cube[i]);
    assert_int_equal(idx->bytes, sizeof values);
    assert_memory_equal(idx->data, values, sizeof values);
}

static void plain_and_compressed_are_read(void **state)
{
    struct scratch *scratch = *state;
    struct qn_idx idx;
    size_t size = build_cube();
    assert_int_equal(qn_idx_read(&idx, scratch_put(scratch, "a", bytes, size), &scratch->log),
                     QN_OK);
    check_cube(&idx);
    qn_idx_free(&idx);
    assert_int_equal(qn_idx_read(&idx, idx_put_gzip(scratch, "b.gz", bytes, size), &scratch->log),
                     QN_OK);
    check_cube(&idx);
    qn_idx_free(&idx);
    assert_int_equal(scratch->lines, 0);
}

static void integers_are_turned_round(void **state)
{
    struct scratch *scratch = *state;
    const unsigned char data[] = {0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe, 0x7f, 0xff, 0xff, 0xff};
    size_t size = idx_build(bytes, I32, 1, (const uint32_t[]){3}, data, sizeof data);
    struct qn_idx idx;
    assert_int_equal(qn_idx_read(&idx, scratch_put(scratch, "a", bytes, size), &scratch->log),
                     QN_OK);
    const int32_t *got = idx.data;
    assert_int_equal(idx.dtype, QN_I32);
    assert_int_equal(got[0], 258);
    assert_int_equal(got[1], -2);
    assert_int_equal(got[2], INT32_MAX);
    qn_idx_free(&idx);
}

static void what_is_wrong_is_said(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        unsigned char magic[4];
        uint32_t dim[4];
        size_t size;
        const char *field, *reason;
    } cases[] = {
        {{1, 0, U8, 1}, {4}, 4, "magic", "no IDX file"},
        {{0, 0, 0x07, 1}, {4}, 4, "magic", "no such type"},
        {{0, 0, 0x0d, 1}, {1}, 4, "magic", "f32"},
        {{0, 0, 0x0b, 1}, {2}, 4, "magic", "i16"},
        {{0, 0, U8, 0}, {4}, 4, "magic", "1 to 4 dimensions"},
        {{0, 0, U8, 5}, {1, 1, 1, 1}, 4, "magic", "1 to 4 dimensions"},
        {{0, 0, U8, 1}, {5}, 4, "data", "ends early"},
        {{0, 0, U8, 1}, {3}, 4, "data", "behind the last value"},
        {{0, 0, U8, 1}, {4000000000u}, 4, "sizes", "more values than the file holds"},
        {{0, 0, U8, 2}, {65536, 65536}, 4, "sizes", "more values than the file holds"},
        {{0, 0, U8, 4}, {~0u, ~0u, ~0u, 1}, 4, "sizes", "too large"},
        {{0, 0, I32, 3}, {~0u, ~0u, 1}, 4, "sizes", "too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rank = cases[i].magic[3] > 4 ? 4 : cases[i].magic[3];
        size_t size = idx_build(bytes, cases[i].magic[2], rank, cases[i].dim, "data", 4);
        memcpy(bytes, cases[i].magic, 4);
        struct qn_idx idx;
        const char *path = scratch_put(scratch, "a", bytes, size);
        assert_int_equal(qn_idx_read(&idx, path, &scratch->log), QN_ERR_FORMAT);
        assert_null(idx.data);
        scratch_said(scratch, cases[i].field, cases[i].reason);
        path = idx_put_gzip(scratch, "a.gz", bytes, size);
        assert_int_equal(qn_idx_read(&idx, path, &scratch->log), QN_ERR_FORMAT);
        assert_null(idx.data);
        assert_int_equal(scratch->lines, 1);
        assert_non_null(strstr(scratch->heard, path));
        scratch->lines = 0;
    }
}

static void what_is_not_there_is_said(void **state)
{
    struct scratch *scratch = *state;
    struct qn_idx idx;
    assert_int_equal(qn_idx_read(&idx, "/none/such", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such", "No such file");
    assert_int_equal(qn_idx_read(&idx, scratch->folder, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, scratch->folder, "not a regular file");
}

/* Every shorter file is refused with one line. */
static void refuse_short(struct scratch *scratch, const unsigned char *whole, size_t size)
{
    for (size_t length = 0; length < size; length++) {
        struct qn_idx idx;
        const char *path = scratch_put(scratch, "short", whole, length);
        assert_int_equal(qn_idx_read(&idx, path, &scratch->log), QN_ERR_FORMAT);
        scratch_said(scratch, path, "");
    }
}

static void short_files_are_refused(void **state)
{
    struct scratch *scratch = *state;
    size_t size = build_cube();
    refuse_short(scratch, bytes, size);
    const char *path = idx_put_gzip(scratch, "a.gz", bytes, size);
    char *packed;
    assert_int_equal(qn_file_read(path, ROOM, &packed, &size, &scratch->log), QN_OK);
    refuse_short(scratch, (const unsigned char *)packed, size);
    free(packed);
}

/* Flipped bits either change nothing that is read (a field of the gzip header) or are noticed. */
static void corrupt_gzip_is_refused(void **state)
{
    struct scratch *scratch = *state;
    size_t size = build_cube();
    const char *path = idx_put_gzip(scratch, "a.gz", bytes, size);
    char *packed;
    int harmless = 0;
    assert_int_equal(qn_file_read(path, ROOM, &packed, &size, &scratch->log), QN_OK);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct qn_idx idx;
        packed[bit / 8] ^= (char)(1 << bit % 8);
        path = scratch_put(scratch, "b.gz", packed, size);
        packed[bit / 8] ^= (char)(1 << bit % 8);
        qn_status status = qn_idx_read(&idx, path, &scratch->log);
        if (status == QN_OK) {
            check_cube(&idx);
            harmless++;
        } else {
            assert_int_equal(status, QN_ERR_FORMAT);
            scratch_said(scratch, path, "");
        }
        qn_idx_free(&idx);
    }
    assert_true(harmless < 80);
    free(packed);
}

static void members_of_gzip_are_joined(void **state)
{
    struct scratch *scratch = *state;
    size_t size = build_cube();
    char *packed[2];
    size_t length[2];
    size_t cut[] = {0, 50, size};
    for (int i = 0; i < 2; i++) {
        const char *part = idx_put_gzip(scratch, "p.gz", bytes + cut[i], cut[i + 1] - cut[i]);
        assert_int_equal(qn_file_read(part, ROOM, &packed[i], &length[i], &scratch->log), QN_OK);
    }
    unsigned char *joined = malloc(length[0] + length[1]);
    memcpy(joined, packed[0], length[0]);
    memcpy(joined + length[0], packed[1], length[1]);
    const char *path = scratch_put(scratch, "a.gz", joined, length[0] + length[1]);
    struct qn_idx idx;
    assert_int_equal(qn_idx_read(&idx, path, &scratch->log), QN_OK);
    check_cube(&idx);
    qn_idx_free(&idx);
    for (int i = 0; i < 2; i++)
        free(packed[i]);
    free(joined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(plain_and_compressed_are_read), WITH_SCRATCH(integers_are_turned_round),
        WITH_SCRATCH(what_is_wrong_is_said),         WITH_SCRATCH(what_is_not_there_is_said),
        WITH_SCRATCH(short_files_are_refused),       WITH_SCRATCH(corrupt_gzip_is_refused),
        WITH_SCRATCH(members_of_gzip_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
