/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "npy.h"
#include "retrieval.h"
#include "trained.h"
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- files --- */

static int write_array(const char *folder, const char *name, qn_dtype dtype, qn_shape shape,
                       const void *rows, struct failure *failure)
{
    char path[4096];
    struct file_part part;
    int64_t bytes = qn_dtype_size(dtype);
    for (int d = 0; d < shape.rank; d++)
        bytes *= shape.dim[d];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return failure_set(failure, CODE_USAGE, "--out: the path is too long");
    TRY(npy_begin(&part, path, dtype, &shape, failure));
    return file_end(&part, file_add(&part, rows, (size_t)bytes, failure), failure);
}

static int write_all(const char *folder, const struct vectors *v, struct failure *failure)
{
    const qn_shape vectors = {.rank = 2, .dim = {v->samples, v->dim}};
    const qn_shape ids = {.rank = 1, .dim = {v->samples}};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return failure_set(failure, CODE_FAILED, "%s: %s", folder, strerror(errno));
    TRY(write_array(folder, "queries.npy", QN_F32, vectors, v->rows[0], failure));
    TRY(write_array(folder, "passages.npy", QN_F32, vectors, v->rows[1], failure));
    return write_array(folder, "ids.npy", QN_I32, ids, v->ids, failure);
}

/* --- the command --- */

static int choose(const struct session *s, const char *split, const qn_dataset **pairs)
{
    static const char *const splits[] = {"test", "train", NULL};
    int named = 0;
    if (split && value_word(split, splits, &named))
        return failure_set(s->failure, CODE_USAGE, "--split: '%s' is neither test nor train",
                           split);
    *pairs = named ? s->data.train : s->data.test ? s->data.test : s->data.evaluated;
    return *pairs ? CODE_DONE
                  : failure_set(s->failure, CODE_USAGE,
                                "%s: there is no test split; --split train has all pairs",
                                s->recipe.name);
}

static int open_pairs(struct session *s)
{
    if (!s->settings.contrastive.mode)
        return failure_set(s->failure, CODE_USAGE,
                           "%s: is of no dual encoder: contrastive.mode is missing",
                           s->recipe.name);
    return data_open(&s->data, &s->settings, &s->recipe, s->failure);
}

static int embed(struct session *s, const struct trained *trained, const struct arguments *a)
{
    const char *out = a->value[OPTION_EXPORT];
    const qn_dataset *pairs = NULL;
    struct vectors vectors = {.samples = 0};
    TRY(open_pairs(s));
    TRY(choose(s, a->value[OPTION_SPLIT], &pairs));
    TRY(trained_load(trained, s, a));
    int code = vectors_make(&vectors, s, pairs);
    if (code == CODE_DONE)
        code = write_all(out, &vectors, s->failure);
    if (code == CODE_DONE && !s->quiet)
        printf("%lld pairs, vectors of %lld numbers: %s\n", (long long)vectors.samples,
               (long long)vectors.dim, out);
    vectors_free(&vectors);
    return code;
}

static int run(const struct arguments *a, struct failure *failure)
{
    const char *out = a->value[OPTION_EXPORT];
    if (!out || !*out)
        return failure_set(failure, CODE_USAGE, "embed: --out: needs the name of a folder");
    struct trained trained = {0};
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return failure_set(failure, CODE_FAILED, "out of memory");
    session->failure = failure;
    session->quiet = a->value[OPTION_QUIET] != NULL;
    int code = trained_open(&trained, session, a, "embed");
    if (code == CODE_DONE)
        code = embed(session, &trained, a);
    session_close(session);
    trained_close(&trained);
    free(session);
    return code;
}

const struct command command_embed = {
    "embed",
    "RECIPE|DIR",
    "vectors of a dual encoder, as arrays of NumPy's",
    "Encodes the pairs of the test split, or of --split train, with the weights of a training's\n"
    "folder (its newest checkpoint) or a checkpoint, or those of --weights with a RECIPE, and "
    "writes\n"
    "into the folder of --out: queries.npy and passages.npy, f32 (pairs, contrastive.dim), and\n"
    "ids.npy, i32: which pair of the data each is. Scores are dot products of the vectors, "
    "divided\n"
    "by contrastive.temperature. Other files: --data and --set, such as --set passages.path=FILE;\n"
    "with --set data.held_out=0 --split train has all lines in their order.",
    true,
    run,
    {OPTION_EXPORT, OPTION_SPLIT, OPTION_WEIGHTS, OPTION_DATA, OPTION_BUDGET, OPTION_MICRO_BATCH,
     OPTION_DEVICE, OPTION_STORAGE, OPTION_SET, OPTION_QUIET, OPTION_COUNT},
};
