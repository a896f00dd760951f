/* SPDX-License-Identifier: MIT */
#include "json_texts.h"

/* --- as one text --- */

struct joining {
    struct file_part *part;
    struct failure *failure;
};

static qn_status join(void *user, const char *text, size_t size)
{
    struct joining *joining = user;
    return file_add(joining->part, text, size, joining->failure) ||
                   file_add(joining->part, "\n", 1, joining->failure)
               ? QN_ERR_IO
               : QN_OK;
}

static int join_all(struct joining *joining, const char *path, const char *field)
{
    const qn_log log = failure_log(joining->failure);
    TRY_LIBRARY(joining->failure, NULL, qn_json_lines_texts(path, field, join, joining, &log));
    return CODE_DONE;
}

int json_texts_join(struct file_part *part, const char *beside, const char *path, const char *field,
                    struct failure *failure)
{
    struct joining joining = {part, failure};
    TRY(file_begin(part, beside, failure));
    const int code = join_all(&joining, path, field);
    if (code)
        file_drop(part);
    return code;
}

/* --- as tokens --- */

struct separating {
    struct tokens_file *file;
    int32_t separator;
};

static qn_status add(void *user, const char *text, size_t size)
{
    struct separating *separating = user;
    return tokens_add(separating->file, text, size) ||
                   tokens_add_id(separating->file, separating->separator)
               ? QN_ERR_IO
               : QN_OK;
}

int json_texts_add(struct tokens_file *file, const char *path, const char *field, int32_t separator)
{
    struct separating separating = {file, separator};
    const qn_log log = failure_log(file->failure);
    TRY_LIBRARY(file->failure, NULL, qn_json_lines_texts(path, field, add, &separating, &log));
    return CODE_DONE;
}
