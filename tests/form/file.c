/* SPDX-License-Identifier: MIT
 *
 * Graph files: what is written is what is read, for every model that ships and every operator; and
 * what is refused, with the line of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "form/forms.h"
#include "graph/graph.h"
#include <quern/graph_file.h>
#include <quern/model.h>
#include <quern/plan.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qn_graph *new_graph(qn_dtype storage)
{
    const qn_graph_params params = {.storage = storage, .parameter_storage = storage};
    qn_graph *graph = NULL;
    assert_int_equal(qn_graph_create(&graph, &params), QN_OK);
    return graph;
}

static qn_graph *read_text(const char *text, qn_dtype storage)
{
    qn_graph *graph = new_graph(storage);
    if (qn_graph_read(graph, text, "test") != QN_OK)
        print_error("%s\n", qn_graph_error(graph));
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static char *write_text(const qn_graph *graph)
{
    char *text = qn_graph_write(graph, NULL);
    if (!text)
        print_error("%s\n", qn_last_error());
    assert_non_null(text);
    return text;
}

/* Line by line: cmocka cuts long texts. */
static void assert_same_text(const char *is, const char *wanted)
{
    for (int line = 1; strcmp(is, wanted) != 0; line++) {
        const size_t length = strcspn(is, "\n"), other = strcspn(wanted, "\n");
        if (length != other || strncmp(is, wanted, length) != 0)
            fail_msg("line %d: '%.*s', not '%.*s'", line, (int)length, is, (int)other, wanted);
        is += length + 1;
        wanted += other + 1;
    }
}

/* --- the same graph --- */

static void assert_same_node(const struct qn_node *a, const struct qn_node *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_ptr_equal(a->op, b->op);
    assert_memory_equal(a->in, b->in, sizeof a->in);
    if (a->op && a->op->attr_size)
        assert_memory_equal(a->attr, b->attr, (size_t)a->op->attr_size);
    assert_int_equal(a->recompute, b->recompute);
    assert_memory_equal(&a->leaf, &b->leaf, sizeof a->leaf);
    assert_int_equal(a->init.kind, b->init.kind);
    assert_true(a->init.a == b->init.a && a->init.b == b->init.b);
    assert_int_equal(a->frozen, b->frozen);
    assert_true(a->rate == b->rate && a->decay == b->decay);
    assert_int_equal(a->cell, b->cell);
    if (a->kind == QN_NODE_CONSTANT)
        assert_memory_equal(a->values, b->values, (size_t)qn_operand_bytes(&a->leaf));
}

static void assert_same(const qn_graph *a, const qn_graph *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (int n = 0; n < a->n_nodes; n++)
        assert_same_node(&a->nodes[n], &b->nodes[n]);
    assert_int_equal(a->n_losses, b->n_losses);
    for (int i = 0; i < a->n_losses; i++) {
        assert_int_equal(a->losses[i].node, b->losses[i].node);
        assert_int_equal(a->losses[i].rows, b->losses[i].rows);
        assert_int_equal(a->losses[i].reduction, b->losses[i].reduction);
        assert_true(a->losses[i].coefficient == b->losses[i].coefficient);
    }
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (int i = 0; i < a->n_outputs; i++) {
        assert_string_equal(a->outputs[i].name, b->outputs[i].name);
        assert_int_equal(a->outputs[i].tensor, b->outputs[i].tensor);
    }
}

static uint64_t plan_hash(const qn_graph *graph)
{
    const qn_plan_params params = {
        .budget = INT64_C(8) << 30, .batch = {32}, .effort = QN_EFFORT_INSTANT};
    qn_facts facts;
    qn_plan *plan = NULL;
    qn_facts_default(&facts, true);
    assert_int_equal(qn_plan_create(&plan, graph, &facts, &params, NULL), QN_OK);
    const uint64_t hash = qn_plan_facts(plan)->hash;
    qn_plan_destroy(&plan);
    return hash;
}

/* Takes the graph. */
static void check_round(qn_graph *graph, bool plan)
{
    char *text = write_text(graph);
    qn_graph *again = read_text(text, graph->storage);
    char *second = write_text(again);
    assert_same_text(second, text);
    assert_same(graph, again);
    if (plan)
        assert_true(plan_hash(graph) == plan_hash(again));
    free(text);
    free(second);
    qn_graph_destroy(&again);
    qn_graph_destroy(&graph);
}

/* --- models that ship --- */

#define IMAGES(side)                                                                               \
    {                                                                                              \
        .channels = 3, .height = (side), .width = (side), .classes = 10                            \
    }
#define MASKS                                                                                      \
    {                                                                                              \
        .channels = 3, .height = 33, .width = 35, .classes = 4, .masks = true                      \
    }
#define TEXT                                                                                       \
    {                                                                                              \
        .channels = 1, .height = 1, .width = 16, .tokens = 61                                      \
    }
#define SEQUENCES                                                                                  \
    {                                                                                              \
        .channels = 1, .height = 1, .width = 16, .tokens = 61, .classes = 2, .lengths = true       \
    }
#define CACHE                                                                                      \
    {                                                                                              \
        .channels = 1, .height = 1, .width = 16, .tokens = 61, .cache = 16                         \
    }
#define PREDICT                                                                                    \
    {                                                                                              \
        .channels = 1, .height = 1, .width = 16, .tokens = 61, .predict = true                     \
    }
#define SMALL                                                                                      \
    {"layers", "2"}, {"heads", "2"},                                                               \
    {                                                                                              \
        "width", "16"                                                                              \
    }
enum { OPTIONS = 8 };

static const struct shipped {
    const char *model;
    qn_model_option options[OPTIONS];
    qn_model_data data;
    bool plan;
    qn_dtype storage;
} shipped[] = {
    {"mlp", {{0}}, IMAGES(8), true, QN_F32},
    {"mlp", {{"dropout", "0.3"}, {"label_smoothing", "0.1"}}, IMAGES(8), true, QN_F16},
    {"mlp", {{"lora_rank", "4"}, {"lora_dropout", "0.1"}}, IMAGES(8), true, QN_F32},
    {"cnn", {{"dropout", "0.5"}, {"group", "8"}}, IMAGES(16), true, QN_BF16},
    {"vgg", {{"pool", "1"}, {"depth", "11"}}, IMAGES(32), true, QN_F32},
    {"vgg", {{"pool", "1"}, {"depth", "13"}, {"batch_norm", "1"}}, IMAGES(32), false, QN_F32},
    {"resnet", {{"stem", "3"}}, IMAGES(32), true, QN_F32},
    {"resnet", {{"depth", "50"}}, IMAGES(64), false, QN_F32},
    {"unet", {{"depth", "3"}, {"width", "8"}}, MASKS, true, QN_F32},
    {"unet", {{"depth", "3"}, {"width", "8"}, {"norm", "batch"}}, MASKS, false, QN_F32},
    {"gpt", {SMALL}, TEXT, true, QN_F32},
    {"gpt", {SMALL, {"tied", "0"}, {"fused", "0"}}, TEXT, true, QN_F32},
    {"gpt",
     {SMALL, {"logits", "0"}, {"lora_rank", "2"}, {"lora_targets", "c_attn"}},
     TEXT,
     true,
     QN_BF16},
    {"gpt", {SMALL}, CACHE, false, QN_F16},
    {"gpt", {SMALL}, PREDICT, false, QN_F32},
    {"bert", {SMALL}, TEXT, true, QN_F32},
    {"bert", {SMALL, {"types", "1"}}, SEQUENCES, true, QN_F32},
    {"bert", {SMALL, {"pooling", "mean"}}, PREDICT, false, QN_F32},
    {"llama", {SMALL, {"kv_heads", "1"}, {"inner", "24"}}, TEXT, true, QN_F32},
    {"llama", {SMALL, {"kv_heads", "2"}, {"base", "500000"}, {"factor", "8"}}, TEXT, true, QN_F32},
    {"llama",
     {SMALL, {"kv_heads", "2"}, {"factor", "8"}, {"original_positions", "64"}, {"tied", "1"}},
     TEXT,
     true,
     QN_F32},
    {"llama", {SMALL, {"kv_heads", "2"}}, CACHE, false, QN_F32},
};

static qn_graph *build(const struct shipped *s)
{
    int count = 0;
    while (count < OPTIONS && s->options[count].key)
        count++;
    qn_graph *graph = new_graph(s->storage);
    if (qn_model_build(graph, s->model, &s->data, s->options, count) != QN_OK)
        print_error("%s: %s\n", s->model, qn_graph_error(graph));
    assert_int_equal(qn_graph_status(graph), QN_OK);
    return graph;
}

static void models_are_read_as_they_were_built(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++)
        check_round(build(&shipped[i]), shipped[i].plan);
}

static void marks_of_nodes_are_kept(void **state)
{
    (void)state;
    qn_graph *graph = build(&shipped[3]);
    qn_tensor parameter;
    qn_graph_parameter(graph, 0, &parameter);
    qn_freeze(graph, parameter);
    qn_scale_rate(graph, "fc.*", 0.1);
    qn_scale_decay(graph, "bn*", 0.3);
    qn_no_decay(graph, parameter, true);
    qn_recompute(graph, (qn_tensor){graph->nodes[qn_graph_named(graph, "conv2")].out});
    check_round(graph, false);
}

/* --- every operator with every attribute --- */

static const char everything[] =
    "input images u8 Bx3x8x10\n"
    "input ids i32 Bx4\n"
    "input lengths i32 B\n"
    "input labels i32 B\n"
    "input weights f32 B\n"
    "input tokens f32 2Bx12\n"
    "cell cache f32 16x24\n"
    "parameter scalar scalar init=zeros\n"
    "parameter odd 5 init=constant(0.1) frozen=yes rate=0.5 decay=0.25\n"
    "parameter w 7x12 init=uniform(-0.125,0.5)\n"
    "parameter v 7x12 init=normal(0.1,0.02)\n"
    "constant shift_11 0 0.1 5*-30000 2 2 3*1e-30\n"
    "x = normalize(images) mean=0.1,0.2,0.3 deviation=0.5\n"
    "parameter c.weight 4x3x3x2 init=he\n"
    "parameter c.bias 4 init=fan_in(18)\n"
    "c = conv2d(x, c.weight, c.bias) stride=2,1 padding=1 dilation=1,2\n"
    "parameter d.weight 4x1x1x1 init=ones\n"
    "d = conv2d(c, d.weight) groups=4 recompute=yes\n"
    "parameter e.weight 4x8x1x1 init=he(4)\n"
    "e = conv2d_concat(c, d, e.weight)\n"
    "parameter u.weight 4x2x2x2 init=fan_in\n"
    "u = conv_transpose2d(e, u.weight) stride=2 output_padding=1,0 groups=2\n"
    "p = max_pool2d(u) size=2 stride=2,1 padding=1,0\n"
    "q = avg_pool2d(u) size=2,3 stride=2 padding=1 exclude_padding=yes\n"
    "up = upsample2d(q) factor=2,3\n"
    "up2 = upsample2d(q) size=5,7 mode=bilinear align_corners=yes\n"
    "g = global_avg_pool2d(up)\n"
    "parameter n 4 init=ones\n"
    "n1 = batch_norm(u, n) group=4 eps=0.001 momentum=0.5 relu=yes\n"
    "n2 = batch_norm(n1, -)\n"
    "n3 = group_norm(n2, n, n) groups=2 eps=0.25\n"
    "n4 = layer_norm(n3, -) dims=2 eps=0.5\n"
    "n5 = rms_norm(n4, -) eps=0.125\n"
    "r1 = relu(n5)\n"
    "r2 = leaky_relu(r1) slope=0.1\n"
    "r3 = sigmoid(r2)\n"
    "r4 = tanh(r3)\n"
    "r5 = gelu(r4) form=tanh\n"
    "r6 = silu(r5)\n"
    "r7 = hardswish(r6)\n"
    "r8 = scale(r7) factor=-1.5\n"
    "r9 = add(r8, r1)\n"
    "r10 = multiply(r9, r9)\n"
    "r11 = gated(r10, r9) form=gelu_tanh\n"
    "parameter b 4 init=zeros\n"
    "r12 = bias(r11, b)\n"
    "r13 = dropout(r12) rate=0.25\n"
    "f = reshape(r13) shape=Bx720\n"
    "t = transpose(r13) axes=0,2,3,1\n"
    "k = chain(t, t, -, -, -, b) steps=add:0:1,add:8:5,leaky_relu:9:0:0.1,scale:10:0:3\n"
    "cc = concat(k, t, k) axis=3\n"
    "s = slice(cc) axis=3 start=2 length=5\n"
    "so = softmax(s)\n"
    "m1 = sum(so) first=1\n"
    "m2 = mean(so) first=2\n"
    "l = linear(tokens, w)\n"
    "la = linear_activation(tokens, w) activation=leaky_relu slope=0.1\n"
    "lr = linear_residual(tokens, w, -, l)\n"
    "bm = batch_matmul(so, s) transpose_b=yes\n"
    "parameter table 9x24 init=normal(0,1)\n"
    "em = embedding(ids, table)\n"
    "ro = rotary(em, ids) heads=3 still=1 base=500\n"
    "parameter wide 48x24 init=he\n"
    "qkv = linear(ro, wide)\n"
    "at = attention(qkv, -, -, lengths) heads=2 kv_heads=2 causal=yes scale=0.5 dropout=0.1\n"
    "mm = masked_mean(ro, lengths)\n"
    "ce = softmax_cross_entropy(g, labels) label_smoothing=0.1 ignore_label=-100 "
    "class_weights=3*1,0.5\n"
    "parameter o 5x24 init=he\n"
    "lce = linear_cross_entropy(mm, o, odd, labels) class_weights=1,2,3,4,5\n"
    "se = squared_error(ce, lce)\n"
    "ae = absolute_error(ce, lce)\n"
    "bce = binary_cross_entropy(ce, lce)\n"
    "total = loss(se, weights) reduction=sum coefficient=0.1\n"
    "more = loss(ce)\n"
    "output g\n"
    "output loss = ce\n";

static void every_kind_is_written_as_it_was_read(void **state)
{
    (void)state;
    char name[64];
    qn_graph *graph = read_text(everything, QN_F32);
    char *text = write_text(graph);
    assert_same_text(text, everything);
    free(text);
    for (const struct qn_form *form = qn_forms; form->name; form++) {
        snprintf(name, sizeof name, " = %s(", form->name);
        if (form->op && strcmp(form->name, "cached_attention") != 0 && !strstr(everything, name))
            fail_msg("%s: is in no line", form->name);
    }
    check_round(graph, false);
}

/* --- by hand --- */

static void lines_make_their_parameters(void **state)
{
    (void)state;
    static const char brief[] = "# a network\n"
                                "input images u8 Bx1x28x28 # grey\r\n"
                                "\n"
                                "input labels i32 B\n"
                                "\tx = normalize( images )\n"
                                "c1 = conv2d(x) channels=6 kernel=5,3 padding=2,1 bias=no init=he\n"
                                "bn=batch_norm(c1) relu=yes\n"
                                "c2 = conv2d(bn) channels=4 kernel=3 groups=2\n"
                                "t = conv_transpose2d(c2) channels=2 kernel=2 stride=2\n"
                                "f = flatten(t)\n"
                                "n = layer_norm(f)\n"
                                "fc = linear(n) features=10\n"
                                "nll = softmax_cross_entropy(fc, labels)\n"
                                "objective = loss(nll)\n"
                                "output logits = fc\n";
    static const struct {
        const char *name;
        int rank;
        int64_t dim[4];
        double bound; /* of a uniform distribution; 0: another */
    } parameters[] = {
        {"c1.weight", 4, {6, 1, 5, 3}, 0},
        {"bn.weight", 1, {6}, 0},
        {"bn.bias", 1, {6}, 0},
        {"c2.weight", 4, {4, 3, 3, 3}, 27},
        {"c2.bias", 1, {4}, 27},
        {"t.weight", 4, {4, 2, 2, 2}, 8},
        {"t.bias", 1, {2}, 8},
        {"n.weight", 1, {2 * 52 * 52}, 0},
        {"n.bias", 1, {2 * 52 * 52}, 0},
        {"fc.weight", 2, {10, 2 * 52 * 52}, 2 * 52 * 52},
        {"fc.bias", 1, {10}, 2 * 52 * 52},
    };
    qn_graph *graph = read_text(brief, QN_F32);
    qn_tensor tensor;
    const char *name;
    int i = 0;
    for (; (name = qn_graph_parameter(graph, i, &tensor)); i++) {
        const qn_shape shape = qn_shape_of(graph, tensor);
        const qn_init *init = &graph->nodes[graph->tensors[tensor.id].node].init;
        assert_true(i < (int)(sizeof parameters / sizeof *parameters));
        assert_string_equal(name, parameters[i].name);
        assert_int_equal(shape.rank, parameters[i].rank);
        assert_memory_equal(shape.dim, parameters[i].dim, (size_t)shape.rank * sizeof *shape.dim);
        if (parameters[i].bound > 0)
            assert_true(init->kind == QN_INIT_UNIFORM && init->b == 1 / sqrt(parameters[i].bound));
    }
    assert_int_equal(i, sizeof parameters / sizeof *parameters);
    const qn_init he = qn_init_he(15);
    assert_true(graph->nodes[qn_graph_named(graph, "c1.weight")].init.b == he.b);
    check_round(graph, true);
}

/* But all parameters, which a file of weights has: those of a second head, too. */
static void predictions_need_no_labels(void **state)
{
    (void)state;
    qn_graph *graph = read_text("input x f32 Bx4\ninput labels i32 B\n"
                                "fc = linear(x) features=3\nother = linear(x) features=2\n"
                                "more = loss(other)\nloss = softmax_cross_entropy(fc, labels)\n"
                                "objective = loss(loss)\noutput logits = fc\noutput loss\n",
                                QN_F32);
    char *text = qn_graph_write(graph, &(qn_graph_write_params){.output = "logits"});
    assert_non_null(text);
    assert_null(strstr(text, "labels"));
    assert_null(strstr(text, "loss"));
    qn_graph *rest = read_text(text, QN_F32);
    int parameters = 0, all = 0;
    while (qn_graph_parameter(rest, parameters, NULL))
        parameters++;
    while (qn_graph_parameter(graph, all, NULL))
        all++;
    assert_int_equal(parameters, all);
    assert_null(qn_graph_write(graph, &(qn_graph_write_params){.output = "logit"}));
    assert_non_null(strstr(qn_last_error(), "logit: no output has this name"));
    free(text);
    qn_graph_destroy(&rest);
    qn_graph_destroy(&graph);
}

static void a_summary_is_a_graph_file(void **state)
{
    (void)state;
    qn_graph *graph = build(&shipped[0]);
    char *text = qn_graph_write(graph, &(qn_graph_write_params){.summary = true});
    assert_non_null(text);
    assert_non_null(strstr(text, "# 83594 parameters, of which 0 are frozen\n"));
    qn_graph *again = read_text(text, QN_F32);
    assert_same(graph, again);
    free(text);
    qn_graph_destroy(&again);
    qn_graph_destroy(&graph);
}

/* 2 * 192 * 256 operations of the first layer, and one for each number that ReLU passes. */
static void nodes_tell_what_they_cost(void **state)
{
    (void)state;
    qn_graph *graph = build(&shipped[0]);
    int count;
    qn_node_info *nodes = qn_graph_nodes(graph, &count);
    assert_non_null(nodes);
    assert_int_equal(count, graph->n_nodes);
    const qn_node_info *fc1 = &nodes[qn_graph_named(graph, "fc1")];
    assert_string_equal(fc1->kind, "linear_activation");
    assert_true(fc1->flops >= 2 * 192 * 256 && fc1->flops < 2.1 * 192 * 256);
    assert_int_equal(fc1->bytes, 256 * 4);
    assert_int_equal(nodes[qn_graph_named(graph, "fc1.weight")].parameters, 192 * 256);
    qn_free(nodes);
    qn_graph_destroy(&graph);
}

/* --- what is refused --- */

#define INPUT "input x f32 Bx4\n"
#define IMAGE "input i f32 Bx2x6x6\n"

static const struct {
    const char *text, *error;
} refused[] = {
    {"", "test:0: has no line that makes a node"},
    {"# nothing\n\n", "test:2: has no line that makes a node"},
    {INPUT "a = relu(b)\nb = relu(a)\n",
     "test:2: a: 'b' is not made yet, but in line 3: a line takes what lines above it make"},
    {INPUT "a = relu(a)\n", "test:2: a: takes itself: a line takes what lines above it make"},
    {INPUT "a = relu(w)\nparameter w 4\n", "test:2: a: 'w' is not made yet, but in line 3: "},
    {INPUT "first = relu(x)\nb = relu(frist)\n",
     "test:3: b: no line above makes 'frist'; did you mean first?"},
    {INPUT "a = rleu(x)\n", "test:2: a: 'rleu' is no operator; did you mean relu?"},
    {INPUT "a = relu x\n", "test:2: a: is no NAME = OPERATOR(OPERANDS) ATTRIBUTE=VALUE ..."},
    {INPUT "a = relu(x\n", "test:2: a: is no NAME = OPERATOR("},
    {INPUT "a = relu(x)form=exact\n", "test:2: a: a blank is missing behind )"},
    {INPUT "a = relu(x, x)\n", "test:2: a: relu takes x"},
    {INPUT "a = add(x)\n", "test:2: a: add takes a, b"},
    {INPUT "a = add(x,,x)\n", "test:2: a: an operand is missing; - stands for none"},
    {INPUT "a = add(-, x)\n", "test:2: a: add needs a, b"},
    {INPUT "x = relu(x)\n", "test:2: x: the name is already taken"},
    {INPUT "input x f32 B\n", "test:2: x: the name is already taken"},
    {INPUT "a = gelu(x) fomr=tanh\n",
     "test:2: a: 'fomr' is no attribute of gelu; did you mean form?"},
    {INPUT "a = gelu(x) y=1\n", "test:2: a: 'y' is no attribute of gelu; it has form, recompute"},
    {INPUT "a = gelu(x) form\n", "test:2: a: 'form' is no attribute: NAME=VALUE, without blanks"},
    {INPUT "a = gelu(x) form=fast\n", "test:2: a: form: 'fast' is not exact or tanh"},
    {INPUT "a = gelu(x) form=tanh form=tanh\n", "test:2: a: form: is given twice"},
    {INPUT "a = dropout(x) rate=2\n", "test:2: a: rate: '2' is not a number from 0 to 1"},
    {INPUT "a = dropout(x) rate=nan\n", "test:2: a: rate: 'nan' is not a number from 0 to 1"},
    {INPUT "a = sum(x) first=1.5\n", "test:2: a: first: '1.5' is not a whole number from 1 to 5"},
    {INPUT "a = linear(x)\n", "test:2: a: features: is missing, and so is the weight"},
    {INPUT "parameter w 3x4 init=he\na = linear(x, w) features=3\n",
     "test:3: a: features: is of lines that make the weight themselves"},
    {INPUT "parameter w 3x5 init=he\na = linear(x, w)\n", "test:3: a: "},
    {INPUT "parameter a.weight 3x4 init=he\na = linear(x) features=3\n",
     "test:3: a.weight: the name is already taken"},
    {IMAGE "a = conv2d(i) channels=4 kernel=9\n", "test:2: a: "},
    {IMAGE "a = conv2d(i) channels=4 kernel=0\n",
     "test:2: a: kernel: '0' is not a whole number from 1 to 2147483647, or two: height,width"},
    {IMAGE "a = conv2d(i) channels=4 kernel=3,\n", "test:2: a: kernel: '3,' is not"},
    {IMAGE "a = normalize(i) mean=1,2,3\n", "test:2: a: mean: 3 numbers, but 2 channels"},
    {IMAGE "a = reshape(i) shape=Bx\n", "test:2: a: shape: 'Bx' is not a shape"},
    {IMAGE "a = reshape(i) shape=Bx5\n", "test:2: a: "},
    {IMAGE "a = transpose(i) axes=0,1,2,3,\n", "test:2: a: axes: '0,1,2,3,' is not"},
    {INPUT "input l i32 B\na = softmax_cross_entropy(x, l) class_weights=1,2\n",
     "test:3: a: class_weights: 2 numbers, but 4 classes"},
    {INPUT "a = chain(x) steps=nothing:0\n", "test:2: a: steps: 'nothing:0' is not steps"},
    {"parameter w 3x4\n", "test:1: w: init: is missing: "},
    {"parameter w 3x4 init=hey\n", "test:1: w: init: 'hey' is not zeros, ones, he, "},
    {"parameter w 3x4 init=normal(1)\n", "test:1: w: init: 'normal(1)' is not zeros"},
    {"parameter w 3y4 init=he\n", "test:1: w: '3y4' is no shape: "},
    {"parameter w Bx4 init=he\n", "test:1: w: sizes of a parameter are positive"},
    {"parameter w 1x1x1x1x1x1x1 init=he\n", "test:1: w: '1x1x1x1x1x1x1' is no shape: "},
    {"parameter w 4000000000x4000000000 init=he\n", "test:1: w: is too large to count"},
    {"parameter w 99999999999999999999x4 init=he\n", "test:1: w: '99999999999999999999x4' is no"},
    {"parameter w 4 decay=-1\n", "test:1: w: decay: '-1' is not a number from 0 to 1000000"},
    {"parameter\n", "test:1: parameter: a name is missing"},
    {"input x f64 B\n", "test:1: x: 'f64' is no type: f32, f16, bf16, u8 or i32"},
    {"input x f32 4\n", "test:1: x: dimension 0 of an input is a multiple of QN_BATCH"},
    {"input x f32 B more\n", "test:1: x: 'more' is more than the line has room for"},
    {"inptu x f32 B\n", "test:1: 'inptu' begins no line: NAME = OPERATOR(...), input, parameter, "
                        "constant, cell or output; did you mean input?"},
    {"constant c 1 two\n", "test:1: c: 'two' is no number, nor N*NUMBER for N of them"},
    {"constant c\n", "test:1: c: a constant has at least one number"},
    {"constant c 1e300\n", "test:1: c: '1e300' is no number"},
    {"constant c 99999999*1\n", "test:1: c: constants have more than 16777216 numbers"},
    {"input x u8 Bx9999999x1x1\na = normalize(x)\n",
     "test:2: a: constants have more than 16777216 numbers"},
    {"input x f32 Bx1x99999998\na = rotary(x)\n",
     "test:2: a: constants have more than 16777216 numbers"},
    {INPUT "output y\n", "test:2: output: no line above makes 'y'"},
    {INPUT "output x\n", "test:2: qn_output: x is computed by no operator"},
    {INPUT "a = relu(x)\noutput y = a b\n", "test:3: y: 'b' is more than the line has room for"},
    {INPUT "a = loss(x) reduction=max\n", "test:2: a: reduction: 'max' is not mean or sum"},
    {"input x\001 f32 B\n", "test:1: has a byte that is no text: 1"},
    {"a\xc2\x85 = relu(x)\n", "test:1: 'a\xc2\x85' is no name: it has one of"},
    {"= relu(x)\n", "test:1: a name is missing"},
    {"a(b = relu(x)\n", "test:1: 'a(b' is no name: it has one of ( ) , = \""},
};

static void what_does_not_fit_is_named_with_its_line(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        qn_graph *graph = new_graph(QN_F32);
        const qn_status status = qn_graph_read(graph, refused[i].text, "test");
        if (status != QN_ERR_FORMAT ||
            strncmp(qn_graph_error(graph), refused[i].error, strlen(refused[i].error)) != 0) {
            print_error("%s%s\n  not %s\n", refused[i].text, qn_graph_error(graph),
                        refused[i].error);
            wrong++;
        }
        qn_graph_destroy(&graph);
    }
    assert_int_equal(wrong, 0);
}

static void what_has_no_written_form_is_named(void **state)
{
    (void)state;
    qn_graph *graph = new_graph(QN_F32);
    qn_tensor x = qn_input(graph, "x", QN_F32, 2, (int64_t[]){QN_BATCH, 4});
    qn_name(graph, qn_relu(graph, x), "two words");
    assert_null(qn_graph_write(graph, NULL));
    assert_string_equal(qn_last_error(),
                        "two words: cannot be written: its name is none of a graph file");
    qn_graph_destroy(&graph);
}

/* `count` lines of a chain, and their time is that of reading, not of its square. */
static char *long_text(int count)
{
    char *text = malloc((size_t)count * 32 + 64), *to = text;
    assert_non_null(text);
    to += sprintf(to, "input r0 f32 Bx4\n");
    for (int i = 1; i < count; i++)
        to += sprintf(to, "r%d = relu(r%d)\n", i, i - 1);
    return text;
}

static void texts_are_bounded(void **state)
{
    (void)state;
    qn_graph *graph;
    char *text = long_text(QN_GRAPH_FILE_NODES);
    graph = read_text(text, QN_F32);
    char *again = write_text(graph);
    assert_same_text(again, text);
    qn_graph_destroy(&graph);
    free(text);
    free(again);
    text = long_text(600000);
    graph = new_graph(QN_F32);
    assert_int_equal(qn_graph_read(graph, text, "test"), QN_ERR_FORMAT);
    assert_string_equal(qn_graph_error(graph), "test:100001: more than 100000 nodes");
    qn_graph_destroy(&graph);
    memset(text, ' ', QN_GRAPH_FILE_LINE);
    graph = new_graph(QN_F32);
    assert_int_equal(qn_graph_read(graph, text, "test"), QN_ERR_FORMAT);
    assert_string_equal(qn_graph_error(graph), "test:1: the line is longer than 65535 bytes");
    qn_graph_destroy(&graph);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_read_as_they_were_built),
        cmocka_unit_test(marks_of_nodes_are_kept),
        cmocka_unit_test(every_kind_is_written_as_it_was_read),
        cmocka_unit_test(lines_make_their_parameters),
        cmocka_unit_test(predictions_need_no_labels),
        cmocka_unit_test(a_summary_is_a_graph_file),
        cmocka_unit_test(nodes_tell_what_they_cost),
        cmocka_unit_test(what_does_not_fit_is_named_with_its_line),
        cmocka_unit_test(what_has_no_written_form_is_named),
        cmocka_unit_test(texts_are_bounded),
    };
    return cmocka_run_group_tests_name("graph files", tests, NULL, NULL);
}
