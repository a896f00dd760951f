/* SPDX-License-Identifier: MIT
 *
 * Weights in the layout of others: names without the prefix, transposed matrices, a table that is
 * longer, buffers that nobody reads, one table under two names; and numbers of another type. The
 * network is a GPT of one block.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "base/number.h"
#include "base/shape.h"
#include "device.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 5, MORE = 3, TOKENS = 600, WIDTH = 8, ITEMS = 24, ELEMENTS = 6000 };

static char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];

/* --- a file --- */

/* What a file has; `shift` is added to the numbers of item `changed`. */
struct contents {
    qn_tensors_item items[ITEMS];
    int count, changed;
    double shift;
};

/* Those of the model's tensors, as Hugging Face's GPT-2 has them. */
static const struct contents whole = {
    {{"transformer.wte.weight", QN_F32, {2, {TOKENS, WIDTH}}},
     {"transformer.wpe.weight", QN_F32, {2, {LENGTH, WIDTH}}},
     {"transformer.h.0.ln_1.weight", QN_F32, {1, {WIDTH}}},
     {"transformer.h.0.ln_1.bias", QN_F32, {1, {WIDTH}}},
     {"transformer.h.0.attn.c_attn.weight", QN_F32, {2, {WIDTH, 3 * WIDTH}}},
     {"transformer.h.0.attn.c_attn.bias", QN_F32, {1, {3 * WIDTH}}},
     {"transformer.h.0.attn.c_proj.weight", QN_F32, {2, {WIDTH, WIDTH}}},
     {"transformer.h.0.attn.c_proj.bias", QN_F32, {1, {WIDTH}}},
     {"transformer.h.0.ln_2.weight", QN_F32, {1, {WIDTH}}},
     {"transformer.h.0.ln_2.bias", QN_F32, {1, {WIDTH}}},
     {"transformer.h.0.mlp.c_fc.weight", QN_F32, {2, {WIDTH, 4 * WIDTH}}},
     {"transformer.h.0.mlp.c_fc.bias", QN_F32, {1, {4 * WIDTH}}},
     {"transformer.h.0.mlp.c_proj.weight", QN_F32, {2, {4 * WIDTH, WIDTH}}},
     {"transformer.h.0.mlp.c_proj.bias", QN_F32, {1, {WIDTH}}},
     {"transformer.ln_f.weight", QN_F32, {1, {WIDTH}}},
     {"transformer.ln_f.bias", QN_F32, {1, {WIDTH}}}},
    16,
    -1,
    0};
enum { WORDS = 0, POSITIONS = 1, PROJECTION = 6, WIDER = 10 }; /* of them */

/* Element `at` of item `index`: bf16 does not hold them all. Heads have the numbers of words. */
static double number(const struct contents *contents, int64_t index, int64_t at)
{
    const bool head = strcmp(contents->items[index].name, "lm_head.weight") == 0;
    const double shift = index == contents->changed ? contents->shift : 0;
    return ((double)((head ? WORDS : index) * 37 % 101) + (double)at + shift) / 777 - 0.25;
}

static qn_status give(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    const struct contents *contents = user;
    const qn_dtype dtype = contents->items[index].dtype;
    const int64_t width = qn_dtype_size(dtype);
    for (int64_t i = 0; i < size / width; i++) {
        const double value = number(contents, index, at / width + i);
        qn_number_encode(dtype, &value, 1, (char *)bytes + i * width);
    }
    return QN_OK;
}

static void write_file(const struct contents *contents)
{
    const qn_tensors_params params = {.items = contents->items, .count = contents->count};
    assert_int_equal(qn_tensors_save(path, &params, give, (void *)contents, NULL, NULL), QN_OK);
}

static struct contents with(const qn_tensors_item *item)
{
    struct contents contents = whole;
    contents.items[contents.count++] = *item;
    return contents;
}

static void leave_prefix_out(struct contents *contents)
{
    const size_t length = strlen("transformer.");
    for (int i = 0; i < contents->count; i++)
        if (strncmp(contents->items[i].name, "transformer.", length) == 0)
            contents->items[i].name += length;
}

/* --- a trainer --- */

static struct test_run open_run(const char *tied, qn_dtype parameters, bool no_master)
{
    const qn_model_option options[] = {
        {"layers", "1"}, {"heads", "1"}, {"width", "8"}, {"tied", tied}};
    const qn_model_data data = {.channels = 1, .height = 1, .width = LENGTH, .tokens = TOKENS};
    const qn_plan_params plan = {.budget = 16 << 20,
                                 .batch = {2},
                                 .optimizer = {.name = "adamw", .no_master = no_master},
                                 .effort = QN_EFFORT_INSTANT};
    const qn_graph_params params = {.parameter_storage = parameters};
    qn_graph *graph = NULL;
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    qn_model_build(graph, "gpt", &data, options, 4);
    assert_string_equal(qn_graph_error(graph), "");
    struct test_run run = test_open(device, graph, &plan, NULL);
    qn_graph_destroy(&graph);
    return run;
}

static double rounded(qn_dtype dtype, double value)
{
    uint32_t bytes = 0;
    qn_number_encode(dtype, &value, 1, &bytes);
    qn_number_decode(dtype, &bytes, 1, &value);
    return value;
}

/* The trainer has what the file has, of whole.items by their names, rounded to the types. */
static void assert_loaded(qn_trainer *trainer, const struct contents *contents, qn_dtype matrices)
{
    float values[ELEMENTS];
    for (int i = 0; i < whole.count; i++) {
        const qn_tensors_item *item = &whole.items[i];
        const qn_dtype dtype = item->shape.rank > 1 ? matrices : QN_F32;
        const bool dense = strstr(item->name, ".c_") && item->shape.rank == 2;
        const int64_t rows = item->shape.dim[0], columns = item->shape.dim[1];
        const int64_t count = qn_shape_count(&item->shape);
        assert_int_equal(qn_trainer_read(trainer, item->name, values, count), QN_OK);
        for (int64_t at = 0; at < count; at++) {
            const int64_t there = dense ? at % rows * columns + at / rows : at;
            const double want = rounded(contents->items[i].dtype, number(contents, i, there));
            if ((double)values[at] != rounded(dtype, want))
                fail_msg("%s[%d]: %.9g, not %.9g", item->name, (int)at, (double)values[at], want);
        }
    }
}

/* --- what is told --- */

struct told {
    char text[1024]; /* what is not simply taken: "LEFT_OUT h.0.attn.bias;" */
};

static void hear(void *user, const qn_weights_record *record)
{
    static const char *const fates[] = {
        "", "LEFT_OUT", "NOT_IN_FILE", "NOT_IN_MODEL", "OTHER_SHAPE", "OTHER_TYPE", "FIRST_ROWS"};
    struct told *told = user;
    const size_t length = strlen(told->text);
    if (record->fate != QN_WEIGHTS_TAKEN)
        snprintf(told->text + length, sizeof told->text - length, "%s %s;", fates[record->fate],
                 record->name);
}

static qn_status load(qn_trainer *trainer, struct told *told)
{
    *told = (struct told){0};
    return qn_trainer_load_weights(
        trainer, path,
        &(qn_weights_params){.layout = qn_model_layout("gpt"), .fn = hear, .user = told});
}

static void assert_fits(const struct contents *contents, const char *text)
{
    struct told told;
    struct test_run run = open_run("1", QN_F32, false);
    write_file(contents);
    assert_int_equal(load(run.trainer, &told), QN_OK);
    assert_string_equal(told.text, text);
    assert_loaded(run.trainer, contents, QN_F32);
    test_close(&run);
}

static void assert_refused(const struct contents *contents, const char *tied, const char *line)
{
    struct told told;
    struct test_run run = open_run(tied, QN_F32, false), same = open_run(tied, QN_F32, false);
    float *have, *want;
    write_file(contents);
    assert_int_equal(load(run.trainer, &told), QN_ERR_FORMAT);
    if (!strstr(qn_last_error(), line) || !strstr(qn_last_error(), path))
        fail_msg("%s\nnot: %s", qn_last_error(), line);
    const int64_t count = test_weights(run.trainer, &have);
    assert_int_equal(test_weights(same.trainer, &want), count);
    assert_memory_equal(have, want, (size_t)count * sizeof *have);
    free(have);
    free(want);
    test_close(&run);
    test_close(&same);
}

/* --- the rules --- */

static void dense_weights_are_transposed(void **state)
{
    (void)state;
    assert_fits(&whole, "");
}

static void a_prefix_may_be_left_out(void **state)
{
    (void)state;
    struct contents contents = whole;
    leave_prefix_out(&contents);
    assert_fits(&contents, "");
    contents.items[3].name = "transformer.h.0.ln_1.bias";
    assert_refused(&contents, "1", "tensor transformer.wte.weight: is missing");
}

static void buffers_and_other_heads_are_skipped(void **state)
{
    (void)state;
    struct contents contents =
        with(&(qn_tensors_item){"h.0.attn.bias", QN_U8, {4, {1, 1, LENGTH, LENGTH}}});
    contents.items[contents.count++] = (qn_tensors_item){"h.0.attn.masked_bias", QN_F32, {0, {0}}};
    contents.items[contents.count++] = (qn_tensors_item){"score.weight", QN_F16, {2, {2, WIDTH}}};
    leave_prefix_out(&contents);
    assert_fits(&contents,
                "LEFT_OUT h.0.attn.masked_bias;LEFT_OUT score.weight;LEFT_OUT h.0.attn.bias;");
}

/* The type of the file's only U8 tensor, in its header. */
static void rename_type(const char *type)
{
    char header[8192];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    const size_t size = fread(header, 1, sizeof header - 1, file);
    for (size_t i = 0; i + 4 < size; i++)
        if (memcmp(header + i, "\"U8\"", 4) == 0) {
            assert_int_equal(fseek(file, (long)i + 1, SEEK_SET), 0);
            assert_int_equal(fwrite(type, 1, 2, file), 2);
        }
    assert_int_equal(fclose(file), 0);
}

static void types_that_nobody_computes_with_are_skipped(void **state)
{
    (void)state;
    struct told told;
    struct contents contents =
        with(&(qn_tensors_item){"transformer.h.0.attn.bias", QN_U8, {2, {LENGTH, LENGTH}}});
    struct test_run run = open_run("1", QN_F32, false);
    write_file(&contents);
    rename_type("I8");
    assert_int_equal(load(run.trainer, &told), QN_OK);
    assert_string_equal(told.text, "LEFT_OUT transformer.h.0.attn.bias;");
    test_close(&run);
}

static void positions_may_be_more(void **state)
{
    (void)state;
    struct contents contents = whole;
    contents.items[POSITIONS].shape.dim[0] = LENGTH + MORE;
    assert_fits(&contents, "FIRST_ROWS transformer.wpe.weight;");
    contents.items[POSITIONS].shape.dim[0] = LENGTH - 1;
    assert_refused(&contents, "1", "tensor transformer.wpe.weight: has shape (4, 8), not (5, 8)");
    contents = whole;
    contents.items[WORDS].shape.dim[0] = TOKENS + 1;
    assert_refused(&contents, "1",
                   "tensor transformer.wte.weight: has shape (601, 8), not (600, 8)");
}

static void a_tied_table_may_be_there_twice(void **state)
{
    (void)state;
    const qn_tensors_item head = {"lm_head.weight", QN_F32, {2, {TOKENS, WIDTH}}};
    struct contents contents = with(&head);
    assert_fits(&contents, "LEFT_OUT lm_head.weight;");
    contents.changed = contents.count - 1;
    contents.shift = 1;
    assert_refused(&contents, "1", "tensor lm_head.weight: differs from transformer.wte.weight");
    contents = whole;
    contents.items[WORDS].name = "lm_head.weight";
    assert_fits(&contents, "LEFT_OUT lm_head.weight;");
}

static void a_head_of_its_own_must_be_there(void **state)
{
    (void)state;
    const qn_tensors_item head = {"lm_head.weight", QN_F32, {2, {TOKENS, WIDTH}}};
    struct contents contents = with(&head);
    struct test_run run = open_run("0", QN_F32, false);
    struct told told;
    float value;
    contents.changed = contents.count - 1;
    contents.shift = 1;
    write_file(&contents);
    assert_int_equal(load(run.trainer, &told), QN_OK);
    float values[TOKENS * WIDTH];
    assert_int_equal(qn_trainer_read(run.trainer, "lm_head.weight", values, TOKENS * WIDTH), QN_OK);
    value = (float)number(&contents, contents.changed, 0);
    assert_memory_equal(values, &value, sizeof value);
    test_close(&run);
    assert_refused(&whole, "0", "tensor lm_head.weight: is missing");
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    struct contents contents = whole;
    contents.items[WIDER].shape = (qn_shape){2, {4 * WIDTH, WIDTH}};
    assert_refused(&contents, "1",
                   "tensor transformer.h.0.mlp.c_fc.weight: has shape (32, 8), not (8, 32)");
    contents = whole;
    contents.items[PROJECTION].dtype = QN_I32;
    assert_refused(&contents, "1", "tensor transformer.h.0.attn.c_proj.weight: is I32, not F32");
    contents = with(&(qn_tensors_item){"transformer.h.1.ln_1.bias", QN_F32, {1, {WIDTH}}});
    assert_refused(&contents, "1",
                   "tensor transformer.h.1.ln_1.bias: the model has none of that name");
    contents = whole;
    contents.count--;
    assert_refused(&contents, "1", "tensor transformer.ln_f.bias: is missing");
}

/* --- types --- */

static void numbers_are_converted(void **state)
{
    (void)state;
    static const struct {
        qn_dtype file, parameters;
        bool no_master;
    } cases[] = {{QN_F16, QN_F32, false},  {QN_BF16, QN_F32, false}, {QN_F32, QN_BF16, true},
                 {QN_F32, QN_BF16, false}, {QN_F16, QN_BF16, true},  {QN_BF16, QN_F16, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct contents contents = whole;
        struct told told;
        struct test_run run = open_run("1", cases[c].parameters, cases[c].no_master);
        for (int i = 0; i < contents.count; i++)
            contents.items[i].dtype = cases[c].file;
        write_file(&contents);
        assert_int_equal(load(run.trainer, &told), QN_OK);
        assert_loaded(run.trainer, &contents, cases[c].no_master ? cases[c].parameters : QN_F32);
        test_close(&run);
    }
}

/* --- saving --- */

static void assert_same_tensor(const qn_tensors *file, const qn_tensors *want,
                               const qn_tensors_entry *entry)
{
    char have[ELEMENTS * 4], there[ELEMENTS * 4];
    const qn_tensors_entry *found = qn_tensors_find(file, entry->name);
    assert_non_null(found);
    assert_string_equal(found->type, entry->type);
    assert_int_equal(found->shape.rank, entry->shape.rank);
    assert_memory_equal(found->shape.dim, entry->shape.dim,
                        (size_t)entry->shape.rank * sizeof *entry->shape.dim);
    assert_int_equal(qn_tensors_read(file, found, 0, have, found->bytes), QN_OK);
    assert_int_equal(qn_tensors_read(want, entry, 0, there, entry->bytes), QN_OK);
    assert_memory_equal(have, there, (size_t)entry->bytes);
}

static void what_is_saved_is_what_was_loaded(void **state)
{
    (void)state;
    const qn_weights_params params = {.layout = qn_model_layout("gpt")};
    char copy[sizeof path + 8];
    qn_tensors *file, *want;
    struct told told;
    struct test_run run = open_run("1", QN_F32, false);
    snprintf(copy, sizeof copy, "%s.copy", path);
    write_file(&whole);
    assert_int_equal(load(run.trainer, &told), QN_OK);
    assert_int_equal(qn_trainer_save_weights(run.trainer, copy, &params), QN_OK);
    assert_int_equal(qn_tensors_open(&file, copy, NULL), QN_OK);
    assert_int_equal(qn_tensors_open(&want, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_count(file), whole.count);
    for (int i = 0; i < whole.count; i++)
        assert_same_tensor(file, want, qn_tensors_at(want, i));
    qn_tensors_close(&file);
    qn_tensors_close(&want);
    test_close(&run);
}

static void other_models_have_no_layout(void **state)
{
    (void)state;
    assert_null(qn_model_layout("mlp"));
    assert_null(qn_model_layout("none"));
    assert_string_equal(qn_model_layout("gpt")->name, "huggingface");
}

static int open_all(void **state)
{
    make_folder(folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    return open_device(state);
}

static int close_all(void **state)
{
    remove_folder(folder);
    return close_device(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_weights_are_transposed),
        cmocka_unit_test(a_prefix_may_be_left_out),
        cmocka_unit_test(buffers_and_other_heads_are_skipped),
        cmocka_unit_test(types_that_nobody_computes_with_are_skipped),
        cmocka_unit_test(positions_may_be_more),
        cmocka_unit_test(a_tied_table_may_be_there_twice),
        cmocka_unit_test(a_head_of_its_own_must_be_there),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(numbers_are_converted),
        cmocka_unit_test(what_is_saved_is_what_was_loaded),
        cmocka_unit_test(other_models_have_no_layout),
    };
    return cmocka_run_group_tests_name("layout", tests, open_all, close_all);
}
