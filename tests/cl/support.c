/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "cl/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep(void *user, qn_log_level level, const char *text)
{
    struct kept *kept = user;
    (void)level;
    size_t used = strlen(kept->text);
    snprintf(kept->text + used, sizeof kept->text - used, "%s\n", text);
}

qn_log kept_log(struct kept *kept)
{
    kept->text[0] = 0;
    return (qn_log){keep, kept, QN_LOG_DEBUG};
}

qn_device *open_device(struct kept *kept)
{
    qn_device *device = NULL;
    const qn_device_params params = {.log = kept_log(kept), .cache_dir = ""};
    if (qn_device_open(&device, &params) != QN_OK)
        fail_msg("%s", kept->text);
    return device;
}

void write_text(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

void add_own_kernels(const char *dir)
{
    struct qn_source source;
    assert_int_equal(qn_source_open(&source, NULL, "fill", NULL), QN_OK);
    char *text = calloc(source.length + 1, 1);
    assert_non_null(text);
    memcpy(text, source.bytes, source.length);
    write_text(dir, "fill.cl", text);
    free(text);
    qn_source_free(&source);
}
