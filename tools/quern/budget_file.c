/* SPDX-License-Identifier: MIT */
#include "budget_file.h"
#include "value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first word. False: the file cannot be read; it may be about to be replaced. */
static bool read_word(const char *path, char text[64])
{
    FILE *stream = fopen(path, "r");
    if (!stream)
        return false;
    *text = 0;
    const bool read = fscanf(stream, "%63s", text) >= 0 || !ferror(stream);
    fclose(stream);
    return read;
}

int budget_file_open(struct budget_file *file, const char *path, int64_t *bytes,
                     struct failure *failure)
{
    file->path = path;
    errno = 0;
    if (!read_word(path, file->text))
        return failure_set(failure, CODE_USAGE, "--budget-file: %s: %s", path, strerror(errno));
    const char *reason = value_size(file->text, bytes);
    return reason ? failure_set(failure, CODE_USAGE, "--budget-file: %s: '%s' %s", path, file->text,
                                reason)
                  : CODE_DONE;
}

bool budget_file_changed(struct budget_file *file, int64_t *bytes, const char **reason)
{
    char text[64];
    if (!file->path || !read_word(file->path, text) || strcmp(text, file->text) == 0)
        return false;
    strcpy(file->text, text);
    *reason = value_size(text, bytes);
    return true;
}
