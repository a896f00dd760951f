/* SPDX-License-Identifier: MIT
 *
 * Tensors in several files that an index names.
 */
#include "scratch.h"
#include <quern/io.h>

static const qn_tensors_item items[] = {
    {"a.weight", QN_F32, {2, {2, 3}}}, {"a.bias", QN_F32, {1, {3}}}, {"b", QN_U8, {1, {5}}}};

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    (void)at;
    memset(bytes, *(const int *)user + (int)index, (size_t)size);
    return QN_OK;
}

/* Items first .. first + count - 1, of bytes first + 1 and so on. */
static void save(struct scratch *scratch, const char *name, int first, int count)
{
    const qn_tensors_params params = {.items = items + first, .count = count};
    int byte = first + 1;
    assert_int_equal(qn_tensors_save(scratch_path(scratch, name), &params, give, &byte, NULL, NULL),
                     QN_OK);
}

static const char *write_index(struct scratch *scratch, const char *text)
{
    const char *path = scratch_path(scratch, "m.safetensors.index.json");
    assert_int_equal(qn_file_write(path, text, strlen(text), NULL), QN_OK);
    return path;
}

static void parts_are_one(void **state)
{
    struct scratch *scratch = *state;
    qn_tensors *tensors = NULL;
    save(scratch, "one", 0, 1);
    save(scratch, "two", 1, 2);
    const char *path =
        write_index(scratch, "{\"weight_map\": {\"b\": \"two\", \"a.weight\": \"one\", "
                             "\"a.bias\": \"two\"}, \"metadata\": {}}");
    assert_int_equal(qn_tensors_open(&tensors, path, &scratch->log), QN_OK);
    assert_int_equal(qn_tensors_count(tensors), 3);
    for (int i = 0; i < 3; i++) {
        unsigned char bytes[64];
        const qn_tensors_entry *entry = qn_tensors_find(tensors, items[i].name);
        assert_non_null(entry);
        assert_int_equal(entry->dtype, items[i].dtype);
        assert_int_equal(qn_tensors_read(tensors, entry, 1, bytes, entry->bytes - 1), QN_OK);
        for (int64_t at = 0; at < entry->bytes - 1; at++)
            assert_int_equal(bytes[at], i + 1);
    }
    assert_null(qn_tensors_find(tensors, "c"));
    assert_int_equal(scratch->lines, 0);
    qn_tensors_close(&tensors);
}

static void bad_indices_are_refused(void **state)
{
    struct scratch *scratch = *state;
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"", "is no JSON object"},
        {"{\"weight_map\": {\"b\": \"two\"", "is no JSON object"},
        {"[1]", "is no JSON object"},
        {"{}", "weight_map: is missing, empty or no object"},
        {"{\"weight_map\": {}}", "weight_map: is missing, empty or no object"},
        {"{\"weight_map\": {\"b\": 2}}", "weight_map: b: is no file of the same folder"},
        {"{\"weight_map\": {\"b\": \"../two\"}}", "weight_map: b: is no file of the same folder"},
        {"{\"weight_map\": {\"b\": \"..\"}}", "weight_map: b: is no file of the same folder"},
        {"{\"weight_map\": {\"b\": \"m.safetensors.index.json\"}}",
         "is no file of the same folder"},
        {"{\"weight_map\": {\"b\": \"three\"}}", "three: "},
        {"{\"weight_map\": {\"b\": \"one\"}}", "one: tensor b: is missing"},
        {"{\"weight_map\": {\"b\": \"two\"}}", "weight_map: leaves out tensors of its files"},
        {"{\"weight_map\": {\"b\": \"two\", \"a.bias\": \"two\", \"a.weight\": \"one\", "
         "\"b\": \"again\"}}",
         "weight_map: b: is there twice"},
    };
    save(scratch, "one", 0, 1);
    save(scratch, "two", 1, 2);
    save(scratch, "again", 2, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_tensors *tensors = NULL;
        const char *path = write_index(scratch, cases[i].text);
        const qn_status status = qn_tensors_open(&tensors, path, &scratch->log);
        assert_true(status == QN_ERR_FORMAT || status == QN_ERR_IO);
        assert_null(tensors);
        scratch_said(scratch, scratch->folder, cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_SCRATCH(parts_are_one),
                                       WITH_SCRATCH(bad_indices_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
