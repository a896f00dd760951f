/* SPDX-License-Identifier: MIT */
#include "variants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SEED[] = "train.seed";

/* --- reading --- */

static int refuse(const struct varied_key *k, const char *reason, const char *value,
                  struct failure *failure)
{
    return failure_set(failure, CODE_USAGE, "%s: %s: %s%s", k->option, k->key, reason, value);
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    char *end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = 0;
    return text;
}

static int add_value(struct varied_key *k, const char *value, struct failure *failure)
{
    if (!*value)
        return refuse(k, "a value is empty", "", failure);
    for (int i = 0; i < k->count; i++)
        if (strcmp(k->value[i], value) == 0)
            return refuse(k, "is given twice: ", value, failure);
    if (k->count == MOST_VALUES)
        return failure_set(failure, CODE_USAGE, "%s: %s: more than %d values", k->option, k->key,
                           MOST_VALUES);
    k->value[k->count++] = value;
    return CODE_DONE;
}

static int read_values(struct varied_key *k, const struct override *from, struct failure *failure)
{
    *k = (struct varied_key){.option = from->option, .key = from->name};
    k->text = strdup(from->value);
    if (!k->text)
        return failure_set(failure, CODE_FAILED, "out of memory");
    const char between = strchr(k->text, '|') ? '|' : ',';
    for (char *at = k->text, *end; at; at = end) {
        end = strchr(at, between);
        if (end)
            *end++ = 0;
        TRY(add_value(k, trim(at), failure));
    }
    return CODE_DONE;
}

/* A key has one source. */
static int check_key(const struct override *varied, const struct arguments *a,
                     struct failure *failure)
{
    for (const struct override *o = a->varied; o < varied; o++)
        if (strcmp(o->name, varied->name) == 0)
            return failure_set(failure, CODE_USAGE, "%s: %s: is varied twice", varied->option,
                               varied->name);
    for (int i = 0; i < a->n_overrides; i++)
        if (strcmp(a->overrides[i].name, varied->name) == 0)
            return failure_set(failure, CODE_USAGE, "%s: %s: %s sets it, too", varied->option,
                               varied->name, a->overrides[i].option);
    return CODE_DONE;
}

/* The product of all counts, which is stopped before it overflows. */
static int count(struct variants *v, struct failure *failure)
{
    v->n_seeds = v->seeds.count ? v->seeds.count : 1;
    v->n_variants = 1;
    v->n_runs = v->n_seeds;
    for (int i = 0; i < v->n_keys && v->n_runs <= MOST_RUNS; i++) {
        v->n_variants *= v->keys[i].count;
        v->n_runs *= v->keys[i].count;
    }
    if (v->n_runs < 2)
        return failure_set(failure, CODE_USAGE,
                           "compare: one training alone: --vary, --modes or --seeds with two "
                           "values");
    return v->n_runs <= MOST_RUNS ? CODE_DONE
                                  : failure_set(failure, CODE_USAGE,
                                                "compare: all combinations are more than %d "
                                                "trainings",
                                                MOST_RUNS);
}

int variants_read(struct variants *v, const struct arguments *a, struct failure *failure)
{
    *v = (struct variants){0};
    for (int i = 0; i < a->n_varied; i++) {
        const struct override *from = &a->varied[i];
        const bool seeds = strcmp(from->name, SEED) == 0;
        TRY(check_key(from, a, failure));
        TRY(read_values(seeds ? &v->seeds : &v->keys[v->n_keys++], from, failure));
    }
    return count(v, failure);
}

void variants_free(struct variants *v)
{
    for (int i = 0; i < v->n_keys; i++)
        free(v->keys[i].text);
    free(v->seeds.text);
    *v = (struct variants){0};
}

/* --- values of a variant --- */

/* The last key changes fastest. */
static const char *value_of(const struct variants *v, int variant, int key)
{
    for (int i = v->n_keys - 1; i > key; i--)
        variant /= v->keys[i].count;
    return v->keys[key].value[variant % v->keys[key].count];
}

static const char *last_part(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot ? dot + 1 : key;
}

static const char *short_name(const struct variants *v, int key)
{
    const char *name = last_part(v->keys[key].key);
    bool alone = strcmp(name, last_part(SEED)) != 0;
    for (int i = 0; i < v->n_keys; i++)
        alone &= i == key || strcmp(last_part(v->keys[i].key), name) != 0;
    return alone ? name : v->keys[key].key;
}

/* `seed` below 0: without. */
static char *make_name(const struct variants *v, int variant, int seed)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; i < v->n_keys; i++)
        fprintf(out, "%s%s=%s", i ? "," : "", short_name(v, i), value_of(v, variant, i));
    if (seed >= 0)
        fprintf(out, "%s%s=%s", v->n_keys ? "," : "", last_part(SEED), v->seeds.value[seed]);
    return fclose(out) == 0 ? text : (free(text), NULL);
}

char *variants_name(const struct variants *v, int variant)
{
    return make_name(v, variant, -1);
}

char *variants_run_name(const struct variants *v, int run)
{
    return make_name(v, run / v->n_seeds, v->seeds.count ? run % v->n_seeds : -1);
}

/* FNV-1a. */
static uint32_t hash(const char *text)
{
    uint32_t sum = UINT32_C(2166136261);
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * UINT32_C(16777619);
    return sum;
}

void variants_folder(const char *name, char folder[RUN_FOLDER_BYTES])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                ".,=+-_";
    const int room = RUN_FOLDER_BYTES - 16;
    const bool same = strspn(name, plain) == strlen(name) && (int)strlen(name) < room;
    snprintf(folder, RUN_FOLDER_BYTES, "%.*s", room, name);
    for (char *c = folder; *c; c++)
        *c = strchr(plain, *c) ? *c : '_';
    if (!same)
        snprintf(folder + strlen(folder), 16, "-%08" PRIx32, hash(name));
}

/* --- a run's command line --- */

static int add(struct arguments *a, const struct varied_key *k, const char *value,
               struct failure *failure)
{
    if (a->n_overrides == MAX_OVERRIDES)
        return failure_set(failure, CODE_USAGE, "%s: more than %d keys are set", k->option,
                           MAX_OVERRIDES);
    struct override *to = &a->overrides[a->n_overrides++];
    *to = (struct override){.option = k->option, .value = value};
    snprintf(to->name, sizeof to->name, "%s", k->key);
    return CODE_DONE;
}

int variants_arguments(const struct variants *v, int run, struct arguments *a,
                       struct failure *failure)
{
    for (int i = 0; i < v->n_keys; i++)
        TRY(add(a, &v->keys[i], value_of(v, run / v->n_seeds, i), failure));
    return v->seeds.count ? add(a, &v->seeds, v->seeds.value[run % v->n_seeds], failure)
                          : CODE_DONE;
}
