/* SPDX-License-Identifier: MIT */
#include "models.h"
#include "layers.h"

#include <stdio.h>
#include <string.h>

static const struct qn_model *const models[] = {
#define ENTRY(name) &qn_model_##name,
    QN_MODEL_LIST(ENTRY)
#undef ENTRY
};
enum { N_MODELS = sizeof models / sizeof *models };

const char *qn_model_name(int index)
{
    return index >= 0 && index < N_MODELS ? models[index]->name : NULL;
}

static const struct qn_model *find(const char *name)
{
    for (int i = 0; name && i < N_MODELS; i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

const char *qn_model_help(const char *name)
{
    const struct qn_model *model = find(name);
    if (!name)
        return qn_lora_help;
    return model ? model->help : NULL;
}

const char *qn_model_head(const char *name)
{
    const struct qn_model *model = find(name);
    return model ? model->head : NULL;
}

const qn_layout *qn_model_layout(const char *name)
{
    const struct qn_model *model = find(name);
    return model ? model->layout : NULL;
}

static bool usable(const qn_model_data *data)
{
    return data->channels >= 1 && data->channels <= QN_MODEL_MAX_CHANNELS && data->height >= 1 &&
           data->width >= 1 && data->tokens >= 0 && data->features >= 0 && data->targets >= 0 &&
           data->classes >= (data->tokens == 0 && data->targets == 0 && data->embedding == 0) &&
           data->embedding >= 0;
}

/* NULL, or why the model cannot learn from such data. */
static const char *refuse_data(const struct qn_model *model, const qn_model_data *data)
{
    if (model->any)
        return NULL;
    if (data->embedding && (model->masks || (model->tokens && !model->sequences)))
        return "gives no vector for each sample";
    if (data->embedding && (data->mixed || data->predict))
        return "a tower learns from pairs";
    if (data->features && !model->features)
        return "takes no rows of numbers; mlp does";
    if (data->targets && (!data->features || data->classes))
        return "targets go with rows of numbers, and without classes";
    if (model->tokens && (!data->tokens || data->channels != 1 || data->height != 1))
        return "a sample is a row of tokens: data of one channel and height 1";
    if (!model->tokens && data->tokens)
        return "a sample is an image, not a row of tokens";
    if (model->masks != data->masks)
        return model->masks ? "learns from masks: data.mask is missing"
                            : "learns a class for each sample, not from data.mask";
    if (data->mixed && (model->masks || model->tokens))
        return "images are mixed where each has one class";
    if (model->tokens && !model->sequences && (data->classes || data->lengths))
        return "learns the tokens of whole rows, not a class for each row";
    return NULL;
}

static qn_status refuse_name(qn_graph *graph, const char *name)
{
    qn_nearest nearest = {.text = name};
    char names[128] = "", hint[QN_NEAREST_BYTES];
    for (int i = 0, length = 0; i < N_MODELS; i++) {
        qn_nearest_offer(&nearest, models[i]->name);
        length += snprintf(names + length, sizeof names - (size_t)length, "%s%s", i ? ", " : "",
                           models[i]->name);
    }
    return qn_graph_refuse(graph, "model.name: '%s' is no model that ships (%s)%s", name, names,
                           qn_nearest_hint(&nearest, hint));
}

qn_status qn_model_build(qn_graph *graph, const char *name, const qn_model_data *data,
                         const qn_model_option *options, int n_options)
{
    if (!graph || !data || (n_options && !options))
        return qn_graph_refuse(graph, "qn_model_build: data or options are missing");
    const struct qn_model *model = find(name);
    char error[200];
    if (!model)
        return refuse_name(graph, name ? name : "");
    if (!usable(data))
        return qn_graph_refuse(graph,
                               "model %s: images of 1 to %d channels and at least one class "
                               "or token are needed",
                               name, QN_MODEL_MAX_CHANNELS);
    const char *wrong = refuse_data(model, data);
    if (wrong)
        return qn_graph_refuse(graph, "model %s: %s", name, wrong);
    if (data->cache && (!model->caches || data->cache < 0 || data->cache > data->width))
        return qn_graph_refuse(graph, "model %s: %s", name,
                               model->caches
                                   ? "a cache has rows for as many tokens as a text at most"
                                   : "continues no text, and so has no cache");
    if (data->longest && (data->longest < data->width || data->cache))
        return qn_graph_refuse(graph, "model %s: %s", name,
                               data->cache ? "a cache goes with samples of one length"
                                           : "a sample is longer than the longest");
    if (data->asked && (!data->predict || !model->tokens || data->classes))
        return qn_graph_refuse(graph, "model %s: %s", name,
                               model->any ? "a graph file does not say where tokens are asked for"
                                          : "one token of a row is asked for where tokens are "
                                            "predicted");
    if (data->cache && data->predict)
        return qn_graph_refuse(graph, "model %s: with a cache it predicts anyhow", name);
    qn_model_data vectors = *data; /* the last layer tells classes, whatever they are called */
    if (data->embedding) {
        vectors.classes = data->embedding;
        vectors.targets = 0;
        data = &vectors;
    }
    struct qn_lora lora;
    wrong = qn_lora_read(&lora, options, n_options, error);
    if (!wrong)
        wrong = model->build(graph, data, options, n_options, &lora, error);
    if (!wrong)
        wrong = qn_lora_finish(&lora, graph, error);
    return wrong ? qn_graph_refuse(graph, "%s", wrong) : qn_graph_status(graph);
}

int qn_model_cells(const qn_graph *graph, const qn_model_data *data, qn_cell *cells, int room)
{
    int count = 0;
    const char *name;
    for (int i = 0; data && data->cache && (name = qn_graph_output(graph, i, NULL)); i++) {
        if (strncmp(name, QN_LAYER_CACHE, strlen(QN_LAYER_CACHE)) != 0)
            continue;
        if (count < room)
            cells[count] = (qn_cell){.name = name, .kind = QN_CELL_APPEND, .rows = data->cache};
        count++;
    }
    return count;
}
