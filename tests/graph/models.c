/* SPDX-License-Identifier: MIT
 *
 * Models that ship: they have the parameters of the networks that they are named after.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graph/graph.h"
#include <quern/model.h>

#include <stdio.h>
#include <string.h>

static qn_graph *build_for(const qn_model_data *data, const char *model,
                           const qn_model_option *options, int n_options)
{
    qn_graph *graph = NULL;
    assert_int_equal(qn_graph_create(&graph, NULL), QN_OK);
    qn_model_build(graph, model, data, options, n_options);
    return graph;
}

static qn_graph *build(const char *model, int side, int classes, const qn_model_option *options,
                       int n_options)
{
    const qn_model_data data = {.channels = 3, .height = side, .width = side, .classes = classes};
    return build_for(&data, model, options, n_options);
}

static int64_t parameters_of(const qn_graph *graph)
{
    int64_t count = 0;
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_PARAMETER)
            count += qn_operand_count(&graph->nodes[n].leaf);
    return count;
}

static bool has_parameter(const qn_graph *graph, const char *name)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].kind == QN_NODE_PARAMETER && strcmp(graph->nodes[n].name, name) == 0)
            return true;
    return false;
}

/* The numbers are those of torchvision's resnet18 to resnet152, with the first convolution changed
 * where it is. */
static void residual_networks_have_their_parameters(void **state)
{
    (void)state;
    static const qn_model_option small = {"stem", "3"};
    static const qn_model_option deep[] = {
        {"depth", "34"}, {"depth", "50"}, {"depth", "101"}, {"depth", "152"}};
    static const struct {
        int side, classes;
        const qn_model_option *option;
        int64_t parameters;
    } cases[] = {
        {224, 1000, NULL, 11689512},     {224, 1000, &deep[0], 21797672},
        {224, 1000, &deep[1], 25557032}, {224, 1000, &deep[2], 44549160},
        {224, 1000, &deep[3], 60192808}, {32, 10, &small, 11173962},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build("resnet", cases[i].side, cases[i].classes, cases[i].option,
                                cases[i].option != NULL);
        assert_string_equal(qn_graph_error(graph), "");
        assert_int_equal(parameters_of(graph), cases[i].parameters);
        assert_true(has_parameter(graph, "layer2.0.downsample.1.bias"));
        assert_true(has_parameter(graph, "layer4.1.conv2.weight"));
        assert_int_equal(has_parameter(graph, "layer1.0.downsample.0.weight"),
                         has_parameter(graph, "layer1.0.conv3.weight"));
        qn_graph_destroy(&graph);
    }
}

static void residual_networks_refuse_what_they_are_not(void **state)
{
    (void)state;
    static const struct {
        qn_model_option option;
        const char *error;
    } cases[] = {{{"depth", "20"}, "model.depth: is 18, 34, 50, 101 or 152"},
                 {{"stem", "5"}, "model.stem: is 3 or 7"},
                 {{"width", "5"}, "model.width: no such key; its keys: depth, group, stem"},
                 {{"dpeth", "18"}, "model.dpeth: no such key; did you mean depth?"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build("resnet", 32, 10, &cases[i].option, 1);
        assert_string_equal(qn_graph_error(graph), cases[i].error);
        qn_graph_destroy(&graph);
    }
}

/* The numbers are those of torchvision's vgg11 to vgg19 and of two with batch norm; the last has a
 * smaller classifier. */
static void plain_networks_have_their_parameters(void **state)
{
    (void)state;
    static const struct {
        int side, n_options;
        qn_model_option options[4];
        int64_t parameters;
    } cases[] = {
        {224, 1, {{"depth", "11"}}, 132863336},
        {448, 1, {{"depth", "13"}}, 133047848},
        {224, 0, {{0}}, 138357544},
        {255, 1, {{"depth", "19"}}, 143667240},
        {224, 2, {{"depth", "11"}, {"batch_norm", "1"}}, 132868840},
        {224, 2, {{"depth", "19"}, {"batch_norm", "1"}}, 143678248},
        {64,
         3,
         {{"depth", "11"}, {"pool", "2"}, {"hidden", "100"}},
         9220480 + 204900 + 10100 + 101000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build("vgg", cases[i].side, 1000, cases[i].options, cases[i].n_options);
        assert_string_equal(qn_graph_error(graph), "");
        assert_int_equal(parameters_of(graph), cases[i].parameters);
        assert_true(has_parameter(graph, "features.0.bias"));
        assert_true(has_parameter(graph, "classifier.6.weight"));
        qn_graph_destroy(&graph);
    }
}

static void plain_networks_refuse_what_they_are_not(void **state)
{
    (void)state;
    static const struct {
        int side;
        qn_model_option option;
        const char *error;
    } cases[] = {
        {224, {"depth", "12"}, "model.depth: is 11, 13, 16 or 19"},
        {288,
         {"depth", "11"},
         "model.pool: images of 288 x 288 are 9 x 9 after five halvings, which cannot be averaged "
         "to 7 x 7: pool divides both"},
        {31,
         {"pool", "1"},
         "model.pool: images of 31 x 31 are 0 x 0 after five halvings, which cannot be averaged "
         "to 1 x 1: pool divides both"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build("vgg", cases[i].side, 10, &cases[i].option, 1);
        assert_string_equal(qn_graph_error(graph), cases[i].error);
        qn_graph_destroy(&graph);
    }
}

/* GPT-2's numbers, the smallest and the next, and those without the table as last weight. */
static void decoders_have_their_parameters(void **state)
{
    (void)state;
    const qn_model_data data = {.channels = 1, .height = 1, .width = 1024, .tokens = 50257};
    static const struct {
        int n_options;
        qn_model_option options[3];
        int64_t parameters;
    } cases[] = {
        {0, {{0}}, 124439808},
        {3, {{"layers", "24"}, {"heads", "16"}, {"width", "1024"}}, 354823168},
        {1, {{"tied", "0"}}, 124439808 + 50257 * 768},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build_for(&data, "gpt", cases[i].options, cases[i].n_options);
        assert_string_equal(qn_graph_error(graph), "");
        assert_int_equal(parameters_of(graph), cases[i].parameters);
        assert_true(has_parameter(graph, "transformer.h.11.attn.c_attn.bias"));
        qn_graph_destroy(&graph);
    }
}

/* Those of TinyLlama, and of a tied one of other sizes: per layer 2 w + 2 w^2 + 2 w k + 3 w i with
 * width w, inner width i and k features of keys. */
static void grouped_decoders_have_their_parameters(void **state)
{
    (void)state;
    const qn_model_data data = {.channels = 1, .height = 1, .width = 64, .tokens = 32000};
    static const qn_model_option tied[] = {{"tied", "1"},   {"layers", "1"}, {"width", "64"},
                                           {"inner", "96"}, {"heads", "8"},  {"kv_heads", "2"}};
    const qn_model_option uneven = {"kv_heads", "5"};
    qn_graph *graph = build_for(&data, "llama", NULL, 0);
    assert_string_equal(qn_graph_error(graph), "");
    assert_int_equal(parameters_of(graph), 1100048384);
    qn_graph_destroy(&graph);
    graph = build_for(&data, "llama", tied, 6);
    assert_string_equal(qn_graph_error(graph), "");
    assert_int_equal(parameters_of(graph),
                     32000 * 64 + 2 * 64 + 2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 96 + 64);
    assert_false(has_parameter(graph, "lm_head.weight"));
    qn_graph_destroy(&graph);
    graph = build_for(&data, "llama", &uneven, 1);
    assert_string_equal(qn_graph_error(graph), "model.heads: is not a multiple of kv_heads");
    qn_graph_destroy(&graph);
}

/* BERT's numbers: base as a masked language model, large with a head for two classes, as
 * transformers counts them. */
static void encoders_have_their_parameters(void **state)
{
    (void)state;
    static const struct {
        int classes, n_options;
        qn_model_option options[3];
        int64_t parameters;
        const char *head;
    } cases[] = {
        {0, 0, {{0}}, 109514298, "cls.predictions.bias"},
        {2,
         3,
         {{"layers", "24"}, {"heads", "16"}, {"width", "1024"}},
         335143938,
         "classifier.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_model_data data = {.channels = 1,
                                    .height = 1,
                                    .width = 512,
                                    .tokens = 30522,
                                    .classes = cases[i].classes,
                                    .lengths = cases[i].classes > 0};
        qn_graph *graph = build_for(&data, "bert", cases[i].options, cases[i].n_options);
        assert_string_equal(qn_graph_error(graph), "");
        assert_int_equal(parameters_of(graph), cases[i].parameters);
        assert_true(has_parameter(graph, "bert.encoder.layer.11.attention.self.key.bias"));
        assert_true(has_parameter(graph, cases[i].head));
        qn_graph_destroy(&graph);
    }
}

/* Whether a tensor with a number for each token that there is belongs to the used nodes. */
static bool holds_logits(const qn_graph *graph, void (*mark)(const qn_graph *, bool *))
{
    bool used[512] = {0}, found = false;
    assert_true(graph->n_nodes <= 512);
    mark(graph, used);
    for (int t = 1; t < graph->n_tensors; t++) {
        const qn_shape *shape = &graph->tensors[t].symbolic.shape;
        found |= used[graph->tensors[t].node] && shape->rank == 3 && shape->dim[2] == 99;
    }
    return found;
}

static void models_of_tokens_hold_logits_for_an_output_alone(void **state)
{
    (void)state;
    const qn_model_data data = {.channels = 1, .height = 1, .width = 16, .tokens = 99};
    static const struct {
        const char *model;
        qn_model_option option;
        bool training, evaluation;
        int outputs;
    } cases[] = {{"gpt", {"fused", "1"}, false, true, 2},
                 {"gpt", {"logits", "0"}, false, false, 1},
                 {"gpt", {"fused", "0"}, true, true, 2},
                 {"bert", {"logits", "1"}, false, true, 2},
                 {"bert", {"logits", "0"}, false, false, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_graph *graph = build_for(&data, cases[i].model, &cases[i].option, 1);
        assert_string_equal(qn_graph_error(graph), "");
        assert_int_equal(holds_logits(graph, qn_graph_mark_training), cases[i].training);
        assert_int_equal(holds_logits(graph, qn_graph_mark_evaluation), cases[i].evaluation);
        assert_int_equal(graph->n_outputs, cases[i].outputs);
        qn_graph_destroy(&graph);
    }
}

static void networks_of_tokens_refuse_what_they_are_not(void **state)
{
    (void)state;
    static const char *const names[] = {"bert", "gpt", "llama"};
    const qn_model_data tokens = {.channels = 1, .height = 1, .width = 8, .tokens = 9};
    const qn_model_data classes = {
        .channels = 1, .height = 1, .width = 8, .tokens = 9, .classes = 2};
    const qn_model_data lengths = {
        .channels = 1, .height = 1, .width = 8, .tokens = 9, .lengths = true};
    const qn_model_option uneven = {"width", "760"};
    for (int i = 0; i < 3; i++) {
        qn_graph *graph = build(names[i], 32, 10, NULL, 0);
        assert_non_null(strstr(qn_graph_error(graph),
                               ": a sample is a row of tokens: data of one channel and height 1"));
        qn_graph_destroy(&graph);
        graph = build_for(&tokens, names[i], &uneven, 1);
        assert_string_equal(qn_graph_error(graph), "model.width: is not a multiple of heads");
        qn_graph_destroy(&graph);
        for (int k = 0; k < 2; k++) {
            graph = build_for(k ? &lengths : &classes, names[i], NULL, 0);
            assert_string_equal(
                i == 0 ? "" : strchr(qn_graph_error(graph), ':'),
                i == 0 ? qn_graph_error(graph)
                       : ": learns the tokens of whole rows, not a class for each row");
            qn_graph_destroy(&graph);
        }
    }
    qn_graph *graph = build_for(&tokens, "mlp", NULL, 0);
    assert_string_equal(qn_graph_error(graph),
                        "model mlp: a sample is an image, not a row of tokens");
    qn_graph_destroy(&graph);
}

/* The numbers are those of the widely used PyTorch network of this design (milesial/Pytorch-UNet),
 * whose convolutions with batch norm behind them have no bias either. */
/* A (rank, in), B (out, rank) of each layer that a pattern names; all else is frozen. */
static void adapters_have_their_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *model, *targets, *whole;
        const char *one; /* layer that has an adapter */
        int adapters, trained;
    } cases[] = {
        {"gpt", "*", "", "transformer.h.1.mlp.c_proj", 8, 16},
        {"gpt", "c_attn", "", "transformer.h.0.attn.c_attn", 2, 4},
        {"gpt", "h.1.*,0.attn.c_proj", "ln_f", "transformer.h.0.attn.c_proj", 5, 12},
        {"llama", "?_proj,gate_*", "", "model.layers.1.self_attn.k_proj", 10, 20},
        {"bert", "query, value", "classifier", "bert.encoder.layer.0.attention.self.value", 4, 10},
        {"mlp", "fc?", "fc", "fc2", 2, 6},
        {"vgg", "classifier.*", "", "classifier.6", 3, 6},
        {"resnet", "fc", "", "fc", 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool text = i < 5, deep = i == 4;
        const qn_model_data data = {.channels = text ? 1 : 3,
                                    .height = text ? 1 : 224,
                                    .width = text ? 8 : 224,
                                    .classes = !text || deep ? 4 : 0,
                                    .tokens = text ? 9 : 0};
        const qn_model_option options[] = {{"lora_rank", "3"},
                                           {"lora_targets", cases[i].targets},
                                           {"lora_whole", cases[i].whole},
                                           {"layers", "2"},
                                           {"heads", "2"},
                                           {"width", "16"},
                                           {"kv_heads", "1"}};
        const int used = i == 3 ? 7 : text ? 6 : 3;
        qn_graph *graph = build_for(&data, cases[i].model, options, used);
        char name[128];
        const char *found;
        int adapters = 0, trained = 0;
        qn_tensor tensor;
        if (qn_graph_status(graph) != QN_OK)
            fail_msg("%s", qn_graph_error(graph));
        for (int p = 0; (found = qn_graph_parameter(graph, p, &tensor)); p++) {
            adapters += qn_matches("*.lora_A.weight", found);
            trained += !qn_frozen(graph, tensor);
            if (qn_matches("*.lora_B.weight", found))
                assert_int_equal(qn_shape_of(graph, tensor).dim[1], 3);
        }
        snprintf(name, sizeof name, "%s.lora_B.weight", cases[i].one);
        assert_true(has_parameter(graph, name));
        assert_int_equal(adapters, cases[i].adapters);
        assert_int_equal(trained, cases[i].trained);
        qn_graph_destroy(&graph);
    }
}

static void adapters_refuse_what_they_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        qn_model_option options[2];
        const char *error;
    } cases[] = {
        {"mlp",
         {{"lora_rank", "4"}, {"lora_targets", "fc1,fx2"}},
         "model.lora_targets: no linear layer is called 'fx2'; did you mean fc2.weight?"},
        {"mlp",
         {{"lora_rank", "4"}, {"lora_whole", "head"}},
         "model.lora_whole: no layer is called 'head'"},
        {"mlp",
         {{"lora_rank", "1.5"}, {"lora_alpha", "1"}},
         "model.lora_rank: '1.5' is not a whole number from 0 to 65536"},
        {"mlp",
         {{"lora_rank", "4"}, {"lora_alfa", "1"}},
         "model.lora_alfa: no such key; did you mean lora_alpha?"},
        {"mlp",
         {{"lora_rank", "0"}, {"lora_alpha", "1"}},
         "model.lora_rank: missing, and adapters have other keys"},
        {"unet",
         {{"lora_rank", "4"}, {"depth", "2"}},
         "model.lora_targets: no linear layer is called '*'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qn_model_data data = {.channels = 3,
                                    .height = 8,
                                    .width = 8,
                                    .classes = 4,
                                    .masks = strcmp(cases[i].model, "unet") == 0};
        qn_graph *graph = build_for(&data, cases[i].model, cases[i].options, 2);
        assert_string_equal(qn_graph_error(graph), cases[i].error);
        qn_graph_destroy(&graph);
    }
}

static void pixel_networks_have_their_parameters(void **state)
{
    (void)state;
    static const qn_model_option thin[] = {{"width", "16"}, {"depth", "3"}},
                                 wide[] = {{"group", "8"}}, batch[] = {{"norm", "batch"}},
                                 odd[] = {{"norm", "layer"}};
    qn_model_data data = {.channels = 3, .height = 75, .width = 50, .classes = 2, .masks = true};
    qn_graph *graph = build_for(&data, "unet", NULL, 0);
    assert_string_equal(qn_graph_error(graph), "");
    assert_int_equal(parameters_of(graph), 31037698);
    assert_true(has_parameter(graph, "down4.conv2.weight"));
    assert_true(has_parameter(graph, "up0.double.bias"));
    assert_true(has_parameter(graph, "up0.gn2.weight"));
    qn_graph_destroy(&graph);
    for (int i = 0; i < 2; i++) {
        graph = build_for(&data, "unet", i ? batch : wide, 1);
        assert_int_equal(parameters_of(graph), 31037698);
        assert_true(has_parameter(graph, "up0.bn2.weight"));
        assert_int_equal(qn_graph_batch_group(graph), i ? 1 : 8);
        qn_graph_destroy(&graph);
    }
    graph = build_for(&data, "unet", odd, 1);
    assert_string_equal(qn_graph_error(graph), "model.norm: 'layer' is not auto, batch, group");
    qn_graph_destroy(&graph);
    data.height = data.width = 3;
    graph = build_for(&data, "unet", thin, 2);
    assert_non_null(strstr(qn_graph_error(graph), "model.depth: images of 3 x 3 cannot be halved"));
    qn_graph_destroy(&graph);
    data.masks = false;
    graph = build_for(&data, "unet", thin, 2);
    assert_non_null(strstr(qn_graph_error(graph), "data.mask is missing"));
    qn_graph_destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual_networks_have_their_parameters),
        cmocka_unit_test(residual_networks_refuse_what_they_are_not),
        cmocka_unit_test(plain_networks_have_their_parameters),
        cmocka_unit_test(plain_networks_refuse_what_they_are_not),
        cmocka_unit_test(decoders_have_their_parameters),
        cmocka_unit_test(models_of_tokens_hold_logits_for_an_output_alone),
        cmocka_unit_test(networks_of_tokens_refuse_what_they_are_not),
        cmocka_unit_test(encoders_have_their_parameters),
        cmocka_unit_test(grouped_decoders_have_their_parameters),
        cmocka_unit_test(adapters_have_their_parameters),
        cmocka_unit_test(adapters_refuse_what_they_are_not),
        cmocka_unit_test(pixel_networks_have_their_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
