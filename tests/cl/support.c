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

qn_device *open_with_kernel(struct kept *kept, const char *name, const char *text,
                            char dir[FOLDER_BYTES])
{
    qn_device *device = NULL;
    make_folder(dir);
    add_own_kernels(dir);
    write_text(dir, name, text);
    const qn_device_params params = {.log = kept_log(kept), .cache_dir = "", .kernel_dir = dir};
    assert_int_equal(qn_device_open(&device, &params), QN_OK);
    return device;
}

void close_with_kernel(qn_device *device, const struct kept *kept, const char *dir)
{
    if (strstr(kept->text, "does not build"))
        fail_msg("%s", kept->text);
    qn_device_close(&device);
    remove_folder(dir);
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
    char *text = kernel_text("fill");
    write_text(dir, "fill.cl", text);
    free(text);
}

char *kernel_text(const char *stem)
{
    struct qn_source source;
    assert_int_equal(qn_source_open(&source, NULL, stem, NULL), QN_OK);
    char *text = strndup(source.bytes, source.length);
    assert_non_null(text);
    qn_source_free(&source);
    return text;
}

char *swapped(const char *text, const char *behind, const char *old, const char *now)
{
    const char *from = strstr(text, behind), *at = from ? strstr(from, old) : NULL;
    if (!at)
        fail_msg("%s: no \"%s\"", behind, old);
    const size_t bytes = strlen(text) + strlen(now) + 1;
    char *whole = malloc(bytes);
    assert_non_null(whole);
    snprintf(whole, bytes, "%.*s%s%s", (int)(at - text), text, now, at + strlen(old));
    return whole;
}
