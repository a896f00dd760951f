/* SPDX-License-Identifier: MIT */
#include "io/names.h"
#include "base/log.h"
#include "io/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool make_place(struct qn_names *names)
{
    if (names->count < names->capacity)
        return true;
    int64_t capacity = names->capacity ? 2 * names->capacity : 64;
    char **grown = realloc(names->name, (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    names->name = grown;
    names->capacity = capacity;
    return true;
}

static qn_status read_entries(struct qn_names *names, DIR *entries, const char *folder,
                              const struct qn_log *log)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (!entry)
            return errno ? qn_fail_errno(log, folder, "list") : QN_OK;
        if (entry->d_name[0] == '.')
            continue;
        char *name = make_place(names) ? strdup(entry->d_name) : NULL;
        if (!name)
            return qn_fail_memory(log, folder);
        names->name[names->count++] = name;
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

qn_status qn_names_read(struct qn_names *names, const char *folder, const struct qn_log *log)
{
    *names = (struct qn_names){0};
    DIR *entries = opendir(folder);
    if (!entries)
        return qn_fail_errno(log, folder, "list");
    qn_status status = read_entries(names, entries, folder, log);
    closedir(entries);
    if (status != QN_OK)
        qn_names_free(names);
    else if (names->count)
        qsort(names->name, (size_t)names->count, sizeof *names->name, compare);
    return status;
}

void qn_names_free(struct qn_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct qn_names){0};
}

bool qn_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}
