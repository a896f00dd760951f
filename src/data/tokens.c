/* SPDX-License-Identifier: MIT
 *
 * Datasets of tokens.
 */
#include "base/log.h"
#include "data/documents.h"
#include "data/masking.h"
#include "data/source.h"
#include "io/file.h"
#include "io/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* Those from LENGTHS on are there where samples have different lengths: from SHORTER on tokens and
 * labels of each of the lengths but the last. */
enum column { TOKENS, LABELS, LENGTHS, BUCKET, SHORTER };
_Static_assert(SHORTER + 2 * (QN_MAX_LENGTHS - 1) <= (int)QN_MAX_COLUMNS, "all have columns");

/* Bytes of a token; 0: a header says it. Tokens that there are, where nothing says it; 0: it must
 * be said. */
static const struct type {
    int bytes;
    int64_t tokens;
} types[] = {
    [QN_TOKEN_LLM_C] = {0, 0},
    [QN_TOKEN_U8] = {1, 256},
    [QN_TOKEN_U16] = {2, 0},
    [QN_TOKEN_U32] = {4, 0},
};
enum { TYPES = sizeof types / sizeof *types };

/* A file, and what its tokens become: sample i begins with token first + i * stride, or is piece i
 * of the documents, if there are such. */
struct token_set {
    struct qn_dataset base;
    struct qn_token_file file;
    struct qn_documents documents;
    int64_t first, length, stride, tokens;
    int64_t separator; /* below 0: there is none */
    struct qn_masking masking;
};

static qn_status check_lengths(const qn_token_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->lengths && params->separate && params->stride == 0);
    QN_REQUIRE(log, params->length <= INT32_MAX && params->lengths[0] >= 1);
    QN_REQUIRE(log, params->lengths[params->n_lengths - 1] == params->length);
    for (int i = 1; i < params->n_lengths; i++)
        QN_REQUIRE(log, params->lengths[i] > params->lengths[i - 1]);
    return QN_OK;
}

static qn_status check_params(const qn_token_params *params)
{
    const struct qn_log *log = &params->log;
    QN_REQUIRE(log, params->path);
    QN_REQUIRE(log, (int)params->type >= 0 && (int)params->type < TYPES);
    QN_REQUIRE(log, params->length >= 1 && params->stride >= 0);
    QN_REQUIRE(log, params->tokens >= 0 && params->tokens <= INT32_MAX);
    QN_REQUIRE(log, params->held_out >= 0 && params->held_out < 1);
    QN_REQUIRE(log, params->mlm_probability >= 0 && params->mlm_probability <= 1);
    QN_REQUIRE(log, params->split == QN_SPLIT_TRAIN || params->split == QN_SPLIT_TEST);
    QN_REQUIRE(log, params->n_lengths >= 0 && params->n_lengths <= QN_MAX_LENGTHS);
    return params->n_lengths ? check_lengths(params) : QN_OK;
}

/* --- opening --- */

static qn_status check_token(const struct token_set *set, const char *key, int64_t token,
                             const struct qn_log *log)
{
    return token >= 0 && token < set->tokens
               ? QN_OK
               : qn_fail(log, QN_ERR_ARGUMENT,
                         "%s: data.%s: %" PRId64 " is none of the %" PRId64 " tokens",
                         set->file.path, key, token, set->tokens);
}

static qn_status set_tokens(struct token_set *set, const qn_token_params *params)
{
    const int64_t told = set->file.tokens ? set->file.tokens : types[params->type].tokens;
    set->tokens = params->tokens ? params->tokens : told;
    set->separator = params->separate ? params->separator : -1;
    set->masking = (struct qn_masking){params->mlm_probability, params->mask_token, set->tokens,
                                       set->separator};
    if (!set->tokens)
        return qn_fail(&params->log, QN_ERR_ARGUMENT,
                       "%s: data.tokens: missing: nothing says how many tokens there are",
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

static qn_status find_documents(struct token_set *set, const qn_token_params *params,
                                int64_t tokens, int64_t *samples)
{
    const struct qn_document_range range = {set->first, set->first + tokens, set->separator,
                                            tokens_behind(set)};
    struct qn_documents *documents = &set->documents;
    documents->n_lengths = params->n_lengths;
    memcpy(documents->lengths, params->lengths,
           (size_t)params->n_lengths * sizeof *params->lengths);
    QN_TRY(qn_documents_find(documents, &set->file, &range, &params->log));
    *samples = documents->count;
    return *samples
               ? QN_OK
               : qn_fail(&params->log, QN_ERR_FORMAT,
                         "%s: no document of the split has a token to learn from", set->file.path);
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
    if (params->n_lengths)
        return find_documents(set, params, tokens, samples);
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

/* Room for names such as "tokens.65536". */
enum { NAME_BYTES = 32 };

/* Fills in the columns, the names of the shorter ones in `names`; gives how many. */
static int describe(const struct token_set *set, struct qn_column columns[QN_MAX_COLUMNS],
                    char names[QN_MAX_COLUMNS][NAME_BYTES])
{
    static const char *const kinds[] = {"tokens", "labels"};
    const struct qn_documents *documents = &set->documents;
    const struct qn_column row = {
        .dtype = QN_I32, .shape = {1, {set->length}}, .classes = set->tokens};
    for (int kind = TOKENS; kind <= LABELS; kind++) {
        columns[kind] = row;
        columns[kind].name = kinds[kind];
    }
    if (!documents->n_lengths)
        return LENGTHS;
    columns[LENGTHS] = (struct qn_column){.name = "lengths", .dtype = QN_I32};
    columns[BUCKET] = (struct qn_column){.name = "bucket", .dtype = QN_I32};
    for (int i = 0; i < 2 * (documents->n_lengths - 1); i++) {
        struct qn_column *column = &columns[SHORTER + i];
        const int64_t length = documents->lengths[i / 2];
        snprintf(names[i], NAME_BYTES, "%s.%" PRId64, kinds[i % 2], length);
        *column = row;
        column->name = names[i];
        column->shape.dim[0] = length;
    }
    return SHORTER + 2 * (documents->n_lengths - 1);
}

static qn_status open_file(struct token_set *set, const qn_token_params *params)
{
    struct qn_column columns[QN_MAX_COLUMNS] = {0};
    char names[QN_MAX_COLUMNS][NAME_BYTES];
    int64_t samples = 0;
    QN_TRY(qn_token_file_open(&set->file, params->path, params->name, types[params->type].bytes,
                              &params->log));
    QN_TRY(set_tokens(set, params));
    QN_TRY(divide(set, params, &samples));
    const qn_dataset_facts facts = {samples, describe(set, columns, names), columns};
    return qn_dataset_set(&set->base, &facts, &params->log);
}

/* --- samples --- */

static qn_status check_tokens(const struct token_set *set, const int32_t *tokens, int64_t first,
                              int64_t count, const struct qn_log *log)
{
    for (int64_t i = 0; i < count; i++)
        if ((uint32_t)tokens[i] >= set->tokens)
            return qn_fail(log, QN_ERR_FORMAT,
                           "%s: token %" PRId64 " is %" PRIu32 ", but there are %" PRId64,
                           set->file.path, first + i, (uint32_t)tokens[i], set->tokens);
    return QN_OK;
}

static void ignore_separators(const struct token_set *set, const int32_t *tokens, int32_t *labels,
                              int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] == set->separator)
            labels[i] = QN_IGNORED_LABEL;
}

/* The labels are the tokens, one further. */
static qn_status label_next(const struct token_set *set, const struct qn_piece *piece,
                            const int32_t *tokens, int32_t *labels, const struct qn_log *log)
{
    const int64_t last = piece->count - 1, behind = piece->first + piece->count;
    memcpy(labels, tokens + 1, (size_t)last * sizeof *labels);
    QN_TRY(qn_token_file_read(&set->file, behind, 1, labels + last, log));
    QN_TRY(check_tokens(set, labels + last, behind, 1, log));
    ignore_separators(set, tokens, labels, piece->count);
    return QN_OK;
}

static qn_status read_piece(const struct token_set *set, const struct qn_draw *draw,
                            const struct qn_piece *piece, int32_t *tokens, int32_t *labels,
                            const struct qn_log *log)
{
    QN_TRY(qn_token_file_read(&set->file, piece->first, piece->count, tokens, log));
    QN_TRY(check_tokens(set, tokens, piece->first, piece->count, log));
    if (set->masking.probability == 0)
        return label_next(set, piece, tokens, labels, log);
    qn_masking_apply(&set->masking, draw, tokens, labels, piece->count);
    return QN_OK;
}

static struct qn_piece piece_of(const struct token_set *set, int64_t sample)
{
    if (set->documents.count)
        return set->documents.pieces[sample];
    return (struct qn_piece){set->first + sample * set->stride, set->length};
}

/* Row i of every column, `row` of each where all columns have their rows. */
static qn_status read_sample(const struct token_set *set, const struct qn_draw *draw, int64_t i,
                             void *const *rows, const struct qn_log *log)
{
    const struct qn_documents *documents = &set->documents;
    const struct qn_piece piece = piece_of(set, draw->sample);
    int32_t *row[] = {(int32_t *)rows[TOKENS] + i * set->length,
                      (int32_t *)rows[LABELS] + i * set->length};
    QN_TRY(read_piece(set, draw, &piece, row[TOKENS], row[LABELS], log));
    for (int64_t k = piece.count; k < set->length; k++) {
        row[TOKENS][k] = (int32_t)set->separator;
        row[LABELS][k] = QN_IGNORED_LABEL;
    }
    if (!documents->n_lengths)
        return QN_OK;
    ((int32_t *)rows[LENGTHS])[i] = (int32_t)piece.count;
    ((int32_t *)rows[BUCKET])[i] = qn_documents_bucket(documents, draw->sample);
    for (int c = 0; c < 2 * (documents->n_lengths - 1); c++) {
        const int64_t length = documents->lengths[c / 2];
        memcpy((int32_t *)rows[SHORTER + c] + i * length, row[c % 2],
               (size_t)length * sizeof **row);
    }
    return QN_OK;
}

static qn_status read_samples(const struct qn_dataset *dataset, const struct qn_draw *draws,
                              int64_t count, void *const *rows, struct qn_rooms *rooms,
                              const struct qn_log *log)
{
    (void)rooms;
    for (int64_t i = 0; i < count; i++)
        QN_TRY(read_sample((const struct token_set *)dataset, &draws[i], i, rows, log));
    return QN_OK;
}

static uint32_t checksum(const struct qn_dataset *dataset)
{
    const struct token_set *set = (const struct token_set *)dataset;
    const int64_t numbers[] = {qn_file_pages_crc32(set->file.fd, set->file.path, set->file.size),
                               set->first, set->length, set->stride, set->separator};
    const double masks[] = {set->masking.probability, (double)set->masking.mask};
    uLong sum = crc32_z(0, (const Bytef *)numbers, sizeof numbers);
    sum = crc32_z(sum, (const Bytef *)set->documents.lengths,
                  (size_t)set->documents.n_lengths * sizeof *set->documents.lengths);
    return (uint32_t)(set->masking.probability > 0
                          ? crc32_z(sum, (const Bytef *)masks, sizeof masks)
                          : sum);
}

static int bucket(const struct qn_dataset *dataset, int64_t sample)
{
    return qn_documents_bucket(&((const struct token_set *)dataset)->documents, sample);
}

static void close_file(struct qn_dataset *dataset)
{
    struct token_set *set = (struct token_set *)dataset;
    qn_token_file_close(&set->file);
    qn_documents_free(&set->documents);
}

static const struct qn_source source = {read_samples, checksum, close_file, bucket};

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
