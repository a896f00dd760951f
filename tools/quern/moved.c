/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_here(const char *path)
{
    return access(path, R_OK) == 0;
}

/* A folder on which nothing is mounted is empty. */
static bool has_files(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = *entry->d_name != '.';
    if (folder)
        closedir(folder);
    return found;
}

/* A name alone means the folder of QN_DATA_DIR. */
static void find_folder(struct recipe *recipe)
{
    const struct recipe_entry *path = recipe_find(recipe, "data", "path");
    const char *named = getenv("QN_DATA_DIR");
    if (recipe_find(recipe, "data", "name") && path && !has_files(path->value) && named && *named)
        recipe_remove(recipe, "data", "path");
}

static int find_tokenizer(struct recipe *recipe, const char *folder, struct failure *failure)
{
    static const char *const places[] = {"tokenizer.json", "../tokenizer.json"};
    const struct recipe_entry *entry = recipe_find(recipe, "data", "tokenizer");
    char path[PATH_MAX + 32];
    for (size_t p = 0; entry && p < sizeof places / sizeof *places; p++) {
        if (is_here(entry->value))
            break;
        snprintf(path, sizeof path, "%s/%s", folder, places[p]);
        if (is_here(path))
            TRY(recipe_put(recipe, "data", "tokenizer", path, "", failure));
    }
    return CODE_DONE;
}

int moved_find(struct recipe *recipe, const char *folder, struct failure *failure)
{
    find_folder(recipe);
    return find_tokenizer(recipe, folder, failure);
}
