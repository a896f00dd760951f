/* SPDX-License-Identifier: MIT
 *
 * train.json: what a checkpoint knows besides tensors. Numbers are written so that they read back
 * to the same bits.
 */
#include "base/log.h"
#include "base/text.h"
#include "op/optimizer.h"
#include "run/checkpoint.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- tables: one line per number --- */

enum kind { WHOLE, REAL, FLAG, INTEGER, BITS = INTEGER, NEWER, NEWER_REAL };

struct field {
    const char *name;
    size_t offset;
    enum kind kind;
    double least, most; /* both 0: any */
};

#define FACT(name, kind, least, most) {#name, offsetof(struct qn_facts, name), kind, least, most},
static const struct field fact_fields[] = {QN_FACTS_LIST(FACT)};
#undef FACT

#define PLAN(name, kind)                                                                           \
    {                                                                                              \
#name, offsetof(struct qn_plan_params, name), kind, 0, 0                                   \
    }
static const struct field plan_fields[] = {
    PLAN(budget, WHOLE),
    {"micro_batch", offsetof(struct qn_plan_params, micro_batch), WHOLE, 0, 0},
    PLAN(recompute, INTEGER),
    PLAN(effort, INTEGER),
    {"momentum", offsetof(struct qn_plan_params, optimizer.momentum), REAL, 0, 0},
    {"nesterov", offsetof(struct qn_plan_params, optimizer.nesterov), FLAG, 0, 0},
    {"no_master", offsetof(struct qn_plan_params, optimizer.no_master), FLAG, 0, 0},
    {"beta1", offsetof(struct qn_plan_params, optimizer.beta1), REAL, 0, 0},
    {"beta2", offsetof(struct qn_plan_params, optimizer.beta2), REAL, 0, 0},
    {"eps", offsetof(struct qn_plan_params, optimizer.eps), REAL, 0, 0},
    {"ema", offsetof(struct qn_plan_params, optimizer.ema), NEWER_REAL, 0, 0},
    PLAN(early_updates, FLAG),
    PLAN(park, FLAG),
    PLAN(members, NEWER),
    PLAN(member, NEWER),
};

#define TRAIN(name, kind)                                                                          \
    {                                                                                              \
#name, offsetof(struct qn_trainer_params, name), kind, 0, 0                                \
    }
static const struct field train_fields[] = {TRAIN(weight_decay, REAL), TRAIN(clip, REAL),
                                            TRAIN(poison, FLAG)};

enum {
    N_FACTS = sizeof fact_fields / sizeof *fact_fields,
    N_PLAN = sizeof plan_fields / sizeof *plan_fields,
    N_TRAIN = sizeof train_fields / sizeof *train_fields,
};

/* --- writing --- */

static void add_fields(struct qn_text *text, const struct field *fields, int count,
                       const void *from)
{
    for (int i = 0; i < count; i++) {
        const char *at = (const char *)from + fields[i].offset;
        qn_text_add(text, "%s\"%s\": ", i ? ", " : "", fields[i].name);
        switch (fields[i].kind) {
        case WHOLE:
            qn_text_add(text, "%" PRId64, *(const int64_t *)at);
            break;
        case REAL:
        case NEWER_REAL:
            qn_text_number(text, 17, *(const double *)at);
            break;
        case FLAG:
            qn_text_add(text, "%s", *(const bool *)at ? "true" : "false");
            break;
        case INTEGER:
        case NEWER:
            qn_text_add(text, "%d", *(const int *)at);
            break;
        }
    }
}

static void add_text(struct qn_text *text, const char *key, const char *value)
{
    qn_text_add(text, ", \"%s\": ", key);
    qn_text_json(text, value ? value : "");
}

static void add_sizes(struct qn_text *text, const char *key,
                      const int64_t sizes[QN_MAX_BATCH_SIZES], int count)
{
    qn_text_add(text, ", \"%s\": [", key);
    for (int i = 0; i < count; i++)
        qn_text_add(text, "%s%" PRId64, i ? ", " : "", sizes[i]);
    qn_text_add(text, "]");
}

static void add_batches(struct qn_text *text, const struct qn_plan_params *params)
{
    int count = 0;
    while (count < QN_MAX_BATCH_SIZES && params->batch[count])
        count++;
    add_sizes(text, "batch", params->batch, count);
    add_sizes(text, "whole", params->whole, count);
}

/* What the trainer's plan was made of, and its hash. */
static void add_plan(struct qn_text *text, const struct qn_trainer *trainer)
{
    struct qn_plan_params params = trainer->plan->params;
    params.micro_batch = trainer->plan->info.micro_batch;
    qn_text_add(text, "\"facts\": {");
    add_fields(text, fact_fields, N_FACTS, &trainer->plan->facts);
    add_text(text, "name", trainer->plan->facts.name);
    qn_text_add(text, "},\n\"plan_params\": {");
    add_fields(text, plan_fields, N_PLAN, &params);
    add_text(text, "optimizer", qn_optimizer_find(params.optimizer.name)->name);
    add_text(text, "chosen", params.chosen);
    add_text(text, "variants", params.variants);
    add_text(text, "tuning", params.tuning);
    add_text(text, "norm_groups", params.norm_groups);
    add_batches(text, &params);
    qn_text_add(text, "},\n\"plan_hash\": \"%016" PRIx64 "\"", trainer->plan->info.hash);
}

char *qn_train_plan_json(const struct qn_trainer *trainer)
{
    struct qn_text text = {0};
    qn_text_add(&text, "{");
    add_plan(&text, trainer);
    qn_text_add(&text, "}");
    return qn_text_take(&text);
}

/* Those of members behind the first; so many that the file could not be read are left out. */
static void add_members(struct qn_text *text, const struct qn_lender *lender)
{
    if (lender && lender->plans && strlen(lender->plans) <= QN_TRAIN_BYTES / 2)
        qn_text_add(text, ",\n\"members\": [%s]", lender->plans);
}

static void add_tables(struct qn_text *text, const struct qn_plan *plan)
{
    char *json = qn_plan_json(plan), *variants = qn_plan_variants_json(plan);
    if (json && variants)
        qn_text_add(text, ",\n\"plan\": %s,\n\"variants\": %s\n}\n", json, variants);
    else
        text->failed = true;
    free(json);
    free(variants);
}

static void add_rings(struct qn_text *text, const char *key, const int64_t *numbers, int count)
{
    qn_text_add(text, ",\n\"%s\": [", key);
    for (int c = 0; c < count; c++)
        qn_text_add(text, "%s%" PRId64, c ? ", " : "", numbers[c]);
    qn_text_add(text, "]");
}

char *qn_train_json(const struct qn_trainer *trainer, const struct qn_save_params *params,
                    const struct qn_counters *counters)
{
    struct qn_text text = {0};
    qn_text_add(&text,
                "{\"quern_checkpoint\": %d,\n\"update\": %" PRId64 ", \"position\": %" PRId64
                ", \"seed\": \"%" PRIu64 "\", \"good_updates\": %" PRIu32 ", \"applied\": %" PRIu32
                ",\n\"loss_scale\": ",
                QN_CHECKPOINT_VERSION, trainer->updates, params->position, trainer->params.seed,
                counters->good_updates, counters->applied);
    qn_text_number(&text, 9, (double)counters->loss_scale);
    add_rings(&text, "ring_rows", counters->ring_rows, trainer->plan->runs.n_cells);
    add_rings(&text, "ring_limits", counters->ring_limits, trainer->plan->runs.n_cells);
    qn_text_add(&text, ",\n\"trainer\": {");
    add_fields(&text, train_fields, N_TRAIN, &trainer->params);
    qn_text_add(&text, "},\n");
    add_plan(&text, trainer);
    add_members(&text, trainer->lender);
    qn_text_add(&text, ",\n\"note\": ");
    qn_text_json(&text, params->note ? params->note : "");
    add_tables(&text, trainer->plan);
    return qn_text_take(&text);
}

/* --- reading --- */

/* Of a dynamic loss scale (cl_kernels/gradient_norm.cl), which is never below 1. */
static const double most_loss_scale = 0x1p24;

struct reading {
    struct qn_checkpoint *checkpoint;
    struct qn_checkpoint_info *info; /* the checkpoint's, or with the plan of another member */
    const char *path;
};

static qn_status wrong(const struct reading *r, const char *key)
{
    return qn_fail(&r->checkpoint->log, QN_ERR_FORMAT, "%s: %s: is missing or not of its type",
                   r->path, key);
}

static qn_status read_number(const struct reading *r, const cJSON *from, const char *key,
                             double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (!cJSON_IsNumber(item))
        return wrong(r, key);
    *value = item->valuedouble;
    return QN_OK;
}

static qn_status read_field(const struct reading *r, const cJSON *from, const struct field *field,
                            void *to)
{
    char *at = (char *)to + field->offset;
    if (field->kind == FLAG) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, field->name);
        if (!cJSON_IsBool(item))
            return wrong(r, field->name);
        *(bool *)at = cJSON_IsTrue(item);
        return QN_OK;
    }
    const bool newer = field->kind == NEWER || field->kind == NEWER_REAL;
    const bool real = field->kind == REAL || field->kind == NEWER_REAL;
    double value = 0;
    if (newer && !cJSON_HasObjectItem(from, field->name))
        return QN_OK;
    QN_TRY(read_number(r, from, field->name, &value));
    if (field->most > 0 && !(value >= field->least && value <= field->most))
        return qn_fail(&r->checkpoint->log, QN_ERR_FORMAT,
                       "%s: %s: %.15g is not from %.15g to %.15g", r->path, field->name, value,
                       field->least, field->most);
    if (!real && !(value >= -0x1p53 && value <= 0x1p53))
        return wrong(r, field->name);
    if (field->kind == WHOLE)
        *(int64_t *)at = (int64_t)value;
    else if (real)
        *(double *)at = value;
    else if (value >= INT32_MIN && value <= INT32_MAX)
        *(int *)at = (int)value;
    else
        return wrong(r, field->name);
    return QN_OK;
}

static qn_status read_fields(const struct reading *r, const cJSON *root, const char *section,
                             const struct field *fields, int count, void *to)
{
    const cJSON *from = cJSON_GetObjectItemCaseSensitive(root, section);
    if (!cJSON_IsObject(from))
        return wrong(r, section);
    for (int i = 0; i < count; i++)
        QN_TRY(read_field(r, from, &fields[i], to));
    return QN_OK;
}

static qn_status read_text(const struct reading *r, const cJSON *from, const char *key,
                           const char **text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (!cJSON_IsString(item))
        return wrong(r, key);
    *text = qn_arena_strdup(&r->checkpoint->arena, item->valuestring);
    return *text ? QN_OK
                 : qn_fail(&r->checkpoint->log, QN_ERR_MEMORY, "%s: out of host memory", r->path);
}

/* A text that older files do not have. */
static qn_status read_newer_text(const struct reading *r, const cJSON *from, const char *key,
                                 const char **text)
{
    return cJSON_HasObjectItem(from, key) ? read_text(r, from, key, text) : QN_OK;
}

/* Gives how many there are. */
static qn_status read_sizes(const struct reading *r, const cJSON *params, const char *key,
                            int64_t least, int64_t sizes[QN_MAX_BATCH_SIZES], int *count)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(params, key);
    *count = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || *count < 1 || *count > QN_MAX_BATCH_SIZES)
        return wrong(r, key);
    for (int i = 0; i < *count; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)least) ||
            item->valuedouble > 0x1p53)
            return wrong(r, key);
        sizes[i] = (int64_t)item->valuedouble;
    }
    return QN_OK;
}

/* Older files have no sizes of whole cycles. */
static qn_status read_batches(const struct reading *r, const cJSON *params)
{
    struct qn_plan_params *plan = &r->info->plan;
    int count, wholes;
    QN_TRY(read_sizes(r, params, "batch", 1, plan->batch, &count));
    if (!cJSON_HasObjectItem(params, "whole"))
        return QN_OK;
    QN_TRY(read_sizes(r, params, "whole", 0, plan->whole, &wholes));
    return wholes == count ? QN_OK : wrong(r, "whole");
}

static qn_status read_rings(const struct reading *r, const cJSON *root, const char *key,
                            int64_t numbers[QN_MAX_CELLS])
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key);
    const int count = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || count > QN_MAX_CELLS)
        return wrong(r, key);
    for (int i = 0; i < count; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53))
            return wrong(r, key);
        numbers[i] = (int64_t)item->valuedouble;
    }
    return QN_OK;
}

static qn_status read_counters(const struct reading *r, const cJSON *root)
{
    double update = 0, position = 0, scale = 0, good = 0, applied = 0;
    QN_TRY(read_number(r, root, "update", &update));
    QN_TRY(read_number(r, root, "position", &position));
    QN_TRY(read_number(r, root, "loss_scale", &scale));
    QN_TRY(read_number(r, root, "good_updates", &good));
    QN_TRY(read_number(r, root, "applied", &applied));
    bool sane = update >= 0 && update <= 0x1p53 && position >= 0 && position <= 0x1p53 &&
                good >= 0 && good <= UINT32_MAX && applied >= 0 && applied <= UINT32_MAX;
    if (!sane)
        return wrong(r, "update");
    if (!(scale >= 1 && scale <= most_loss_scale))
        return wrong(r, "loss_scale");
    r->info->update = (int64_t)update;
    r->info->position = (int64_t)position;
    r->checkpoint->counters = (struct qn_counters){
        .loss_scale = (float)scale, .good_updates = (uint32_t)good, .applied = (uint32_t)applied};
    struct qn_counters *counters = &r->checkpoint->counters;
    QN_TRY(read_rings(r, root, "ring_rows", counters->ring_rows));
    return cJSON_HasObjectItem(root, "ring_limits")
               ? read_rings(r, root, "ring_limits", counters->ring_limits)
               : QN_OK;
}

static qn_status read_plan_texts(const struct reading *r, const cJSON *from)
{
    struct qn_plan_params *plan = &r->info->plan;
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(from, "plan_params");
    QN_TRY(read_text(r, params, "optimizer", &plan->optimizer.name));
    QN_TRY(read_text(r, params, "chosen", &plan->chosen));
    QN_TRY(read_text(r, params, "variants", &plan->variants));
    QN_TRY(read_text(r, params, "tuning", &plan->tuning));
    QN_TRY(read_newer_text(r, params, "norm_groups", &plan->norm_groups));
    return read_batches(r, params);
}

static qn_status check_plan(const struct reading *r)
{
    const struct qn_plan_params *plan = &r->info->plan;
    if ((int)plan->recompute < 0 || plan->recompute > QN_RECOMPUTE_CHOSEN)
        return wrong(r, "recompute");
    if ((int)plan->effort < 0 || plan->effort > QN_EFFORT_THOROUGH)
        return wrong(r, "effort");
    return qn_optimizer_find(plan->optimizer.name) ? QN_OK : wrong(r, "optimizer");
}

/* What a plan was made of, and its hash. */
static qn_status read_plan(const struct reading *r, const cJSON *from)
{
    const cJSON *facts = cJSON_GetObjectItemCaseSensitive(from, "facts");
    const char *hash = "", *name = "";
    QN_TRY(read_fields(r, from, "facts", fact_fields, N_FACTS, &r->info->facts));
    QN_TRY(read_fields(r, from, "plan_params", plan_fields, N_PLAN, &r->info->plan));
    QN_TRY(read_plan_texts(r, from));
    QN_TRY(read_text(r, from, "plan_hash", &hash));
    QN_TRY(read_text(r, facts, "name", &name));
    r->info->plan_hash = strtoull(hash, NULL, 16);
    strncpy(r->info->facts.name, name, sizeof r->info->facts.name - 1);
    return check_plan(r);
}

static qn_status read_words(const struct reading *r, const cJSON *root)
{
    const char *seed = "";
    QN_TRY(read_text(r, root, "seed", &seed));
    QN_TRY(read_text(r, root, "note", &r->info->note));
    r->info->trainer.seed = strtoull(seed, NULL, 10);
    return QN_OK;
}

/* The plans of members behind the first, which an ordinary training has not. */
static qn_status read_members(const struct reading *r, const cJSON *root)
{
    struct qn_checkpoint *checkpoint = r->checkpoint;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "members"), *item;
    const int count = cJSON_GetArraySize(list);
    if (!list)
        return QN_OK;
    if (!cJSON_IsArray(list) || count >= QN_MAX_GROUP)
        return wrong(r, "members");
    checkpoint->members = qn_arena_new(&checkpoint->arena, struct qn_checkpoint, (size_t)count + 1);
    if (!checkpoint->members)
        return qn_fail(&checkpoint->log, QN_ERR_MEMORY, "%s: out of host memory", r->path);
    cJSON_ArrayForEach(item, list)
    {
        struct qn_checkpoint *member = &checkpoint->members[checkpoint->n_members++];
        QN_TRY(read_plan(&(struct reading){checkpoint, &member->info, r->path}, item));
    }
    return QN_OK;
}

static qn_status read_all(const struct reading *r, const cJSON *root)
{
    double version = 0;
    QN_TRY(read_number(r, root, "quern_checkpoint", &version));
    if (version != QN_CHECKPOINT_VERSION)
        return qn_fail(&r->checkpoint->log, QN_ERR_FORMAT,
                       "%s: quern_checkpoint: version %g, not %d", r->path, version,
                       QN_CHECKPOINT_VERSION);
    QN_TRY(read_counters(r, root));
    QN_TRY(read_fields(r, root, "trainer", train_fields, N_TRAIN, &r->info->trainer));
    QN_TRY(read_words(r, root));
    QN_TRY(read_plan(r, root));
    return read_members(r, root);
}

qn_status qn_train_parse(struct qn_checkpoint *checkpoint, const char *path, const char *text)
{
    const struct reading r = {checkpoint, &checkpoint->info, path};
    cJSON *root = cJSON_Parse(text);
    if (!root)
        return qn_fail(&checkpoint->log, QN_ERR_FORMAT, "%s: is not JSON", path);
    qn_status status = read_all(&r, root);
    cJSON_Delete(root);
    return status;
}
