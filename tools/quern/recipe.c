/* SPDX-License-Identifier: MIT */
#include "recipe.h"
#include "file.h"
#include "shipped.h"

#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const recipe_graph_sections[RECIPE_GRAPHS] = {"model", "passage_model"};

void recipe_free_graphs(struct recipe *recipe)
{
    for (int i = 0; i < RECIPE_GRAPHS; i++) {
        free(recipe->graph[i]);
        recipe->graph[i] = NULL;
    }
}

/* --- entries --- */

static int find(const struct recipe *recipe, const char *section, const char *key)
{
    for (int i = 0; i < recipe->count; i++)
        if (strcmp(recipe->entries[i].section, section) == 0 &&
            strcmp(recipe->entries[i].key, key) == 0)
            return i;
    return -1;
}

const struct recipe_entry *recipe_find(const struct recipe *recipe, const char *section,
                                       const char *key)
{
    int index = find(recipe, section, key);
    return index < 0 ? NULL : &recipe->entries[index];
}

int recipe_agree(struct recipe *recipe, const struct recipe_number *said, const char *option,
                 struct failure *failure)
{
    const struct recipe_entry *entry = recipe_find(recipe, said->section, said->key);
    char text[32], *end;
    snprintf(text, sizeof text, "%.15g", said->number);
    if (!entry)
        return recipe_put(recipe, said->section, said->key, text, option, failure);
    const double wanted = strtod(entry->value, &end);
    if (end != entry->value && !*end && wanted == said->number)
        return CODE_DONE;
    return failure_set(failure, CODE_FAILED, "%s: %s: is %s, but %s.%s of %s is %s", said->path,
                       said->field, text, said->section, said->key, recipe->name, entry->value);
}

void recipe_remove(struct recipe *recipe, const char *section, const char *key)
{
    const int index = find(recipe, section, key);
    if (index >= 0)
        *recipe->entries[index].section = *recipe->entries[index].key = 0;
}

const struct recipe_entry *recipe_next(const struct recipe *recipe, int *i)
{
    while (*i < recipe->count && !*recipe->entries[*i].section)
        ++*i;
    return *i < recipe->count ? &recipe->entries[(*i)++] : NULL;
}

int recipe_refuse(const struct recipe *recipe, const struct recipe_entry *entry,
                  struct failure *failure, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!entry->line)
        return failure_set(failure, CODE_USAGE, "%s: %s.%s: %s",
                           *entry->option ? entry->option : recipe->name, entry->section,
                           entry->key, text);
    return failure_set(failure, CODE_USAGE, "%s:%d: %s.%s: %s", recipe->name, entry->line,
                       entry->section, entry->key, text);
}

/* Why texts do not fit an entry; NULL: they do. */
static const char *reason_against(const char *section, const char *key, const char *value)
{
    if (!*section || strlen(section) >= sizeof((struct recipe_entry *)0)->section)
        return "no such section";
    if (!*key || strlen(key) >= sizeof((struct recipe_entry *)0)->key)
        return "unknown key";
    if (!*value)
        return "has no value";
    return strlen(value) < RECIPE_VALUE_BYTES ? NULL : "its value is too long";
}

static int add(struct recipe *recipe, const struct recipe_entry *place, const char *section,
               const char *key, const char *value, struct failure *failure)
{
    struct recipe_entry entry = *place;
    const char *reason = reason_against(section, key, value);
    snprintf(entry.section, sizeof entry.section, "%s", section);
    snprintf(entry.key, sizeof entry.key, "%s", key);
    if (reason)
        return recipe_refuse(recipe, &entry, failure, "%s", reason);
    int index = find(recipe, section, key);
    if (index >= 0 && entry.line)
        return recipe_refuse(recipe, &entry, failure, "given twice, first in line %d",
                             recipe->entries[index].line);
    if (index < 0)
        index = find(recipe, "", "");
    if (index < 0 && recipe->count == RECIPE_ENTRIES)
        return recipe_refuse(recipe, &entry, failure, "a recipe has at most %d keys",
                             RECIPE_ENTRIES);
    snprintf(entry.value, sizeof entry.value, "%s", value);
    recipe->entries[index < 0 ? recipe->count++ : index] = entry;
    return CODE_DONE;
}

int recipe_put(struct recipe *recipe, const char *section, const char *key, const char *value,
               const char *option, struct failure *failure)
{
    struct recipe_entry place = {0};
    snprintf(place.option, sizeof place.option, "%s", option);
    return add(recipe, &place, section, key, value, failure);
}

/* --- parsing --- */

/* The parser tells neither the line of a key nor that it cut one, so the reader counts and checks.
 */
struct reading {
    struct recipe *recipe;
    const char *at;
    int line;
    struct failure *failure;
};

static char *read_line(char *line, int size, void *user)
{
    struct reading *r = user;
    if (!*r->at)
        return NULL;
    r->line++;
    /* A line that begins with a blank would continue the value before it. */
    const char *from = r->at + strspn(r->at, " \t");
    size_t length = strcspn(from, "\n");
    r->at = from + length + (from[length] == '\n');
    if (length + 2 > (size_t)size) {
        failure_set(r->failure, CODE_USAGE, "%s:%d: the line is longer than %d characters",
                    r->recipe->name, r->line, size - 2);
        length = 0;
    }
    memcpy(line, from, length);
    memcpy(line + length, "\n", 2);
    return line;
}

static int take(void *user, const char *section, const char *key, const char *value)
{
    struct reading *r = user;
    struct recipe_entry place = {.line = r->line};
    return add(r->recipe, &place, section, key, value, r->failure) == CODE_DONE;
}

int recipe_parse(struct recipe *recipe, const char *text, const char *name, struct failure *failure)
{
    struct reading reading = {.recipe = recipe, .at = text, .failure = failure};
    recipe->count = 0;
    *recipe->folder = 0;
    snprintf(recipe->name, sizeof recipe->name, "%s", name);
    int line = ini_parse_stream(read_line, &reading, take, &reading);
    if (line > 0)
        failure_set(failure, CODE_USAGE,
                    "%s:%d: neither a [section] nor a key = value nor a comment", name, line);
    return failure->code;
}

/* --- files --- */

const char *recipe_shipped(int index)
{
    return shipped_recipes[index].name;
}

static const char *find_shipped(const char *name)
{
    for (const struct shipped_recipe *r = shipped_recipes; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->text;
    return NULL;
}

static int refuse_name(const char *name, struct failure *failure)
{
    char names[256] = "", hint[QN_NEAREST_BYTES];
    qn_nearest nearest = {.text = name};
    for (const struct shipped_recipe *r = shipped_recipes; r->name; r++) {
        qn_nearest_offer(&nearest, r->name);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 r == shipped_recipes ? "" : ", ", r->name);
    }
    return failure_set(failure, CODE_USAGE,
                       "%s: recipe: no file of that name, and none that ships (%s)%s", name, names,
                       qn_nearest_hint(&nearest, hint));
}

/* The folder where a file itself lies, links followed; what comes through a pipe lies nowhere. */
static void find_folder(struct recipe *recipe, const char *name)
{
    char real[sizeof recipe->folder];
    struct stat status;
    if (stat(name, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    if (lstat(name, &status) == 0 && S_ISLNK(status.st_mode))
        name = realpath(name, real);
    const char *slash = name ? strrchr(name, '/') : NULL;
    if (slash)
        snprintf(recipe->folder, sizeof recipe->folder, "%.*s", (int)(slash + 1 - name), name);
}

int recipe_read_file(struct recipe *recipe, const char *path, struct failure *failure)
{
    char *text;
    if (file_read(&text, path, failure))
        return failure->code = CODE_USAGE;
    int code = recipe_parse(recipe, text, path, failure);
    find_folder(recipe, path);
    free(text);
    return code;
}

int recipe_read(struct recipe *recipe, const char *name, struct failure *failure)
{
    const char *shipped = find_shipped(name);
    if (shipped)
        return recipe_parse(recipe, shipped, name, failure);
    if (!strchr(name, '/') && access(name, F_OK) != 0)
        return refuse_name(name, failure);
    return recipe_read_file(recipe, name, failure);
}

int recipe_need(const struct recipe *recipe, bool there, const char *what, struct failure *failure)
{
    return there ? CODE_DONE : failure_set(failure, CODE_USAGE, "%s: %s", recipe->name, what);
}
