/* SPDX-License-Identifier: MIT */
#include "contrastive_settings.h"
#include "data_settings.h"

#include <string.h>

/* Samples that the bank holds. */
static int64_t bank_of(const struct settings *s)
{
    return s->contrastive.bank < 0 ? s->train.batches.step[0].batch : s->contrastive.bank;
}

static int check_queries(const struct settings *s, const struct recipe *recipe,
                         struct failure *failure)
{
    const struct contrastive_settings *c = &s->contrastive;
    const int64_t count = c->bank_queries;
    TRY(recipe_need(recipe, count <= bank_of(s),
                    "contrastive.bank_queries: is larger than contrastive.bank", failure));
    TRY(recipe_need(
        recipe, count <= 0 || count >= s->memory.micro_batch,
        "contrastive.bank_queries: is smaller than memory.micro_batch; 0: there is none", failure));
    return recipe_need(recipe, count <= 0 || c->query_bank,
                       "contrastive.bank_queries: goes without contrastive.query_bank = no",
                       failure);
}

/* Keys of banks may stand there in other modes, which do not look at them. */
static int check_mode(const struct settings *s, const struct recipe *recipe,
                      struct failure *failure)
{
    const struct contrastive_settings *c = &s->contrastive;
    const bool contaccum = c->mode == CONTRASTIVE_CONTACCUM;
    TRY(recipe_need(recipe,
                    s->memory.micro_batch || (c->mode != CONTRASTIVE_ACCUMULATE && !contaccum),
                    "memory.micro_batch: missing: of accumulate and contaccum it is a part of the "
                    "method, since pairs of a micro-batch are one another's negatives",
                    failure));
    TRY(recipe_need(recipe, !contaccum || c->bank <= 0 || c->bank >= s->memory.micro_batch,
                    "contrastive.bank: is smaller than memory.micro_batch; 0: there is none",
                    failure));
    return contaccum ? check_queries(s, recipe, failure) : CODE_DONE;
}

static int check_batch(const struct settings *s, const struct recipe *recipe,
                       struct failure *failure)
{
    return recipe_need(recipe, s->train.batches.count,
                       "train.batch: adaptive is of losses that are means over samples, which "
                       "those of pairs are not",
                       failure);
}

static int check_sides(const struct settings *s, const struct recipe *recipe,
                       struct failure *failure)
{
    bool there = false;
    for (int i = 0; i < recipe->count; i++)
        there |= strcmp(recipe->entries[i].section, "passages") == 0;
    if (s->has_negatives)
        TRY(data_settings_check_side(&s->negatives, "negatives", recipe, failure));
    if (s->data.pairs == PAIRING_HALVES) {
        TRY(recipe_need(recipe, s->data.kind == DATA_IDX || s->data.kind == DATA_IMAGES,
                        "data.pairs: halves are of images", failure));
        TRY(recipe_need(recipe, !there && !s->has_negatives,
                        "data.pairs: halves go without [passages] and [negatives]", failure));
        return data_settings_check_side(&s->data, "data", recipe, failure);
    }
    TRY(recipe_need(recipe, there,
                    "passages: the section is missing: what is found; data.pairs = halves pairs "
                    "halves of images",
                    failure));
    TRY(data_settings_check_side(&s->data, "data", recipe, failure));
    TRY(data_settings_check_side(&s->passages, "passages", recipe, failure));
    return recipe_need(recipe,
                       !s->data.test_path == !s->passages.test_path &&
                           !s->data.test_path == !s->negatives.test_path,
                       "data.test_path: goes with passages.test_path and negatives.test_path",
                       failure);
}

static int check_passage_model(const struct settings *s, const struct recipe *recipe,
                               struct failure *failure)
{
    const char *name = s->passage_model.name;
    const bool there = recipe->graph[GRAPH_OF_PASSAGES] != NULL;
    TRY(recipe_need(recipe, !name || strcmp(name, "graph") != 0 || there,
                    "model graph: passage_model.path: missing: the file of the graph", failure));
    return recipe_need(recipe, !s->contrastive.tied || !name,
                       "passage_model.name: goes without contrastive.tied", failure);
}

int contrastive_check(const struct settings *s, const struct recipe *recipe,
                      struct failure *failure)
{
    const struct recipe_entry *passages = recipe_find(recipe, "passages", "vocabulary");
    const struct recipe_entry *vocabulary =
        passages ? passages : recipe_find(recipe, "negatives", "vocabulary");
    TRY(check_mode(s, recipe, failure));
    TRY(check_batch(s, recipe, failure));
    TRY(check_sides(s, recipe, failure));
    if (vocabulary)
        return recipe_refuse(recipe, vocabulary, failure,
                             "one is made, of the queries' text; other tokens need "
                             "passages.tokenizer");
    TRY(recipe_need(recipe,
                    s->data.validation == 0 || (!data_settings_augments(&s->data) &&
                                                !data_settings_augments(&s->passages)),
                    "data.validation: of pairs goes without random images", failure));
    return check_passage_model(s, recipe, failure);
}

void contrastive_complete(struct settings *s)
{
    struct contrastive_settings *c = &s->contrastive;
    if (c->temperature == 0)
        c->temperature = c->score == SCORE_DOT ? 1 : 0.05;
    c->bank = c->mode == CONTRASTIVE_CONTACCUM ? bank_of(s) : 0;
    c->query_bank = c->query_bank && c->bank_queries != 0;
    if (c->bank_queries < 0 || c->bank == 0 || !c->query_bank)
        c->bank_queries = c->query_bank ? c->bank : 0;
    if (!c->tied && !s->train.norm_groups)
        s->train.norm_groups = "query.*,passage.*";
    data_settings_complete(&s->passages);
    data_settings_complete(&s->negatives);
}
