/* SPDX-License-Identifier: MIT
 *
 * The networks of which a config.json is understood, and what its fields mean.
 */
#ifndef QUERN_TOOL_FAMILY_H
#define QUERN_TOOL_FAMILY_H

#include "config.h"

#include <cjson/cJSON.h>
#include <string.h>

/* One field of the file. */
struct field {
    const char *name; /* "rope_scaling.factor" is in the object rope_scaling */
    /* Reads it into the config; gives NULL or a reason. NULL of a part, which its object reads. */
    const char *(*read)(const struct field *field, const cJSON *item, struct config *config);
    size_t offset;             /* of a double of the config */
    const char *section, *key; /* of the recipe that say the same; NULL: none does */
    const char *written;       /* as JSON; NULL: it must be there, and its number is written */
    const char *also;          /* what is taken beside `written` */
};

enum { FAMILY_FIELDS = 28 };
struct family {
    const char *type, *model; /* model_type; the model that ships */
    /* Of transformers; `classifier` has config.labels, NULL: there is none. */
    const char *architecture, *classifier;
    bool continues;                /* it is a decoder, which continues texts */
    const char *words, *positions; /* tables with a row for each; positions NULL: no table */
    const char *classes;           /* weight with a row for each; NULL: there is none */
    int64_t tokens;       /* from so many on, those that begin and end texts are transformers' */
    struct config absent; /* what optional fields mean that are not there */
    struct config own;    /* what keys of the model mean that are not there */
    struct field fields[FAMILY_FIELDS]; /* ended by a name of NULL */
};

/* NULL: there is none. */
const struct family *family_of_type(const char *type);
const struct family *family_of_model(const char *model);
const struct field *family_field(const struct family *family, const char *name);
/* The name of the field of a number of the config. */
const char *family_name(const struct family *family, size_t offset);
/* Whether transformers writes this about other tasks, tokens, generation and itself. */
bool family_passes_over(const char *name);

/* Adds a field to a file that is written. False: out of memory. */
bool field_put(cJSON *object, const struct field *field, const struct config *config);
static inline bool field_is_part(const char *name)
{
    return strchr(name, '.') != NULL;
}
static inline double field_number(const struct field *field, const struct config *config)
{
    return *(const double *)(const void *)((const char *)config + field->offset);
}

#endif
