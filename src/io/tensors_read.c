/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "io/file.h"
#include "io/path.h"
#include "io/tensors_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static qn_status open_file(struct qn_tensors *tensors, int64_t *bytes)
{
    struct stat facts;
    tensors->fd = open(tensors->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (tensors->fd < 0 || fstat(tensors->fd, &facts) != 0)
        return qn_fail_errno(&tensors->log, tensors->path, "read");
    if (!S_ISREG(facts.st_mode))
        return qn_fail(&tensors->log, QN_ERR_IO, "%s: not a regular file", tensors->path);
    *bytes = facts.st_size;
    return QN_OK;
}

static qn_status read_length(struct qn_tensors *tensors, int64_t bytes, int64_t *length)
{
    unsigned char prefix[QN_TENSORS_PREFIX];
    uint64_t value = 0;
    if (bytes < QN_TENSORS_PREFIX)
        return qn_fail(&tensors->log, QN_ERR_FORMAT, "%s: header: file ends before it",
                       tensors->path);
    QN_TRY(qn_read_at(tensors->fd, tensors->path, 0, prefix, sizeof prefix, &tensors->log));
    for (int i = QN_TENSORS_PREFIX - 1; i >= 0; i--)
        value = value << 8 | prefix[i];
    if (value > QN_TENSORS_HEADER_MAX)
        return qn_fail(&tensors->log, QN_ERR_FORMAT, "%s: header: larger than %d bytes",
                       tensors->path, QN_TENSORS_HEADER_MAX);
    if ((int64_t)value > bytes - QN_TENSORS_PREFIX)
        return qn_fail(&tensors->log, QN_ERR_FORMAT, "%s: header: file ends inside it",
                       tensors->path);
    *length = (int64_t)value;
    return QN_OK;
}

static qn_status read_json(struct qn_tensors *tensors, int64_t bytes, int64_t length, char *json)
{
    QN_TRY(qn_read_at(tensors->fd, tensors->path, QN_TENSORS_PREFIX, json, (size_t)length,
                      &tensors->log));
    json[length] = 0;
    int64_t start = QN_TENSORS_PREFIX + length;
    QN_TRY(qn_tensors_parse(&tensors->header, tensors->path, json, (size_t)length, bytes - start,
                            &tensors->log));
    for (int64_t i = 0; i < tensors->header.count; i++)
        tensors->header.entries[i].offset += start;
    return QN_OK;
}

static qn_status read_header(struct qn_tensors *tensors)
{
    int64_t bytes = 0, length = 0;
    QN_TRY(open_file(tensors, &bytes));
    QN_TRY(read_length(tensors, bytes, &length));
    char *json = malloc((size_t)length + 1);
    if (!json)
        return qn_fail_memory(&tensors->log, tensors->path);
    qn_status status = read_json(tensors, bytes, length, json);
    free(json);
    return status;
}

qn_status qn_tensors_open(qn_tensors **tensors, const char *path, const qn_log *log)
{
    QN_REQUIRE(log, tensors && path);
    *tensors = NULL;
    struct qn_tensors *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail_memory(log, path);
    made->fd = -1;
    made->log = log ? *log : (struct qn_log){0};
    made->path = qn_path_join("", path);
    qn_status status = QN_OK;
    if (!made->path)
        status = qn_fail_memory(log, path);
    else
        status = qn_tensors_is_index(path) ? qn_tensors_open_parts(made) : read_header(made);
    if (status == QN_OK)
        *tensors = made;
    else
        qn_tensors_close(&made);
    return status;
}

void qn_tensors_close(qn_tensors **tensors)
{
    if (!tensors || !*tensors)
        return;
    if ((*tensors)->fd >= 0)
        close((*tensors)->fd);
    for (int p = 0; p < (*tensors)->n_parts; p++)
        qn_tensors_close(&(*tensors)->parts[p]);
    qn_arena_free(&(*tensors)->header.arena);
    free((*tensors)->path);
    free(*tensors);
    *tensors = NULL;
}

int64_t qn_tensors_count(const qn_tensors *tensors)
{
    return tensors ? tensors->header.count : 0;
}

const qn_tensors_entry *qn_tensors_at(const qn_tensors *tensors, int64_t index)
{
    bool inside = tensors && index >= 0 && index < tensors->header.count;
    return inside ? &tensors->header.entries[index] : NULL;
}

const qn_tensors_entry *qn_tensors_find(const qn_tensors *tensors, const char *name)
{
    return tensors && name ? qn_tensors_look_up(&tensors->header, name) : NULL;
}

const char *qn_tensors_metadata(const qn_tensors *tensors, const char *key)
{
    if (!tensors || !key)
        return NULL;
    for (int64_t i = 0; i < tensors->header.pair_count; i++)
        if (strcmp(tensors->header.pairs[i].key, key) == 0)
            return tensors->header.pairs[i].value;
    return NULL;
}

/* The file that has an entry: of an index, the part. */
static const struct qn_tensors *file_of(const struct qn_tensors *tensors,
                                        const qn_tensors_entry *entry)
{
    int64_t index = tensors->n_parts ? entry - tensors->header.entries : 0;
    for (int p = 0; p < tensors->n_parts; p++) {
        if (index < tensors->parts[p]->header.count)
            return tensors->parts[p];
        index -= tensors->parts[p]->header.count;
    }
    return tensors;
}

qn_status qn_tensors_read(const qn_tensors *tensors, const qn_tensors_entry *entry, int64_t at,
                          void *bytes, int64_t size)
{
    QN_REQUIRE(NULL, tensors);
    QN_REQUIRE(&tensors->log, entry && (bytes || size == 0));
    QN_REQUIRE(&tensors->log, at >= 0 && size >= 0 && at <= entry->bytes - size);
    const struct qn_tensors *file = file_of(tensors, entry);
    return qn_read_at(file->fd, file->path, entry->offset + at, bytes, (size_t)size, &tensors->log);
}
