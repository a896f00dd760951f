/* SPDX-License-Identifier: MIT
 *
 * A recipe as text: keys and values of an INI file with the place where each was written. What the
 * keys mean is the business of settings.h, how a checkpoint keeps them that of note.h.
 */
#ifndef QUERN_TOOL_RECIPE_H
#define QUERN_TOOL_RECIPE_H

#include "failure.h"

#include <stdbool.h>

enum { RECIPE_ENTRIES = 128, RECIPE_VALUE_BYTES = 4096 };

struct recipe_entry {
    char section[32], key[32], value[RECIPE_VALUE_BYTES]; /* section "": was removed */
    int line;        /* in the recipe's file; 0: from elsewhere */
    char option[48]; /* "--budget", "--set"; "": not from the command line */
};

/* Sections whose model may be a graph file. */
enum recipe_graph { GRAPH_OF_MODEL, GRAPH_OF_PASSAGES, RECIPE_GRAPHS };
extern const char *const recipe_graph_sections[RECIPE_GRAPHS];

struct recipe {
    char name[4096];   /* of its file, or under which it ships; begins every message */
    char folder[4096]; /* where relative paths in it begin, with a slash; "": the current folder */
    bool resumed;      /* the note of a checkpoint, which has a section of its own */
    char *graph[RECIPE_GRAPHS]; /* text of the file `path` of each section, whole; NULL: none was
                                   read */
    int count;
    struct recipe_entry entries[RECIPE_ENTRIES];
};

/* Reads a recipe that ships, or a file: `name` is one of them. */
int recipe_read(struct recipe *recipe, const char *name, struct failure *failure);
/* The same of a file alone, also of one that holds another kind of keys. */
int recipe_read_file(struct recipe *recipe, const char *path, struct failure *failure);
/* The same from text; `name` is for messages. */
int recipe_parse(struct recipe *recipe, const char *text, const char *name,
                 struct failure *failure);

void recipe_free_graphs(struct recipe *recipe);

/* NULL when the recipe does not have it. */
const struct recipe_entry *recipe_find(const struct recipe *recipe, const char *section,
                                       const char *key);
/* Adds or replaces a value that came from an option of the command line, or from elsewhere (""). */
int recipe_put(struct recipe *recipe, const char *section, const char *key, const char *value,
               const char *option, struct failure *failure);
/* Puts a number that the field of a file says, or, where the recipe has the key, requires the same
 * of it: CODE_FAILED. `option` as above. */
struct recipe_number {
    const char *section, *key;
    double number;
    const char *path, *field;
};
int recipe_agree(struct recipe *recipe, const struct recipe_number *said, const char *option,
                 struct failure *failure);
/* The others stay where they are: settings borrow their values. */
void recipe_remove(struct recipe *recipe, const char *section, const char *key);
/* The entry at or behind *i, which moves behind it; NULL past the last. */
const struct recipe_entry *recipe_next(const struct recipe *recipe, int *i);

/* CODE_USAGE with the place, section and key of an entry before the text. */
__attribute__((format(printf, 4, 5))) int recipe_refuse(const struct recipe *recipe,
                                                        const struct recipe_entry *entry,
                                                        struct failure *failure, const char *format,
                                                        ...);

/* CODE_USAGE with the recipe's name before the text, unless what is needed is there. */
int recipe_need(const struct recipe *recipe, bool there, const char *what, struct failure *failure);

/* Names of the recipes that ship; NULL past the last. */
const char *recipe_shipped(int index);

#endif
