/* SPDX-License-Identifier: MIT */
#include "scratch.h"
#include <quern/io.h>

enum { ROOM = 1 << 16 };

static const qn_tensors_item items[] = {
    {"bytes", QN_U8, {2, {3, 5}}},    {"weights", QN_F32, {3, {2, 3, 4}}},
    {"half", QN_F16, {1, {7}}},       {"brain \"half\"\n\xc3\xa9", QN_BF16, {1, {3}}},
    {"scalar", QN_F32, {0, {0}}},     {"ids", QN_I32, {1, {9}}},
    {"nothing", QN_F32, {2, {0, 4}}},
};
enum { ITEMS = sizeof items / sizeof *items };
static const qn_tensors_pair metadata[] = {{"step", "12"}, {"note", "a \"b\"\n\xc3\xa9"}};

static qn_tensors_params params_of(struct scratch *scratch)
{
    return (qn_tensors_params){scratch->log, items, ITEMS, metadata, 2};
}

static unsigned char value_of(int64_t item, int64_t at)
{
    return (unsigned char)(item * 50 + at * 7);
}

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    (void)user;
    for (int64_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = value_of(index, at + i);
    return QN_OK;
}

static const char *save(struct scratch *scratch)
{
    qn_tensors_params params = params_of(scratch);
    const char *path = scratch_path(scratch, "w.safetensors");
    uint32_t crc, again;
    int64_t bytes, size;
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, &crc, &bytes), QN_OK);
    assert_int_equal(qn_file_crc32(path, &again, &size, &scratch->log), QN_OK);
    assert_int_equal(crc, again);
    assert_int_equal(bytes, size);
    return path;
}

static void check(qn_tensors *tensors)
{
    assert_int_equal(qn_tensors_count(tensors), ITEMS);
    for (int64_t i = 0; i < ITEMS; i++) {
        unsigned char bytes[128];
        const qn_tensors_entry *entry = qn_tensors_find(tensors, items[i].name);
        assert_non_null(entry);
        assert_int_equal(entry->dtype, items[i].dtype);
        assert_int_equal(entry->shape.rank, items[i].shape.rank);
        assert_memory_equal(entry->shape.dim, items[i].shape.dim,
                            sizeof(int64_t) * (size_t)entry->shape.rank);
        assert_int_equal(entry->offset % qn_dtype_size(entry->dtype), 0);
        assert_int_equal(qn_tensors_read(tensors, entry, 0, bytes, entry->bytes), QN_OK);
        for (int64_t at = 0; at < entry->bytes; at++)
            assert_int_equal(bytes[at], value_of(i, at));
    }
    assert_string_equal(qn_tensors_metadata(tensors, "step"), "12");
    assert_string_equal(qn_tensors_metadata(tensors, "note"), "a \"b\"\n\xc3\xa9");
    assert_null(qn_tensors_metadata(tensors, "steps"));
    assert_null(qn_tensors_find(tensors, "weight"));
    assert_null(qn_tensors_at(tensors, -1));
    assert_null(qn_tensors_at(tensors, ITEMS));
}

static void what_is_saved_is_read(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors *tensors = NULL;
    assert_int_equal(qn_tensors_open(&tensors, save(scratch), &scratch->log), QN_OK);
    check(tensors);
    qn_tensors_close(&tensors);
    qn_tensors_close(&tensors);
    assert_int_equal(scratch->lines, 0);
}

/* Tensors in any order, in parts, interleaved: the same file and the same sum. */
static void the_order_of_writing_is_free(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors_params params = params_of(scratch);
    qn_tensors_writer *writer = NULL;
    uint32_t whole, crc;
    assert_int_equal(qn_file_crc32(save(scratch), &whole, NULL, &scratch->log), QN_OK);
    const char *path = scratch_path(scratch, "v.safetensors");
    assert_int_equal(qn_tensors_create(&writer, path, &params), QN_OK);
    for (int64_t at = 0; at < 96; at += 5)
        for (int64_t i = 0; i < ITEMS; i++) {
            int64_t bytes = qn_dtype_size(items[i].dtype), part = 5;
            for (int d = 0; d < items[i].shape.rank; d++)
                bytes *= items[i].shape.dim[d];
            unsigned char data[5];
            part = bytes - at < part ? bytes - at : part;
            if (part <= 0)
                continue;
            give(NULL, i, at, data, part);
            assert_int_equal(qn_tensors_write(writer, i, data, part), QN_OK);
        }
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(qn_tensors_commit(&writer, &crc, NULL), QN_OK);
    assert_null(writer);
    assert_int_equal(crc, whole);
    assert_int_equal(qn_file_crc32(path, &crc, NULL, &scratch->log), QN_OK);
    assert_int_equal(crc, whole);
}

static void parts_of_a_tensor_are_read(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors *tensors = NULL;
    unsigned char bytes[4];
    assert_int_equal(qn_tensors_open(&tensors, save(scratch), &scratch->log), QN_OK);
    const qn_tensors_entry *entry = qn_tensors_find(tensors, "weights");
    assert_int_equal(qn_tensors_read(tensors, entry, 92, bytes, 4), QN_OK);
    assert_int_equal(bytes[0], value_of(1, 92));
    assert_int_equal(qn_tensors_read(tensors, entry, 96, bytes, 0), QN_OK);
    assert_int_equal(qn_tensors_read(tensors, entry, 93, bytes, 4), QN_ERR_ARGUMENT);
    assert_int_equal(qn_tensors_read(tensors, entry, -1, bytes, 1), QN_ERR_ARGUMENT);
    assert_int_equal(qn_tensors_read(tensors, entry, 0, bytes, INT64_MAX), QN_ERR_ARGUMENT);
    qn_tensors_close(&tensors);
}

static void an_unfinished_file_never_appears(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors_params params = params_of(scratch);
    const char *path = scratch_put(scratch, "w.safetensors", "old", 3);
    qn_tensors_writer *writer = NULL;
    assert_int_equal(qn_tensors_create(&writer, path, &params), QN_OK);
    assert_int_equal(qn_tensors_write(writer, 0, "12345", 5), QN_OK);
    assert_int_equal(qn_tensors_write(writer, 0, "12345678901", 11), QN_ERR_ARGUMENT);
    scratch_said(scratch, "tensor bytes", "more bytes");
    assert_int_equal(qn_tensors_commit(&writer, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "tensor bytes", "fewer bytes");
    assert_null(writer);
    assert_int_equal(qn_tensors_create(&writer, path, &params), QN_OK);
    qn_tensors_discard(&writer);
    qn_tensors_discard(&writer);
    char *bytes;
    size_t size;
    assert_int_equal(qn_file_read(path, 3, &bytes, &size, &scratch->log), QN_OK);
    free(bytes);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(scratch->folder), 0);
    assert_int_equal(mkdir(scratch->folder, 0777), 0);
}

static void items_are_checked(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        qn_tensors_item items[2];
        const char *reason;
    } cases[] = {
        {{{"a", QN_F32, {1, {1}}}, {"a", QN_F32, {1, {1}}}}, "name twice"},
        {{{"__metadata__", QN_F32, {1, {1}}}, {"a", QN_F32, {0}}}, "name is not usable"},
        {{{"\xff", QN_F32, {1, {1}}}, {"a", QN_F32, {0}}}, "name is not usable"},
        {{{NULL, QN_F32, {1, {1}}}, {"a", QN_F32, {0}}}, "name is not usable"},
        {{{"b", QN_DTYPE_NONE, {1, {1}}}, {"a", QN_F32, {0}}}, "dtype"},
        {{{"b", QN_F32, {1, {QN_BATCH}}}, {"a", QN_F32, {0}}}, "not concrete"},
        {{{"b", QN_F32, {7, {1}}}, {"a", QN_F32, {0}}}, "rank"},
        {{{"b", QN_F32, {2, {INT64_MAX, 2}}}, {"a", QN_F32, {0}}}, "too large"},
        {{{"b", QN_U8, {1, {INT64_MAX}}}, {"a", QN_U8, {1, {1}}}}, "ends beyond"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_tensors_params params = {.log = scratch->log, .items = cases[i].items, .count = 2};
        const char *path = scratch_path(scratch, "a");
        assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_ERR_ARGUMENT);
        scratch_said(scratch, "tensor", cases[i].reason);
    }
    qn_tensors_pair twice[] = {{"a", "1"}, {"a", "2"}}, bad[] = {{"a", NULL}, {"b", "2"}};
    qn_tensors_params params = {.log = scratch->log, .metadata = twice, .metadata_count = 2};
    const char *path = scratch_path(scratch, "a");
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "__metadata__", "a key twice");
    params.metadata = bad;
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, "__metadata__", "missing");
}

/* A file of a header that is given and `data` bytes behind it. */
static const char *put_header(struct scratch *scratch, const char *json, size_t data)
{
    static unsigned char bytes[ROOM];
    size_t length = strlen(json);
    memset(bytes, 0, 8 + length + data);
    bytes[0] = (unsigned char)length;
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, json, length);
    return scratch_put(scratch, "h", bytes, 8 + length + data);
}

#define A8(shape, offsets)                                                                         \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define T(name, from, to)                                                                          \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" from "," to "]}"

static void headers_are_checked(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *json;
        size_t data;
        const char *reason; /* NULL: accepted */
    } cases[] = {
        {A8("[4]", "[0,4]"), 4, NULL},
        {A8("[4]", "[0,4]") "   ", 4, NULL},
        {A8("[]", "[0,1]"), 1, NULL},
        {A8("[0]", "[0,0]"), 0, NULL},
        {"{}", 0, NULL},
        {"{" T("a", "4", "8") "," T("b", "0", "4") "}", 8, NULL},
        {"{\"__metadata__\":{}," T("a", "0", "4") "}", 4, NULL},
        {"{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, NULL},
        {"", 0, "header: is no JSON object"},
        {"[]", 0, "header: is no JSON object"},
        {" {}", 0, "header: is no JSON object"},
        {"{", 0, "header: is no well-formed JSON"},
        {"{} {}", 0, "header: is no well-formed JSON"},
        {"{\"a\":}", 0, "header: is no well-formed JSON"},
        {"{\"a\":3}", 0, "tensor a: is no object"},
        {"{\"a\":{}}", 0, "tensor a: dtype"},
        {"{\"a\":{\"dtype\":\"X8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, "tensor a: dtype"},
        {"{\"a\":{\"dtype\":8,\"shape\":[],\"data_offsets\":[0,1]}}", 1, "tensor a: dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "tensor a: shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 1, "tensor a: data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}}", 1,
         "fields besides"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
         "fields besides"},
        {A8("[4]", "[0,3]"), 3, "shape does not equal its bytes"},
        {A8("[4.5]", "[0,4]"), 4, "something else than sizes"},
        {A8("[-4]", "[0,4]"), 4, "something else than sizes"},
        {A8("[1e300]", "[0,4]"), 4, "something else than sizes"},
        {A8("[\"4\"]", "[0,4]"), 4, "something else than sizes"},
        {A8("[1,1,1,1,1,1,4]", "[0,4]"), 4, "more than 6 dimensions"},
        {A8("[4294967296,4294967296,4]", "[0,4]"), 4, "shape does not equal its bytes"},
        {A8("[4]", "[4,0]"), 4, "end before they begin"},
        {A8("[4]", "[0,5]"), 4, "end outside the file"},
        {A8("[4]", "[0,9007199254740991]"), 4, "end outside the file"},
        {A8("[4]", "[0]"), 4, "not two offsets"},
        {A8("[4]", "[0,4,4]"), 4, "not two offsets"},
        {A8("[4]", "[-1,3]"), 4, "not two offsets"},
        {A8("[4]", "[1,5]"), 5, "begins after a gap"},
        {A8("[4]", "[0,4]"), 5, "bytes behind the data"},
        {"{" T("a", "0", "4") "," T("b", "3", "7") "}", 7, "tensor b: overlaps another"},
        {"{" T("a", "0", "4") "," T("a", "4", "8") "}", 8, "tensor a: name twice"},
        {"{" T("a", "0", "4") "," T("a\\u0000b", "4", "8") "}", 8, ""},
        {"{" T("a\\nb", "0", "5") "}", 5, "tensor a\\nb: "},
        {"{" T("\xff", "0", "4") "}", 4, "name is not UTF-8"},
        {"{\"__metadata__\":3}", 0, "metadata is no object"},
        {"{\"__metadata__\":{\"a\":3}}", 0, "something else than texts"},
        {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "a key of the metadata twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "metadata twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_tensors *tensors = NULL;
        const char *path = put_header(scratch, cases[i].json, cases[i].data);
        qn_status status = qn_tensors_open(&tensors, path, &scratch->log);
        if (status != (cases[i].reason ? QN_ERR_FORMAT : QN_OK))
            fail_msg("%s: %s", cases[i].json, scratch->heard);
        if (cases[i].reason)
            scratch_said(scratch, path, cases[i].reason);
        assert_int_equal(tensors == NULL, status != QN_OK);
        qn_tensors_close(&tensors);
    }
}

static void other_types_are_bytes(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors *tensors = NULL;
    const char *json = "{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    assert_int_equal(qn_tensors_open(&tensors, put_header(scratch, json, 8), &scratch->log), QN_OK);
    assert_int_equal(qn_tensors_at(tensors, 0)->dtype, QN_DTYPE_NONE);
    assert_string_equal(qn_tensors_at(tensors, 0)->type, "I64");
    qn_tensors_close(&tensors);
}

static void short_files_are_refused(void **state)
{
    struct scratch *scratch = *state;
    char *bytes;
    size_t size;
    assert_int_equal(qn_file_read(save(scratch), ROOM, &bytes, &size, &scratch->log), QN_OK);
    for (size_t length = 0; length < size; length++) {
        qn_tensors *tensors = NULL;
        const char *path = scratch_put(scratch, "short", bytes, length);
        assert_int_equal(qn_tensors_open(&tensors, path, &scratch->log), QN_ERR_FORMAT);
        scratch_said(scratch, path, "");
    }
    free(bytes);
}

/* A flipped bit of the header is refused or gives a file that can be read through. */
static void flipped_bits_do_no_harm(void **state)
{
    struct scratch *scratch = *state;
    char *bytes, data[128];
    size_t size;
    assert_int_equal(qn_file_read(save(scratch), ROOM, &bytes, &size, &scratch->log), QN_OK);
    for (size_t bit = 0; bit < 8 * size; bit += 1 + (bit > 64)) {
        qn_tensors *tensors = NULL;
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        const char *path = scratch_put(scratch, "flipped", bytes, size);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        qn_status status = qn_tensors_open(&tensors, path, &scratch->log);
        assert_int_equal(scratch->lines, status != QN_OK);
        scratch->lines = 0;
        for (int64_t i = 0; tensors && i < qn_tensors_count(tensors); i++) {
            const qn_tensors_entry *entry = qn_tensors_at(tensors, i);
            assert_true(entry->bytes <= (int64_t)sizeof data);
            assert_int_equal(qn_tensors_read(tensors, entry, 0, data, entry->bytes), QN_OK);
        }
        qn_tensors_close(&tensors);
    }
    free(bytes);
}

static void a_monstrous_header_is_refused(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors *tensors = NULL;
    const char *path = scratch_put(scratch, "a", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    assert_int_equal(qn_tensors_open(&tensors, path, &scratch->log), QN_ERR_FORMAT);
    scratch_said(scratch, path, "larger than");
    path = scratch_put(scratch, "a", "\3\0\0\0\0\0\0\0{}", 10);
    assert_int_equal(qn_tensors_open(&tensors, path, &scratch->log), QN_ERR_FORMAT);
    scratch_said(scratch, path, "ends inside it");
    assert_int_equal(qn_tensors_open(&tensors, "/none/such", &scratch->log), QN_ERR_IO);
    scratch_said(scratch, "/none/such", "No such file");
    assert_int_equal(qn_tensors_open(&tensors, scratch->folder, &scratch->log), QN_ERR_IO);
    scratch_said(scratch, scratch->folder, "not a regular file");
}

static qn_status refuse(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    (void)user, (void)bytes, (void)size;
    return index == 2 && at == 0 ? QN_ERR_DEVICE : give(user, index, at, bytes, size);
}

static void the_status_of_the_source_is_passed_on(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors_params params = params_of(scratch);
    const char *path = scratch_path(scratch, "a");
    assert_int_equal(qn_tensors_save(path, &params, refuse, NULL, NULL, NULL), QN_ERR_DEVICE);
    assert_int_equal(rmdir(scratch->folder), 0);
    assert_int_equal(mkdir(scratch->folder, 0777), 0);
}

/* --- layouts --- */

static const qn_tensors_item turned[] = {
    {"a.weight", QN_F16, {2, {600, 1000}}}, /* more than one part */
    {"b.weight", QN_F32, {2, {2, 3}}},
    {"b.bias", QN_F32, {1, {5}}},
    {"c", QN_F32, {2, {2, 3}}},
    {"d.weight", QN_U8, {3, {2, 3, 4}}},
};
enum { TURNED = sizeof turned / sizeof *turned };
static const qn_layout_rule turn[] = {{"*.weight", QN_LAYOUT_TRANSPOSED, NULL}};
static const qn_layout transposing = {"transposing", NULL, turn, 1};

static void check_turned(const qn_tensors *tensors, int i)
{
    const qn_tensors_item *item = &turned[i];
    const qn_tensors_entry *entry = qn_tensors_find(tensors, item->name);
    const bool swapped = i < 2;
    const int64_t size = qn_dtype_size(item->dtype), rows = item->shape.dim[0];
    const int64_t columns = swapped ? item->shape.dim[1] : 1;
    assert_non_null(entry);
    assert_int_equal(entry->shape.dim[0], swapped ? columns : rows);
    unsigned char *bytes = malloc((size_t)entry->bytes);
    assert_non_null(bytes);
    assert_int_equal(qn_tensors_read(tensors, entry, 0, bytes, entry->bytes), QN_OK);
    for (int64_t at = 0; at < entry->bytes; at++) {
        const int64_t element = at / size;
        const int64_t there = swapped ? element % rows * columns + element / rows : element;
        if (bytes[at] != value_of(i, there * size + at % size))
            fail_msg("%s: byte %d", item->name, (int)at);
    }
    free(bytes);
}

static void a_layout_transposes_what_it_names(void **state)
{
    struct scratch *scratch = *state;
    const char *path = scratch_path(scratch, "t.safetensors");
    qn_tensors_params params = {
        .log = scratch->log, .items = turned, .count = TURNED, .layout = &transposing};
    qn_tensors *tensors = NULL;
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_OK);
    assert_int_equal(qn_tensors_open(&tensors, path, &scratch->log), QN_OK);
    assert_int_equal(qn_tensors_count(tensors), TURNED);
    for (int i = 0; i < TURNED; i++)
        check_turned(tensors, i);
    qn_tensors_close(&tensors);
    assert_int_equal(unlink(path), 0);
    params.items = items;
    params.count = ITEMS;
    assert_int_equal(qn_tensors_save(path, &params, refuse, NULL, NULL, NULL), QN_ERR_DEVICE);
    const qn_tensors_item nameless[] = {{NULL, QN_F32, {2, {2, 2}}}};
    params.items = nameless;
    params.count = 1;
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, path, "without a name");
    const qn_tensors_item endless[] = {{"e.weight", QN_F32, {2, {INT64_MAX / 2, 8}}}};
    params.items = endless;
    assert_int_equal(qn_tensors_save(path, &params, give, NULL, NULL, NULL), QN_ERR_ARGUMENT);
    scratch_said(scratch, path, "too large");
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(what_is_saved_is_read),
        WITH_SCRATCH(the_order_of_writing_is_free),
        WITH_SCRATCH(parts_of_a_tensor_are_read),
        WITH_SCRATCH(an_unfinished_file_never_appears),
        WITH_SCRATCH(items_are_checked),
        WITH_SCRATCH(headers_are_checked),
        WITH_SCRATCH(other_types_are_bytes),
        WITH_SCRATCH(short_files_are_refused),
        WITH_SCRATCH(flipped_bits_do_no_harm),
        WITH_SCRATCH(a_monstrous_header_is_refused),
        WITH_SCRATCH(the_status_of_the_source_is_passed_on),
        WITH_SCRATCH(a_layout_transposes_what_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
