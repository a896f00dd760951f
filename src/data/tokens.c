/* SPDX-License-Identifier: MIT
 *
 * Datasets of tokens.
 */
#include "base/log.h"
#include "data/masking.h"
#include "data/source.h"
#include "io/tokens.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

enum column { TOKENS, LABELS, COLUMNS };

/* Bytes of a token; 0: a header says it. Classes, where nothing says them; 0: they must be said. */
static const struct type {
    int bytes;
    int64_t classes;
} types[] = {
    [QN_TOKEN_LLM_C] = {0, 0},
    [QN_TOKEN_U8] = {1, 256},
    [QN_TOKEN_U16] = {2, 0},
    [QN_TOKEN_U32] = {4, 0},
};
enum { TYPES = sizeof types / sizeof *types };

/* A file, and what its tokens become: sample i begins with token first + i * stride. */
struct token_set {
    struct qn_dataset base;
    struct qn_token_file file;
    int64_t first, length, stride, classes;
    int64_t separator; /* below 0: there is none */
    struct qn_masking masking;
};

static qn_status check_params(const qn_token_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path);
    QN_REQUIRE(log, (int)params->type >= 0 && (int)params->type < TYPES);
    QN_REQUIRE(log, params->length >= 1 && params->stride >= 0);
    QN_REQUIRE(log, params->classes >= 0 && params->classes <= INT32_MAX);
    QN_REQUIRE(log, params->held_out >= 0 && params->held_out < 1);
    QN_REQUIRE(log, params->mlm_probability >= 0 && params->mlm_probability <= 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    return QN_OK;
}

/* --- opening --- */

static qn_status check_token(const struct token_set *set, const char *key, int64_t token,
                             const struct qn_log *log)
{
    return token >= 0 && token < set->classes
               ? QN_OK
               : qn_fail(log, QN_ERR_ARGUMENT,
                         "%s: data.%s: %" PRId64 " is none of the %" PRId64 " tokens",
                         set->file.path, key, token, set->classes);
}

static qn_status set_classes(struct token_set *set, const qn_token_params *params)
{
    const int64_t told = set->file.classes ? set->file.classes : types[params->type].classes;
    set->classes = params->classes ? params->classes : told;
    set->separator = params->separate ? params->separator : -1;
    set->masking = (struct qn_masking){params->mlm_probability, params->mask_token, set->classes,
                                       set->separator};
    if (!set->classes)
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "%s: data.classes: missing: nothing says how many tokens there are",
                       set->file.path);
    if (params->separate)
        QN_TRY(check_token(set, "separator", params->separator, &params->log));
    return params->mlm_probability > 0
               ? check_token(set, "mask_token", params->mask_token, &params->log)
               : QN_OK;
}

/* Tokens behind a sample that are labels of it. */
static int64_t tokens_behind(const struct token_set *set)
{
    return set->masking.probability > 0 ? 0 : 1;
}

/* Finds the split's tokens and so the number of samples. */
static qn_status divide(struct token_set *set, const qn_token_params *params, int64_t *samples)
{
    const int64_t held = (int64_t)(params->held_out * (double)set->file.count);
    const bool test = params->split == QN_SPLIT_TEST;
    const int64_t tokens = test ? held : set->file.count - held;
    const int64_t behind = tokens_behind(set);
    set->first = test ? set->file.count - held : 0;
    set->length = params->length;
    set->stride = params->stride ? params->stride : params->length;
    if (tokens - behind < set->length)
        return qn_fail(&params->log, QN_ERR_FORMAT,
                       "%s: %" PRId64 " tokens%s, too few for a sample of %" PRId64 "%s",
                       set->file.path, tokens,
                       test   ? " are held out"
                       : held ? " are not held out"
                              : "",
                       set->length, behind ? " and its last label" : "");
    *samples = (tokens - behind - set->length) / set->stride + 1;
    return *samples <= UINT32_MAX
               ? QN_OK
               : qn_fail(&params->log, QN_ERR_FORMAT,
                         "%s: %" PRId64 " samples are more than 2^32 - 1: set a larger data.stride",
                         set->file.path, *samples);
}

static qn_status open_file(struct token_set *set, const qn_token_params *params)
{
    int64_t samples = 0;
    QN_TRY(qn_token_file_open(&set->file, params->path, params->name, types[params->type].bytes,
                              &params->log));
    QN_TRY(set_classes(set, params));
    QN_TRY(divide(set, params, &samples));
    const qn_shape shape = {1, {set->length}};
    const struct qn_column columns[COLUMNS] = {
        [TOKENS] = {.name = "tokens", .dtype = QN_I32, .shape = shape, .classes = set->classes},
        [LABELS] = {.name = "labels", .dtype = QN_I32, .shape = shape, .classes = set->classes},
    };
    const qn_dataset_facts facts = {samples, COLUMNS, columns};
    return qn_dataset_set(&set->base, &facts, &params->log);
}

/* --- samples --- */

static qn_status check_tokens(const struct token_set *set, const int32_t *tokens, int64_t first,
                              int64_t count, const struct qn_log *log)
{
    for (int64_t i = 0; i < count; i++)
        if ((uint32_t)tokens[i] >= set->classes)
            return qn_fail(log, QN_ERR_FORMAT,
                           "%s: token %" PRId64 " is %" PRIu32 ", but there are %" PRId64,
                           set->file.path, first + i, (uint32_t)tokens[i], set->classes);
    return QN_OK;
}

static void ignore_separators(const struct token_set *set, const int32_t *tokens, int32_t *labels)
{
    for (int64_t i = 0; i < set->length; i++)
        if (tokens[i] == set->separator)
            labels[i] = QN_IGNORED_LABEL;
}

/* The labels are the tokens, one further. */
static qn_status label_next(const struct token_set *set, int64_t first, const int32_t *tokens,
                            int32_t *labels, const struct qn_log *log)
{
    const int64_t last = set->length - 1;
    memcpy(labels, tokens + 1, (size_t)last * sizeof *labels);
    QN_TRY(qn_token_file_read(&set->file, first + set->length, 1, labels + last, log));
    QN_TRY(check_tokens(set, labels + last, first + set->length, 1, log));
    ignore_separators(set, tokens, labels);
    return QN_OK;
}

static qn_status read_sample(const struct token_set *set, const struct qn_draw *draw,
                             int32_t *tokens, int32_t *labels, const struct qn_log *log)
{
    const int64_t first = set->first + draw->sample * set->stride;
    QN_TRY(qn_token_file_read(&set->file, first, set->length, tokens, log));
    QN_TRY(check_tokens(set, tokens, first, set->length, log));
    if (set->masking.probability == 0)
        return label_next(set, first, tokens, labels, log);
    qn_masking_apply(&set->masking, draw, tokens, labels, set->length);
    return QN_OK;
}

static qn_status read_samples(const struct qn_dataset *dataset, const struct qn_draw *draws,
                              int64_t count, void *const *rows, struct qn_rooms *rooms,
                              const struct qn_log *log)
{
    const struct token_set *set = (const struct token_set *)dataset;
    int32_t *tokens = rows[TOKENS], *labels = rows[LABELS];
    (void)rooms;
    for (int64_t i = 0; i < count; i++, tokens += set->length, labels += set->length)
        QN_TRY(read_sample(set, &draws[i], tokens, labels, log));
    return QN_OK;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct token_set *set = (const struct token_set *)dataset;
    const int64_t numbers[] = {qn_token_file_checksum(&set->file), set->first, set->length,
                               set->stride, set->separator};
    const double masks[] = {set->masking.probability, (double)set->masking.mask};
    const uLong sum = crc32_z(0, (const Bytef *)numbers, sizeof numbers);
    return (uint32_t)(set->masking.probability > 0
                          ? crc32_z(sum, (const Bytef *)masks, sizeof masks)
                          : sum);
}

static void close_file(struct qn_dataset *dataset)
{
    qn_token_file_close(&((struct token_set *)dataset)->file);
}

static const struct qn_source source = {read_samples, checksum, close_file};

qn_status qn_dataset_open_tokens(qn_dataset **dataset, const qn_token_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, dataset && params);
    QN_TRY(check_params(params));
    *dataset = NULL;
    struct token_set *made = qn_dataset_new(&source, sizeof *made, log);
    if (!made)
        return QN_ERR_MEMORY;
    return qn_dataset_give(dataset, &made->base, open_file(made, params));
}
