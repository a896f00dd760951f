/* SPDX-License-Identifier: MIT
 *
 * Reading kernels from a folder does what tools/embed.py does at build time: change both together.
 */
#include "cl/source.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 32, NAME_BYTES = 96 };

struct reader {
    const char *dir;
    const struct qn_log *log;
    struct qn_text out;
    char seen[MAX_FILES][NAME_BYTES];
    int n_seen;
};

static bool is_seen(const struct reader *reader, const char *name)
{
    for (int i = 0; i < reader->n_seen; i++)
        if (strcmp(reader->seen[i], name) == 0)
            return true;
    return false;
}

static qn_status read_file(struct reader *reader, const char *name, char **bytes)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", reader->dir, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "rb") : NULL;
    if (!file)
        return qn_fail(reader->log, QN_ERR_IO, "%s: %s", path, strerror(errno));
    struct qn_text text = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        qn_text_add(&text, "%.*s", (int)n, part);
    bool failed = ferror(file);
    fclose(file);
    *bytes = qn_text_take(&text);
    if (failed || !*bytes)
        return qn_fail(reader->log, QN_ERR_IO, "%s: could not be read", path);
    return QN_OK;
}

/* The NAME of a line `#include "NAME"`. */
static bool parse_include(const char *line, char name[NAME_BYTES])
{
    static const char directive[] = "include";
    line += strspn(line, " \t");
    if (*line++ != '#')
        return false;
    line += strspn(line, " \t");
    if (strncmp(line, directive, sizeof directive - 1) != 0)
        return false;
    line += sizeof directive - 1;
    line += strspn(line, " \t");
    size_t length = *line == '"' ? strcspn(line + 1, "\"\n") : 0;
    if (length == 0 || length >= NAME_BYTES || line[length + 1] != '"')
        return false;
    memcpy(name, line + 1, length);
    name[length] = 0;
    return true;
}

static qn_status add_file(struct reader *reader, const char *name);

static qn_status add_lines(struct reader *reader, const char *name, const char *text)
{
    for (int number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        char include[NAME_BYTES];
        if (!parse_include(text, include)) {
            qn_text_add(&reader->out, "%.*s\n", (int)length, text);
        } else if (is_seen(reader, include)) {
            qn_text_add(&reader->out, "\n");
        } else {
            QN_TRY(add_file(reader, include));
            qn_text_add(&reader->out, "#line %d \"%s\"\n", number + 1, name);
        }
        text += length + (text[length] == '\n');
    }
    return QN_OK;
}

static qn_status add_file(struct reader *reader, const char *name)
{
    if (reader->n_seen == MAX_FILES || strlen(name) >= NAME_BYTES || strstr(name, ".."))
        return qn_fail(reader->log, QN_ERR_FORMAT, "%s/%s: not a usable include", reader->dir,
                       name);
    snprintf(reader->seen[reader->n_seen++], NAME_BYTES, "%s", name);
    char *text = NULL;
    QN_TRY(read_file(reader, name, &text));
    qn_text_add(&reader->out, "#line 1 \"%s\"\n", name);
    qn_status status = add_lines(reader, name, text);
    free(text);
    return status;
}

static qn_status read_folder(struct qn_source *source, const char *dir, const char *stem,
                             const struct qn_log *log)
{
    struct reader reader = {.dir = dir, .log = log};
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s.cl", stem);
    qn_status status = add_file(&reader, name);
    size_t length = reader.out.length;
    char *text = qn_text_take(&reader.out);
    if (status == QN_OK && !text)
        status = qn_fail(log, QN_ERR_MEMORY, "%s/%s: out of memory", dir, name);
    if (status != QN_OK) {
        free(text);
        return status;
    }
    *source = (struct qn_source){text, length, text};
    return QN_OK;
}

qn_status qn_source_open(struct qn_source *source, const char *dir, const char *stem,
                         const qn_log *log)
{
    *source = (struct qn_source){0};
    if (dir)
        return read_folder(source, dir, stem, log);
    for (const struct qn_embedded_kernel *kernel = qn_embedded_kernels; kernel->stem; kernel++) {
        if (strcmp(kernel->stem, stem) == 0) {
            *source = (struct qn_source){(const char *)kernel->bytes, kernel->length, NULL};
            return QN_OK;
        }
    }
    return qn_fail(log, QN_ERR_BUILD, "there is no kernel program \"%s\"", stem);
}

void qn_source_free(struct qn_source *source)
{
    free(source->owned);
    *source = (struct qn_source){0};
}
