/* SPDX-License-Identifier: MIT
 *
 * Low-rank adapters: PEFT's numbers (tools/golden/lora.py), whatever the plan; the same gradients
 * however a cycle is split; nothing of the layers below them trains. The first argument is the
 * folder of the golden files.
 */
#include "../support/folder.h"
#include "../support/golden.h"
#include "device.h"
#include "support.h"

#include <string.h>

enum {
    SAMPLES = 3,
    LENGTH = 12,
    TOKENS = 40,
    CLASSES = 5,
    UPDATES = 10,
    ELEMENTS = SAMPLES * LENGTH * TOKENS
};

struct network {
    const char *folder, *model;
    qn_model_option options[11];
    int n_options;
    const char *trained; /* patterns of what is trained */
    int tensors;         /* that they name */
    int64_t row;         /* logits of a sample */
};

static const struct network networks[] = {
    {"gpt2",
     "gpt",
     {{"layers", "2"},
      {"heads", "2"},
      {"width", "16"},
      {"lora_rank", "3"},
      {"lora_alpha", "5"},
      {"lora_targets", "c_attn, c_proj"}},
     6,
     QN_ADAPTERS,
     12,
     LENGTH *TOKENS},
    {"llama",
     "llama",
     {{"layers", "2"},
      {"heads", "4"},
      {"kv_heads", "2"},
      {"width", "32"},
      {"inner", "24"},
      {"lora_rank", "4"},
      {"lora_alpha", "6"},
      {"lora_targets", "q_proj,*.v_proj,mlp.down_*"}},
     8,
     QN_ADAPTERS,
     12,
     LENGTH *TOKENS},
    {"bert",
     "bert",
     {{"layers", "1"},
      {"heads", "2"},
      {"width", "16"},
      {"inner", "24"},
      {"dropout", "0"},
      {"lora_rank", "2"},
      {"lora_alpha", "4"},
      {"lora_targets", "query, dense"},
      {"lora_whole", "classifier"}},
     9,
     QN_ADAPTERS ",classifier.*",
     12,
     CLASSES},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

static const char *golden_folder;

/* --- a trainer --- */

static qn_graph *build(const struct network *network, const qn_model_option *more, int n_more)
{
    const bool classes = strcmp(network->model, "bert") == 0;
    const qn_model_data data = {.channels = 1,
                                .height = 1,
                                .width = LENGTH,
                                .classes = classes ? CLASSES : 0,
                                .tokens = TOKENS};
    qn_model_option options[16];
    qn_graph *graph;
    memcpy(options, network->options, sizeof network->options);
    if (n_more)
        memcpy(options + network->n_options, more, (size_t)n_more * sizeof *more);
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    if (qn_model_build(graph, network->model, &data, options, network->n_options + n_more) != QN_OK)
        fail_msg("%s: %s", network->model, qn_graph_error(graph));
    return graph;
}

struct how {
    int64_t micro_batch;
    qn_recompute_mode recompute;
};

/* With the numbers of transformers and PEFT. */
static struct test_run open_network(const struct network *network, const struct how *how,
                                    const char *dropout)
{
    const qn_plan_params params = {.budget = 16 << 20,
                                   .batch = {SAMPLES},
                                   .micro_batch = how->micro_batch,
                                   .recompute = how->recompute,
                                   .optimizer = {.name = "adamw"}};
    const qn_weights_params base = {.layout = qn_model_layout(network->model),
                                    .exclude = QN_ADAPTERS};
    const qn_weights_params adapters = {.layout = qn_model_adapter_layout(),
                                        .include = network->trained};
    const qn_model_option option = {"lora_dropout", dropout};
    char path[512];
    qn_graph *graph = build(network, &option, 1);
    struct test_run run =
        test_open(device, graph, &params, &(qn_trainer_params){.weight_decay = 0.01});
    snprintf(path, sizeof path, "%s/%s/model.safetensors", golden_folder, network->folder);
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &base), QN_OK);
    snprintf(path, sizeof path, "%s/%s/adapter_model.safetensors", golden_folder, network->folder);
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &adapters), QN_OK);
    qn_graph_destroy(&graph);
    return run;
}

static qn_tensors *open_golden(const struct network *network)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", golden_folder, network->folder);
    return golden_open(path, "golden");
}

/* --- the beginning --- */

/* PEFT's: A within 1 / sqrt(in) as PyTorch's linear layers, B zero, so that nothing is added yet.
 */
static void adapters_begin_as_peft_has_them(void **state)
{
    (void)state;
    static float numbers[ELEMENTS];
    const char *name;
    qn_shape shape;
    qn_graph *graph = build(&networks[0], NULL, 0);
    const qn_plan_params params = {.budget = 16 << 20, .batch = {SAMPLES}};
    struct test_run run = test_open(device, graph, &params, NULL);
    for (int i = 0; (name = qn_trainer_tensor(run.trainer, i, &shape)); i++) {
        const int64_t count = qn_shape_count(&shape);
        const bool a = qn_matches("*.lora_A.weight", name);
        double least = 0, most = 0;
        if (!a && !qn_matches("*.lora_B.weight", name))
            continue;
        assert_int_equal(qn_trainer_read(run.trainer, name, numbers, count), QN_OK);
        for (int64_t k = 0; k < count; k++) {
            least = fmin(least, (double)numbers[k]);
            most = fmax(most, (double)numbers[k]);
        }
        const double bound = a ? 1 / sqrt((double)shape.dim[1]) : 0;
        assert_true(least >= -bound && least <= -0.7 * bound);
        assert_true(most <= bound && most >= 0.7 * bound);
    }
    test_close(&run);
    qn_graph_destroy(&graph);
}

/* --- PEFT's numbers --- */

static void check_logits(qn_trainer *trainer, struct golden_batch *batch)
{
    static float want[ELEMENTS];
    const int64_t count = golden_read(batch->golden, "logits", want, ELEMENTS);
    assert_int_equal(qn_trainer_evaluate(trainer, SAMPLES, golden_fetch, golden_logits, batch),
                     QN_OK);
    golden_near("logits", batch->logits, want, count, 0);
}

/* Of what is trained; nothing else has one. */
static void check_gradients(qn_trainer *trainer, struct golden_batch *batch,
                            const struct network *network)
{
    const qn_cycle cycle = {.samples = SAMPLES, .fetch = golden_fetch, .user = batch};
    static float got[ELEMENTS], want[ELEMENTS];
    const char *name;
    char there[160];
    qn_shape shape;
    int found = 0;
    assert_int_equal(qn_trainer_accumulate(trainer, &cycle), QN_OK);
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, &shape)); i++) {
        snprintf(there, sizeof there, "gradient.%s", name);
        if (!qn_matches(network->trained, name)) {
            assert_int_equal(qn_trainer_read_gradient(trainer, name, got, qn_shape_count(&shape)),
                             QN_ERR_ARGUMENT);
            continue;
        }
        const int64_t count = golden_read(batch->golden, there, want, ELEMENTS);
        assert_int_equal(qn_trainer_read_gradient(trainer, name, got, count), QN_OK);
        golden_near(name, got, want, count, 0);
        found++;
    }
    assert_int_equal(found, network->tensors);
}

static void the_numbers_are_those_of_peft(void **state)
{
    (void)state;
    static const struct how plans[] = {
        {SAMPLES, QN_RECOMPUTE_NONE}, {2, QN_RECOMPUTE_ALL}, {1, QN_RECOMPUTE_NONE}};
    static struct golden_batch batch = {.samples = SAMPLES};
    float losses[UPDATES];
    for (int n = 0; n < N_NETWORKS; n++) {
        batch.golden = open_golden(&networks[n]);
        batch.row = networks[n].row;
        const qn_cycle cycle = {
            .samples = SAMPLES, .lr = 1e-3, .fetch = golden_fetch, .user = &batch};
        assert_int_equal(golden_read(batch.golden, "losses", losses, UPDATES), UPDATES);
        for (int p = 0; p < 3; p++) {
            struct test_run run = open_network(&networks[n], &plans[p], "0");
            check_logits(run.trainer, &batch);
            check_gradients(run.trainer, &batch, &networks[n]);
            golden_updates(run.trainer, &cycle, losses, UPDATES);
            test_close(&run);
        }
        qn_tensors_close(&batch.golden);
    }
}

/* --- plans --- */

/* The gradients of all adapters, one after another, freed with free(). */
static float *adapter_gradients(struct test_run *run, struct golden_batch *batch, int64_t *count)
{
    const qn_cycle cycle = {.samples = SAMPLES, .fetch = golden_fetch, .user = batch};
    float *values = NULL;
    qn_shape shape;
    const char *name;
    *count = 0;
    assert_int_equal(qn_trainer_accumulate(run->trainer, &cycle), QN_OK);
    for (int i = 0; (name = qn_trainer_tensor(run->trainer, i, &shape)); i++) {
        if (!qn_matches(QN_ADAPTERS, name))
            continue;
        const int64_t own = qn_shape_count(&shape);
        values = realloc(values, (size_t)(*count + own) * sizeof *values);
        assert_int_equal(qn_trainer_read_gradient(run->trainer, name, values + *count, own), QN_OK);
        *count += own;
    }
    return values;
}

/* The masks are keyed by sample: no split of the cycle changes the gradients, no recompute a bit.
 */
static void no_plan_changes_the_gradients(void **state)
{
    (void)state;
    static const struct how plans[] = {{SAMPLES, QN_RECOMPUTE_NONE},
                                       {SAMPLES, QN_RECOMPUTE_ALL},
                                       {2, QN_RECOMPUTE_ALL},
                                       {1, QN_RECOMPUTE_NONE}};
    static struct golden_batch batch = {.samples = SAMPLES};
    for (int n = 0; n < N_NETWORKS; n++) {
        float *whole = NULL;
        batch.golden = open_golden(&networks[n]);
        batch.row = networks[n].row;
        for (int p = 0; p < 4; p++) {
            int64_t count;
            struct test_run run = open_network(&networks[n], &plans[p], "0.3");
            float *values = adapter_gradients(&run, &batch, &count);
            assert_true(count > 0);
            if (whole && plans[p].micro_batch == SAMPLES)
                assert_memory_equal(values, whole, (size_t)count * sizeof *values);
            else if (whole)
                assert_true(test_distance(values, whole, count) < 1e-5);
            if (whole)
                free(values);
            else
                whole = values;
            test_close(&run);
        }
        free(whole);
        qn_tensors_close(&batch.golden);
    }
}

/* Saving gives PEFT's file back. */
static void saving_gives_the_same_bits(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32], there[256];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/saved.safetensors", folder);
    for (int n = 0; n < N_NETWORKS; n++) {
        struct test_run run =
            open_network(&networks[n], &(struct how){SAMPLES, QN_RECOMPUTE_NONE}, "0");
        snprintf(there, sizeof there, "%s/%s", golden_folder, networks[n].folder);
        qn_tensors *original = golden_open(there, "adapter_model");
        const qn_weights_params params = {.layout = qn_model_adapter_layout(),
                                          .include = networks[n].trained};
        assert_int_equal(qn_trainer_save_weights(run.trainer, path, &params), QN_OK);
        golden_same(path, original);
        qn_tensors_close(&original);
        test_close(&run);
    }
    remove_folder(folder);
}

/* --- merged --- */

static double option_of(const struct network *network, const char *key)
{
    for (int i = 0; i < network->n_options; i++)
        if (strcmp(network->options[i].key, key) == 0)
            return atof(network->options[i].value);
    return 0;
}

/* Every weight that PEFT merged, as Hugging Face has it. */
static void check_merged(const char *path, const qn_tensors *golden)
{
    static float got[ELEMENTS], want[ELEMENTS];
    qn_tensors *file;
    int found = 0;
    assert_int_equal(qn_tensors_open(&file, path, NULL), QN_OK);
    for (int64_t i = 0; i < qn_tensors_count(golden); i++) {
        const qn_tensors_entry *entry = qn_tensors_at(golden, i);
        if (strncmp(entry->name, "merged.", 7) != 0)
            continue;
        const qn_tensors_entry *here = qn_tensors_find(file, entry->name + 7);
        assert_true(here && qn_shape_equal(&here->shape, &entry->shape));
        const int64_t count = golden_read(golden, entry->name, want, ELEMENTS);
        golden_read(file, entry->name + 7, got, ELEMENTS);
        assert_true(test_distance(got, want, count) < 1e-6);
        found++;
    }
    for (int64_t i = 0; i < qn_tensors_count(file); i++)
        assert_false(qn_matches(QN_ADAPTERS, qn_tensors_at(file, i)->name));
    assert_true(found > 0);
    qn_tensors_close(&file);
}

/* Logits of the network without adapters. */
static void evaluate_merged(const struct network *network, const char *path,
                            struct golden_batch *batch)
{
    const qn_plan_params params = {.budget = 16 << 20, .batch = {SAMPLES}};
    const qn_weights_params weights = {.layout = qn_model_layout(network->model)};
    struct network plain = *network;
    while (strncmp(plain.options[plain.n_options - 1].key, "lora_", 5) == 0)
        plain.n_options--;
    qn_graph *graph = build(&plain, NULL, 0);
    struct test_run run = test_open(device, graph, &params, NULL);
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &weights), QN_OK);
    assert_int_equal(qn_trainer_evaluate(run.trainer, SAMPLES, golden_fetch, golden_logits, batch),
                     QN_OK);
    test_close(&run);
    qn_graph_destroy(&graph);
}

static void merged_weights_give_the_same_logits(void **state)
{
    (void)state;
    static struct golden_batch batch = {.samples = SAMPLES};
    static float logits[ELEMENTS];
    char folder[FOLDER_BYTES], own[FOLDER_BYTES + 32], merged[FOLDER_BYTES + 32];
    make_folder(folder);
    snprintf(own, sizeof own, "%s/own.safetensors", folder);
    snprintf(merged, sizeof merged, "%s/merged.safetensors", folder);
    for (int n = 0; n < N_NETWORKS; n++) {
        const struct network *network = &networks[n];
        const double scale = option_of(network, "lora_alpha") / option_of(network, "lora_rank");
        const qn_tensors_params params = {.layout = qn_model_layout(network->model)};
        struct test_run run = open_network(network, &(struct how){SAMPLES, QN_RECOMPUTE_NONE}, "0");
        qn_tensors *file;
        batch.golden = open_golden(network);
        batch.row = network->row;
        check_logits(run.trainer, &batch);
        memcpy(logits, batch.logits, sizeof logits);
        assert_int_equal(qn_trainer_save_weights(run.trainer, own, NULL), QN_OK);
        test_close(&run);
        assert_int_equal(qn_tensors_open(&file, own, NULL), QN_OK);
        assert_int_equal(qn_tensors_merge(merged, &params, file, scale), QN_OK);
        qn_tensors_close(&file);
        check_merged(merged, batch.golden);
        evaluate_merged(network, merged, &batch);
        print_message("  %s: %.3g apart\n", network->folder,
                      test_distance(batch.logits, logits, SAMPLES * batch.row));
        assert_true(test_distance(batch.logits, logits, SAMPLES * batch.row) < 1e-5);
        qn_tensors_close(&batch.golden);
    }
    remove_folder(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_begin_as_peft_has_them),
        cmocka_unit_test(the_numbers_are_those_of_peft),
        cmocka_unit_test(no_plan_changes_the_gradients),
        cmocka_unit_test(saving_gives_the_same_bits),
        cmocka_unit_test(merged_weights_give_the_same_logits),
    };
    if (argc < 2)
        return 2;
    golden_folder = argv[1];
    return cmocka_run_group_tests_name("lora", tests, open_device, close_device);
}
