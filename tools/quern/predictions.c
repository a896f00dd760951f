/* SPDX-License-Identifier: MIT */
#include "predictions.h"
#include "line.h"
#include "logits.h"
#include "npy.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MASK_CLASSES = 256, FIELD_BYTES = 2 * SAMPLE_NAME_BYTES };

/* What is told of a class or target, whether the largest come first, and how many of one hundred.
 */
static const struct kind {
    const char *what, *figure;
    bool ranked;
    const char *row; /* of the table: figure, class or target, file */
    double shown;    /* times this */
} kinds[] = {
    [PREDICT_CLASS] = {"class", "probability", true, "%9.2f %%  %-16s  %s", 100},
    [PREDICT_MASK] = {"class", "share", true, "%9.2f %%  %-16s  %s", 100},
    [PREDICT_SEVERAL] = {"class", "probability", false, "%9.2f %%  %-16s  %s", 100},
    [PREDICT_NUMBERS] = {"target", "value", false, "%11.6g  %-16s  %s", 1},
};

static bool has_masks(const struct predictions *p)
{
    return p->kind == PREDICT_MASK;
}

static const char *class_name(const struct predictions *p, int label, char number[16])
{
    if (label < p->names->count)
        return p->names->name[label];
    snprintf(number, 16, "%d", label);
    return number;
}

/* --- printing --- */

static void print_table(const struct predictions *p, const char *sample)
{
    char number[16];
    for (int i = 0; i < p->top; i++) {
        const int label = p->order[i];
        line_print(stdout, kinds[p->kind].row, kinds[p->kind].shown * p->share[label],
                   class_name(p, label, number), sample);
    }
}

/* A field as RFC 4180 quotes it. */
static const char *quote(char quoted[FIELD_BYTES], const char *text)
{
    char *to = quoted;
    *to++ = '"';
    for (; *text && to < quoted + FIELD_BYTES - 3; *to++ = *text++)
        if (*text == '"')
            *to++ = '"';
    strcpy(to, "\"");
    return quoted;
}

static void print_csv(const struct predictions *p, const char *sample)
{
    char number[16], rank[16], file[FIELD_BYTES], name[FIELD_BYTES];
    for (int i = 0; i < p->top; i++) {
        const int label = p->order[i];
        snprintf(rank, sizeof rank, "%d,", i + 1);
        line_print(stdout, "%s,%s%s,%.9g", quote(file, sample), kinds[p->kind].ranked ? rank : "",
                   quote(name, class_name(p, label, number)), p->share[label]);
    }
}

static void print_json(const struct predictions *p, const char *sample)
{
    char number[16];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", sample);
    cJSON *list = cJSON_AddArrayToObject(root, "predictions");
    for (int i = 0; list && i < p->top; i++) {
        const int label = p->order[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, kinds[p->kind].what, class_name(p, label, number));
        if (p->kind != PREDICT_NUMBERS)
            cJSON_AddNumberToObject(object, "label", label);
        cJSON_AddNumberToObject(object, kinds[p->kind].figure, p->share[label]);
        cJSON_AddItemToArray(list, object);
    }
    char *text = list ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    else
        failure_set(p->failure, CODE_FAILED, "out of memory");
    free(text);
}

static void print_head(const struct predictions *p)
{
    const struct kind *kind = &kinds[p->kind];
    if (p->form == PREDICTIONS_TABLE)
        printf("%11s  %-16s  file\n", kind->figure, kind->what);
    else if (p->form == PREDICTIONS_CSV)
        printf("file,%s%s,%s\n", kind->ranked ? "rank," : "", kind->what, kind->figure);
}

static void print_sample(const struct predictions *p, int64_t sample)
{
    static void (*const printers[])(const struct predictions *, const char *) = {
        [PREDICTIONS_TABLE] = print_table,
        [PREDICTIONS_JSON] = print_json,
        [PREDICTIONS_CSV] = print_csv,
    };
    char name[SAMPLE_NAME_BYTES];
    printers[p->form](p, samples_name(p->samples, sample, name));
}

/* --- one sample --- */

/* The class of each pixel, and the fraction of pixels that each class has. */
static bool take_mask(struct predictions *p)
{
    const int pixels = p->height * p->width;
    if (!logits_mask(p->mask, p->logits, p->classes, pixels))
        return false;
    memset(p->share, 0, (size_t)p->classes * sizeof *p->share);
    for (int i = 0; i < pixels; i++)
        p->share[p->mask[i]] += 1.0 / pixels;
    return true;
}

static bool take_numbers(struct predictions *p)
{
    for (int c = 0; c < p->classes; c++) {
        if (!isfinite(p->logits[c]))
            return false;
        p->share[c] = p->logits[c];
    }
    return true;
}

/* False: what the model gives is not finite. */
static bool take_logits(struct predictions *p)
{
    switch (p->kind) {
    case PREDICT_MASK:
        return take_mask(p);
    case PREDICT_SEVERAL:
        return logits_each(p->share, p->logits, p->classes);
    case PREDICT_NUMBERS:
        return take_numbers(p);
    default:
        return logits_share(p->share, p->logits, p->classes);
    }
}

/* Puts the `top` largest shares first, of equal ones the smaller label. */
static void rank(struct predictions *p)
{
    for (int c = 0; c < p->classes; c++)
        p->order[c] = c;
    for (int i = 0; i < p->top && kinds[p->kind].ranked; i++) {
        int best = i;
        for (int j = i + 1; j < p->classes; j++) {
            const double a = p->share[p->order[j]], b = p->share[p->order[best]];
            if (a > b || (a == b && p->order[j] < p->order[best]))
                best = j;
        }
        const int label = p->order[best];
        p->order[best] = p->order[i];
        p->order[i] = label;
    }
}

static struct masks masks_of(const struct predictions *p)
{
    return (struct masks){p->samples, p->out, p->mark, p->height, p->width, p->failure};
}

static int add_to_array(struct predictions *p)
{
    if (has_masks(p))
        return file_add(&p->array, p->mask, (size_t)p->height * (size_t)p->width, p->failure);
    for (int c = 0; c < p->classes; c++) {
        const float share = (float)p->share[c];
        TRY(file_add(&p->array, &share, sizeof share, p->failure));
    }
    return CODE_DONE;
}

static int take_one(struct predictions *p, int64_t sample)
{
    char name[SAMPLE_NAME_BYTES];
    const struct masks masks = masks_of(p);
    if (!take_logits(p))
        return failure_set(p->failure, CODE_FAILED, "%s: a prediction is not finite",
                           samples_name(p->samples, sample, name));
    rank(p);
    if (p->writes_masks)
        TRY(masks_write(&masks, sample, p->mask));
    if (p->writes_array)
        TRY(add_to_array(p));
    print_sample(p, sample);
    return p->failure->code;
}

static int64_t row_of(const struct predictions *p)
{
    return (int64_t)p->classes * (has_masks(p) ? p->height * p->width : 1);
}

qn_status predictions_take(void *user, const char *output, int64_t first, int64_t count,
                           const void *rows)
{
    struct predictions *p = user;
    const int64_t row = row_of(p), bytes = row * qn_dtype_size(p->dtype);
    (void)output;
    for (int64_t i = 0; i < count; i++) {
        qn_number_decode(p->dtype, (const char *)rows + i * bytes, row, p->logits);
        if (take_one(p, first + i))
            return QN_ERR_ARGUMENT;
    }
    return QN_OK;
}

/* --- beginning and end --- */

static int begin_array(struct predictions *p)
{
    const int64_t count = qn_dataset_describe(p->samples->dataset)->count;
    const qn_shape of_classes = {2, {count, p->classes}};
    const qn_shape of_masks = {3, {count, p->height, p->width}};
    TRY(npy_begin(&p->array, p->out, has_masks(p) ? QN_U8 : QN_F32,
                  has_masks(p) ? &of_masks : &of_classes, p->failure));
    p->writes_array = true;
    return CODE_DONE;
}

static int begin_out(struct predictions *p)
{
    const char *dot = p->out ? strrchr(p->out, '.') : NULL;
    const struct masks masks = masks_of(p);
    if (!p->out)
        return CODE_DONE;
    if (dot && strcmp(dot, ".npy") == 0)
        return begin_array(p);
    if (!has_masks(p))
        return failure_set(p->failure, CODE_USAGE,
                           "--out: %s: needs a name that ends with .npy; a folder is for masks",
                           p->out);
    p->writes_masks = true;
    return masks_open(&masks);
}

int predictions_open(struct predictions *p)
{
    const size_t classes = (size_t)p->classes;
    if (has_masks(p) && p->classes > MOST_MASK_CLASSES)
        return failure_set(p->failure, CODE_FAILED, "predict: masks of %d classes, %d can be",
                           p->classes, MOST_MASK_CLASSES);
    p->top = kinds[p->kind].ranked && p->top < p->classes ? p->top : p->classes;
    p->logits = calloc((size_t)row_of(p), sizeof *p->logits);
    p->share = calloc(classes, sizeof *p->share);
    p->order = calloc(classes, sizeof *p->order);
    p->mask = calloc((size_t)p->height * (size_t)p->width + 1, 1);
    if (!p->logits || !p->share || !p->order || !p->mask)
        return failure_set(p->failure, CODE_FAILED, "out of memory");
    TRY(begin_out(p));
    print_head(p);
    return CODE_DONE;
}

int predictions_close(struct predictions *p, int code)
{
    if (p->writes_array)
        code = file_end(&p->array, code, p->failure);
    free(p->logits);
    free(p->share);
    free(p->order);
    free(p->mask);
    return code;
}
