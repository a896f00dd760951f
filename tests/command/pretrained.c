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
#include "../support/golden.h"
#include "commands.h"
#include "family.h"
#include "file.h"
#include "note.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 2, LENGTH = 16, TOKENS = 64, UPDATES = 10, LAYERS = 2, ELEMENTS = 4 * 24 * 24 };

/* What the recipe leaves out stands in config.json. */
static const char recipe_text[] = "[data]\nkind = tokens\npath = .\nlength = 16\n"
                                  "[train]\nweights = " GOLDEN "\nsteps = 10\nbatch = 2\n"
                                  "optimizer = adamw\nlr = 1e-3\nweight_decay = 0.01\n"
                                  "[memory]\nbudget = 16MiB\ntune = off\n";

static char folder[FOLDER_BYTES];
static const char *kept;
static struct failure failure = FAILURE_NONE;
static struct session session = {.failure = &failure};
static qn_tensors *golden, *original;

/* --- what was computed by others --- */

static qn_status fetch(void *user, const char *input, int64_t first, int64_t count, void *rows)
{
    (void)user;
    int32_t all[SAMPLES * LENGTH];
    golden_read(golden, input, all, SAMPLES * LENGTH);
    memcpy(rows, all + first * LENGTH, (size_t)(count * LENGTH) * sizeof *all);
    return QN_OK;
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
    assert_int_equal(session.settings.data.tokens, TOKENS);
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
    golden_read(golden, "logits", want, SAMPLES * LENGTH * TOKENS);
    assert_int_equal(qn_trainer_evaluate(session.trainer, SAMPLES, fetch, take_logits, got), QN_OK);
    golden_near("logits", got, want, SAMPLES * LENGTH * TOKENS, 0);
}

static void gradients_are_those_of_transformers(void **state)
{
    (void)state;
    const qn_cycle cycle = {.samples = SAMPLES, .fetch = fetch};
    assert_int_equal(golden_gradients(session.trainer, &cycle, golden, ELEMENTS, 0),
                     4 + 12 * LAYERS);
}

static void saving_gives_the_same_bits(void **state)
{
    (void)state;
    char path[FOLDER_BYTES + 32];
    const qn_weights_params params = {.layout = qn_model_layout("gpt")};
    snprintf(path, sizeof path, "%s/saved.safetensors", folder);
    assert_int_equal(qn_trainer_save_weights(session.trainer, path, &params), QN_OK);
    golden_same(path, original);
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
    char *note = note_text(&session.recipe, NULL, NULL);
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
    golden_same(path, original);
    snprintf(path, sizeof path, "%s/config.json", out);
    assert_code(file_read(&text, path, &failure));
    assert_code(config_read(&config, text, path, &failure));
    free(text);
    const struct config *read = &session.pretrained.config;
    assert_true(config.layers == read->layers);
    assert_true(config.heads == read->heads);
    assert_true(config.width == read->width);
    assert_true(config.tied == read->tied);
    assert_true(config.vocabulary == read->vocabulary);
    assert_true(config.positions == read->positions);
}

static void updates_are_those_of_pytorch(void **state)
{
    (void)state;
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 1e-3, .fetch = fetch};
    float losses[UPDATES], loss;
    golden_read(golden, "losses", losses, UPDATES);
    golden_read(golden, "loss", &loss, 1);
    golden_updates(session.trainer, &cycle, losses, UPDATES);
    assert_true(loss == losses[0]);
}

/* --- defaults --- */

/* Whether the help of a model, which begins with a new line, names the default of a key: a number
 * in brackets at the end of its line. */
static bool helps(const char *help, const char *key, double value)
{
    char name[32];
    snprintf(name, sizeof name, "\n%s ", key);
    const char *line = strstr(help, name), *end = line ? strchr(line + 1, '\n') : NULL;
    while (end && end > line && *end != '(')
        end--;
    return end && *end == '(' && strtod(end + 1, NULL) == value;
}

/* A checkpoint's recipe may leave keys out: then config.json must have the model's defaults, which
 * its help names. */
static void defaults_are_those_of_the_model(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt", "llama", "bert"};
    for (int i = 0; i < 3; i++) {
        const struct settings settings = {.model = models[i]};
        const struct family *family = family_of_model(models[i]);
        struct config config;
        char help[4096];
        int keys = 0;
        snprintf(help, sizeof help, "\n%s", qn_model_help(models[i]));
        assert_true(config_of(&config, &settings));
        for (const struct field *field = family->fields; field->name; field++) {
            if (!field->key || strcmp(field->section, "model") != 0)
                continue;
            keys++;
            if (!helps(help, field->key, field_number(field, &family->own)))
                fail_msg("%s: %s: %g", models[i], field->key, field_number(field, &config));
        }
        assert_true(keys >= 4);
    }
}

static int open_all(void **state)
{
    (void)state;
    make_folder(folder);
    golden = golden_open(GOLDEN, "golden");
    original = golden_open(GOLDEN, "model");
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
