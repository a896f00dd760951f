/* SPDX-License-Identifier: MIT */
#include "data_settings.h"
#include "names.h"

#include <string.h>

const char *const data_kinds[] = {"idx", "images", "text",  "tokens", "jsonl",
                                  "csv", "npy",    "lines", NULL};

/* Keys of [data] that belong to some kinds. */
enum {
    OF_IDX = 1 << DATA_IDX,
    OF_IMAGES = 1 << DATA_IMAGES,
    OF_TEXT = 1 << DATA_TEXT,
    OF_TOKENS = 1 << DATA_TOKENS,
    OF_JSONL = 1 << DATA_JSONL,
    OF_CSV = 1 << DATA_CSV,
    OF_NPY = 1 << DATA_NPY,
    OF_LINES = 1 << DATA_LINES,
    OF_PATH = OF_IDX | OF_IMAGES | OF_TEXT | OF_TOKENS | OF_JSONL | OF_CSV | OF_LINES,
    OF_ROWS = OF_TEXT | OF_TOKENS | OF_JSONL,
};
static const struct {
    const char *name;
    unsigned kinds;
} owned[] = {
    {"name", OF_IDX},
    {"path", OF_PATH},
    {"images", OF_IDX},
    {"labels", OF_IDX | OF_NPY},
    {"test_images", OF_IDX},
    {"test_labels", OF_IDX | OF_NPY},
    {"test_path", OF_LINES | OF_IMAGES | OF_ROWS | OF_CSV},
    {"channels", OF_IMAGES},
    {"size", OF_IMAGES},
    {"crop", OF_IMAGES},
    {"flip", OF_IMAGES},
    {"mask", OF_IMAGES},
    {"random_crop", OF_IMAGES},
    {"random_resized_crop", OF_IMAGES},
    {"scale", OF_IMAGES},
    {"ratio", OF_IMAGES},
    {"degrees", OF_IMAGES},
    {"brightness", OF_IMAGES},
    {"contrast", OF_IMAGES},
    {"saturation", OF_IMAGES},
    {"hue", OF_IMAGES},
    {"mixup", OF_IDX | OF_IMAGES | OF_NPY},
    {"cutmix", OF_IDX | OF_IMAGES | OF_NPY},
    {"mean", OF_IDX | OF_IMAGES | OF_NPY},
    {"deviation", OF_IDX | OF_IMAGES | OF_NPY},
    {"shape", OF_IDX | OF_IMAGES | OF_NPY},
    {"type", OF_TOKENS},
    {"length", OF_LINES | OF_ROWS},
    {"lengths", OF_ROWS},
    {"stride", OF_ROWS},
    {"held_out", OF_LINES | OF_ROWS | OF_CSV | OF_NPY},
    {"separator", OF_ROWS},
    {"mlm_probability", OF_ROWS},
    {"mask_token", OF_ROWS},
    {"tokenizer", OF_TEXT | OF_JSONL | OF_LINES},
    {"vocabulary", OF_TEXT | OF_JSONL | OF_LINES},
    {"tokens", OF_LINES | OF_ROWS},
    {"classes", OF_IDX | OF_IMAGES | OF_JSONL | OF_CSV | OF_NPY},
    {"validation", OF_LINES | OF_IDX | OF_IMAGES | OF_JSONL | OF_CSV | OF_NPY},
    {"field", OF_JSONL},
    {"label", OF_JSONL | OF_CSV},
    {"target", OF_CSV},
    {"task", OF_CSV | OF_NPY},
    {"features", OF_CSV | OF_NPY},
    {"standardize", OF_CSV | OF_NPY},
    {"targets", OF_NPY},
    {"test_features", OF_NPY},
    {"test_targets", OF_NPY},
    {"bytes_per_token", OF_TOKENS},
};

/* "images, text or tokens". */
static void name_kinds(unsigned among, char text[64])
{
    *text = 0;
    for (int i = 0; data_kinds[i]; i++)
        if (among >> i & 1)
            snprintf(text + strlen(text), 64 - strlen(text), "%s%s",
                     !*text            ? ""
                     : among >> i >> 1 ? ", "
                                       : " or ",
                     data_kinds[i]);
}

static int check_kind(const struct data_settings *data, const char *section,
                      const struct recipe *recipe, struct failure *failure)
{
    char names[64];
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        const struct recipe_entry *entry = recipe_find(recipe, section, owned[i].name);
        if (!entry || owned[i].kinds >> data->kind & 1)
            continue;
        name_kinds(owned[i].kinds, names);
        return recipe_refuse(recipe, entry, failure, "goes with %s.kind = %s", section, names);
    }
    return CODE_DONE;
}

static int check_images(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure)
{
    const struct augmentation *augment = &data->augment;
    TRY(recipe_need(recipe, data->path, "data.path: missing", failure));
    TRY(recipe_need(recipe, !augment->random_crop || data->crop[0],
                    "data.random_crop: needs data.crop", failure));
    TRY(recipe_need(recipe, !augment->random_resized_crop || data->crop[0],
                    "data.random_resized_crop: needs data.crop, the size in the end", failure));
    TRY(recipe_need(
        recipe, augment->random_resized_crop || (augment->scale[1] == 0 && augment->ratio[1] == 0),
        "data.scale, data.ratio: go with data.random_resized_crop = yes", failure));
    TRY(recipe_need(recipe, !data->mask || !data_settings_mixes(data),
                    "data.mixup, data.cutmix: go without data.mask", failure));
    return recipe_need(recipe, !data->mask || (data->classes && data->classes <= 256),
                       "data.mask: needs data.classes, at most 256", failure);
}

static int check_idx(const struct data_settings *data, const struct recipe *recipe,
                     struct failure *failure)
{
    TRY(recipe_need(recipe, data->name || data->path || data->images,
                    "data.name: missing, and neither data.path nor data.images is there", failure));
    TRY(recipe_need(recipe, !data->images == !data->labels, "data.images: goes with data.labels",
                    failure));
    TRY(recipe_need(recipe, !data->test_images == !data->test_labels,
                    "data.test_images: goes with data.test_labels", failure));
    return recipe_need(recipe, !data->test_images || data->images, "data.images: missing", failure);
}

static int check_tokens(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure)
{
    const bool masked = data->mlm_probability > 0, named = data->mask_token >= 0;
    TRY(recipe_need(recipe, data->path, "data.path: missing; --data names the file", failure));
    TRY(recipe_need(recipe, masked || !named, "data.mask_token: needs data.mlm_probability",
                    failure));
    TRY(recipe_need(recipe, !masked || named || data->kind != DATA_TOKENS,
                    "data.mask_token: missing", failure));
    TRY(recipe_need(recipe, !data->lengths.count || data->separator >= 0,
                    "data.lengths: needs data.separator, which ends documents", failure));
    TRY(recipe_need(recipe, !data->lengths.count || !data->stride,
                    "data.stride: goes with data.length", failure));
    return recipe_need(recipe, data->length || data->lengths.count,
                       "data.length: missing: the tokens of a sample", failure);
}

/* With a label a sample is a line, without one the lines are one text. */
static int check_jsonl(const struct data_settings *data, const struct recipe *recipe,
                       struct failure *failure)
{
    static const char *const keys[] = {"lengths", "stride", "separator", "mlm_probability",
                                       "mask_token"};
    TRY(check_tokens(data, recipe, failure));
    for (size_t i = 0; data->label && i < sizeof keys / sizeof *keys; i++) {
        const struct recipe_entry *entry = recipe_find(recipe, "data", keys[i]);
        if (entry)
            return recipe_refuse(recipe, entry, failure, "goes without data.label");
    }
    TRY(recipe_need(recipe, data->label || !data->classes, "data.classes: needs data.label",
                    failure));
    TRY(recipe_need(recipe, data->label || data->validation == 0,
                    "data.validation: needs data.label; of one text data.held_out is its end",
                    failure));
    return recipe_need(recipe, data->label || data->separator >= 0,
                       "data.separator: missing: the token behind each text", failure);
}

static int check_names(const struct recipe *recipe, const char *key, struct failure *failure)
{
    const struct recipe_entry *entry = recipe_find(recipe, "data", key);
    struct names names;
    const char *reason = entry ? names_read(&names, entry->value) : NULL;
    return reason ? recipe_refuse(recipe, entry, failure, "%s", reason) : CODE_DONE;
}

static int check_csv(const struct data_settings *data, const struct recipe *recipe,
                     struct failure *failure)
{
    TRY(recipe_need(recipe, data->path, "data.path: missing; --data names the file", failure));
    TRY(recipe_need(recipe, data->target || data->label,
                    "data.target: missing: the columns of numbers that are told; or data.label, "
                    "the one of classes",
                    failure));
    TRY(recipe_need(recipe, data->target || !recipe_find(recipe, "data", "task"),
                    "data.task: goes with data.target", failure));
    TRY(recipe_need(recipe, data->label || !data->classes, "data.classes: needs data.label",
                    failure));
    TRY(check_names(recipe, "target", failure));
    return check_names(recipe, "features", failure);
}

static int check_npy(const struct data_settings *data, const struct recipe *recipe,
                     struct failure *failure)
{
    TRY(recipe_need(recipe, data->features, "data.features: missing: the file of samples",
                    failure));
    TRY(recipe_need(recipe, data->labels || data->targets,
                    "data.labels: missing: the file of classes; or data.targets, the one of "
                    "numbers that are told",
                    failure));
    TRY(recipe_need(recipe, data->targets || !recipe_find(recipe, "data", "task"),
                    "data.task: goes with data.targets", failure));
    TRY(recipe_need(recipe, data->labels || !data->classes, "data.classes: needs data.labels",
                    failure));
    TRY(recipe_need(recipe, data->labels || !data_settings_mixes(data),
                    "data.mixup, data.cutmix: need data.labels", failure));
    TRY(recipe_need(recipe, !data->test_features == !data->test_labels || !data->labels,
                    "data.test_features: goes with data.test_labels", failure));
    TRY(recipe_need(recipe, !data->test_features == !data->test_targets || !data->targets,
                    "data.test_features: goes with data.test_targets", failure));
    return recipe_need(recipe, data->labels ? !data->test_targets : !data->test_labels,
                       "data.test_labels goes with data.labels, data.test_targets with "
                       "data.targets",
                       failure);
}

bool data_settings_own_mask(const struct data_settings *data)
{
    return data->mlm_probability > 0 && data->mask_token < 0;
}

bool data_settings_mixes(const struct data_settings *data)
{
    return data->mixup > 0 || data->cutmix > 0;
}

bool data_settings_augments(const struct data_settings *data)
{
    const struct augmentation *a = &data->augment;
    return a->random_crop || a->flip || a->random_resized_crop || a->degrees > 0 ||
           a->brightness > 0 || a->contrast > 0 || a->saturation > 0 || a->hue > 0;
}

int data_settings_check(const struct data_settings *data, const struct recipe *recipe,
                        struct failure *failure)
{
    static int (*const checks[])(const struct data_settings *, const struct recipe *,
                                 struct failure *) = {
        [DATA_IDX] = check_idx,       [DATA_IMAGES] = check_images, [DATA_TEXT] = check_tokens,
        [DATA_TOKENS] = check_tokens, [DATA_JSONL] = check_jsonl,   [DATA_CSV] = check_csv,
        [DATA_NPY] = check_npy,
    };
    TRY(check_kind(data, "data", recipe, failure));
    TRY(recipe_need(recipe, data->kind != DATA_LINES,
                    "data.kind: lines are of pairs: "
                    "contrastive.mode is missing",
                    failure));
    TRY(recipe_need(recipe, data->pairs == PAIRING_SECTION, "data.pairs: needs contrastive.mode",
                    failure));
    return checks[data->kind](data, recipe, failure);
}

/* Texts of pairs are samples of their own. */
static int check_side_texts(const struct data_settings *data, const char *section,
                            const struct recipe *recipe, struct failure *failure)
{
    static const char *const keys[] = {"lengths",         "stride",     "separator",
                                       "mlm_probability", "mask_token", "label"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct recipe_entry *entry = recipe_find(recipe, section, keys[i]);
        if (entry)
            return recipe_refuse(recipe, entry, failure, "is of no pairs");
    }
    TRY(recipe_need(recipe, data->path, "data.path: missing: the file of the texts", failure));
    return recipe_need(recipe, data->length,
                       "data.length: missing: the tokens of a sample, cut or padded", failure);
}

int data_settings_check_side(const struct data_settings *data, const char *section,
                             const struct recipe *recipe, struct failure *failure)
{
    TRY(check_kind(data, section, recipe, failure));
    TRY(recipe_need(recipe, !data_settings_mixes(data) && !data->mask,
                    "data.mixup, data.cutmix, data.mask: are of no pairs", failure));
    switch (data->kind) {
    case DATA_IDX:
        return check_idx(data, recipe, failure);
    case DATA_IMAGES:
        return check_images(data, recipe, failure);
    case DATA_JSONL:
    case DATA_LINES:
        return check_side_texts(data, section, recipe, failure);
    default:
        return failure_set(failure, CODE_USAGE,
                           "%s: %s.kind: pairs are of idx, images, jsonl or lines", recipe->name,
                           section);
    }
}

void data_settings_complete(struct data_settings *data)
{
    const struct lengths *lengths = &data->lengths;
    const bool text =
        data->kind == DATA_TEXT || data->kind == DATA_JSONL || data->kind == DATA_LINES;
    const bool bytes = text && !data->tokenizer && !data->vocabulary;
    if (data->held_out < 0)
        data->held_out = data->test_path || data->test_features ? 0 : 0.05;
    if (!data->tokens && (bytes || data->vocabulary))
        data->tokens = (bytes ? 256 : data->vocabulary) + data_settings_own_mask(data);
    if (bytes && !data->label && data->mlm_probability == 0)
        data->bytes_per_token = 1;
    if (lengths->count)
        data->length = lengths->length[lengths->count - 1];
    if (data->length)
        memcpy(data->shape, (int64_t[]){1, 1, data->length}, sizeof data->shape);
}
