/* SPDX-License-Identifier: MIT
 *
 * What a recipe says, read and checked against the table of all keys.
 */
#ifndef QUERN_TOOL_SETTINGS_H
#define QUERN_TOOL_SETTINGS_H

#include "recipe.h"
#include "value.h"

#include <inttypes.h>
#include <quern/model.h>
#include <quern/plan.h>
#include <quern/schedule.h>
#include <quern/train.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_MODEL_OPTIONS = 32 };

struct channel_values {
    float value[QN_MODEL_MAX_CHANNELS];
    int count; /* 0: not given; 1: the same for all channels */
};

/* What the files are. */
enum data_kind {
    DATA_IDX,
    DATA_IMAGES,
    DATA_TEXT,
    DATA_TOKENS,
    DATA_JSONL,
    DATA_CSV,
    DATA_NPY,
    DATA_LINES, /* a text a line, for pairs */
};
/* Where the passages of pairs come from. */
enum pairing {
    PAIRING_SECTION, /* the section [passages] */
    PAIRING_HALVES,  /* the right halves of the images, whose left halves are the queries */
};
/* What is told of a row of a CSV or npy file, where it is no class. */
enum target_task { TARGET_REGRESSION, TARGET_MULTI_LABEL };
enum image_channels { IMAGE_RGB, IMAGE_GREY };
enum token_files { TOKEN_FILE_LLM_C, TOKEN_FILE_U16, TOKEN_FILE_U32 };

/* What is random about the images of the training, as in qn_image_params; all 0: nothing. */
struct augmentation {
    bool random_crop, flip, random_resized_crop;
    double scale[2], ratio[2], degrees;
    double brightness, contrast, saturation, hue;
};

struct data_settings {
    enum data_kind kind;
    const char *name, *path, *images, *labels, *test_images, *test_labels;
    /* Of images, as in qn_image_params; pairs are height and width. */
    const char *test_path, *mask;
    enum image_channels channels;
    int size[2], crop[2];
    struct augmentation augment;
    struct channel_values mean, deviation;
    /* Of text, tokens and JSON lines, as in qn_token_params. */
    enum token_files type;
    int64_t length, stride, separator; /* separator below 0: there is none */
    struct lengths lengths;            /* without any: all samples have one */
    double held_out;
    double bytes_per_token; /* 0: nobody knows */
    double mlm_probability; /* of a token to be asked for; 0: the next one is */
    int64_t mask_token;     /* below 0: not named */
    const char *tokenizer;  /* of text and JSON lines: a file or folder; NULL: */
    int64_t vocabulary;     /* as many tokens are made of the text; 0: bytes are tokens */
    int64_t tokens;         /* that there are; 0: as the data says */
    const char *field;      /* of JSON lines: where the text is */
    const char *label;      /* where its class is; NULL: nobody asks for it. Of CSV files, too */
    /* Of CSV files: lists for names_read; NULL: none, of features all other columns. */
    const char *target, *features; /* of npy: a file */
    enum target_task task;
    bool standardize;
    /* Of npy: files. */
    const char *targets, *test_features, *test_targets;
    /* Of all. */
    const char *origin; /* where a `path` that is missing comes from; NULL: nobody says */
    int64_t shape[3];   /* channels, height, width; 0: as the data says. Of tokens: 1, 1, length */
    int64_t classes;    /* of samples or pixels; 0: as the data says */
    double validation;  /* of the training split; 0: none is kept for it */
    double mixup, cutmix; /* of images, as in qn_mix_params; both 0: they are not mixed */
    enum pairing pairs;
};

/* How a dual encoder is trained, as in qn_contrastive_params; without a mode the recipe is of no
 * dual encoder. */
enum contrastive_mode {
    CONTRASTIVE_NONE,
    CONTRASTIVE_AUTO, /* whole where that fits the budget, else gradcache */
    CONTRASTIVE_WHOLE,
    CONTRASTIVE_GRADCACHE,
    CONTRASTIVE_ACCUMULATE,
    CONTRASTIVE_CONTACCUM,
};
enum contrastive_score { SCORE_COSINE, SCORE_DOT };
struct contrastive_settings {
    enum contrastive_mode mode;
    enum contrastive_score score;
    double temperature;
    bool learned, symmetric, duplicates, tied, query_bank, local_mean, forget;
    int64_t dim; /* numbers of a vector */
    int64_t bank, bank_queries, start;
    /* Of drift, as in qn_drift_params. */
    int64_t drift_every; /* updates; 0: never */
    int64_t drift_ages, drift_entries;
    double drift_threshold;
    bool cap;
};

/* What evaluations measure, of what the data and the model have. Labels that are ignored do not
 * count. */
enum figure {
    FIGURE_ACCURACY,   /* fraction whose largest logit, the first of equal ones, is the label's:
                          of images, pixels or tokens; of models that give logits. Of targets that
                          are 0 or 1: fraction told right */
    FIGURE_LOSS,       /* mean of the same */
    FIGURE_OVERLAP,    /* of masks: mean intersection over union of the classes */
    FIGURE_PERPLEXITY, /* of text and tokens */
    FIGURE_BITS,       /* the same, per byte, where it is known how many bytes a token has */
    FIGURE_SQUARED,    /* of targets that are numbers: mean squared error */
    FIGURE_ABSOLUTE,   /* mean absolute error */
    FIGURE_R2,         /* coefficient of determination, the mean over the targets */
    FIGURE_F1,         /* of targets that are 0 or 1 */
    FIGURE_MRR,        /* of pairs: mean reciprocal rank of a query's own passage among all */
    FIGURE_RECALL_1,   /* fraction of queries whose own passage is found first */
    FIGURE_RECALL_10,  /* among the first 10 */
    FIGURE_RECALL_100, /* among the first 100 */
    FIGURES,
};

/* How often something is done. */
enum interval_unit { EVERY_EPOCHS, EVERY_UPDATES, EVERY_SECONDS, EVERY_MINUTES };
struct interval {
    int64_t count; /* 0: never */
    enum interval_unit unit;
};

/* A batch that follows the noise of the gradient, and the norms of an update that it has not been
 * told of; without samples: there are none. */
struct adaptive {
    qn_adaptive_batch batch;
    qn_gradient_norms kept;
};
/* How a checkpoint keeps it: the batch, updates measured, signal, noise; then the norms. */
#define ADAPTIVE_PRINT "%" PRId64 " %" PRId64 " %.17g %.17g  %" PRId64 " %" PRId64 " %.17g %.17g"
#define ADAPTIVE_SCAN "%" SCNd64 " %" SCNd64 " %lf %lf %" SCNd64 " %" SCNd64 " %lf %lf"

/* How a checkpoint keeps a figure that is watched: whether there is a best, the best, figures since
 * then, figures since then or since the rate was made smaller, and how often it was. */
#define IMPROVEMENT_PRINT "%d %.17g %" PRId64 " %" PRId64 " %" PRId64
#define IMPROVEMENT_SCAN "%d %lf %" SCNd64 " %" SCNd64 " %" SCNd64

struct train_settings {
    qn_batch_schedule batches; /* without steps: as `adaptive` says */
    struct adaptive adaptive;
    int64_t steps, epochs; /* one of them is above 0 */
    int64_t seed;
    qn_optimizer optimizer;
    double weight_decay, clip;
    const char *adapters;       /* that it begins with, a folder; NULL: random ones */
    const char *freeze;         /* patterns of names; NULL: none */
    const char *norm_groups;    /* as in qn_plan_params; NULL: none */
    const char *rates, *decays; /* lists for value_factor; NULL: none */
    const char *weights;        /* that it begins with: a file or a folder; NULL: random ones */
    qn_lr_schedule schedule;    /* its `total` is not in the recipe */
    struct interval save_every; /* besides the ends of epochs */
    struct interval eval_every;
    int64_t keep; /* newest checkpoints; 0: the last and the best alone */
    int best;     /* enum figure, by which the best one is told; below 0: as the data says */
    qn_improvement improvement; /* of that figure */
};

/* How far kernels are tuned before a plan is made. */
enum tune_mode {
    TUNE_QUICK,  /* what nobody timed yet is, for a few seconds */
    TUNE_STORED, /* what was found before is used */
    TUNE_OFF,    /* every kernel takes its default */
};

struct memory_settings {
    int64_t budget; /* 0: not given */
    int64_t micro_batch;
    qn_recompute_mode recompute;
    qn_plan_effort effort;
    const char *chosen, *variants;
    qn_dtype storage, parameter_storage;
    enum tune_mode tune;
    bool early_updates, park;
};

/* Of several devices, in the words of the recipe, borrowed from it (members.h). */
struct group_settings {
    const char *devices, *share; /* NULL: not given */
    bool same_device;
    int64_t timeout; /* seconds; 0: not given */
    enum shard_mode {
        SHARD_OPTIMIZER, /* each member has the optimizer's state of its own parameters alone */
        SHARD_NONE,      /* each has all of it */
    } shard;
};

/* Texts are borrowed from the recipe. */
struct model_settings {
    const char *name;
    qn_model_option options[MAX_MODEL_OPTIONS];
    int n_options;
};
struct settings {
    const char *model;
    qn_model_option options[MAX_MODEL_OPTIONS];
    int n_options;
    struct data_settings data;
    /* Of dual encoders: `model` and `data` are those of queries, these of passages. */
    struct contrastive_settings contrastive;
    struct model_settings passage_model; /* without a name: as `model` */
    struct data_settings passages;       /* what is not said is as in `data` */
    struct data_settings negatives;      /* hard ones: as in `passages` */
    bool has_negatives;
    struct train_settings train;
    struct memory_settings memory;
    struct group_settings group;
    /* What the note of a checkpoint adds. */
    const char *samples; /* data_digest of the training split; NULL: not known */
    int64_t n_targets;   /* of npy files; 0: not known */
    bool real;           /* their images are f32 */
};

/* Reads and checks all of a recipe. */
int settings_read(struct settings *settings, const struct recipe *recipe, struct failure *failure);

/* Sets "section.key" of a recipe as the command line wants it; what contradicts it (epochs against
 * steps) is removed. */
int settings_override(struct recipe *recipe, const char *name, const char *value,
                      const char *option, struct failure *failure);

/* All keys with their meanings, those of the models too, for people. */
void settings_help(FILE *out);

/* Whether what is learned are tokens, as of text. */
bool settings_learns_tokens(const struct settings *settings);

/* The value of a key of the model's own; NULL: it is not given. */
const char *settings_option(const struct settings *settings, const char *key);

/* The number of updates. */
int64_t settings_total(const struct train_settings *train, int64_t samples_per_epoch);

/* The parameters of the plan. */
qn_plan_params settings_plan(const struct settings *settings);

#endif
