/* SPDX-License-Identifier: MIT */
#include "history.h"
#include "file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Updates above this are no whole numbers in JSON. */
static const double LARGEST_UPDATE = 9007199254740992.0;

struct reader {
    struct history *history;
    const char *path;
    int64_t line; /* from 1 */
    int hint;     /* where the next figure is likely to be: behind the last one */
    struct failure *failure;
};

static int refuse(const struct reader *r, const char *field, const char *reason)
{
    return failure_set(r->failure, CODE_FAILED, "%s:%" PRId64 ": %s%s%s", r->path, r->line, field,
                       *field ? ": " : "", reason);
}

/* --- figures --- */

static bool is_figure(const struct figure_series *f, enum figure_kind kind, const char *group,
                      const char *name)
{
    return f->kind == kind && strcmp(f->name, name) == 0 && strcmp(f->group, group) == 0;
}

/* Lines have the same figures in the same order: the search begins behind the last one found. */
static int find(struct reader *r, struct series **series, enum figure_kind kind, const char *group,
                const char *name)
{
    struct history *h = r->history;
    for (int i = 0; i < h->n_figures; i++) {
        const int at = (r->hint + i) % h->n_figures;
        if (is_figure(&h->figures[at], kind, group, name)) {
            r->hint = at + 1;
            *series = &h->figures[at].series;
            return CODE_DONE;
        }
    }
    if (h->n_figures == MAX_FIGURES)
        return refuse(r, name, "more figures than a report has room for, 256");
    struct figure_series *f = &h->figures[h->n_figures++];
    f->kind = kind;
    if (snprintf(f->group, sizeof f->group, "%s", group) >= (int)sizeof f->group ||
        snprintf(f->name, sizeof f->name, "%s", name) >= (int)sizeof f->name)
        return refuse(r, "", "a name of more than 127 bytes");
    *series = &f->series;
    return CODE_DONE;
}

/* What is no number is none of ours; null is a number that was not finite. */
static int add(struct reader *r, enum figure_kind kind, const char *group, double update,
               const cJSON *value)
{
    struct series *series;
    if (!cJSON_IsNumber(value) && !cJSON_IsNull(value) && !cJSON_IsBool(value))
        return CODE_DONE;
    TRY(find(r, &series, kind, group, value->string));
    const double y = cJSON_IsNull(value)   ? NAN
                     : cJSON_IsBool(value) ? cJSON_IsTrue(value)
                                           : value->valuedouble;
    return series_add(series, update, y)
               ? CODE_DONE
               : failure_set(r->failure, CODE_FAILED, "%s: out of memory", r->path);
}

static int read_whole(const struct reader *r, const cJSON *object, const char *key, double *number)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0) ||
        value->valuedouble > LARGEST_UPDATE || floor(value->valuedouble) != value->valuedouble)
        return refuse(r, key, value ? "not a whole number from 0 on" : "is missing");
    *number = value->valuedouble;
    return CODE_DONE;
}

/* --- lines --- */

/* Figures of updates and evaluations that are gone over again. The evaluation after an update has
 * its number plus one, as the update itself has here. */
static void go_back(struct history *h, double update)
{
    for (int i = 0; i < h->n_figures; i++)
        if (h->figures[i].kind != FIGURE_DRIFT)
            series_cut(&h->figures[i].series, update);
}

static int read_update(struct reader *r, const cJSON *object)
{
    static const char *const needed[] = {"loss", "lr", "grad_norm", "samples", "seconds"};
    double step;
    TRY(read_whole(r, object, "step", &step));
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, needed[i]);
        if (!cJSON_IsNumber(value) && !cJSON_IsNull(value))
            return refuse(r, needed[i], value ? "not a number" : "is missing");
    }
    go_back(r->history, step + 1);
    for (const cJSON *value = object->child; value; value = value->next) {
        if (strcmp(value->string, "step") == 0)
            continue;
        TRY(add(r, FIGURE_UPDATE, "", step + 1, value));
        for (const cJSON *part = cJSON_IsObject(value) ? value->child : NULL; part;
             part = part->next)
            TRY(add(r, FIGURE_GROUP, value->string, step + 1, part));
    }
    return CODE_DONE;
}

static int read_evaluation(struct reader *r, const cJSON *object)
{
    double updates;
    if (!cJSON_IsObject(object))
        return refuse(r, "evaluation", "not an object");
    TRY(read_whole(r, object, "updates", &updates));
    for (int i = 0; i < r->history->n_figures; i++)
        if (r->history->figures[i].kind == FIGURE_EVALUATION)
            series_cut(&r->history->figures[i].series, updates);
    for (const cJSON *value = object->child; value; value = value->next)
        if (strcmp(value->string, "updates") != 0 && !cJSON_IsBool(value))
            TRY(add(r, FIGURE_EVALUATION, "", updates, value));
    return CODE_DONE;
}

/* Numbers of one age, which is above those before it. */
static int read_age(struct reader *r, const cJSON *object, double *last)
{
    double age;
    if (!cJSON_IsObject(object))
        return refuse(r, "drift", "ages: not a list of objects");
    TRY(read_whole(r, object, "age", &age));
    if (!(age > *last))
        return refuse(r, "age", "not above the one before");
    *last = age;
    for (const cJSON *value = object->child; value; value = value->next)
        if (strcmp(value->string, "age") != 0)
            TRY(add(r, FIGURE_DRIFT, "", age, value));
    return CODE_DONE;
}

/* {"update": N, "ages": [{"age": N, "queries": COSINE, "passages": COSINE}, ...]} */
static int read_drift(struct reader *r, const cJSON *object)
{
    const cJSON *ages = cJSON_GetObjectItemCaseSensitive(object, "ages");
    double last = -1;
    if (!cJSON_IsArray(ages))
        return refuse(r, "drift", "ages: not a list of objects");
    for (int i = 0; i < r->history->n_figures; i++)
        if (r->history->figures[i].kind == FIGURE_DRIFT)
            r->history->figures[i].series.count = 0;
    for (const cJSON *age = ages->child; age; age = age->next)
        TRY(read_age(r, age, &last));
    return CODE_DONE;
}

/* Moves a member of the line's object into the history. */
static int take(const struct reader *r, cJSON **to, cJSON *line, const char *key)
{
    cJSON *object = cJSON_DetachItemFromObjectCaseSensitive(line, key);
    if (!object)
        return CODE_DONE;
    cJSON_Delete(*to);
    *to = object;
    return cJSON_IsObject(object) ? CODE_DONE : refuse(r, key, "not an object");
}

/* Those of the newest plan. */
static int take_members(const struct reader *r, cJSON *line)
{
    struct history *h = r->history;
    const cJSON *one;
    cJSON_Delete(h->members);
    h->members = cJSON_DetachItemFromObjectCaseSensitive(line, "members");
    if (h->members && !cJSON_IsArray(h->members))
        return refuse(r, "members", "not a list of objects");
    cJSON_ArrayForEach(one, h->members) if (!cJSON_IsObject(one)) return refuse(
        r, "members", "not a list of objects");
    return CODE_DONE;
}

static int read_others(struct reader *r, cJSON *line)
{
    struct history *h = r->history;
    if (cJSON_HasObjectItem(line, "plan")) {
        cJSON_Delete(h->summary);
        h->summary = NULL;
        TRY(take_members(r, line));
    }
    TRY(take(r, &h->plan, line, "plan"));
    TRY(take(r, h->beginning ? &h->environment : &h->beginning, line, "environment"));
    TRY(take(r, &h->profile, line, "profile"));
    TRY(take(r, &h->changed, line, "changed"));
    return take(r, &h->summary, line, "summary");
}

static int read_object(struct reader *r, cJSON *line)
{
    const cJSON *evaluation = cJSON_GetObjectItemCaseSensitive(line, "evaluation");
    const cJSON *drift = cJSON_GetObjectItemCaseSensitive(line, "drift");
    return cJSON_HasObjectItem(line, "step") ? read_update(r, line)
           : evaluation                      ? read_evaluation(r, evaluation)
           : drift                           ? read_drift(r, drift)
                                             : read_others(r, line);
}

static int read_line(struct reader *r, const char *line, size_t length, bool ended)
{
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithLengthOpts(line, length, &end, false);
    while (object && end < line + length && (*end == ' ' || *end == '\t' || *end == '\r'))
        end++;
    int code = CODE_DONE;
    if (cJSON_IsObject(object) && end == line + length)
        code = read_object(r, object);
    else if (ended)
        code = refuse(r, "", object ? "not one JSON object" : "not JSON");
    else
        r->history->cut_line = r->line;
    cJSON_Delete(object);
    return code;
}

static int read_lines(struct reader *r, const char *text, size_t size)
{
    for (const char *at = text, *past = text + size; at < past;) {
        const char *end = memchr(at, '\n', (size_t)(past - at));
        r->line++;
        TRY(read_line(r, at, (size_t)((end ? end : past) - at), end != NULL));
        at = end ? end + 1 : past;
    }
    return r->history->plan || r->history->n_figures || r->history->summary
               ? CODE_DONE
               : failure_set(r->failure, CODE_FAILED,
                             "%s: no metrics of a training: neither a plan nor an update", r->path);
}

int history_read(struct history *h, const char *path, struct failure *failure)
{
    struct reader reader = {.history = h, .path = path, .failure = failure};
    const void *text;
    size_t size;
    TRY(file_map(&text, &size, path, failure));
    const int code = read_lines(&reader, text, size);
    file_unmap(text, size);
    return code;
}

void history_free(struct history *h)
{
    for (int i = 0; i < h->n_figures; i++)
        series_free(&h->figures[i].series);
    h->n_figures = 0;
    cJSON_Delete(h->plan);
    cJSON_Delete(h->members);
    cJSON_Delete(h->beginning);
    cJSON_Delete(h->environment);
    cJSON_Delete(h->profile);
    cJSON_Delete(h->summary);
    cJSON_Delete(h->changed);
    h->plan = h->members = h->beginning = h->environment = h->profile = h->summary = h->changed =
        NULL;
}

static const struct series *find_in(const struct history *h, enum figure_kind kind,
                                    const char *group, const char *name)
{
    for (int i = 0; i < h->n_figures; i++)
        if (is_figure(&h->figures[i], kind, group, name))
            return &h->figures[i].series;
    return NULL;
}

const struct series *history_find(const struct history *h, enum figure_kind kind, const char *name)
{
    return find_in(h, kind, "", name);
}

const struct series *history_group(const struct history *h, const char *group, const char *name)
{
    return find_in(h, FIGURE_GROUP, group, name);
}
