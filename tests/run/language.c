/* SPDX-License-Identifier: MIT
 *
 * Networks of transformers (tools/golden/language.py), two BERTs and two Llamas: their files load,
 * give the same logits, loss, gradients and losses of updates, whatever the plan, and are the same
 * bits when they are saved. The first argument is the folder of the files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/folder.h"
#include "../support/golden.h"
#include "device.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 3, LENGTH = 12, TOKENS = 40, UPDATES = 10, ELEMENTS = SAMPLES * LENGTH * TOKENS };

/* A bias of keys moves all scores of a query alike: its gradient is nothing but rounding, of this
 * size. */
static const double ROUNDING = 1e-6;

struct network {
    const char *name, *model;
    qn_model_option options[10];
    int n_options;
    int classes; /* of samples, which are padded then */
    int tensors;
};

#define SIZES                                                                                      \
    {"heads", "2"}, {"width", "16"}, {"inner", "24"},                                              \
    {                                                                                              \
        "dropout", "0"                                                                             \
    }
static const struct network networks[] = {
    {"masked", "bert", {SIZES, {"layers", "2"}}, 5, 0, 5 + 2 * 16 + 5},
    {"classify", "bert", {SIZES, {"layers", "1"}, {"types", "1"}}, 6, 5, 5 + 16 + 4},
    {"llama",
     "llama",
     {{"layers", "2"}, {"heads", "4"}, {"kv_heads", "2"}, {"width", "32"}, {"inner", "24"}},
     5,
     0,
     1 + 2 * 9 + 2},
    {"llama3",
     "llama",
     {{"layers", "2"},
      {"heads", "4"},
      {"kv_heads", "2"},
      {"width", "32"},
      {"inner", "24"},
      {"base", "10"},
      {"factor", "4"},
      {"low_freq_factor", "0.4"},
      {"high_freq_factor", "1.2"},
      {"original_positions", "10"}},
     10,
     0,
     1 + 2 * 9 + 2},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

static const char *golden_folder;

/* --- what was computed by others --- */

static qn_tensors *open_golden(const struct network *network, const char *ending)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", network->name, ending);
    return golden_open(golden_folder, name);
}

/* --- a trainer with the weights of transformers --- */

static struct test_run open_network(const struct network *network, int64_t micro_batch,
                                    qn_recompute_mode recompute)
{
    const qn_model_data data = {.channels = 1,
                                .height = 1,
                                .width = LENGTH,
                                .classes = network->classes,
                                .tokens = TOKENS,
                                .lengths = network->classes > 0};
    const qn_plan_params params = {.budget = 16 << 20,
                                   .batch = {SAMPLES},
                                   .micro_batch = micro_batch,
                                   .recompute = recompute,
                                   .optimizer = {.name = "adamw"}};
    const qn_trainer_params trainer = {.weight_decay = 0.01};
    const qn_weights_params weights = {.layout = qn_model_layout(network->model)};
    char path[512];
    qn_graph *graph;
    snprintf(path, sizeof path, "%s/%s.safetensors", golden_folder, network->name);
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    if (qn_model_build(graph, network->model, &data, network->options, network->n_options) != QN_OK)
        fail_msg("%s: %s", network->name, qn_graph_error(graph));
    struct test_run run = test_open(device, graph, &params, &trainer);
    qn_graph_destroy(&graph);
    assert_int_equal(qn_trainer_load_weights(run.trainer, path, &weights), QN_OK);
    return run;
}

static void check_logits(qn_trainer *trainer, struct golden_batch *batch)
{
    static float want[ELEMENTS];
    const int64_t count = golden_read(batch->golden, "logits", want, ELEMENTS);
    batch->row = count / SAMPLES;
    assert_int_equal(qn_trainer_evaluate(trainer, SAMPLES, golden_fetch, golden_logits, batch),
                     QN_OK);
    golden_near("logits", batch->logits, want, count, ROUNDING);
}

/* --- the tests --- */

static void the_numbers_are_those_of_transformers(void **state)
{
    (void)state;
    static const struct {
        int64_t micro_batch;
        qn_recompute_mode recompute;
    } plans[] = {{SAMPLES, QN_RECOMPUTE_NONE}, {2, QN_RECOMPUTE_ALL}, {1, QN_RECOMPUTE_NONE}};
    static struct golden_batch batch = {.samples = SAMPLES};
    const qn_cycle cycle = {.samples = SAMPLES, .lr = 1e-3, .fetch = golden_fetch, .user = &batch};
    float losses[UPDATES];
    for (int n = 0; n < N_NETWORKS; n++) {
        batch.golden = open_golden(&networks[n], "-golden");
        assert_int_equal(golden_read(batch.golden, "losses", losses, UPDATES), UPDATES);
        for (int p = 0; p < 3; p++) {
            struct test_run run =
                open_network(&networks[n], plans[p].micro_batch, plans[p].recompute);
            check_logits(run.trainer, &batch);
            assert_int_equal(
                golden_gradients(run.trainer, &cycle, batch.golden, ELEMENTS, ROUNDING),
                networks[n].tensors);
            golden_updates(run.trainer, &cycle, losses, UPDATES);
            test_close(&run);
        }
        qn_tensors_close(&batch.golden);
    }
}

static void saving_gives_the_same_bits(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/saved.safetensors", folder);
    for (int n = 0; n < N_NETWORKS; n++) {
        struct test_run run = open_network(&networks[n], SAMPLES, QN_RECOMPUTE_NONE);
        qn_tensors *original = open_golden(&networks[n], "");
        const qn_weights_params params = {.layout = qn_model_layout(networks[n].model)};
        assert_int_equal(qn_trainer_save_weights(run.trainer, path, &params), QN_OK);
        golden_same(path, original);
        qn_tensors_close(&original);
        test_close(&run);
    }
    remove_folder(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_transformers),
        cmocka_unit_test(saving_gives_the_same_bits),
    };
    if (argc < 2)
        return 2;
    golden_folder = argv[1];
    return cmocka_run_group_tests_name("language", tests, open_device, close_device);
}
