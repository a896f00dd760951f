/* SPDX-License-Identifier: MIT */
#include "lora.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128 };

static const struct qn_model_key keys[] = {
    {"lora_rank", offsetof(struct qn_lora, rank), 0, 65536, true},
    {"lora_alpha", offsetof(struct qn_lora, alpha), 1e-6, 1e6, false},
    {"lora_dropout", offsetof(struct qn_lora, dropout), 0, 0.99, false},
    {"lora_targets", offsetof(struct qn_lora, targets), .text = true},
    {"lora_whole", offsetof(struct qn_lora, whole), .text = true},
    {0},
};

const char qn_lora_help[] =
    "lora_rank        of low-rank adapters: these alone are trained; 0: there are none (0)\n"
    "lora_alpha       factor of what they add, times 1 / lora_rank (8)\n"
    "lora_dropout     in [0, 1): of what they read (0)\n"
    "lora_targets     PATTERN, PATTERN: linear layers that have one, by their names, whole or "
    "from\n"
    "                 a dot on (*)\n"
    "lora_whole       the same: layers that are trained as a whole besides (none)\n";

const qn_layout *qn_model_adapter_layout(void)
{
    static const qn_layout peft = {.name = "peft", .added = "base_model.model."};
    return &peft;
}

const char *qn_lora_read(struct qn_lora *lora, const qn_model_option *options, int n_options,
                         char error[200])
{
    *lora = (struct qn_lora){.alpha = 8, .targets = "*", .whole = ""};
    const char *wrong = qn_model_read_shared(keys, options, n_options, lora, error);
    for (int i = 0; !wrong && lora->rank == 0 && i < n_options; i++)
        if (qn_model_is_shared(options[i].key) && strcmp(options[i].key, "lora_rank") != 0)
            return "model.lora_rank: missing, and adapters have other keys";
    return wrong;
}

/* Whether a pattern matches the name or what of it stands behind one of its dots. */
static bool names_layer(const char *patterns, const char *layer)
{
    for (const char *at = layer; at; at = strchr(at, '.'), at = at ? at + 1 : NULL)
        if (qn_matches(patterns, at))
            return true;
    return false;
}

bool qn_lora_has(const struct qn_lora *lora, const char *layer)
{
    return lora->rank > 0 && names_layer(lora->targets, layer);
}

/* Cuts "NAME.weight" or the end of another parameter of a layer off; false: it has no layer. */
static bool cut_layer(const char *parameter, const char *end, char layer[NAME_BYTES])
{
    const size_t length = strlen(parameter), cut = strlen(end);
    if (length <= cut || length >= NAME_BYTES || strcmp(parameter + length - cut, end) != 0)
        return false;
    snprintf(layer, NAME_BYTES, "%.*s", (int)(length - cut), parameter);
    return true;
}

/* What patterns of a key are of: layers that have a parameter with this end. */
struct kind {
    const char *key, *end, *called;
    int rank; /* of the parameters that messages offer, at least */
};
static const struct kind targets = {"lora_targets", ".lora_A.weight", "linear layer", 2};
static const struct kind whole = {"lora_whole", ".weight", "layer", 1};

/* The layers whose parameters are nearest to those that the pattern would name. */
static const char *refuse(const qn_graph *graph, const struct kind *kind, const char *pattern,
                          char error[200])
{
    qn_tensor tensor;
    char written[NAME_BYTES + 16], hint[QN_NEAREST_BYTES];
    const char *name;
    snprintf(written, sizeof written, "*.%s.weight", pattern);
    qn_nearest nearest = {.text = written};
    for (int i = 0; (name = qn_graph_parameter(graph, i, &tensor)); i++) {
        const int rank = qn_shape_of(graph, tensor).rank;
        if (rank >= kind->rank && rank <= 2 && !qn_matches(QN_ADAPTERS, name))
            qn_nearest_offer(&nearest, name);
    }
    snprintf(error, 200, "model.%s: no %s is called '%.60s'%s", kind->key, kind->called, pattern,
             qn_nearest_hint(&nearest, hint));
    return error;
}

/* Each pattern names a layer of the kind. */
static const char *check(const qn_graph *graph, const struct kind *kind, const char *patterns,
                         char error[200])
{
    char pattern[NAME_BYTES], layer[NAME_BYTES];
    for (size_t length; *patterns; patterns += length + (patterns[length] == ',')) {
        const char *name;
        bool found = false;
        length = strcspn(patterns, ",");
        const int blanks = (int)strspn(patterns, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length - blanks, patterns + blanks);
        for (int i = 0; !found && (name = qn_graph_parameter(graph, i, NULL)); i++)
            found = cut_layer(name, kind->end, layer) && names_layer(pattern, layer);
        if (!found)
            return refuse(graph, kind, pattern, error);
    }
    return NULL;
}

static bool is_trained(const struct qn_lora *lora, const char *parameter)
{
    char layer[NAME_BYTES];
    const char *end = strrchr(parameter, '.');
    return qn_matches(QN_ADAPTERS, parameter) ||
           (end && cut_layer(parameter, end, layer) && names_layer(lora->whole, layer));
}

const char *qn_lora_finish(const struct qn_lora *lora, qn_graph *graph, char error[200])
{
    qn_tensor tensor;
    const char *name;
    if (lora->rank == 0 || qn_graph_status(graph) != QN_OK)
        return NULL;
    for (int i = 0; (name = qn_graph_parameter(graph, i, &tensor)); i++)
        if (!is_trained(lora, name))
            qn_freeze(graph, tensor);
    const char *wrong = check(graph, &targets, lora->targets, error);
    return wrong ? wrong : check(graph, &whole, lora->whole, error);
}
