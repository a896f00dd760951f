/* SPDX-License-Identifier: MIT
 *
 * The index of tensors in several files, as Hugging Face writes it: {"metadata": {...},
 * "weight_map": {"NAME": "FILE", ...}}, the files in the index's own folder.
 */
#include "base/log.h"
#include "io/file.h"
#include "io/path.h"
#include "io/tensors_file.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static const char END[] = ".index.json";

bool qn_tensors_is_index(const char *path)
{
    const size_t length = strlen(path), end = sizeof END - 1;
    return length > end && strcmp(path + length - end, END) == 0;
}

/* --- the text --- */

static qn_status bad_index(const char *path, const char *name, const char *reason,
                           const struct qn_log *log)
{
    return qn_fail(log, QN_ERR_FORMAT, "%s: weight_map%s%s: %s", path, *name ? ": " : "",
                   qn_show_name(name).text, reason);
}

/* A file of the same folder. */
static bool is_file_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !qn_tensors_is_index(name);
}

static qn_status read_map(struct qn_tensors_index *index, const char *path, const cJSON *map,
                          const struct qn_log *log)
{
    if (!cJSON_IsObject(map) || !map->child)
        return bad_index(path, "", "is missing, empty or no object", log);
    const size_t count = (size_t)cJSON_GetArraySize(map);
    index->names = qn_arena_new(&index->arena, const char *, count);
    index->files = qn_arena_new(&index->arena, const char *, count);
    if (!index->names || !index->files)
        return qn_fail_memory(log, path);
    for (const cJSON *item = map->child; item; item = item->next, index->count++) {
        if (!cJSON_IsString(item) || !is_file_name(item->valuestring))
            return bad_index(path, item->string, "is no file of the same folder", log);
        index->names[index->count] = qn_arena_strdup(&index->arena, item->string);
        index->files[index->count] = qn_arena_strdup(&index->arena, item->valuestring);
        if (!index->names[index->count] || !index->files[index->count])
            return qn_fail_memory(log, path);
    }
    return QN_OK;
}

qn_status qn_tensors_index_parse(struct qn_tensors_index *index, const char *path, const char *json,
                                 const struct qn_log *log)
{
    cJSON *root = cJSON_ParseWithOpts(json, NULL, true);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return qn_fail(log, QN_ERR_FORMAT, "%s: is no JSON object", path);
    }
    qn_status status =
        read_map(index, path, cJSON_GetObjectItemCaseSensitive(root, "weight_map"), log);
    cJSON_Delete(root);
    return status;
}

/* --- the parts --- */

static qn_status add_part(struct qn_tensors *tensors, const char *path)
{
    if (tensors->n_parts == QN_TENSORS_PARTS)
        return qn_fail(&tensors->log, QN_ERR_FORMAT, "%s: weight_map: more than %d files",
                       tensors->path, QN_TENSORS_PARTS);
    QN_TRY(qn_tensors_open(&tensors->parts[tensors->n_parts], path, &tensors->log));
    tensors->n_parts++;
    return QN_OK;
}

static qn_status find_part(struct qn_tensors *tensors, const char *folder, const char *name,
                           const struct qn_tensors **part)
{
    char *path = qn_path_join(folder, name);
    qn_status status = path ? QN_OK : qn_fail_memory(&tensors->log, tensors->path);
    int found = 0;
    while (status == QN_OK && found < tensors->n_parts &&
           strcmp(tensors->parts[found]->path, path) != 0)
        found++;
    if (status == QN_OK && found == tensors->n_parts)
        status = add_part(tensors, path);
    if (status == QN_OK)
        *part = tensors->parts[found];
    free(path);
    return status;
}

static qn_status open_parts(struct qn_tensors *tensors, const struct qn_tensors_index *index,
                            const char *folder)
{
    for (int64_t i = 0; i < index->count; i++) {
        const struct qn_tensors *part = NULL;
        QN_TRY(find_part(tensors, folder, index->files[i], &part));
        if (!qn_tensors_find(part, index->names[i]))
            return qn_fail(&tensors->log, QN_ERR_FORMAT, "%s: tensor %s: is missing", part->path,
                           qn_show_name(index->names[i]).text);
    }
    return QN_OK;
}

static qn_status check_names(const struct qn_tensors *tensors, int64_t named)
{
    const struct qn_tensors_header *header = &tensors->header;
    for (int64_t i = 1; i < header->count; i++)
        if (strcmp(header->by_name[i - 1]->name, header->by_name[i]->name) == 0)
            return bad_index(tensors->path, header->by_name[i]->name, "is there twice",
                             &tensors->log);
    return header->count == named
               ? QN_OK
               : bad_index(tensors->path, "", "leaves out tensors of its files", &tensors->log);
}

/* Puts the entries of all parts into one header. */
static qn_status join_parts(struct qn_tensors *tensors, int64_t named)
{
    struct qn_tensors_header *header = &tensors->header;
    size_t count = 0;
    for (int p = 0; p < tensors->n_parts; p++)
        count += (size_t)tensors->parts[p]->header.count;
    header->entries = qn_arena_new(&header->arena, struct qn_tensors_entry, count);
    header->by_name = qn_arena_new(&header->arena, const struct qn_tensors_entry *, count);
    if (!header->entries || !header->by_name)
        return qn_fail_memory(&tensors->log, tensors->path);
    for (int p = 0; p < tensors->n_parts; p++)
        for (int64_t i = 0; i < tensors->parts[p]->header.count; i++)
            header->entries[header->count++] = tensors->parts[p]->header.entries[i];
    qn_tensors_sort_names(header);
    return check_names(tensors, named);
}

static qn_status read_index(struct qn_tensors *tensors, struct qn_tensors_index *index)
{
    char *text;
    size_t size;
    QN_TRY(qn_file_read(tensors->path, QN_TENSORS_HEADER_MAX, &text, &size, &tensors->log));
    qn_status status = qn_tensors_index_parse(index, tensors->path, text, &tensors->log);
    free(text);
    return status;
}

qn_status qn_tensors_open_parts(struct qn_tensors *tensors)
{
    struct qn_tensors_index index = {0};
    char *folder = qn_path_folder(tensors->path);
    tensors->parts =
        qn_arena_new(&tensors->header.arena, struct qn_tensors *, (size_t)QN_TENSORS_PARTS);
    qn_status status = folder && tensors->parts ? read_index(tensors, &index)
                                                : qn_fail_memory(&tensors->log, tensors->path);
    if (status == QN_OK)
        status = open_parts(tensors, &index, folder);
    if (status == QN_OK)
        status = join_parts(tensors, index.count);
    qn_arena_free(&index.arena);
    free(folder);
    return status;
}
