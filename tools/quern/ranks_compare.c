/* SPDX-License-Identifier: MIT */
#include "ranks_compare.h"
#include "note.h"
#include "ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- recipes --- */

/* What is a rank's own: places, and what is said of its devices. */
static bool is_own(const struct recipe_entry *entry)
{
    static const char *const keys[] = {"memory.budget", "memory.micro_batch", "memory.recompute",
                                       "memory.tune",   "memory.effort",      "group.devices"};
    char name[sizeof entry->section + sizeof entry->key + 1];
    snprintf(name, sizeof name, "%s.%s", entry->section, entry->key);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (strcmp(name, keys[k]) == 0)
            return true;
    return *entry->value == '/';
}

static int differ(const struct session *s, const struct recipe_entry *key, const char *here,
                  const char *first)
{
    return failure_set(s->failure, CODE_USAGE, "%s: %s.%s: %s here, %s on rank 0", s->recipe.name,
                       key->section, key->key, here, first);
}

/* Every key of one recipe beside the other; `first`: `from` is that of rank 0. */
static int compare_keys(const struct session *s, const struct recipe *from, const struct recipe *to,
                        bool first)
{
    const struct recipe_entry *entry;
    for (int i = 0; (entry = recipe_next(from, &i));) {
        const struct recipe_entry *other = recipe_find(to, entry->section, entry->key);
        const char *value = other ? other->value : "nothing";
        if (is_own(entry) || (other && (is_own(other) || strcmp(entry->value, value) == 0)))
            continue;
        return first ? differ(s, entry, value, entry->value)
                     : differ(s, entry, entry->value, value);
    }
    return CODE_DONE;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static int compare_recipe(const struct session *s, struct recipe *first, const char *text)
{
    TRY(note_read(first, text, "rank 0", s->failure));
    TRY(compare_keys(s, first, &s->recipe, true));
    TRY(compare_keys(s, &s->recipe, first, false));
    for (int g = 0; g < RECIPE_GRAPHS; g++)
        if (!same_text(first->graph[g], s->recipe.graph[g]))
            return failure_set(s->failure, CODE_USAGE, "%s: %s.path: another graph than on rank 0",
                               s->recipe.name, recipe_graph_sections[g]);
    return CODE_DONE;
}

static int compare_recipes(const struct session *s)
{
    char *text = ranks_first() ? note_text(&s->recipe, NULL, NULL) : NULL;
    struct recipe *first = calloc(1, sizeof *first);
    int code = first && (text || !ranks_first())
                   ? CODE_DONE
                   : failure_set(s->failure, CODE_FAILED, "out of memory");
    code = ranks_agree(code, s->failure);
    if (!code)
        code = ranks_text(&text, s->failure);
    if (!code && !ranks_first())
        code = compare_recipe(s, first, text);
    if (first)
        recipe_free_graphs(first);
    free(first);
    free(text);
    return code;
}

/* --- versions and samples --- */

/* Each rank's short text beside that of rank 0. */
enum { WORD_BYTES = 64 };
static int compare_word(const struct session *s, const char *text, const char *what)
{
    char word[WORD_BYTES] = "";
    char *all = calloc((size_t)ranks_count(), WORD_BYTES);
    snprintf(word, sizeof word, "%s", text);
    int code = all ? CODE_DONE : failure_set(s->failure, CODE_FAILED, "out of memory");
    code = ranks_agree(code, s->failure);
    if (!code)
        code = ranks_gather(word, WORD_BYTES, all, s->failure);
    if (!code && strcmp(word, all) != 0)
        code = failure_set(s->failure, CODE_USAGE, "%s: %s here, %s on rank 0", what, word, all);
    free(all);
    return code;
}

static int compare_samples(const struct session *s, const qn_dataset *dataset, const char *what)
{
    char digest[DATA_DIGEST_BYTES] = "";
    if (dataset)
        data_digest(dataset, digest);
    return ranks_agree(compare_word(s, digest, what), s->failure);
}

int ranks_compare(const struct session *s)
{
    if (ranks_count() == 1)
        return CODE_DONE;
    TRY(ranks_agree(compare_word(s, QN_VERSION, "quern"), s->failure));
    TRY(ranks_agree(compare_recipes(s), s->failure));
    TRY(compare_samples(s, s->data.train, "data: other samples (count and checksum)"));
    return compare_samples(s, s->data.evaluated,
                           "data: other samples to evaluate (count and checksum)");
}

/* --- weights --- */

int ranks_compare_weights(const struct session *s)
{
    char word[WORD_BYTES];
    uint64_t digest = 0;
    if (ranks_count() == 1)
        return CODE_DONE;
    failure_clear(s->failure);
    const qn_status status = qn_trainer_digest(s->trainer, &digest);
    TRY(ranks_agree(status ? failure_library(s->failure, status, NULL) : CODE_DONE, s->failure));
    snprintf(word, sizeof word, "%016" PRIx64, digest);
    return ranks_agree(compare_word(s, word, "weights"), s->failure);
}
