/* SPDX-License-Identifier: MIT */
#include "io/npy.h"
#include "npy_file.h"

static unsigned char bytes[1 << 18];

static struct qn_npy open_file(struct scratch *scratch, const char *path)
{
    struct qn_npy npy;
    if (qn_npy_open(&npy, path, &scratch->log) != QN_OK)
        fail_msg("%s", scratch->heard);
    assert_int_equal(scratch->lines, 0);
    return npy;
}

static void refuse(struct scratch *scratch, size_t size, const char *line)
{
    struct qn_npy npy;
    const char *path = scratch_put(scratch, "a", bytes, size);
    if (qn_npy_open(&npy, path, &scratch->log) != QN_ERR_FORMAT)
        fail_msg("not refused: %s", line);
    assert_null(npy.path);
    scratch_said(scratch, "/a: ", line);
}

static void all_types_are_read(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *descr;
        int size;
        unsigned char data[16];
        double wanted[2];
    } types[] = {
        {"<f4", 4, {0, 0, 0x20, 0xc0, 0, 0, 0x80, 0x3f}, {-2.5, 1}},
        {"<f2", 2, {0, 0xc1, 1, 0}, {-2.5, 0x1p-24}},
        {"<f8", 8, {0, 0, 0, 0, 0, 0, 4, 0xc0, 1, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {-2.5, 1 + 0x1p-52}},
        {"|u1", 1, {255, 1}, {255, 1}},
        {"|i1", 1, {0x80, 127}, {-128, 127}},
        {"<u2", 2, {0xff, 0xff, 1, 2}, {65535, 513}},
        {"<i2", 2, {0xfe, 0xff, 1, 2}, {-2, 513}},
        {"<u4", 4, {0xff, 0xff, 0xff, 0xff, 1, 2, 0, 0}, {4294967295, 513}},
        {"<i4", 4, {0, 0, 0, 0x80, 4, 3, 2, 1}, {-0x1p31, 0x1020304}},
        {"<u8", 8, {0, 0, 0, 0, 0, 0, 0, 0x80, 7}, {0x1p63, 7}},
        {"<i8", 8, {0xfd, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 1}, {-3, 0x1p32}},
        {"|b1", 1, {0, 1}, {0, 1}},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t size = 2 * (size_t)types[i].size;
        unsigned char raw[16];
        double values[2];
        struct qn_npy npy =
            open_file(scratch, npy_put(scratch, "a", types[i].descr, "(2,)", types[i].data, size));
        assert_int_equal(npy.kind, types[i].descr[1]);
        assert_int_equal(npy.count, 2);
        assert_int_equal(qn_npy_read(&npy, 0, 2, values, NULL), QN_OK);
        if (values[0] != types[i].wanted[0] || values[1] != types[i].wanted[1])
            fail_msg("%s: %.17g %.17g", types[i].descr, values[0], values[1]);
        assert_int_equal(qn_npy_read(&npy, 1, 1, values, NULL), QN_OK);
        assert_true(values[0] == types[i].wanted[1]);
        assert_int_equal(qn_npy_read_bytes(&npy, 0, 2, raw, NULL), QN_OK);
        assert_memory_equal(raw, types[i].data, size);
        qn_npy_close(&npy);
    }
}

/* More numbers than one part has, of which some are read. */
static void parts_are_joined(void **state)
{
    struct scratch *scratch = *state;
    enum { ROWS = 5000, WIDTH = 3 };
    static unsigned char data[2 * ROWS * WIDTH];
    static double values[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        data[2 * i] = (unsigned char)i;
        data[2 * i + 1] = (unsigned char)(i >> 8);
    }
    const size_t size =
        npy_build(bytes, 1, "{'descr': '<u2', 'fortran_order': False, 'shape': (5000, 3)}\n", data,
                  sizeof data);
    struct qn_npy npy = open_file(scratch, scratch_put(scratch, "a", bytes, size));
    assert_int_equal(npy.shape.rank, 2);
    assert_int_equal(npy.shape.dim[0], ROWS);
    assert_int_equal(npy.shape.dim[1], WIDTH);
    assert_int_equal(qn_npy_read(&npy, 7, ROWS * WIDTH - 7, values, NULL), QN_OK);
    for (int i = 7; i < ROWS * WIDTH; i++)
        assert_true(values[i - 7] == i);
    qn_npy_close(&npy);
}

/* What else says the same, and the order of Fortran where it makes no difference. */
static void headers_may_be_written_otherwise(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        int version;
        const char *header;
    } headers[] = {
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 1), }       \n"},
        {2, "{\"shape\":(1,2,1),\"fortran_order\":False,\"descr\":\"|u1\"}"},
        {3, "\n{ 'shape' : ( 1L , 2L , 1L , ) , 'descr':'<u1' , 'fortran_order' : False , }\n"},
        {1, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 2, 1), }\n"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const size_t size = npy_build(bytes, headers[i].version, headers[i].header, "ab", 2);
        double values[2];
        struct qn_npy npy = open_file(scratch, scratch_put(scratch, "a", bytes, size));
        assert_int_equal(npy.shape.rank, 3);
        assert_int_equal(npy.shape.dim[1], 2);
        assert_int_equal(qn_npy_read(&npy, 0, 2, values, NULL), QN_OK);
        assert_true(values[0] == 'a' && values[1] == 'b');
        qn_npy_close(&npy);
    }
}

#define HEADER(descr, fortran, shape)                                                              \
    "{'descr': " descr ", 'fortran_order': " fortran ", 'shape': " shape "}"

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *header, *line;
    } cases[] = {
        {"", "header: is no dictionary"},
        {"[]", "header: is no dictionary"},
        {"{'descr'}", "header: is no dictionary"},
        {"{'descr' '|u1'}", "header: is no dictionary"},
        {"{'descr': '|u1'", "header: is no dictionary"},
        {"{'descr': '|u1' 'shape': (4,)}", "header: is no dictionary"},
        {"{'descr': '|u1', 'shape': (4,)}", "fortran_order: is missing"},
        {"{'descr': '|u1', 'fortran_order': False}", "shape: is missing"},
        {"{'shape': (4,), 'fortran_order': False}", "descr: is missing"},
        {"{'descr': '|u1', 'descr': '|u1'}", "descr: is there twice"},
        {"{'order': False}", "header: order: no such entry is known"},
        {HEADER("'|u1'", "False", "(4,)") " 1", "header: has more than a dictionary"},
        {HEADER("'|u1'", "false", "(4,)"), "fortran_order: is neither True nor False"},
        {HEADER("'<f4'", "True", "(2, 2)"), "fortran_order: columns come first"},
        {HEADER("'|O'", "False", "(4,)"), "descr: '|O' are Python's objects"},
        {HEADER("'>f4'", "False", "(1,)"), "descr: '>f4' is big-endian"},
        {HEADER("'<U1'", "False", "(1,)"), "descr: '<U1' is no type that can be read"},
        {HEADER("'<f16'", "False", "(1,)"), "descr: '<f16' is no type"},
        {HEADER("'<f1'", "False", "(4,)"), "descr: '<f1' is no type"},
        {HEADER("'<b2'", "False", "(2,)"), "descr: '<b2' is no type"},
        {HEADER("'f4'", "False", "(1,)"), "descr: 'f4' is no type"},
        {HEADER("''", "False", "(1,)"), "descr: '' is no type"},
        {HEADER("'<'", "False", "(1,)"), "descr: '<' is no type"},
        {HEADER("[('a', '<f4')]", "False", "(1,)"), "descr: records of several fields"},
        {HEADER("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "False", "(1,)"), "descr: is no name"},
        {HEADER("'|u1'", "False", "4"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(4)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(,)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(2 2)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(-4,)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(4.0,)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(4,"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(99999999999999999999,)"), "shape: is no tuple"},
        {HEADER("'|u1'", "False", "(1, 1, 1, 1, 1, 1, 4)"), "shape: has too many dimensions"},
        {HEADER("'|u1'", "False", "()"), "shape: is one number, not an array"},
        {HEADER("'|u1'", "False", "(4, 0)"), "shape: there is no number in it"},
        {HEADER("'|u1'", "False", "(4294967296, 4294967296)"), "shape: its numbers cannot"},
        {HEADER("'<f8'", "False", "(4611686018427387904,)"), "shape: its numbers cannot"},
        {HEADER("'|u1'", "False", "(5,)"), "data: 4 bytes behind the header, but shape (5)"},
        {HEADER("'|u1'", "False", "(3,)"), "data: 4 bytes behind the header, but shape (3)"},
        {HEADER("'<f4'", "False", "(4,)"), "of '<f4' takes 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int version = 1; version <= 3; version++)
            refuse(*state, npy_build(bytes, version, cases[i].header, "data", 4), cases[i].line);
}

static void what_is_before_the_header_is_checked(void **state)
{
    static const char header[] = HEADER("'|u1'", "False", "(4,)");
    size_t size = npy_build(bytes, 1, header, "data", 4);
    bytes[0] = 'N';
    refuse(*state, size, "magic: this is no npy file");
    size = npy_build(bytes, 4, header, "data", 4);
    refuse(*state, size, "version: 4.0; 1.0, 2.0 and 3.0 can be read");
    size = npy_build(bytes, 1, header, "data", 4);
    bytes[7] = 1;
    refuse(*state, size, "version: 1.1;");
    size = npy_build(bytes, 1, header, "data", 4);
    bytes[9] = 1;
    refuse(*state, size, "header: the file ends early");
    size = npy_build(bytes, 2, header, "data", 4);
    bytes[11] = 0x80;
    refuse(*state, size, "header: is longer than 64 KiB");
    size = npy_build(bytes, 1, header, "data", 4);
    bytes[12] = 0;
    refuse(*state, size, "header: has a character 0");
}

static void other_lengths_are_refused(void **state)
{
    const size_t size = npy_build(bytes, 2, HEADER("'|u1'", "False", "(4,)"), "data", 4);
    for (size_t length = 0; length < size; length++)
        refuse(*state, length, "");
    refuse(*state, size + 1, "data: 5 bytes behind the header");
}

static void what_is_not_there_is_said(void **state)
{
    struct scratch *scratch = *state;
    struct qn_npy npy;
    assert_int_equal(qn_npy_open(&npy, "/none/such", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such", "No such file");
    assert_int_equal(qn_npy_open(&npy, scratch->folder, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, scratch->folder, "not a regular file");
    qn_npy_close(&npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(all_types_are_read),
        WITH_SCRATCH(parts_are_joined),
        WITH_SCRATCH(headers_may_be_written_otherwise),
        WITH_SCRATCH(what_is_wrong_is_said),
        WITH_SCRATCH(what_is_before_the_header_is_checked),
        WITH_SCRATCH(other_lengths_are_refused),
        WITH_SCRATCH(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
