/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "eval_report.h"
#include "line.h"
#include "metrics.h"
#include "trained.h"

#include <stdlib.h>

/* What came out; names are those of folders, NULL of numbered classes. */
struct result {
    struct evaluation all;
    struct detail detail; /* without a confusion matrix: of tokens, which are too many */
    int classes;
    const char *const *names;
};

static int64_t count_labels(const struct result *result, int class)
{
    int64_t count = 0;
    for (int c = 0; c < result->classes; c++)
        count += result->detail.confusion[(int64_t) class * result->classes + c];
    return count;
}

/* The fraction of a class's labels that were recognised. */
static double recall(const struct result *result, int class)
{
    const int64_t right = result->detail.confusion[(int64_t) class * result->classes + class];
    return (double)right / (double)count_labels(result, class);
}

static cJSON *classes_json(const struct result *result)
{
    cJSON *list = cJSON_CreateArray();
    for (int c = 0; c < result->classes; c++) {
        cJSON *object = cJSON_CreateObject();
        if (result->names)
            cJSON_AddStringToObject(object, "name", result->names[c]);
        cJSON_AddNumberToObject(object, "labels", (double)count_labels(result, c));
        cJSON_AddNumberToObject(object, "accuracy", recall(result, c));
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static int print_json(const struct session *s, const struct result *result)
{
    cJSON *object = summary_json(s, &result->all);
    if (result->detail.confusion)
        cJSON_AddItemToObject(object, "test_classes", classes_json(result));
    char *text = object ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    if (!text)
        return failure_set(s->failure, CODE_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return CODE_DONE;
}

static void print_classes(const struct result *result)
{
    printf("  accuracy      labels  class\n");
    for (int c = 0; c < result->classes; c++) {
        const int64_t labels = count_labels(result, c);
        if (!labels)
            continue;
        printf("  %6.2f %%  %10lld  ", 100 * recall(result, c), (long long)labels);
        if (result->names)
            line_print(stdout, "%s", result->names[c]);
        else
            printf("%d\n", c);
    }
}

static void print_text(const struct result *result)
{
    char text[EVALUATION_TEXT_BYTES];
    printf("%s  (%lld samples)\n", evaluation_text(&result->all, text),
           (long long)result->all.samples);
    if (result->detail.confusion)
        print_classes(result);
}

static int write_report(const struct session *s, const struct result *result, const char *weights,
                        const char *path)
{
    const struct eval_report report = {.session = s,
                                       .evaluation = &result->all,
                                       .detail = &result->detail,
                                       .names = result->names,
                                       .weights = weights};
    return eval_report_write(&report, path);
}

static int measure(struct session *s, const char *weights, const struct arguments *a)
{
    const qn_column *labels = qn_dataset_column(s->data.train, "labels");
    const bool named = labels && labels->classes == s->data.model.classes;
    const bool targets = s->data.model.targets > 0;
    const bool by_class = !settings_learns_tokens(&s->settings) && !targets && !s->data.pairs;
    const char *report = a->value[OPTION_REPORT];
    struct result result = {.classes = s->data.model.classes,
                            .names = named ? labels->class_names : NULL,
                            .detail = {.wants_mistakes = report != NULL}};
    if (report && !by_class)
        return failure_set(s->failure, CODE_USAGE, "--report: the model %s tells %s, no classes",
                           s->settings.model,
                           s->data.pairs ? "pairs"
                           : targets     ? "targets"
                                         : "tokens");
    int code = evaluate(s, &result.all, by_class ? &result.detail : NULL);
    if (code == CODE_DONE && report)
        code = write_report(s, &result, weights, report);
    if (code == CODE_DONE && a->value[OPTION_JSON])
        code = print_json(s, &result);
    else if (code == CODE_DONE)
        print_text(&result);
    detail_free(&result.detail);
    return code;
}

static int measure_weights(struct session *s, const struct trained *trained,
                           const struct arguments *a)
{
    TRY(data_open(&s->data, &s->settings, &s->recipe, s->failure));
    if (s->data.test)
        s->data.evaluated = s->data.test;
    if (!s->data.evaluated)
        return failure_set(s->failure, CODE_USAGE, "%s: data.%s: missing", s->recipe.name,
                           data_test_key(s->settings.data.kind));
    TRY(trained_load(trained, s, a));
    return measure(s, trained->weights, a);
}

static int run(const struct arguments *a, struct failure *failure)
{
    struct trained trained = {0};
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    int code = trained_open(&trained, session, a, "eval");
    if (code == CODE_DONE)
        code = measure_weights(session, &trained, a);
    session_close(session);
    trained_close(&trained);
    free(session);
    return code;
}

const struct command command_eval = {
    "eval",
    "RECIPE|DIR",
    "accuracy and loss of trained weights on the test split",
    "Evaluates weights on the test split, or where there is none on what the training kept for\n"
    "validation (data.validation): those of --weights with a RECIPE, or those of a\n"
    "checkpoint's folder given in its place, which has its own recipe. A file is checked against\n"
    "the checksums.txt beside it, if that names it. Tells accuracy and loss, and the accuracy of\n"
    "each class, by its name where folders of images are the classes; of text perplexity, and\n"
    "bits per byte where it is known how many bytes a token has; of numbers (data.target) MSE, "
    "MAE\n"
    "and R2, of several classes F1. --report writes a page with what\n"
    "was taken for what and the worst mistakes.",
    true,
    run,
    {OPTION_WEIGHTS, OPTION_DATA, OPTION_BUDGET, OPTION_BATCH, OPTION_MICRO_BATCH, OPTION_DEVICE,
     OPTION_STORAGE, OPTION_SET, OPTION_JSON, OPTION_REPORT, OPTION_COUNT},
};
