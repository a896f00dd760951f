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
    const char *row;    /* of the table: figure, class or target, file, mask */
    double shown;       /* times this */
    const char *number; /* what its number is called; NULL: it is not told */
    bool in_csv;        /* there, too */
} kinds[] = {
    [PREDICT_CLASS] = {"class", "probability", true, "%9.2f %%  %-16s  %s%s", 100, "label", false},
    [PREDICT_MASK] = {"class", "share", true, "%9.2f %%  %-16s  %s%s", 100, "label", false},
    [PREDICT_SEVERAL] = {"class", "probability", false, "%9.2f %%  %-16s  %s%s", 100, "label",
                         false},
    [PREDICT_NUMBERS] = {"target", "value", false, "%11.6g  %-16s  %s%s", 1, NULL, false},
    [PREDICT_TOKEN] = {"token", "probability", true, "%9.2f %%  %-16s  %s%s", 100, "id", true},
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

static void print_table(const struct predictions *p, const char *sample, int mask)
{
    char number[16], which[32] = "";
    if (mask)
        snprintf(which, sizeof which, ", mask %d", mask);
    for (int i = 0; i < p->top; i++) {
        const struct told *told = &p->order[i];
        line_print(stdout, kinds[p->kind].row, kinds[p->kind].shown * told->share,
                   class_name(p, told->label, number), sample, which);
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

static void print_csv(const struct predictions *p, const char *sample, int mask)
{
    char number[16], which[16] = "", rank[16] = "", id[16] = "";
    char file[FIELD_BYTES], name[FIELD_BYTES];
    if (mask)
        snprintf(which, sizeof which, "%d,", mask);
    for (int i = 0; i < p->top; i++) {
        const struct told *told = &p->order[i];
        if (kinds[p->kind].ranked)
            snprintf(rank, sizeof rank, "%d,", i + 1);
        if (kinds[p->kind].in_csv)
            snprintf(id, sizeof id, "%d,", told->label);
        line_print(stdout, "%s,%s%s%s,%s%.9g", quote(file, sample), which, rank,
                   quote(name, class_name(p, told->label, number)), id, told->share);
    }
}

static void print_json(const struct predictions *p, const char *sample, int mask)
{
    const struct kind *kind = &kinds[p->kind];
    char number[16];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", sample);
    if (mask)
        cJSON_AddNumberToObject(root, "mask", mask);
    cJSON *list = cJSON_AddArrayToObject(root, "predictions");
    for (int i = 0; list && i < p->top; i++) {
        const struct told *told = &p->order[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, kind->what, class_name(p, told->label, number));
        if (kind->number)
            cJSON_AddNumberToObject(object, kind->number, told->label);
        cJSON_AddNumberToObject(object, kind->figure, told->share);
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
        printf("file,%s%s%s,%s%s\n", samples_mask(p->samples, 0) ? "mask," : "",
               kind->ranked ? "rank," : "", kind->what, kind->in_csv ? "id," : "", kind->figure);
}

static void print_sample(const struct predictions *p, int64_t sample)
{
    static void (*const printers[])(const struct predictions *, const char *, int) = {
        [PREDICTIONS_TABLE] = print_table,
        [PREDICTIONS_JSON] = print_json,
        [PREDICTIONS_CSV] = print_csv,
    };
    char name[SAMPLE_NAME_BYTES];
    printers[p->form](p, samples_name(p->samples, sample, name), samples_mask(p->samples, sample));
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

/* The larger share, of equal ones the smaller label. */
static int compare(const void *a, const void *b)
{
    const struct told *one = a, *other = b;
    if (one->share != other->share)
        return one->share > other->share ? -1 : 1;
    return (one->label > other->label) - (one->label < other->label);
}

static void rank(struct predictions *p)
{
    for (int c = 0; c < p->classes; c++)
        p->order[c] = (struct told){p->share[c], c};
    if (kinds[p->kind].ranked)
        qsort(p->order, (size_t)p->classes, sizeof *p->order, compare);
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
