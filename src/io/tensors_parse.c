/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "io/path.h"
#include "io/tensors.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Where a parse stands: for messages, and the bytes that are there to be described. */
struct parse {
    struct qn_tensors_header *header;
    const char *path;
    const struct qn_log *log;
    int64_t data_bytes;
};

static qn_status bad_header(const struct parse *parse, const char *reason)
{
    return qn_fail(parse->log, QN_ERR_FORMAT, "%s: header: %s", parse->path, reason);
}

static qn_status bad_tensor(const struct parse *parse, const char *name, const char *reason)
{
    return qn_fail(parse->log, QN_ERR_FORMAT, "%s: tensor %s: %s", parse->path,
                   qn_show_name(name).text, reason);
}

/* Integers up to 2^53 are exact in the double that JSON numbers are read into. */
static bool whole_number(const cJSON *item, int64_t *value)
{
    const double limit = 9007199254740992.0;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < limit))
        return false;
    *value = (int64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static const char *read_type(struct qn_tensors_entry *entry, const cJSON *item, int64_t *size)
{
    if (!cJSON_IsString(item))
        return "dtype is missing or no text";
    const struct qn_tensors_type *type = qn_tensors_type_named(item->valuestring);
    if (!type)
        return "dtype is not one of the format";
    entry->type = type->name;
    entry->dtype = type->dtype;
    *size = type->size;
    return NULL;
}

static const char *read_shape(struct qn_shape *shape, const cJSON *item)
{
    if (!cJSON_IsArray(item))
        return "shape is missing or no list";
    for (const cJSON *dim = item->child; dim; dim = dim->next) {
        if (shape->rank == QN_MAX_DIMS)
            return "shape has more than 6 dimensions";
        if (!whole_number(dim, &shape->dim[shape->rank++]))
            return "shape holds something else than sizes";
    }
    return NULL;
}

static const char *read_offsets(struct qn_tensors_entry *entry, const cJSON *item,
                                int64_t data_bytes)
{
    int64_t end;
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 ||
        !whole_number(item->child, &entry->offset) || !whole_number(item->child->next, &end))
        return "data_offsets is missing or not two offsets";
    if (end < entry->offset)
        return "data_offsets end before they begin";
    if (end > data_bytes)
        return "data_offsets end outside the file";
    entry->bytes = end - entry->offset;
    return NULL;
}

static const char *read_fields(struct qn_tensors_entry *entry, const cJSON *item,
                               int64_t data_bytes)
{
    int64_t size = 0;
    if (!cJSON_IsObject(item))
        return "is no object";
    const char *why = read_type(entry, cJSON_GetObjectItemCaseSensitive(item, "dtype"), &size);
    if (!why)
        why = read_shape(&entry->shape, cJSON_GetObjectItemCaseSensitive(item, "shape"));
    if (!why)
        why =
            read_offsets(entry, cJSON_GetObjectItemCaseSensitive(item, "data_offsets"), data_bytes);
    if (!why && cJSON_GetArraySize(item) != 3)
        why = "has fields besides dtype, shape and data_offsets";
    if (!why && qn_mul(qn_shape_count(&entry->shape), size) != entry->bytes)
        why = "shape does not equal its bytes";
    return why;
}

static qn_status read_entry(struct parse *parse, const cJSON *item)
{
    struct qn_tensors_header *header = parse->header;
    struct qn_tensors_entry *entry = &header->entries[header->count];
    const char *why = qn_utf8_valid(item->string) ? read_fields(entry, item, parse->data_bytes)
                                                  : "name is not UTF-8";
    if (why)
        return bad_tensor(parse, item->string, why);
    entry->name = qn_arena_strdup(&header->arena, item->string);
    if (!entry->name)
        return qn_fail_memory(parse->log, parse->path);
    header->count++;
    return QN_OK;
}

static qn_status read_metadata(struct parse *parse, const cJSON *object)
{
    struct qn_tensors_header *header = parse->header;
    if (header->pairs)
        return bad_header(parse, "metadata twice");
    if (!cJSON_IsObject(object))
        return bad_header(parse, "metadata is no object");
    size_t count = (size_t)cJSON_GetArraySize(object);
    header->pairs = qn_arena_new(&header->arena, struct qn_tensors_pair, count);
    if (!header->pairs)
        return qn_fail_memory(parse->log, parse->path);
    for (const cJSON *item = object->child; item; item = item->next) {
        if (!cJSON_IsString(item))
            return bad_header(parse, "metadata holds something else than texts");
        struct qn_tensors_pair *pair = &header->pairs[header->pair_count++];
        pair->key = qn_arena_strdup(&header->arena, item->string);
        pair->value = qn_arena_strdup(&header->arena, item->valuestring);
        if (!pair->key || !pair->value)
            return qn_fail_memory(parse->log, parse->path);
    }
    return QN_OK;
}

static qn_status read_members(struct parse *parse, const cJSON *root)
{
    struct qn_tensors_header *header = parse->header;
    size_t members = (size_t)cJSON_GetArraySize(root);
    header->entries = qn_arena_new(&header->arena, struct qn_tensors_entry, members);
    header->by_name = qn_arena_new(&header->arena, const struct qn_tensors_entry *, members);
    if (!header->entries || !header->by_name)
        return qn_fail_memory(parse->log, parse->path);
    for (const cJSON *item = root->child; item; item = item->next) {
        if (strcmp(item->string, QN_TENSORS_METADATA) == 0)
            QN_TRY(read_metadata(parse, item));
        else
            QN_TRY(read_entry(parse, item));
    }
    return QN_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct qn_tensors_entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct qn_tensors_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int pair_by_key(const void *a, const void *b)
{
    const struct qn_tensors_pair *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static qn_status check_layout(const struct parse *parse)
{
    const struct qn_tensors_header *header = parse->header;
    int64_t end = 0;
    for (int64_t i = 0; i < header->count; i++) {
        const struct qn_tensors_entry *entry = &header->entries[i];
        if (entry->offset != end)
            return bad_tensor(parse, entry->name,
                              entry->offset < end ? "overlaps another" : "begins after a gap");
        end += entry->bytes;
    }
    return end == parse->data_bytes ? QN_OK
                                    : bad_header(parse, "bytes behind the data of the last tensor");
}

static qn_status check_names(const struct parse *parse)
{
    const struct qn_tensors_header *header = parse->header;
    for (int64_t i = 1; i < header->count; i++)
        if (strcmp(header->by_name[i - 1]->name, header->by_name[i]->name) == 0)
            return bad_tensor(parse, header->by_name[i]->name, "name twice");
    for (int64_t i = 1; i < header->pair_count; i++)
        if (strcmp(header->pairs[i - 1].key, header->pairs[i].key) == 0)
            return bad_header(parse, "a key of the metadata twice");
    return QN_OK;
}

void qn_tensors_sort_names(struct qn_tensors_header *header)
{
    for (int64_t i = 0; i < header->count; i++)
        header->by_name[i] = &header->entries[i];
    qsort(header->by_name, (size_t)header->count, sizeof *header->by_name, by_name);
}

static qn_status read_root(struct parse *parse, const cJSON *root)
{
    struct qn_tensors_header *header = parse->header;
    QN_TRY(read_members(parse, root));
    qsort(header->entries, (size_t)header->count, sizeof *header->entries, by_offset);
    qn_tensors_sort_names(header);
    if (header->pair_count)
        qsort(header->pairs, (size_t)header->pair_count, sizeof *header->pairs, pair_by_key);
    QN_TRY(check_names(parse));
    return check_layout(parse);
}

qn_status qn_tensors_parse(struct qn_tensors_header *header, const char *path, const char *json,
                           size_t length, int64_t data_bytes, const struct qn_log *log)
{
    struct parse parse = {header, path, log, data_bytes};
    if (length == 0 || json[0] != '{' || strlen(json) != length)
        return bad_header(&parse, "is no JSON object");
    cJSON *root = cJSON_ParseWithLengthOpts(json, length + 1, NULL, true);
    if (!root)
        return bad_header(&parse, "is no well-formed JSON");
    qn_status status = read_root(&parse, root);
    cJSON_Delete(root);
    return status;
}

const struct qn_tensors_entry *qn_tensors_look_up(const struct qn_tensors_header *header,
                                                  const char *name)
{
    int64_t first = 0, last = header->count;
    while (first < last) {
        int64_t middle = first + (last - first) / 2;
        int side = strcmp(header->by_name[middle]->name, name);
        if (side == 0)
            return header->by_name[middle];
        if (side < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return NULL;
}
