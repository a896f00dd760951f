/* SPDX-License-Identifier: MIT
 *
 * Weights in files: all of them, some by their names, and files that fit only in part. What is
 * refused changes nothing, and what became of each tensor is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "base/shape.h"
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];

static const qn_plan_params plan_params = {
    .budget = 64 << 20, .batch = {BED_SAMPLES}, .micro_batch = 16, .effort = QN_EFFORT_INSTANT};

static struct test_run open_run(const qn_graph *of, uint64_t seed)
{
    return test_open(device, of, &plan_params, &(qn_trainer_params){.seed = seed});
}

/* --- what is told --- */

/* "TAKEN fc.bias;" and so on, in order. */
struct told {
    char text[2048];
    qn_weights_record last;
};

static void hear(void *user, const qn_weights_record *record)
{
    static const char *const fates[] = {"TAKEN",       "LEFT_OUT",   "NOT_IN_FILE", "NOT_IN_MODEL",
                                        "OTHER_SHAPE", "OTHER_TYPE", "FIRST_ROWS"};
    struct told *told = user;
    const size_t length = strlen(told->text);
    snprintf(told->text + length, sizeof told->text - length, "%s %s;", fates[record->fate],
             record->name);
    told->last = *record;
}

static int count_of(const struct told *told, const char *fate)
{
    int count = 0;
    for (const char *at = told->text; (at = strstr(at, fate)); at++)
        count++;
    return count;
}

/* --- files made by hand --- */

static qn_status give_numbers(void *user, int64_t index, int64_t at, void *bytes, int64_t size)
{
    (void)user;
    (void)at;
    memset(bytes, (int)index + 1, (size_t)size);
    return QN_OK;
}

static void write_file(const qn_tensors_item *items, int count)
{
    const qn_tensors_params params = {.items = items, .count = count};
    assert_int_equal(qn_tensors_save(path, &params, give_numbers, NULL, NULL, NULL), QN_OK);
}

/* --- comparing --- */

/* Which tensors of `now` are those of `saved`, and which those of `old`, of the same network. */
static void assert_loaded(qn_trainer *now, qn_trainer *saved, qn_trainer *old, const char *names)
{
    qn_shape shape;
    const char *name;
    for (int i = 0; (name = qn_trainer_tensor(now, i, &shape)); i++) {
        const int64_t count = qn_shape_count(&shape);
        float *have = malloc((size_t)count * sizeof *have);
        float *want = malloc((size_t)count * sizeof *want);
        char word[128];
        snprintf(word, sizeof word, " %s ", name);
        assert_int_equal(qn_trainer_read(now, name, have, count), QN_OK);
        assert_int_equal(qn_trainer_read(strstr(names, word) ? saved : old, name, want, count),
                         QN_OK);
        assert_memory_equal(have, want, (size_t)count * sizeof *have);
        free(have);
        free(want);
    }
}

static void assert_same(qn_trainer *a, qn_trainer *b)
{
    assert_loaded(a, b, b, "");
}

/* `params` load the file into a trainer of `of` with this status and line, and change nothing. */
static void assert_refused(const qn_graph *of, qn_weights_params params, qn_status status,
                           const char *line)
{
    struct test_run run = open_run(of, 1), same = open_run(of, 1);
    struct told told = {0};
    params.fn = hear;
    params.user = &told;
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &params), status);
    assert_non_null(strstr(qn_last_error(), line));
    assert_non_null(strstr(qn_last_error(), path));
    assert_same(run.trainer, same.trainer);
    test_close(&run);
    test_close(&same);
}

/* --- all --- */

static void all_weights_come_back(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1), other = open_run(graph, 2);
    struct told told = {0};
    const qn_weights_params telling = {.fn = hear, .user = &told};
    test_train(run.trainer, &data, BED_SAMPLES, 2);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, &telling), QN_OK);
    assert_int_equal(count_of(&told, "TAKEN "), 11);
    assert_int_equal(count_of(&told, ";"), 11);
    told = (struct told){0};
    assert_int_equal(qn_trainer_load_weights(other.trainer, path, &telling), QN_OK);
    assert_int_equal(count_of(&told, "TAKEN "), 11);
    assert_same(run.trainer, other.trainer);
    test_close(&other);
    other = open_run(graph, 2);
    assert_int_equal(qn_weights_load(other.trainer, path), QN_OK);
    assert_same(run.trainer, other.trainer);
    assert_int_equal(qn_trainer_updates(other.trainer), 0);
    test_close(&run);
    test_close(&other);
}

/* --- by name --- */

static void names_choose_what_is_loaded(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1), other = open_run(graph, 2), old = open_run(graph, 2);
    struct told told = {0};
    const qn_weights_params params = {
        .include = "fc.*,bn?.*,conv3.weight", .exclude = "bn2*,*.bias", .fn = hear, .user = &told};
    test_train(run.trainer, &data, BED_SAMPLES, 2);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    assert_int_equal(qn_trainer_load_weights(other.trainer, path, &params), QN_OK);
    assert_loaded(other.trainer, run.trainer, old.trainer,
                  " fc.weight bn1.running_mean bn1.running_var bn3.running_mean bn3.running_var"
                  " conv3.weight ");
    assert_int_equal(count_of(&told, "TAKEN "), 6);
    assert_int_equal(count_of(&told, "LEFT_OUT "), 5);
    assert_non_null(strstr(told.text, "LEFT_OUT fc.bias;"));
    test_close(&run);
    test_close(&other);
    test_close(&old);
}

static void names_choose_what_is_saved(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1), other = open_run(graph, 2), old = open_run(graph, 2);
    struct told told = {0};
    qn_tensors *file;
    const qn_weights_params params = {.exclude = "bn*,conv*", .fn = hear, .user = &told};
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, &params), QN_OK);
    assert_int_equal(count_of(&told, "LEFT_OUT "), 9);
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_count(file), 2);
    assert_non_null(qn_tensors_find(file, "fc.weight"));
    assert_non_null(qn_tensors_find(file, "fc.bias"));
    qn_tensors_close(&file);
    assert_refused(graph, (qn_weights_params){0}, QN_ERR_FORMAT, "tensor conv1.weight: is missing");
    assert_int_equal(
        qn_trainer_load_weights(other.trainer, path, &(qn_weights_params){.include = "fc.*"}),
        QN_OK);
    assert_loaded(other.trainer, run.trainer, old.trainer, " fc.weight fc.bias ");
    test_close(&run);
    test_close(&other);
    test_close(&old);
}

static void patterns_without_a_tensor_are_refused(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    static const struct {
        qn_weights_params params;
        const char *line;
    } wrong[] = {
        {{.include = "fc.*,haed.*"}, ": include: no tensor is called 'haed.*'"},
        {{.include = "fc.*,"}, NULL},
        {{.include = ",fc.*"}, ": include: no tensor is called ''"},
        {{.exclude = "Fc.*"}, ": exclude: no tensor is called 'Fc.*'"},
        {{.include = "fc.*", .exclude = "fc.weight,fc.*"}, ": no tensor at all is to be "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const qn_status want = wrong[i].line ? QN_ERR_ARGUMENT : QN_OK;
        if (wrong[i].line)
            assert_refused(graph, wrong[i].params, want, wrong[i].line);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(qn_trainer_save_weights(run.trainer, path, &wrong[i].params), want);
        assert_int_equal(access(path, F_OK), want == QN_OK ? 0 : -1);
        assert_true(want == QN_OK || strstr(qn_last_error(), wrong[i].line));
        assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    }
    test_close(&run);
}

/* --- in part --- */

static void what_one_side_has_may_be_left(void **state)
{
    (void)state;
    qn_graph *mlp = test_mlp(64, false);
    struct test_run run = open_run(mlp, 1), old = open_run(mlp, 1);
    struct told told = {0};
    const qn_tensors_item items[] = {{"extra", QN_F32, {1, {3}}},
                                     {"b3", QN_F32, {1, {TEST_CLASSES}}},
                                     {"b1", QN_F32, {1, {33}}}};
    float values[33], want[33];
    write_file(items, 3);
    assert_refused(mlp, (qn_weights_params){0}, QN_ERR_FORMAT, "tensor w1: is missing");
    assert_refused(mlp, (qn_weights_params){.include = "b1,extra"}, QN_ERR_FORMAT,
                   "tensor extra: the model has none of that name");
    assert_refused(mlp, (qn_weights_params){.include = "b1,w*"}, QN_ERR_FORMAT,
                   "tensor w1: is missing");
    assert_refused(mlp, (qn_weights_params){.include = "w*", .partial = true}, QN_ERR_ARGUMENT,
                   "no tensor at all is to be loaded");
    const qn_weights_params part = {.exclude = "b3", .partial = true, .fn = hear, .user = &told};
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &part), QN_OK);
    assert_string_equal(told.text, "NOT_IN_FILE w1;TAKEN b1;NOT_IN_FILE w2;NOT_IN_FILE b2;"
                                   "NOT_IN_FILE w3;LEFT_OUT b3;NOT_IN_MODEL extra;");
    assert_int_equal(told.last.model.rank, 0);
    assert_int_equal(told.last.file.dim[0], 3);
    assert_int_equal(qn_trainer_read(run.trainer, "b1", values, 33), QN_OK);
    memset(want, 3, sizeof want);
    assert_memory_equal(values, want, sizeof want);
    assert_int_equal(qn_trainer_write(old.trainer, "b1", want, 33), QN_OK);
    assert_same(run.trainer, old.trainer);
    test_close(&run);
    test_close(&old);
    qn_graph_destroy(&mlp);
}

static void another_shape_may_be_skipped(void **state)
{
    (void)state;
    qn_graph *wide = test_mlp(64, false), *narrow = test_mlp(32, false);
    struct test_run run = open_run(wide, 1), other = open_run(narrow, 2);
    struct told told = {0};
    float before[33 * 32], after[33 * 32], bias[33], want[33];
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    assert_refused(narrow, (qn_weights_params){0}, QN_ERR_FORMAT,
                   "tensor w1: has shape (33, 64), not (33, 32)");
    assert_refused(narrow, (qn_weights_params){.partial = true}, QN_ERR_FORMAT,
                   "tensor w1: has shape (33, 64), not (33, 32)");
    const qn_weights_params skip = {.skip_other_shapes = true, .fn = hear, .user = &told};
    assert_int_equal(qn_trainer_read(other.trainer, "w1", before, 33 * 32), QN_OK);
    assert_int_equal(qn_trainer_load_weights(other.trainer, path, &skip), QN_OK);
    assert_string_equal(told.text, "OTHER_SHAPE w1;TAKEN b1;TAKEN w2;TAKEN b2;TAKEN w3;TAKEN b3;");
    assert_int_equal(qn_trainer_read(other.trainer, "w1", after, 33 * 32), QN_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(qn_trainer_read(other.trainer, "b1", bias, 33), QN_OK);
    assert_int_equal(qn_trainer_read(run.trainer, "b1", want, 33), QN_OK);
    assert_memory_equal(bias, want, sizeof bias);
    test_close(&run);
    test_close(&other);
    qn_graph_destroy(&wide);
    qn_graph_destroy(&narrow);
}

/* Even a file that is refused for its first tensor has them all told. */
static void all_is_told_of_what_is_refused(void **state)
{
    (void)state;
    qn_graph *mlp = test_mlp(64, false);
    struct test_run run = open_run(mlp, 1);
    struct told told = {0};
    const qn_tensors_item items[] = {{"b2", QN_I32, {1, {17}}},
                                     {"b1", QN_F32, {1, {32}}},
                                     {"more", QN_U8, {1, {1}}},
                                     {"w3", QN_F32, {2, {TEST_CLASSES, 17}}}};
    const qn_weights_params params = {.fn = hear, .user = &told};
    write_file(items, 4);
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &params), QN_ERR_FORMAT);
    assert_string_equal(told.text, "NOT_IN_FILE w1;OTHER_SHAPE b1;NOT_IN_FILE w2;OTHER_TYPE b2;"
                                   "TAKEN w3;NOT_IN_FILE b3;NOT_IN_MODEL more;");
    assert_refused(mlp, (qn_weights_params){.partial = true, .skip_other_shapes = true},
                   QN_ERR_FORMAT, "tensor b2: is I32, not F32");
    test_close(&run);
    qn_graph_destroy(&mlp);
}

/* --- files that fail --- */

static void cut_file(void *user, const qn_weights_record *record)
{
    (void)record;
    assert_int_equal(truncate(path, *(off_t *)user), 0);
}

/* The file is whole when it is opened, and its last bytes are gone when they are to be read. */
static void a_file_that_fails_changes_nothing(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1), other = open_run(graph, 2), old = open_run(graph, 2);
    assert_int_equal(qn_trainer_save_weights(run.trainer, path, NULL), QN_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    off_t size = (off_t)ftell(file) - 4;
    fclose(file);
    const qn_weights_params params = {.fn = cut_file, .user = &size};
    const qn_status status = qn_trainer_load_weights(other.trainer, path, &params);
    assert_true(status == QN_ERR_IO || status == QN_ERR_FORMAT);
    assert_non_null(strstr(qn_last_error(), path));
    assert_same(other.trainer, old.trainer);
    test_close(&run);
    test_close(&other);
    test_close(&old);
}

static void paths_that_cannot_be_are_named(void **state)
{
    (void)state;
    struct test_run run = open_run(graph, 1);
    char nowhere[sizeof path + 16];
    snprintf(nowhere, sizeof nowhere, "%s/none/x", folder);
    assert_int_equal(qn_trainer_save_weights(run.trainer, nowhere, NULL), QN_ERR_IO);
    assert_non_null(strstr(qn_last_error(), nowhere));
    assert_int_equal(qn_trainer_load_weights(run.trainer, nowhere, NULL), QN_ERR_IO);
    assert_non_null(strstr(qn_last_error(), nowhere));
    assert_int_equal(qn_trainer_save_weights(run.trainer, NULL, NULL), QN_ERR_ARGUMENT);
    assert_int_equal(qn_trainer_load_weights(run.trainer, NULL, NULL), QN_ERR_ARGUMENT);
    test_close(&run);
}

static int open_all(void **state)
{
    make_folder(folder);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    return open_bed(state);
}

static int close_all(void **state)
{
    remove_folder(folder);
    return close_bed(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_weights_come_back),
        cmocka_unit_test(names_choose_what_is_loaded),
        cmocka_unit_test(names_choose_what_is_saved),
        cmocka_unit_test(patterns_without_a_tensor_are_refused),
        cmocka_unit_test(what_one_side_has_may_be_left),
        cmocka_unit_test(another_shape_may_be_skipped),
        cmocka_unit_test(all_is_told_of_what_is_refused),
        cmocka_unit_test(a_file_that_fails_changes_nothing),
        cmocka_unit_test(paths_that_cannot_be_are_named),
    };
    return cmocka_run_group_tests_name("weights", tests, open_all, close_all);
}
