/* SPDX-License-Identifier: MIT */
#include "pretrained.h"
#include "file.h"
#include "line.h"

#include <quern/io.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- finding --- */

static void put_beside(char path[PRETRAINED_PATH_BYTES], const char *folder, int length,
                       const char *name)
{
    snprintf(path, PRETRAINED_PATH_BYTES, "%.*s%s", length, folder, name);
}

/* model.safetensors, unless the index of its parts alone is there. */
static void find_parts(char path[PRETRAINED_PATH_BYTES], const char *folder)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "model.safetensors"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, PRETRAINED_PATH_BYTES, "%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0)
            return;
    }
}

static void find_files(struct pretrained *p, const char *named)
{
    const char *slash = strrchr(named, '/');
    const int length = slash ? (int)(slash + 1 - named) : 0;
    if (file_is_folder(named)) {
        find_parts(p->weights, named);
        snprintf(p->description, sizeof p->description, "%s/config.json", named);
        return;
    }
    snprintf(p->weights, sizeof p->weights, "%s", named);
    put_beside(p->description, named, length, "config.json");
    if (access(p->description, F_OK) != 0)
        *p->description = 0;
}

int pretrained_open(struct pretrained *p, struct recipe *recipe, struct failure *failure)
{
    const struct recipe_entry *entry = recipe_find(recipe, "train", "weights");
    char *text;
    *p->weights = *p->description = 0;
    if (!entry)
        return CODE_DONE;
    find_files(p, entry->value);
    if (!*p->description)
        return CODE_DONE;
    TRY(file_read(&text, p->description, failure));
    int code = config_read(&p->config, text, p->description, failure);
    free(text);
    return code ? code : config_give(&p->config, recipe, p->description, failure);
}

int pretrained_check(const struct pretrained *p, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    qn_tensors *file = NULL;
    if (!*p->weights)
        return CODE_DONE;
    TRY_LIBRARY(failure, NULL, qn_tensors_open(&file, p->weights, &log));
    qn_tensors_close(&file);
    return CODE_DONE;
}

int pretrained_fits(const struct pretrained *p, const qn_model_data *data, struct failure *failure)
{
    return *p->description ? config_fits(&p->config, data, p->description, failure) : CODE_DONE;
}

/* --- loading --- */

/* What a file of the same network may lack: adapters and, unless config.json promises classes, the
 * head, which may also be of other classes, what a head of BERT's stands on, and the last layer of
 * a tower. */
enum { ADAPTERS, HEAD, POOLER, PROJECTION, PARTS, PARTS_BYTES = 128 };

/* What becomes of the tensors. */
struct told {
    int taken, left_out;
    char names[200]; /* of some that were left out */
    qn_weights_record shortened;
    char name[96];             /* of `shortened` */
    char lacking[PARTS_BYTES]; /* patterns of what the file has not */
    char other[PARTS_BYTES];   /* the same of a head of other classes */
    char exclude[2 * PARTS_BYTES];
    int64_t classes, own_classes; /* of the file's head, and of the trainer's */
};

static void hear(void *user, const qn_weights_record *record)
{
    struct told *told = user;
    const size_t length = strlen(told->names);
    if (record->fate == QN_WEIGHTS_LEFT_OUT && !qn_matches(told->exclude, record->name) &&
        ++told->left_out <= 2)
        snprintf(told->names + length, sizeof told->names - length, "%s%.90s", length ? ", " : "",
                 record->name);
    told->taken += record->fate == QN_WEIGHTS_TAKEN || record->fate == QN_WEIGHTS_FIRST_ROWS;
    if (record->fate != QN_WEIGHTS_FIRST_ROWS)
        return;
    told->shortened = *record;
    snprintf(told->name, sizeof told->name, "%s", record->name);
}

static void say_all(const struct pretrained *p, const struct told *told)
{
    line_print(stdout, "weights: %s: %d tensors", p->weights, told->taken);
    if (told->left_out)
        line_print(stdout, "weights: skipped by rule: %s%s (%d)", told->names,
                   told->left_out > 2 ? ", ..." : "", told->left_out);
    if (*told->name)
        line_print(stdout, "weights: %s: the first %" PRId64 " of %" PRId64 " rows", told->name,
                   told->shortened.model.dim[0], told->shortened.file.dim[0]);
    if (*p->description && p->config.lost > 0)
        line_print(stdout, "weights: dropout of %g, which %s names, is left out", p->config.lost,
                   p->description);
    if (*told->other)
        line_print(stdout,
                   "weights: %s: of %" PRId64 " classes there, %" PRId64 " here, and so random",
                   told->other, told->classes, told->own_classes);
    if (*told->lacking)
        line_print(stdout, "weights: not there, and so random: %s", told->lacking);
}

/* The first tensor of the trainer that matches; NULL: there is none. */
static const char *first_of(qn_trainer *trainer, const char *pattern, qn_shape *shape)
{
    const char *name;
    for (int i = 0; (name = qn_trainer_tensor(trainer, i, shape)); i++)
        if (qn_matches(pattern, name))
            return name;
    return NULL;
}

static bool holds(const qn_tensors *file, const char *pattern)
{
    for (int64_t i = 0; i < qn_tensors_count(file); i++)
        if (qn_matches(pattern, qn_tensors_at(file, i)->name))
            return true;
    return false;
}

static void add_pattern(char list[PARTS_BYTES], const char *pattern)
{
    const size_t length = strlen(list);
    snprintf(list + length, PARTS_BYTES - length, "%s%s", length ? "," : "", pattern);
}

/* A head that differs in its rows alone, its classes. */
static bool has_other_head(struct told *told, qn_trainer *trainer, const qn_tensors *file,
                           const char *head)
{
    qn_shape own;
    const char *name = first_of(trainer, head, &own);
    const qn_tensors_entry *entry = name ? qn_tensors_find(file, name) : NULL;
    if (!entry || entry->shape.rank != own.rank || !own.rank || entry->shape.dim[0] == own.dim[0])
        return false;
    for (int d = 1; d < own.rank; d++)
        if (entry->shape.dim[d] != own.dim[d])
            return false;
    told->classes = entry->shape.dim[0];
    told->own_classes = own.dim[0];
    return true;
}

/* Patterns of what the trainer has and the file has not, or has for other classes. */
static int find_lacking(const struct pretrained *p, qn_trainer *trainer, const char *model,
                        struct told *told, struct failure *failure)
{
    const qn_log log = failure_log(failure);
    const char *const parts[PARTS] = {[ADAPTERS] = QN_ADAPTERS,
                                      [HEAD] = qn_model_head(model),
                                      [POOLER] = "*pooler.dense.*",
                                      [PROJECTION] = "*projection.*"};
    const int count = p->config.labels > 0 ? HEAD : PARTS;
    qn_tensors *file;
    TRY_LIBRARY(failure, NULL, qn_tensors_open(&file, p->weights, &log));
    for (int i = 0; i < count; i++) {
        if (!parts[i] || !first_of(trainer, parts[i], NULL))
            continue;
        if (!holds(file, parts[i]))
            add_pattern(told->lacking, parts[i]);
        else if (i == HEAD && has_other_head(told, trainer, file, parts[i]))
            add_pattern(told->other, parts[i]);
    }
    qn_tensors_close(&file);
    snprintf(told->exclude, sizeof told->exclude, "%s%s%s", told->lacking,
             *told->lacking && *told->other ? "," : "", told->other);
    return CODE_DONE;
}

static int load(const struct pretrained *p, qn_trainer *trainer, const char *model,
                const char *scope, bool quiet, struct failure *failure)
{
    struct told told = {0};
    const qn_weights_params params = {.layout = *p->description ? qn_model_layout(model) : NULL,
                                      .exclude = told.exclude,
                                      .scope = scope,
                                      .fn = hear,
                                      .user = &told};
    TRY(find_lacking(p, trainer, model, &told, failure));
    TRY_LIBRARY(failure, NULL, qn_trainer_load_weights(trainer, p->weights, &params));
    if (!quiet)
        say_all(p, &told);
    return CODE_DONE;
}

int pretrained_load(const struct pretrained *p, qn_trainer *trainer, const char *model,
                    const char *const *scopes, bool quiet, struct failure *failure)
{
    if (!*p->weights)
        return CODE_DONE;
    if (!scopes || !*p->description)
        return load(p, trainer, model, NULL, quiet, failure);
    for (; *scopes; scopes++)
        TRY(load(p, trainer, model, *scopes, quiet, failure));
    return CODE_DONE;
}
