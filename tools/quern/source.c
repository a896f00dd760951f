/* SPDX-License-Identifier: MIT */
#include "source.h"
#include "family.h"
#include "file.h"
#include "note.h"
#include "value.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The table with a row for each token; the number of rows. */
static int count_tokens(struct source *source, const char *weights, struct failure *failure)
{
    const struct family *family = family_of_model(source->model);
    const qn_log log = failure_log(failure);
    const qn_tensors_entry *table = NULL;
    qn_tensors *file;
    TRY_LIBRARY(failure, NULL, qn_tensors_open(&file, weights, &log));
    if (family && family->continues)
        table = qn_tensors_find(file, family->words);
    if (table && table->shape.rank == 2 && table->shape.dim[0] <= INT_MAX)
        source->data.tokens = (int)table->shape.dim[0];
    qn_tensors_close(&file);
    return source->data.tokens ? CODE_DONE
                               : failure_set(failure, CODE_FAILED,
                                             "%s: the model %s continues no text, or has no table "
                                             "of tokens",
                                             weights, source->model);
}

static int read_model(struct source *source, const char *path, struct failure *failure)
{
    const struct recipe_entry *name = recipe_find(&source->recipe, "model", "name");
    if (!name)
        return failure_set(failure, CODE_FAILED, "%s: recipe: model.name: missing", path);
    source->model = name->value;
    for (int i = 0; i < source->recipe.count; i++) {
        const struct recipe_entry *entry = &source->recipe.entries[i];
        if (strcmp(entry->section, "model") != 0 || entry == name)
            continue;
        if (source->n_options == MAX_MODEL_OPTIONS)
            return failure_set(failure, CODE_FAILED, "%s: recipe: too many keys of [model]", path);
        source->options[source->n_options++] = (qn_model_option){entry->key, entry->value};
    }
    return CODE_DONE;
}

/* The longest sample that it was trained with. */
static int read_length(struct source *source, const char *path, struct failure *failure)
{
    const struct recipe_entry *one = recipe_find(&source->recipe, "data", "length");
    const struct recipe_entry *entry = one ? one : recipe_find(&source->recipe, "data", "lengths");
    struct lengths read = {.count = 1};
    const char *reason = one     ? value_count(one->value, 1, INT_MAX, read.length)
                         : entry ? value_lengths(entry->value, &read)
                                 : "is missing";
    if (reason)
        return failure_set(failure, CODE_FAILED, "%s: recipe: data.length: %s", path, reason);
    source->data.width = (int)read.length[read.count - 1];
    return CODE_DONE;
}

static int open_checkpoint(struct source *source, const char *path, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    TRY_LIBRARY(failure, NULL, qn_checkpoint_open(&source->checkpoint, path, &log));
    const qn_checkpoint_info *info = qn_checkpoint_describe(source->checkpoint);
    TRY(note_read(&source->recipe, info->note ? info->note : "", info->path, failure));
    TRY(read_model(source, info->path, failure));
    TRY(count_tokens(source, info->weights, failure));
    return read_length(source, info->path, failure);
}

static int open_folder(struct source *source, const char *path, struct failure *failure)
{
    snprintf(source->recipe.name, sizeof source->recipe.name, "%s", path);
    TRY(recipe_put(&source->recipe, "train", "weights", path, "", failure));
    TRY(pretrained_open(&source->pretrained, &source->recipe, failure));
    TRY(pretrained_check(&source->pretrained, failure));
    TRY(read_model(source, path, failure));
    source->data.tokens = (int)source->pretrained.config.vocabulary;
    source->data.width = (int)source->pretrained.config.positions;
    return CODE_DONE;
}

int source_open(struct source *source, const char *path, struct failure *failure)
{
    char description[PATH_MAX];
    *source = (struct source){.data = {.channels = 1, .height = 1}};
    if (snprintf(description, sizeof description, "%s/config.json", path) >= PATH_MAX)
        return failure_set(failure, CODE_USAGE, "generate: %.60s...: the path is too long", path);
    return access(description, F_OK) == 0 ? open_folder(source, path, failure)
                                          : open_checkpoint(source, path, failure);
}

int source_load(const struct source *source, qn_trainer *trainer, struct failure *failure)
{
    if (!source->checkpoint)
        return pretrained_load(&source->pretrained, trainer, source->model, NULL, true, failure);
    TRY_LIBRARY(failure, NULL,
                qn_weights_load(trainer, qn_checkpoint_describe(source->checkpoint)->weights));
    return CODE_DONE;
}

void source_close(struct source *source)
{
    qn_checkpoint_close(&source->checkpoint);
    recipe_free_graphs(&source->recipe);
}
