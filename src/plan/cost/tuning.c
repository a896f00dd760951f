/* SPDX-License-Identifier: MIT */
#include "plan/cost/tuning.h"

#include "base/text.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1 };
/* JSON numbers are doubles: larger batches are not exact. */
static const double most_batch = 0x1p53;

/* --- the table --- */

/* The list with room for one more item; NULL when out of memory. */
static void *grown(struct qn_arena *arena, void *list, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    const int more = *capacity ? 2 * *capacity : 32;
    void *larger = qn_arena_alloc(arena, (size_t)more, size);
    if (!larger)
        return NULL;
    if (count)
        memcpy(larger, list, (size_t)count * size);
    *capacity = more;
    return larger;
}

/* Copies the texts that the fields point to. */
static bool own(struct qn_arena *arena, const char **fields[], int count)
{
    for (int i = 0; i < count; i++)
        if (!(*fields[i] = qn_arena_strdup(arena, *fields[i])))
            return false;
    return true;
}

static struct qn_tuned *choice_at(const struct qn_tuning *t, const char *task, int64_t batch)
{
    for (int i = 0; i < t->n_choices; i++)
        if (t->choices[i].batch == batch && strcmp(t->choices[i].task, task) == 0)
            return &t->choices[i];
    return NULL;
}

static bool append_choice(struct qn_tuning *t, const struct qn_tuned *choice)
{
    struct qn_tuned copy = *choice;
    const char **fields[] = {&copy.task, &copy.variant, &copy.setting};
    struct qn_tuned *list =
        grown(&t->arena, t->choices, t->n_choices, &t->choice_capacity, sizeof copy);
    if (!list)
        return false;
    t->choices = list;
    if (!own(&t->arena, fields, 3))
        return false;
    list[t->n_choices++] = copy;
    return true;
}

bool qn_tuning_add_choice(struct qn_tuning *t, const struct qn_tuned *choice)
{
    const struct qn_tuned *earlier = choice_at(t, choice->task, choice->batch);
    const int64_t number = earlier ? earlier - t->choices : t->n_choices;
    if (!append_choice(t, choice))
        return false;
    t->choices[number] = t->choices[t->n_choices - 1];
    t->n_choices -= earlier != NULL;
    return true;
}

bool qn_tuning_add_test(struct qn_tuning *t, const struct qn_self_test *test)
{
    struct qn_self_test copy = *test;
    const char **fields[] = {&copy.op, &copy.variant, &copy.setting, &copy.storage, &copy.reason};
    struct qn_self_test *list =
        grown(&t->arena, t->tests, t->n_tests, &t->test_capacity, sizeof copy);
    if (!list)
        return false;
    t->tests = list;
    if (!own(&t->arena, fields, 5))
        return false;
    list[t->n_tests++] = copy;
    return true;
}

int64_t qn_tuning_kept(const struct qn_tuning *t, uint64_t training)
{
    for (int i = 0; i < t->n_kept; i++)
        if (t->kept[i].training == training)
            return t->kept[i].micro_batch;
    return 0;
}

static bool append_kept(struct qn_tuning *t, const struct qn_kept *kept)
{
    struct qn_kept *list = grown(&t->arena, t->kept, t->n_kept, &t->kept_capacity, sizeof *kept);
    if (!list)
        return false;
    t->kept = list;
    list[t->n_kept++] = *kept;
    return true;
}

bool qn_tuning_keep(struct qn_tuning *t, const struct qn_kept *kept)
{
    return qn_tuning_kept(t, kept->training) || append_kept(t, kept);
}

void qn_tuning_free(struct qn_tuning *tuning)
{
    qn_arena_free(&tuning->arena);
    *tuning = (struct qn_tuning){0};
}

static double ratio(int64_t a, int64_t b)
{
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

/* The one of a (may be NULL) and b whose batch is nearer to `batch` by ratio. */
static const struct qn_tuned *nearer(const struct qn_tuned *a, const struct qn_tuned *b,
                                     int64_t batch)
{
    const double far = a ? ratio(a->batch, batch) : 0, other = ratio(b->batch, batch);
    return !a || other < far || (other <= far && b->batch < a->batch) ? b : a;
}

const struct qn_tuned *qn_tuning_find(const struct qn_tuning *tuning, const char *task,
                                      int64_t batch)
{
    const struct qn_tuned *best = NULL;
    for (int i = 0; i < tuning->n_choices; i++)
        if (strcmp(tuning->choices[i].task, task) == 0)
            best = nearer(best, &tuning->choices[i], batch);
    return best;
}

const struct qn_tuned *qn_tuning_find_timed(const struct qn_tuning *tuning,
                                            const struct qn_tuned *like)
{
    const struct qn_tuned *best = NULL;
    for (int i = 0; i < tuning->n_choices; i++) {
        const struct qn_tuned *one = &tuning->choices[i];
        if (one->seconds > 0 && strcmp(one->task, like->task) == 0 &&
            strcmp(one->variant, like->variant) == 0 && strcmp(one->setting, like->setting) == 0)
            best = nearer(best, one, like->batch);
    }
    return best;
}

const struct qn_self_test *qn_tuning_test(const struct qn_tuning *tuning,
                                          const struct qn_self_test *like)
{
    for (int i = tuning->n_tests - 1; i >= 0; i--) {
        const struct qn_self_test *test = &tuning->tests[i];
        if (strcmp(test->op, like->op) == 0 && strcmp(test->variant, like->variant) == 0 &&
            strcmp(test->setting, like->setting) == 0 && strcmp(test->storage, like->storage) == 0)
            return test;
    }
    return NULL;
}

/* --- keys --- */

/* A key being written. It needs no allocation, which might fail: a task without its key would not
 * be found and would run another variant. Text beyond QN_TASK_KEY is cut off. */
struct key {
    char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add_to_key(struct key *key, const char *format,
                                                             ...)
{
    const size_t room = QN_TASK_KEY - key->length;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(key->text + key->length, room, format, args);
    va_end(args);
    if (length > 0)
        key->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_shape(struct key *key, const struct qn_problem *problem, int value,
                      const struct qn_operand *operand)
{
    const struct qn_shape *shape = &operand->shape;
    const bool grows = problem->values[value].life == QN_LIFE_MICRO &&
                       problem->values[value].tag != QN_TAG_GRADIENTS && problem->batch > 0 &&
                       shape->rank > 0 && shape->dim[0] % problem->batch == 0;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t size = i == 0 && grows ? shape->dim[0] / problem->batch : shape->dim[i];
        const char *star = i == 0 && grows ? "*" : "";
        add_to_key(key, "%s%s", i ? "," : "", star);
        if (!*star || size != 1)
            add_to_key(key, "%" PRId64, size);
    }
}

static void add_operand(struct key *key, const struct qn_problem *problem, int value,
                        struct qn_ref ref, const struct qn_operand *operand)
{
    static const char *const names[QN_REF_KINDS] = {
        [QN_REF_IN] = "in",       [QN_REF_OUT] = "out",      [QN_REF_DIN] = "din",
        [QN_REF_DOUT] = "dout",   [QN_REF_SAVED] = "saved",  [QN_REF_TEMP] = "temp",
        [QN_REF_STATE] = "state", [QN_REF_GATHER] = "gather"};
    add_to_key(key, " %s%d=%s[", names[ref.kind], ref.index, qn_dtype_name(operand->dtype));
    add_shape(key, problem, value, operand);
    add_to_key(key, "]");
}

const char *qn_task_key(const struct qn_problem *problem, const struct qn_task *task,
                        char text[QN_TASK_KEY])
{
    struct key key = {text, 0};
    add_to_key(&key, "%s/%s", task->op->name, task->group->name);
    for (int i = 0; i < task->n_reads; i++)
        add_operand(&key, problem, task->reads[i].value, task->reads[i].ref,
                    &task->reads[i].operand);
    for (int i = 0; i < task->n_writes; i++)
        add_operand(&key, problem, task->writes[i].value, task->writes[i].ref,
                    &task->writes[i].operand);
    if (task->attr && task->op->attr_size)
        add_to_key(&key, " #%016" PRIx64,
                   qn_hash(QN_HASH_START, task->attr, (size_t)task->op->attr_size));
    return text;
}

qn_dtype qn_task_storage(const struct qn_task *task)
{
    for (int i = 0; i < task->n_reads + task->n_writes; i++) {
        const qn_dtype type = i < task->n_reads ? task->reads[i].operand.dtype
                                                : task->writes[i - task->n_reads].operand.dtype;
        if (type == QN_F16 || type == QN_BF16)
            return type;
    }
    return QN_F32;
}

/* --- as text --- */

static void add_word(struct qn_text *text, const char *name, const char *word)
{
    qn_text_add(text, "\"%s\": ", name);
    qn_text_json(text, word);
}

static void add_work(struct qn_text *text, const struct qn_tuned *choice)
{
    qn_text_add(text, ", \"flops\": ");
    qn_text_number(text, 9, choice->flops);
    qn_text_add(text, ", \"bytes\": ");
    qn_text_number(text, 9, choice->bytes);
    qn_text_add(text, ", \"launches\": %d", choice->launches);
}

static void add_choice(struct qn_text *text, const struct qn_tuned *choice)
{
    qn_text_add(text, "{");
    add_word(text, "task", choice->task);
    qn_text_add(text, ", \"batch\": %" PRId64 ", ", choice->batch);
    add_word(text, "variant", choice->variant);
    if (*choice->setting) {
        qn_text_add(text, ", ");
        add_word(text, "setting", choice->setting);
    }
    qn_text_add(text, ", \"seconds\": ");
    qn_text_number(text, 4, choice->seconds);
    if (choice->seconds > 0)
        add_work(text, choice);
    if (choice->spread > 0) {
        qn_text_add(text, ", \"spread\": ");
        qn_text_number(text, 4, choice->spread);
    }
    qn_text_add(text, "%s%s}", choice->thorough ? ", \"thorough\": true" : "",
                choice->alone ? ", \"alone\": true" : "");
}

static void add_test(struct qn_text *text, const struct qn_self_test *test)
{
    qn_text_add(text, "{");
    add_word(text, "op", test->op);
    qn_text_add(text, ", ");
    add_word(text, "variant", test->variant);
    qn_text_add(text, ", ");
    add_word(text, "setting", test->setting);
    qn_text_add(text, ", ");
    add_word(text, "storage", test->storage);
    qn_text_add(text, ", ");
    add_word(text, "reason", test->reason);
    qn_text_add(text, "}");
}

static void add_kept(struct qn_text *text, const struct qn_kept *kept)
{
    qn_text_add(text, "{\"training\": \"%016" PRIx64 "\", \"micro_batch\": %" PRId64 "}",
                kept->training, kept->micro_batch);
}

static void add_transfers(struct qn_text *text, const struct qn_transfers *transfers)
{
    qn_text_add(text, "],\n\"transfers\": {\"to_host\": ");
    qn_text_number(text, 4, transfers->to_host);
    qn_text_add(text, ", \"to_device\": ");
    qn_text_number(text, 4, transfers->to_device);
    qn_text_add(text, ", \"begin\": ");
    qn_text_number(text, 4, transfers->begin);
    qn_text_add(text, "}}\n");
}

char *qn_tuning_text(const struct qn_tuning *tuning)
{
    struct qn_text text = {0};
    qn_text_add(&text, "{\"quern_tuning\": %d,\n", FORMAT);
    add_word(&text, "device", tuning->device ? tuning->device : "");
    qn_text_add(&text, ",\n");
    add_word(&text, "driver", tuning->driver ? tuning->driver : "");
    qn_text_add(&text, ",\n");
    add_word(&text, "kernels", tuning->kernels ? tuning->kernels : "");
    qn_text_add(&text, ",\n\"kept\": [");
    for (int i = 0; i < tuning->n_kept; i++) {
        qn_text_add(&text, "%s", i ? ",\n " : "\n ");
        add_kept(&text, &tuning->kept[i]);
    }
    qn_text_add(&text, "],\n\"self_tests\": [");
    for (int i = 0; i < tuning->n_tests; i++) {
        qn_text_add(&text, "%s", i ? ",\n " : "\n ");
        add_test(&text, &tuning->tests[i]);
    }
    qn_text_add(&text, "],\n\"choices\": [");
    for (int i = 0; i < tuning->n_choices; i++) {
        qn_text_add(&text, "%s", i ? ",\n " : "\n ");
        add_choice(&text, &tuning->choices[i]);
    }
    if (tuning->transfers.to_host > 0)
        add_transfers(&text, &tuning->transfers);
    else
        qn_text_add(&text, "]}\n");
    return qn_text_take(&text);
}

/* --- from text ---
 *
 * The text may be anybody's and of any length: its entries are sorted to find those that it has
 * twice, where looking for each among the others would take their number squared. */

struct reading {
    struct qn_tuning *tuning;
    const struct qn_log *log;
};

static qn_status wrong(const struct reading *r, const char *key)
{
    return qn_fail(r->log, QN_ERR_FORMAT, "tuning: %s: is missing or not of its type", key);
}

/* The text `key` of an object; `otherwise` if it is missing (NULL: it must be there). */
static qn_status read_word(const struct reading *r, const cJSON *from, const char *key,
                           const char *otherwise, const char **word)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    *word = otherwise;
    if (!item && otherwise)
        return QN_OK;
    if (!cJSON_IsString(item))
        return wrong(r, key);
    *word = item->valuestring;
    return QN_OK;
}

static qn_status read_number(const struct reading *r, const cJSON *from, const char *key,
                             double least, double most, double *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most))
        return wrong(r, key);
    *number = item->valuedouble;
    return QN_OK;
}

/* Tables of older versions lack flops, bytes and launches: 0, so that their entries choose variants
 * but do not count as measurements. */
static qn_status read_work(const struct reading *r, const cJSON *from, struct qn_tuned *choice)
{
    double launches = 0;
    if (!cJSON_GetObjectItemCaseSensitive(from, "flops"))
        return QN_OK;
    QN_TRY(read_number(r, from, "flops", 0, 1e30, &choice->flops));
    QN_TRY(read_number(r, from, "bytes", 0, 1e30, &choice->bytes));
    QN_TRY(read_number(r, from, "launches", 0, 1e9, &launches));
    choice->launches = (int)launches;
    return QN_OK;
}

static qn_status read_choice(const struct reading *r, const cJSON *from)
{
    struct qn_tuned choice = {0};
    double batch = 0;
    QN_TRY(read_word(r, from, "task", NULL, &choice.task));
    QN_TRY(read_word(r, from, "variant", NULL, &choice.variant));
    QN_TRY(read_word(r, from, "setting", "", &choice.setting));
    QN_TRY(read_number(r, from, "batch", 0, most_batch, &batch));
    QN_TRY(read_number(r, from, "seconds", 0, 1e9, &choice.seconds));
    QN_TRY(read_work(r, from, &choice));
    choice.batch = (int64_t)batch;
    choice.thorough = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "thorough"));
    if (cJSON_GetObjectItemCaseSensitive(from, "spread")) /* missing in older tables */
        QN_TRY(read_number(r, from, "spread", 1, 1e9, &choice.spread));
    choice.alone = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "alone"));
    return append_choice(r->tuning, &choice) ? QN_OK : QN_ERR_MEMORY;
}

static qn_status read_test(const struct reading *r, const cJSON *from)
{
    struct qn_self_test test = {0};
    QN_TRY(read_word(r, from, "op", NULL, &test.op));
    QN_TRY(read_word(r, from, "variant", NULL, &test.variant));
    QN_TRY(read_word(r, from, "setting", NULL, &test.setting));
    QN_TRY(read_word(r, from, "storage", NULL, &test.storage));
    QN_TRY(read_word(r, from, "reason", NULL, &test.reason));
    return qn_tuning_add_test(r->tuning, &test) ? QN_OK : QN_ERR_MEMORY;
}

static qn_status read_kept(const struct reading *r, const cJSON *from)
{
    struct qn_kept kept = {0};
    const char *training;
    char end;
    double micro_batch = 0;
    QN_TRY(read_word(r, from, "training", NULL, &training));
    QN_TRY(read_number(r, from, "micro_batch", 1, most_batch, &micro_batch));
    if (sscanf(training, "%16" SCNx64 "%c", &kept.training, &end) != 1)
        return wrong(r, "training");
    kept.micro_batch = (int64_t)micro_batch;
    return append_kept(r->tuning, &kept) ? QN_OK : QN_ERR_MEMORY;
}

static qn_status read_list(const struct reading *r, const cJSON *root, const char *key,
                           qn_status (*read)(const struct reading *, const cJSON *))
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key), *item;
    if (!cJSON_IsArray(list))
        return wrong(r, key);
    cJSON_ArrayForEach(item, list)
    {
        QN_TRY(read(r, item));
    }
    return QN_OK;
}

static int compare_choices(const struct qn_tuned *a, const struct qn_tuned *b)
{
    return a->batch != b->batch ? (a->batch > b->batch) - (a->batch < b->batch)
                                : strcmp(a->task, b->task);
}

/* Orders pointers to choices: equal ones as they stand in the table. */
static int by_choice(const void *a, const void *b)
{
    const struct qn_tuned *x = *(struct qn_tuned *const *)a, *y = *(struct qn_tuned *const *)b;
    const int order = compare_choices(x, y);
    return order ? order : (x > y) - (x < y);
}

/* Of equal choices the last takes the place of the first. */
static bool merge_choices(struct qn_tuning *t)
{
    const int count = t->n_choices;
    struct qn_tuned **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (int i = 0; i < count; i++)
        sorted[i] = &t->choices[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_choice);
    for (int i = count - 1; i > 0; i--)
        if (compare_choices(sorted[i - 1], sorted[i]) == 0) {
            *sorted[i - 1] = *sorted[i];
            sorted[i]->task = NULL;
        }
    free(sorted);
    t->n_choices = 0;
    for (int i = 0; i < count; i++)
        if (t->choices[i].task)
            t->choices[t->n_choices++] = t->choices[i];
    return true;
}

/* Orders pointers to entries: equal ones as they stand in the table. */
static int by_training(const void *a, const void *b)
{
    const struct qn_kept *x = *(struct qn_kept *const *)a, *y = *(struct qn_kept *const *)b;
    return x->training != y->training ? (x->training > y->training) - (x->training < y->training)
                                      : (x > y) - (x < y);
}

/* Of equal trainings the first stays. */
static bool merge_kept(struct qn_tuning *t)
{
    const int count = t->n_kept;
    struct qn_kept **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (int i = 0; i < count; i++)
        sorted[i] = &t->kept[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_training);
    for (int i = count - 1; i > 0; i--)
        if (sorted[i - 1]->training == sorted[i]->training)
            sorted[i]->micro_batch = 0;
    free(sorted);
    t->n_kept = 0;
    for (int i = 0; i < count; i++)
        if (t->kept[i].micro_batch)
            t->kept[t->n_kept++] = t->kept[i];
    return true;
}

static qn_status read_names(const struct reading *r, const cJSON *root)
{
    struct qn_tuning *t = r->tuning;
    const char **fields[] = {&t->device, &t->driver, &t->kernels};
    QN_TRY(read_word(r, root, "device", "", &t->device));
    QN_TRY(read_word(r, root, "driver", "", &t->driver));
    QN_TRY(read_word(r, root, "kernels", "", &t->kernels));
    return own(&t->arena, fields, 3) ? QN_OK : QN_ERR_MEMORY;
}

/* Older tables have no transfers. */
static qn_status read_transfers(const struct reading *r, const cJSON *root)
{
    const cJSON *from = cJSON_GetObjectItemCaseSensitive(root, "transfers");
    struct qn_transfers *transfers = &r->tuning->transfers;
    if (!from)
        return QN_OK;
    QN_TRY(read_number(r, from, "to_host", 1, 1e18, &transfers->to_host));
    QN_TRY(read_number(r, from, "to_device", 1, 1e18, &transfers->to_device));
    return read_number(r, from, "begin", 0, 1e9, &transfers->begin);
}

static qn_status read_root(const struct reading *r, const cJSON *root)
{
    double format = 0;
    QN_TRY(read_number(r, root, "quern_tuning", 1, 1e9, &format));
    if (format != FORMAT)
        return qn_fail(r->log, QN_ERR_FORMAT, "tuning: quern_tuning: version %g, not %d", format,
                       FORMAT);
    QN_TRY(read_names(r, root));
    QN_TRY(read_transfers(r, root));
    if (cJSON_GetObjectItemCaseSensitive(root, "kept")) /* missing in older tables */
        QN_TRY(read_list(r, root, "kept", read_kept));
    QN_TRY(read_list(r, root, "self_tests", read_test));
    QN_TRY(read_list(r, root, "choices", read_choice));
    return merge_kept(r->tuning) && merge_choices(r->tuning) ? QN_OK : QN_ERR_MEMORY;
}

qn_status qn_tuning_parse(struct qn_tuning *tuning, const char *text, const struct qn_log *log)
{
    const struct reading r = {tuning, log};
    cJSON *root = cJSON_Parse(text);
    if (!root)
        return qn_fail(log, QN_ERR_FORMAT, "tuning: is not JSON");
    qn_status status = read_root(&r, root);
    cJSON_Delete(root);
    if (status == QN_ERR_MEMORY)
        qn_fail(log, status, "tuning: out of host memory");
    if (status != QN_OK)
        qn_tuning_free(tuning);
    return status;
}
