/* SPDX-License-Identifier: MIT */
#include "data.h"
#include "data_settings.h"
#include "names.h"
#include "pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int open_idx(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                    qn_split split, struct failure *failure)
{
    (void)data;
    qn_dataset_params params = {
        .log = failure_log(failure), .name = s->name, .path = s->path, .split = split};
    if (s->images) {
        params.images = split == QN_SPLIT_TRAIN ? s->images : s->test_images;
        params.labels = split == QN_SPLIT_TRAIN ? s->labels : s->test_labels;
        if (!params.images)
            return CODE_DONE;
    }
    TRY_LIBRARY(failure, NULL, qn_dataset_open(dataset, &params));
    return CODE_DONE;
}

/* What is measured is not augmented. */
static int open_images(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                       qn_split split, struct failure *failure)
{
    (void)data;
    static const struct augmentation none = {0};
    const bool training = split == QN_SPLIT_TRAIN;
    const struct augmentation *augment = training ? &s->augment : &none;
    const qn_image_params params = {.log = failure_log(failure),
                                    .path = training ? s->path : s->test_path,
                                    .channels = s->channels == IMAGE_GREY ? 1 : 3,
                                    .size = {s->size[0], s->size[1]},
                                    .crop = {s->crop[0], s->crop[1]},
                                    .random_crop = augment->random_crop,
                                    .flip = augment->flip,
                                    .random_resized_crop = augment->random_resized_crop,
                                    .scale = {augment->scale[0], augment->scale[1]},
                                    .ratio = {augment->ratio[0], augment->ratio[1]},
                                    .degrees = augment->degrees,
                                    .brightness = augment->brightness,
                                    .contrast = augment->contrast,
                                    .saturation = augment->saturation,
                                    .hue = augment->hue,
                                    .mask = s->mask,
                                    .classes = s->classes};
    if (!params.path)
        return CODE_DONE;
    TRY_LIBRARY(failure, NULL, qn_dataset_open_images(dataset, &params));
    return CODE_DONE;
}

static int32_t named_mask(const struct data *data)
{
    return data->text.tokenizer ? qn_tokenizer_id(data->text.tokenizer, "[MASK]") : -1;
}

/* The size of the vocabulary; 0: the file says it. */
static int64_t count_tokens(const struct data *data, const struct data_settings *s)
{
    const bool own = data_settings_own_mask(s) && named_mask(data) < 0;
    if (s->tokens || !data->text.tokenizer)
        return s->tokens;
    return qn_tokenizer_size(data->text.tokenizer) + own;
}

static int64_t find_mask(const struct data *data, const struct data_settings *s)
{
    const int32_t named = named_mask(data);
    return s->mask_token >= 0 ? s->mask_token : named >= 0 ? named : count_tokens(data, s) - 1;
}

/* Samples of what is measured do not overlap. */
static int open_tokens(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                       qn_split split, struct failure *failure)
{
    static const qn_token_type types[] = {[TOKEN_FILE_LLM_C] = QN_TOKEN_LLM_C,
                                          [TOKEN_FILE_U16] = QN_TOKEN_U16,
                                          [TOKEN_FILE_U32] = QN_TOKEN_U32};
    const bool training = split == QN_SPLIT_TRAIN;
    const bool other_file = !training && s->test_path;
    const char *path = other_file ? s->test_path : s->path;
    char made[TEXT_PATH_BYTES];
    qn_token_params params = {.log = failure_log(failure),
                              .path = path,
                              .name = path,
                              .type = s->kind == DATA_TEXT ? QN_TOKEN_U8 : types[s->type],
                              .length = s->length,
                              .stride = training ? s->stride : 0,
                              .tokens = count_tokens(data, s),
                              .held_out = s->held_out,
                              .split = other_file ? QN_SPLIT_TRAIN : split,
                              .separate = s->separator >= 0,
                              .separator = s->separator,
                              .mlm_probability = s->mlm_probability,
                              .mask_token = find_mask(data, s),
                              .n_lengths = s->lengths.count,
                              .lengths = s->lengths.length};
    if (!training && !other_file && s->held_out == 0)
        return CODE_DONE;
    if (data->text.tokenizer || s->kind == DATA_JSONL) {
        TRY(text_tokens(&data->text, path, made, &params.type, failure));
        params.path = made;
    }
    TRY_LIBRARY(failure, NULL, qn_dataset_open_tokens(dataset, &params));
    return CODE_DONE;
}

/* Each line is a sample with a class, whose names are those of the training. */
static int open_lines(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                      qn_split split, struct failure *failure)
{
    const bool training = split == QN_SPLIT_TRAIN, other_file = !training && s->test_path;
    const qn_column *labels = training ? NULL : qn_dataset_column(data->train, "labels");
    const qn_json_line_params params = {.log = failure_log(failure),
                                        .path = other_file ? s->test_path : s->path,
                                        .text = s->field,
                                        .label = s->label,
                                        .plain = s->kind == DATA_LINES,
                                        .tokenizer = data->text.tokenizer,
                                        .length = s->length,
                                        .held_out = s->held_out,
                                        .split = other_file ? QN_SPLIT_TRAIN : split,
                                        .classes = labels ? labels->classes : 0,
                                        .class_names = labels ? labels->class_names : NULL};
    if (!training && !other_file && s->held_out == 0)
        return CODE_DONE;
    TRY_LIBRARY(failure, NULL, qn_dataset_open_json_lines(dataset, &params));
    return CODE_DONE;
}

static int open_jsonl(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                      qn_split split, struct failure *failure)
{
    const bool lines = s->label || data->side;
    return (lines ? open_lines : open_tokens)(data, dataset, s, split, failure);
}

/* Features are found by their names wherever they stand, classes are those of the training. */
static int open_csv(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                    qn_split split, struct failure *failure)
{
    const bool training = split == QN_SPLIT_TRAIN, other_file = !training && s->test_path;
    const qn_column *labels = data->train ? qn_dataset_column(data->train, "labels") : NULL;
    const struct features *known = &data->features;
    struct names targets = {.count = 0}, features = {.count = 0};
    if (s->target)
        names_read(&targets, s->target);
    if (s->features)
        names_read(&features, s->features);
    const qn_csv_params params = {.log = failure_log(failure),
                                  .path = other_file ? s->test_path : s->path,
                                  .n_features = known->count ? known->count : features.count,
                                  .features = known->count     ? (const char *const *)known->name
                                              : features.count ? features.name
                                                               : NULL,
                                  .n_targets = targets.count,
                                  .targets = targets.name,
                                  .binary = s->task == TARGET_MULTI_LABEL,
                                  .label = s->label,
                                  .held_out = s->held_out,
                                  .split = other_file ? QN_SPLIT_TRAIN : split,
                                  .classes = labels ? labels->classes : 0,
                                  .class_names = labels ? labels->class_names : NULL,
                                  .mean = known->count ? known->mean : NULL,
                                  .deviation = known->count ? known->deviation : NULL};
    if (!training && !other_file && s->held_out == 0)
        return CODE_DONE;
    TRY_LIBRARY(failure, NULL, qn_dataset_open_csv(dataset, &params));
    return CODE_DONE;
}

/* Rows of numbers as the training has them, or images. */
static int open_npy(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                    qn_split split, struct failure *failure)
{
    const bool training = split == QN_SPLIT_TRAIN, other_file = !training && s->test_features;
    const struct features *known = &data->features;
    const qn_npy_params params = {.log = failure_log(failure),
                                  .features = other_file ? s->test_features : s->features,
                                  .targets = other_file ? s->test_targets : s->targets,
                                  .labels = other_file ? s->test_labels : s->labels,
                                  .binary = s->task == TARGET_MULTI_LABEL,
                                  .held_out = s->held_out,
                                  .split = other_file ? QN_SPLIT_TRAIN : split,
                                  .n_features = known->count,
                                  .mean = known->count ? known->mean : NULL,
                                  .deviation = known->count ? known->deviation : NULL};
    if (!training && !other_file && s->held_out == 0)
        return CODE_DONE;
    TRY_LIBRARY(failure, NULL, qn_dataset_open_npy(dataset, &params));
    return CODE_DONE;
}

static const struct kind {
    int (*open)(struct data *data, qn_dataset **dataset, const struct data_settings *settings,
                qn_split split, struct failure *failure);
    const char *column;   /* of what the model looks at */
    const char *test_key; /* names the test split */
} kinds[] = {
    [DATA_IDX] = {open_idx, "images", "test_images"},
    [DATA_IMAGES] = {open_images, "images", "test_path"},
    [DATA_TEXT] = {open_tokens, "tokens", "held_out"},
    [DATA_TOKENS] = {open_tokens, "tokens", "held_out"},
    [DATA_JSONL] = {open_jsonl, "tokens", "held_out"},
    [DATA_CSV] = {open_csv, "features", "held_out"},
    [DATA_NPY] = {open_npy, "features", "held_out"},
    [DATA_LINES] = {open_lines, "tokens", "held_out"},
};

const char *data_test_key(enum data_kind kind)
{
    return kinds[kind].test_key;
}

static int open_split(struct data *data, qn_dataset **dataset, const struct data_settings *s,
                      qn_split split, struct failure *failure)
{
    return kinds[s->kind].open(data, dataset, s, split, failure);
}

static int check_origin(const struct data_settings *s, struct failure *failure)
{
    const bool missing = s->origin && s->path && access(s->path, F_OK) != 0 && errno == ENOENT;
    return missing ? failure_set(failure, CODE_FAILED, "%s: missing: %s", s->path, s->origin)
                   : CODE_DONE;
}

static int refuse(const struct recipe *recipe, const char *key, struct failure *failure,
                  const char *text)
{
    const struct recipe_entry *entry = recipe_find(recipe, "data", key);
    return entry ? recipe_refuse(recipe, entry, failure, "%s", text)
                 : failure_set(failure, CODE_FAILED, "%s: data: %s", recipe->name, text);
}

/* --- what the model must know --- */

static int spread(float to[QN_MODEL_MAX_CHANNELS], const struct channel_values *values,
                  int channels, const char *key, const struct recipe *recipe,
                  struct failure *failure)
{
    char text[96];
    if (values->count > 1 && values->count != channels) {
        snprintf(text, sizeof text, "%d values, but the images have %d channel%s", values->count,
                 channels, channels == 1 ? "" : "s");
        return refuse(recipe, key, failure, text);
    }
    for (int c = 0; c < channels && values->count; c++)
        to[c] = values->value[values->count == 1 ? 0 : c];
    return CODE_DONE;
}

/* How many there are of what labels say, of tokens, of numbers that are told. */
struct counts {
    int64_t classes, tokens, targets;
};

static int64_t count_targets(const struct settings *s)
{
    struct names targets;
    if (!s->data.target)
        return s->n_targets;
    names_read(&targets, s->data.target);
    return targets.count;
}

/* What a sample looks like: channels, height and width, a row of n is 1, 1, n. */
struct sides {
    int64_t size[3];
    bool row;  /* of numbers */
    bool real; /* an image of f32 */
};

static int describe(struct data *data, const struct settings *s, const struct recipe *recipe,
                    const struct sides *sides, struct counts counts, struct failure *failure)
{
    const int64_t *shape = sides->size;
    qn_model_data *model = &data->model;
    if (shape[0] > QN_MODEL_MAX_CHANNELS)
        return failure_set(failure, CODE_USAGE,
                           "%s: data: images of %" PRId64 " channels; models take %d", recipe->name,
                           shape[0], QN_MODEL_MAX_CHANNELS);
    *model = (qn_model_data){
        .channels = (int)shape[0],
        .height = (int)shape[1],
        .width = (int)shape[2],
        .classes = (int)counts.classes,
        .masks = s->data.mask != NULL,
        .mixed = data_settings_mixes(&s->data),
        .tokens = (int)counts.tokens,
        .lengths = s->data.kind == DATA_LINES ||
                   (s->data.kind == DATA_JSONL && (s->data.label || s->contrastive.mode)),
        .features = sides->row ? (int)shape[2] : 0,
        .targets = (int)counts.targets,
        .binary = s->data.task == TARGET_MULTI_LABEL,
        .longest = s->data.lengths.count ? (int)shape[2] : 0,
        .real = sides->real};
    TRY(spread(model->mean, &s->data.mean, model->channels, "mean", recipe, failure));
    return spread(model->deviation, &s->data.deviation, model->channels, "deviation", recipe,
                  failure);
}

/* What the model looks at: of npy files rows or images. */
static const qn_column *looked_at(const qn_dataset *dataset, const struct data_settings *s)
{
    const qn_column *column = qn_dataset_column(dataset, kinds[s->kind].column);
    return column ? column : qn_dataset_column(dataset, "images");
}

static struct sides find_sides(const qn_dataset *dataset, const struct data_settings *s)
{
    const qn_column *column = looked_at(dataset, s);
    const qn_shape *shape = &column->shape;
    const bool row = strcmp(column->name, "features") == 0;
    struct sides sides = {.row = row, .real = column->dtype == QN_F32 && !row};
    for (int i = 0; i < 3; i++)
        sides.size[i] = i < 3 - shape->rank ? 1 : shape->dim[shape->rank - 3 + i];
    return sides;
}

static const qn_column *labels_of(const qn_dataset *dataset)
{
    return qn_dataset_column(dataset, "labels");
}

/* Those of the data; of tokens those that the recipe says, if it does. */
static struct counts counts_of(const qn_dataset *dataset, const struct data *data,
                               const struct settings *s)
{
    const qn_column *tokens = qn_dataset_column(dataset, "tokens");
    const qn_column *labels = settings_learns_tokens(s) ? NULL : labels_of(dataset);
    const qn_column *targets = qn_dataset_column(dataset, "targets");
    const int64_t told = count_tokens(data, &s->data);
    return (struct counts){.classes = labels ? labels->classes : 0,
                           .tokens = tokens && !told ? tokens->classes : told,
                           .targets = targets ? targets->shape.dim[0] : 0};
}

static int check_shape(const struct settings *s, const struct recipe *recipe,
                       const struct sides *sides, struct failure *failure)
{
    char text[96];
    const int64_t *want = s->data.shape, *is = sides->size;
    if (!want[0] || memcmp(want, is, 3 * sizeof *want) == 0)
        return CODE_DONE;
    snprintf(text, sizeof text, "the images are %" PRId64 ",%" PRId64 ",%" PRId64, is[0], is[1],
             is[2]);
    return refuse(recipe, "shape", failure, text);
}

/* Rows of npy files and their images have other keys. */
static int check_rows(const struct settings *s, const struct recipe *recipe,
                      const struct sides *sides, struct failure *failure)
{
    const struct data_settings *d = &s->data;
    if (d->kind != DATA_NPY)
        return CODE_DONE;
    if (sides->row && (d->mean.count || d->deviation.count))
        return refuse(recipe, d->mean.count ? "mean" : "deviation", failure,
                      "is of images; rows of numbers have data.standardize");
    return sides->row || !d->standardize
               ? CODE_DONE
               : refuse(recipe, "standardize", failure,
                        "is of rows of numbers; images have data.mean and data.deviation");
}

static int describe_split(struct data *data, const struct settings *s, const struct recipe *recipe,
                          struct failure *failure)
{
    char text[96];
    struct counts counts = counts_of(data->train, data, s);
    const struct sides sides = find_sides(data->train, &s->data);
    TRY(check_shape(s, recipe, &sides, failure));
    TRY(check_rows(s, recipe, &sides, failure));
    if (s->data.classes && s->data.classes < counts.classes) {
        snprintf(text, sizeof text, "%" PRId64 " classes, but the labels reach %" PRId64,
                 s->data.classes, counts.classes - 1);
        return refuse(recipe, "classes", failure, text);
    }
    if (s->data.classes)
        counts.classes = s->data.classes;
    return describe(data, s, recipe, &sides, counts, failure);
}

/* Folders of classes are counted: a class that one split lacks would shift the others. */
static int check_class_names(const struct data *data, const struct recipe *recipe,
                             struct failure *failure)
{
    const qn_column *train = labels_of(data->train), *test = labels_of(data->test);
    if (!train)
        return CODE_DONE;
    if (!train->class_names != !test->class_names)
        return failure_set(failure, CODE_FAILED,
                           "%s: data: the classes have names in %s, but none in %s", recipe->name,
                           train->class_names ? "path" : "test_path",
                           train->class_names ? "test_path" : "path");
    for (int64_t i = 0; test->class_names && i < test->classes && i < train->classes; i++)
        if (strcmp(test->class_names[i], train->class_names[i]) != 0)
            return failure_set(failure, CODE_FAILED,
                               "%s: data: class %" PRId64 " is %s in test_path, %s in path",
                               recipe->name, i, test->class_names[i], train->class_names[i]);
    return CODE_DONE;
}

static int check_told(const struct recipe *recipe, const struct sides *sides, struct counts counts,
                      const qn_model_data *model, struct failure *failure)
{
    if (counts.targets != model->targets)
        return failure_set(failure, CODE_FAILED,
                           "%s: data: the test targets are %" PRId64 ", those of training %d",
                           recipe->name, counts.targets, model->targets);
    return sides->row == (model->features > 0) && sides->real == model->real
               ? CODE_DONE
               : failure_set(failure, CODE_FAILED,
                             "%s: data: the test samples are not of the type of those of training",
                             recipe->name);
}

static int check_test(const struct data *data, const struct settings *s,
                      const struct recipe *recipe, struct failure *failure)
{
    const struct counts counts = counts_of(data->test, data, s);
    const qn_model_data *model = &data->model;
    const struct sides sides = find_sides(data->test, &s->data);
    const int64_t *shape = sides.size;
    if (shape[0] != model->channels || shape[1] != model->height || shape[2] != model->width)
        return failure_set(failure, CODE_FAILED,
                           "%s: data: the test %s are %" PRId64 ",%" PRId64 ",%" PRId64
                           ", those of training %d,%d,%d",
                           recipe->name, looked_at(data->test, &s->data)->name, shape[0], shape[1],
                           shape[2], model->channels, model->height, model->width);
    TRY(check_told(recipe, &sides, counts, model, failure));
    if (counts.classes > model->classes || counts.tokens > model->tokens)
        return failure_set(
            failure, CODE_FAILED, "%s: data: the test %s reach %" PRId64 ", but there are %d %s",
            recipe->name, counts.tokens ? "tokens" : "labels",
            (counts.tokens ? counts.tokens : counts.classes) - 1,
            counts.tokens ? model->tokens : model->classes, counts.tokens ? "tokens" : "classes");
    return check_class_names(data, recipe, failure);
}

/* The tokenizer, whose tokens must be among those that the recipe says, and hold the separator that
 * becomes one of them. */
static int open_text(struct data *data, const struct settings *s, const struct recipe *recipe,
                     struct failure *failure)
{
    char text[96];
    TRY(text_open(&data->text, &s->data, failure));
    const int64_t tokens = data->text.tokenizer ? qn_tokenizer_size(data->text.tokenizer) : 256;
    if (s->data.kind == DATA_JSONL && s->data.separator >= tokens) {
        snprintf(text, sizeof text, "is none of the %" PRId64 " tokens", tokens);
        return refuse(recipe, "separator", failure, text);
    }
    if (!data->text.tokenizer || !s->data.tokens || tokens <= s->data.tokens)
        return CODE_DONE;
    snprintf(text, sizeof text, "%" PRId64 " tokens, but the tokenizer has %" PRId64,
             s->data.tokens, tokens);
    return refuse(recipe, "tokens", failure, text);
}

/* Bytes per token are those of what is measured. */
static int measure_text(struct data *data, const struct settings *s, struct failure *failure)
{
    data->bytes_per_token = s->data.bytes_per_token;
    const bool measured = settings_learns_tokens(s) && s->data.mlm_probability == 0;
    if (!data->text.tokenizer || !data->test || !measured)
        return CODE_DONE;
    return text_measure(&data->text, data->test, &data->bytes_per_token, failure);
}

/* Keeps a part of the training split for validation; what is measured of it is not augmented. */
static int open_validation(struct data *data, const struct settings *s, const struct recipe *recipe,
                           struct failure *failure)
{
    qn_part_params params = {.log = failure_log(failure),
                             .fraction = s->data.validation,
                             .seed = (uint64_t)s->train.seed};
    struct data_settings plain = s->data;
    if (params.fraction == 0)
        return CODE_DONE;
    plain.augment = (struct augmentation){0};
    data->whole = data->train;
    data->train = NULL;
    if (data_settings_augments(&s->data))
        TRY(open_split(data, &data->seen, &plain, QN_SPLIT_TRAIN, failure));
    params.whole = data->whole;
    params.split = QN_SPLIT_TRAIN;
    TRY_LIBRARY(failure, recipe->name, qn_dataset_part(&data->train, &params));
    params.whole = data->seen ? data->seen : data->whole;
    params.split = QN_SPLIT_TEST;
    TRY_LIBRARY(failure, recipe->name, qn_dataset_part(&data->validation, &params));
    return CODE_DONE;
}

/* What a model looks at, by its name; standardised with mean and deviation of the samples that it
 * is trained on. */
static int measure_features(struct data *data, const struct settings *s,
                            const struct recipe *recipe, struct failure *failure)
{
    const qn_part_params params = {.log = failure_log(failure),
                                   .whole = data->train,
                                   .fraction = s->data.validation,
                                   .seed = (uint64_t)s->train.seed};
    const qn_log log = failure_log(failure);
    qn_dataset *part = NULL;
    TRY(features_copy(&data->features, data->train, failure));
    if (!s->data.standardize)
        return CODE_DONE;
    if (s->data.validation > 0)
        TRY_LIBRARY(failure, recipe->name, qn_dataset_part(&part, &params));
    const qn_status status = qn_dataset_moments(
        part ? part : data->train, "features", data->features.mean, data->features.deviation, &log);
    qn_dataset_close(&part);
    qn_dataset_close(&data->train);
    TRY_LIBRARY(failure, recipe->name, status);
    return CODE_DONE;
}

/* The training split; of rows of numbers with the features, where no checkpoint has them: if they
 * are standardised, the files are read twice. */
static int open_training(struct data *data, const struct settings *s, const struct recipe *recipe,
                         struct failure *failure)
{
    TRY(open_split(data, &data->train, &s->data, QN_SPLIT_TRAIN, failure));
    if (data->features.count || !qn_dataset_column(data->train, "features"))
        return CODE_DONE;
    TRY(measure_features(data, s, recipe, failure));
    return data->train ? CODE_DONE
                       : open_split(data, &data->train, &s->data, QN_SPLIT_TRAIN, failure);
}

static int open_mixture(struct data *data, const struct data_settings *s,
                        const struct recipe *recipe, struct failure *failure)
{
    if (!data_settings_mixes(s))
        return CODE_DONE;
    if (looked_at(data->train, s)->dtype != QN_U8)
        return refuse(recipe, s->mixup > 0 ? "mixup" : "cutmix", failure, "is of images of bytes");
    data->unmixed = data->train;
    data->train = NULL;
    const qn_mix_params params = {.log = failure_log(failure),
                                  .whole = data->unmixed,
                                  .mixup = s->mixup,
                                  .cutmix = s->cutmix};
    TRY_LIBRARY(failure, NULL, qn_dataset_mix(&data->train, &params));
    return CODE_DONE;
}

int data_open_side(struct data *data, const struct settings *s, const struct recipe *recipe,
                   struct failure *failure)
{
    data->side = true;
    TRY(check_origin(&s->data, failure));
    TRY(open_text(data, s, recipe, failure));
    TRY(open_training(data, s, recipe, failure));
    TRY(open_split(data, &data->test, &s->data, QN_SPLIT_TEST, failure));
    TRY(describe_split(data, s, recipe, failure));
    return data->test ? check_test(data, s, recipe, failure) : CODE_DONE;
}

int data_open(struct data *data, const struct settings *s, const struct recipe *recipe,
              struct failure *failure)
{
    if (s->contrastive.mode)
        return pairs_open(data, s, recipe, failure);
    TRY(check_origin(&s->data, failure));
    TRY(open_text(data, s, recipe, failure));
    TRY(open_training(data, s, recipe, failure));
    TRY(open_validation(data, s, recipe, failure));
    TRY(open_mixture(data, &s->data, recipe, failure));
    TRY(open_split(data, &data->test, &s->data, QN_SPLIT_TEST, failure));
    data->evaluated = data->validation ? data->validation : data->test;
    TRY(describe_split(data, s, recipe, failure));
    TRY(measure_text(data, s, failure));
    return data->test ? check_test(data, s, recipe, failure) : CODE_DONE;
}

/* Whether a plan needs no more than the recipe and a tokenizer that is there. */
static bool says_all(const struct settings *s, struct counts counts)
{
    const bool rows = settings_learns_tokens(s) || s->data.label;
    if (s->data.kind == DATA_CSV || (s->data.kind == DATA_NPY && !s->samples))
        return false;
    return s->data.shape[0] && (!rows || counts.tokens) &&
           (settings_learns_tokens(s) || counts.classes || counts.targets);
}

int data_look(struct data *data, const struct settings *s, const struct recipe *recipe,
              struct failure *failure)
{
    if (s->contrastive.mode)
        return pairs_open(data, s, recipe, failure);
    if (s->data.tokenizer)
        TRY(open_text(data, s, recipe, failure));
    const int64_t *shape = s->data.shape;
    const struct counts counts = {s->data.classes, count_tokens(data, &s->data), count_targets(s)};
    const struct sides row = {.size = {1, 1, data->features.count}, .row = true};
    const struct sides image = {.size = {shape[0], shape[1], shape[2]}, .real = s->real};
    if (data->features.count && (counts.targets || counts.classes))
        return describe(data, s, recipe, &row, counts, failure);
    if (says_all(s, counts))
        return describe(data, s, recipe, &image, counts, failure);
    TRY(check_origin(&s->data, failure));
    TRY(open_training(data, s, recipe, failure));
    return describe_split(data, s, recipe, failure);
}

int64_t data_mask_token(const struct data *data, const struct settings *s)
{
    return s->data.mlm_probability > 0 ? find_mask(data, &s->data) : -1;
}

const struct text *data_text(const struct data *data)
{
    return data->pairs ? pairs_text(data->pairs) : &data->text;
}

void data_digest(const qn_dataset *dataset, char digest[DATA_DIGEST_BYTES])
{
    snprintf(digest, DATA_DIGEST_BYTES, "%" PRId64 "-%08" PRIx32,
             qn_dataset_describe(dataset)->count, qn_dataset_checksum(dataset));
}

void data_close(struct data *data)
{
    qn_dataset_close(&data->train);
    qn_dataset_close(&data->unmixed);
    qn_dataset_close(&data->validation);
    qn_dataset_close(&data->whole);
    qn_dataset_close(&data->seen);
    qn_dataset_close(&data->test);
    pairs_close(&data->pairs);
    text_close(&data->text);
    features_free(&data->features);
}
