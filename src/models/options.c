/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct qn_model_key *find_key(const struct qn_model_key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

static bool parse(const struct qn_model_key *key, const char *text, double *value)
{
    char *end;
    for (int i = 0; key->words && key->words[i]; i++)
        if (strcmp(key->words[i], text) == 0) {
            *value = i;
            return true;
        }
    if (key->words)
        return false;
    *value = strtod(text, &end);
    return *text && !*end && *value >= key->least && *value <= key->most &&
           (!key->whole || *value == floor(*value));
}

/* What could have been meant: the nearest keys, else all of them. */
static void refuse_key(const struct qn_model_key *keys, const char *name, char error[200])
{
    qn_nearest nearest = {.text = name};
    char hint[QN_NEAREST_BYTES];
    for (const struct qn_model_key *key = keys; key->name; key++)
        qn_nearest_offer(&nearest, key->name);
    int length =
        snprintf(error, 200, "model.%s: no such key%s", name, qn_nearest_hint(&nearest, hint));
    for (const struct qn_model_key *key = keys; !*hint && key->name && length < 200; key++)
        length += snprintf(error + length, (size_t)(200 - length), "%s%s",
                           key == keys ? "; its keys: " : ", ", key->name);
}

/* "is not auto, batch, group" */
static const char *refuse(const struct qn_model_key *key, const char *text, char error[200])
{
    int used = snprintf(error, 200, "model.%s: '%.60s' is not", key->name, text);
    if (!key->words)
        snprintf(error + used, (size_t)(200 - used), " %s from %g to %g",
                 key->whole ? "a whole number" : "a number", key->least, key->most);
    for (int i = 0; key->words && key->words[i] && used < 200; i++)
        used += snprintf(error + used, (size_t)(200 - used), "%s %s", i ? "," : "", key->words[i]);
    return error;
}

bool qn_model_is_shared(const char *key)
{
    return strncmp(key, "lora_", 5) == 0;
}

static const char *read_option(const struct qn_model_key *keys, const qn_model_option *option,
                               void *settings, char error[200])
{
    const struct qn_model_key *key = find_key(keys, option->key);
    double value;
    if (!key) {
        refuse_key(keys, option->key, error);
        return error;
    }
    if (key->text) {
        memcpy((char *)settings + key->offset, &option->value, sizeof option->value);
        return NULL;
    }
    if (!parse(key, option->value, &value))
        return refuse(key, option->value, error);
    memcpy((char *)settings + key->offset, &value, sizeof value);
    return NULL;
}

static const char *read_options(const struct qn_model_key *keys, const qn_model_option *options,
                                int n_options, void *settings, bool shared, char error[200])
{
    const char *wrong = NULL;
    for (int i = 0; !wrong && i < n_options; i++)
        if (qn_model_is_shared(options[i].key) == shared)
            wrong = read_option(keys, &options[i], settings, error);
    return wrong;
}

const char *qn_model_read(const struct qn_model_key *keys, const qn_model_option *options,
                          int n_options, void *settings, char error[200])
{
    return read_options(keys, options, n_options, settings, false, error);
}

const char *qn_model_read_shared(const struct qn_model_key *keys, const qn_model_option *options,
                                 int n_options, void *settings, char error[200])
{
    return read_options(keys, options, n_options, settings, true, error);
}

const char *qn_model_refuse_heads(double width, double heads)
{
    return fmod(width, heads) == 0 ? NULL : "model.width: is not a multiple of heads";
}
