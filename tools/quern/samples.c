/* SPDX-License-Identifier: MIT */
#include "samples.h"
#include "file.h"

#include <string.h>
#include <strings.h>

static bool ends_with(const char *path, const char *const *endings)
{
    const char *dot = strrchr(path, '.');
    for (; dot && *endings; endings++)
        if (strcasecmp(dot, *endings) == 0)
            return true;
    return false;
}

static bool is_array(const char *path)
{
    static const char *const endings[] = {".npy", NULL};
    return ends_with(path, endings);
}

static bool is_picture(const char *path)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", NULL};
    return file_is_folder(path) || ends_with(path, endings);
}

/* As evaluations read them; where the data has no size of its own, as the model wants them. */
static int open_pictures(struct samples *samples, const struct session *s, char *const *files,
                         int count)
{
    const qn_model_data *model = &s->data.model;
    const struct data_settings *data = &s->settings.data;
    const bool sized = data->size[0] || data->crop[0];
    qn_image_params params = {.log = failure_log(s->failure),
                              .files = (const char *const *)files,
                              .n_files = count,
                              .channels = model->channels,
                              .size = {model->height, model->width},
                              .mask = data->mask};
    if (model->channels != 1 && model->channels != 3)
        return failure_set(s->failure, CODE_FAILED,
                           "%s: is a picture, but the model looks at %d channels", files[0],
                           model->channels);
    if (sized) {
        memcpy(params.size, data->size, sizeof params.size);
        memcpy(params.crop, data->crop, sizeof params.crop);
    }
    TRY_LIBRARY(s->failure, NULL, qn_dataset_open_images(&samples->dataset, &params));
    return CODE_DONE;
}

/* All samples are in one file. */
static int take_file(struct samples *samples, const struct session *s, char *const *files,
                     int count)
{
    if (count > 1)
        return failure_set(s->failure, CODE_USAGE,
                           "%s: one file too many: %s is no picture, and has all samples", files[1],
                           files[0]);
    samples->file = files[0];
    return CODE_DONE;
}

/* An array of NumPy's: images, or rows with as many numbers as the training had. */
static int open_array(struct samples *samples, const struct session *s, char *const *files)
{
    const struct features *features = &s->data.features;
    const qn_npy_params params = {.log = failure_log(s->failure),
                                  .features = files[0],
                                  .n_features = features->count,
                                  .mean = features->mean,
                                  .deviation = features->deviation};
    TRY_LIBRARY(s->failure, NULL, qn_dataset_open_npy(&samples->dataset, &params));
    return CODE_DONE;
}

static int open_images(struct samples *samples, const struct session *s, char *const *files,
                       int count)
{
    const qn_dataset_params params = {
        .log = failure_log(s->failure), .images = files[0], .no_labels = true};
    for (int i = 0; i < count; i++)
        if (is_picture(files[i]))
            return open_pictures(samples, s, files, count);
    TRY(take_file(samples, s, files, count));
    if (is_array(files[0]))
        return open_array(samples, s, files);
    TRY_LIBRARY(s->failure, NULL, qn_dataset_open(&samples->dataset, &params));
    return CODE_DONE;
}

/* Each line is a text, or an object of JSON with one. */
static int open_texts(struct samples *samples, const struct session *s, char *const *files,
                      int count)
{
    static const char *const json[] = {".jsonl", ".json", NULL};
    const struct data_settings *data = &s->settings.data;
    const qn_json_line_params params = {.log = failure_log(s->failure),
                                        .path = files[0],
                                        .text = data->field,
                                        .tokenizer = s->data.text.tokenizer,
                                        .length = data->length,
                                        .plain = !ends_with(files[0], json)};
    TRY(take_file(samples, s, files, count));
    samples->lines = true;
    TRY_LIBRARY(s->failure, NULL, qn_dataset_open_json_lines(&samples->dataset, &params));
    return CODE_DONE;
}

/* Rows with the columns that the model looks at, and any others. */
static int open_rows(struct samples *samples, const struct session *s, char *const *files,
                     int count)
{
    const struct features *features = &s->data.features;
    const qn_csv_params params = {.log = failure_log(s->failure),
                                  .path = files[0],
                                  .n_features = features->count,
                                  .features = (const char *const *)features->name,
                                  .mean = features->mean,
                                  .deviation = features->deviation};
    TRY(take_file(samples, s, files, count));
    if (is_array(files[0]))
        return open_array(samples, s, files);
    TRY_LIBRARY(s->failure, NULL, qn_dataset_open_csv(&samples->dataset, &params));
    return CODE_DONE;
}

/* Each line is a text that is asked for tokens. */
static int open_prompts(struct samples *samples, struct session *s, char *const *files, int count)
{
    TRY(take_file(samples, s, files, count));
    samples->lines = true;
    TRY(prompts_open(&samples->prompts, s, files[0]));
    prompts_describe(&samples->prompts, s);
    return prompts_dataset(&samples->prompts, s, &samples->dataset);
}

int samples_open(struct samples *samples, struct session *s, char *const *files, int count)
{
    qn_model_data *model = &s->data.model;
    *samples = (struct samples){0};
    if (settings_learns_tokens(&s->settings))
        return open_prompts(samples, s, files, count);
    model->predict = true;
    return (model->features ? open_rows
            : model->tokens ? open_texts
                            : open_images)(samples, s, files, count);
}

void samples_close(struct samples *samples)
{
    qn_dataset_close(&samples->dataset);
    prompts_close(&samples->prompts);
}

const char *samples_name(const struct samples *samples, int64_t sample,
                         char name[SAMPLE_NAME_BYTES])
{
    const char *file = qn_dataset_sample_name(samples->dataset, sample);
    const struct asked *asked = samples->prompts.asked;
    const int64_t row = asked ? asked[sample].line : sample;
    if (file)
        snprintf(name, SAMPLE_NAME_BYTES, "%s", file);
    else
        snprintf(name, SAMPLE_NAME_BYTES, samples->lines ? "%s:%lld" : "%s[%lld]", samples->file,
                 (long long)row + samples->lines);
    return name;
}

int samples_mask(const struct samples *samples, int64_t sample)
{
    return samples->prompts.asked ? samples->prompts.asked[sample].mask : 0;
}
