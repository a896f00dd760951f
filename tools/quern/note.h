/* SPDX-License-Identifier: MIT
 *
 * The recipe as a checkpoint keeps it: JSON, {"SECTION": {"KEY": "VALUE"}}, which takes any value
 * of any length, a graph file as model.text or passage_model.text; beside the sections "classes"
 * may be a list of names, "features" one of [NAME, MEAN, DEVIATION].
 */
#ifndef QUERN_TOOL_NOTE_H
#define QUERN_TOOL_NOTE_H

#include "feature_list.h"
#include "recipe.h"

#include <quern/data.h>

/* Names of classes, by their numbers. A zeroed struct is none. */
struct class_names {
    char **name; /* (count) */
    int64_t count;
};

/* `classes` has class_names or none; NULL: there are none, and so of `features`. Freed by the
 * caller. NULL: out of memory. */
char *note_text(const struct recipe *recipe, const qn_column *classes,
                const struct features *features);
/* The recipe again, which is zeroed or was one before; `name` is for messages. */
int note_read(struct recipe *recipe, const char *text, const char *name, struct failure *failure);
/* The names in it, none if it has none. */
int note_classes(struct class_names *names, const char *text, const char *name,
                 struct failure *failure);
/* The features in it, none if it has none. */
int note_features(struct features *features, const char *text, const char *name,
                  struct failure *failure);
/* Copies of `count` names. */
int class_names_copy(struct class_names *names, const char *const *from, int64_t count,
                     struct failure *failure);
void class_names_free(struct class_names *names);

#endif
