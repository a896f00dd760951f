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
    *value = strtod(text, &end);
    return *text && !*end && *value >= key->least && *value <= key->most &&
           (!key->whole || *value == floor(*value));
}

const char *qn_model_read(const struct qn_model_key *keys, const qn_model_option *options,
                          int n_options, void *settings, char error[200])
{
    for (int i = 0; i < n_options; i++) {
        const struct qn_model_key *key = find_key(keys, options[i].key);
        double value;
        if (!key) {
            snprintf(error, 200, "model.%s: no such key", options[i].key);
            return error;
        }
        if (!parse(key, options[i].value, &value)) {
            snprintf(error, 200, "model.%s: '%s' is not %s from %g to %g", key->name,
                     options[i].value, key->whole ? "a whole number" : "a number", key->least,
                     key->most);
            return error;
        }
        memcpy((char *)settings + key->offset, &value, sizeof value);
    }
    return NULL;
}
