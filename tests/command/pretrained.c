/* SPDX-License-Identifier: MIT
 *
 * A GPT-2 of transformers (tools/golden/gpt2.py): its files load through a recipe, give the same
 * logits, loss, gradients and losses of updates, and are the same bits when they are exported.
 *
 * With the name of a folder as argument what was exported is kept there, for gpt2.py --check.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "commands.h"
#include "file.h"
#include "note.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 2, LENGTH = 16, TOKENS = 64, UPDATES = 10, LAYERS = 2, ELEMENTS = 4 * 24 * 24 };

static const double NEAR = 1e-4, NEAR_UPDATES = 1e-3;

/* What the recipe leaves out stands in config.json. */
static const char recipe_text[] = "[data]\npath = .\nshape = 1,1,16\n"
                                  "[train]\nweights = " GOLDEN "\nsteps = 10\nbatch = 2\n"
                                  "optimizer = adamw\nlr = 1e-3\nweight_decay = 0.01\n"
                                  "[memory]\nbudget = 16MiB\ntune = off\n";

static char folder[FOLDER_BYTES];
static const char *kept;
static struct failure failure = FAILURE_NONE;
static struct session session = {.failure = &failure};
static qn_tensors *golden, *original;

/* --- what was computed by others --- */

static int64_t elements(const qn_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->dim[i];
    return count;
}

/* Of f32 or i32. */
static void read_golden(const char *name, void *values, int64_t count)
{
    const qn_tensors_entry *entry = qn_tensors_find(golden, name);
    assert_non_null(entry);
    assert_int_equal(elements(&entry->shape), count);
    assert_int_equal(qn_tensors_read(golden, entry, 0, values, entry->bytes), QN_OK);
}

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    int32_t all[SAMPLES * LENGTH];
    read_golden(input, all, SAMPLES * LENGTH);
    memcpy(rows, all + first * LENGTH, (size_t)(count * LENGTH) * sizeof *all);
    return QN_OK;
}

static void assert_near(const char *what, const float *got, const float *want, int64_t count)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += pow((double)got[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    if (!(sqrt(apart) <= NEAR * sqrt(size)))
        fail_msg("%s: %g of its norm away", what, sqrt(apart / size));
}

/* --- the tests, in this order --- */

static void assert_code(int code)
{
    if (code)
        fail_msg("%d: %s", code, failure.text);
}

static void files_load_through_a_recipe(void **state)
{
    (void)state;
    static const char *const keys[][2] = {
        {"layers", "2"}, {"heads", "3"}, {"width", "24"}, {"tied", "1"}};
    char path[FOLDER_BYTES + 16];
    const struct arguments arguments = {0};
    snprintf(path, sizeof path, "%s/r.ini", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(recipe_text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_code(session_recipe(&session, path, &arguments));
    assert_string_equal(session.settings.model, "gpt");
    for (int i = 0; i < 4; i++)
        assert_string_equal(recipe_find(&session.recipe, "model", keys[i][0])->value, keys[i][1]);
    assert_int_equal(session.settings.data.classes, TOKENS);
    const qn_plan_params plan = settings_plan(&session.settings);
    assert_code(data_look(&session.data, &session.settings, &session.recipe, &failure));
    assert_code(session_graph(&session));
    assert_code(session_device(&session, &arguments));
    assert_code(session_plan(&session, qn_device_facts(session.device), &plan));
    assert_code(session_trainer(&session));
    assert_code(session_weights(&session));
}

static qn_status take_logits(void *user, const char *name, int64_t first, int64_t count,
                             const void *rows)
{
    float *logits = user;
    if (strcmp(name, "logits") == 0)
        memcpy(logits + first * LENGTH * TOKENS, rows,
               (size_t)(count * LENGTH * TOKENS) * sizeof *logits);
    return QN_OK;
}

static void logits_are_those_of_transformers(void **state)
{
    (void)state;
    static float got[SAMPLES * LENGTH * TOKENS], want[SAMPLES * LENGTH * TOKENS];
    read_golden("logits", want, SAMPLES * LENGTH * TOKENS);
    assert_int_equal(qn_trainer_evaluate(session.trainer, SAMPLES, fetch, take_logits, got), QN_OK);
    assert_near("logits", got, want, SAMPLES * LENGTH * TOKENS);
}

static void gradients_are_those_of_transformers(void **state)
{
    (void)state;
    const qn_cycle cycle = {.samples = SAMPLES, .fetch = fetch};
    qn_shape shape;
    const char *name;
    int compared = 0;
    assert_int_equal(qn_trainer_accumulate(session.trainer, &cycle), QN_OK);
    for (int i = 0; (name = qn_trainer_tensor(session.trainer, i, &shape)); i++) {
        char in_golden[96];
        float got[ELEMENTS], want[ELEMENTS];
        snprintf(in_golden, sizeof in_golden, "gradient.%s", name);
        read_golden(in_golden, want, elements(&shape));
        assert_int_equal(qn_trainer_read_gradient(session.trainer, name, got, elements(&shape)),
                         QN_OK);
        assert_near(name, got, want, elements(&shape));
        compared++;
    }
    assert_int_equal(compared, 4 + 12 * LAYERS);
}

/* Every tensor of transformers' file, to the bit, and no other. */
static void assert_original(const char *path)
{
    qn_tensors *file;
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    assert_int_equal(qn_tensors_count(file), qn_tensors_count(original));
    for (int64_t i = 0; i < qn_tensors_count(original); i++) {
        float got[ELEMENTS], want[ELEMENTS];
        const qn_tensors_entry *entry = qn_tensors_at(original, i);
        const qn_tensors_entry *found = qn_tensors_find(file, entry->name);
        assert_non_null(found);
        assert_string_equal(found->type, entry->type);
        assert_int_equal(found->shape.rank, entry->shape.rank);
        for (int d = 0; d < entry->shape.rank; d++)
            assert_int_equal(found->shape.dim[d], entry->shape.dim[d]);
        assert_int_equal(qn_tensors_read(file, found, 0, got, found->bytes), QN_OK);
        assert_int_equal(qn_tensors_read(original, entry, 0, want, entry->bytes), QN_OK);
        assert_memory_equal(got, want, (size_t)entry->bytes);
    }
    qn_tensors_close(&file);
}

static void saving_gives_the_same_bits(void **state)
{
    (void)state;
    char path[FOLDER_BYTES + 32];
    const qn_weights_params params = {.layout = qn_model_layout("gpt")};
    snprintf(path, sizeof path, "%s/saved.safetensors", folder);
    assert_int_equal(qn_trainer_save_weights(session.trainer, path, &params), QN_OK);
    assert_original(path);
}

static void export_to(const char *run, const char *out)
{
    struct arguments arguments = {.operand = run};
    arguments.value[OPTION_EXPORT] = out;
    assert_code(command_export.run(&arguments, &failure));
}

static void a_checkpoint_is_exported(void **state)
{
    (void)state;
    char run[FOLDER_BYTES + 32], out[FOLDER_BYTES + 32], path[FOLDER_BYTES + 64], *text;
    struct config config;
    char *note = note_text(&session.recipe);
    assert_non_null(note);
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    assert_int_equal(qn_checkpoint_save(session.trainer, run, &(qn_save_params){.note = note}),
                     QN_OK);
    free(note);
    export_to(run, out);
    if (kept)
        export_to(run, kept);
    snprintf(path, sizeof path, "%s/model.safetensors", out);
    assert_original(path);
    snprintf(path, sizeof path, "%s/config.json", out);
    assert_code(file_read(&text, path, &failure));
    assert_code(config_read(&config, text, path, &failure));
    free(text);
    const struct config *read = &session.pretrained.config;
    assert_int_equal(config.layers, read->layers);
    assert_int_equal(config.heads, read->heads);
    assert_int_equal(config.width, read->width);
    assert_int_equal(config.tied, read->tied);
    assert_int_equal(config.vocabulary, read->vocabulary);
    assert_int_equal(config.positions, read->positions);
}

static void updates_are_those_of_pytorch(void **state)
{
    (void)state;
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 1e-3, .fetch = fetch};
    float losses[UPDATES], loss;
    read_golden("losses", losses, UPDATES);
    read_golden("loss", &loss, 1);
    for (int i = 0; i < UPDATES; i++) {
        qn_metrics metrics;
        assert_int_equal(qn_trainer_step(session.trainer, &cycle, NULL), QN_OK);
        assert_int_equal(qn_trainer_finish(session.trainer, &metrics), QN_OK);
        const double apart = fabs(metrics.loss - (double)losses[i]);
        if (!(apart <= (i ? NEAR_UPDATES : NEAR) * (double)losses[i]))
            fail_msg("update %d: loss %.7g, not %.7g", i, metrics.loss, (double)losses[i]);
        print_message("  update %d: %.2g apart\n", i, apart / (double)losses[i]);
    }
    assert_true(loss == losses[0]);
}

/* --- defaults --- */

/* A checkpoint's recipe may leave keys out: then config.json must have the model's defaults, which
 * its help names. */
static void defaults_are_those_of_the_model(void **state)
{
    (void)state;
    const struct settings settings = {.model = "gpt"};
    struct config config;
    char text[16], help[2048];
    snprintf(help, sizeof help, "\n%s", qn_model_help("gpt"));
    assert_true(config_of(&config, &settings));
    const struct {
        const char *key;
        int64_t value;
    } keys[] = {{"\nlayers ", config.layers},
                {"\nheads ", config.heads},
                {"\nwidth ", config.width},
                {"\ntied ", config.tied}};
    for (int i = 0; i < 4; i++) {
        const char *line = strstr(help, keys[i].key);
        assert_non_null(line);
        snprintf(text, sizeof text, "(%d)\n", (int)keys[i].value);
        const char *found = strstr(line, text);
        assert_true(found && found < strchr(line + 1, '\n'));
    }
}

static int open_all(void **state)
{
    (void)state;
    make_folder(folder);
    assert_int_equal(qn_tensors_open(&golden, GOLDEN "/golden.safetensors", NULL), QN_OK);
    assert_int_equal(qn_tensors_open(&original, GOLDEN "/model.safetensors", NULL), QN_OK);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    session_close(&session);
    qn_tensors_close(&golden);
    qn_tensors_close(&original);
    remove_folder(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_load_through_a_recipe),
        cmocka_unit_test(logits_are_those_of_transformers),
        cmocka_unit_test(gradients_are_those_of_transformers),
        cmocka_unit_test(saving_gives_the_same_bits),
        cmocka_unit_test(a_checkpoint_is_exported),
        cmocka_unit_test(updates_are_those_of_pytorch),
        cmocka_unit_test(defaults_are_those_of_the_model),
    };
    kept = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests_name("pretrained", tests, open_all, close_all);
}
