/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/shape.h"
#include "base/text.h"
#include "io/file.h"
#include "io/layout.h"
#include "io/path.h"
#include "io/tensors.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PART_BYTES = 1 << 20, HEADER_ALIGN = 8 };

/* How far one item is, and the sum of its bytes so far. */
struct progress {
    int64_t written;
    uint32_t crc;
};

struct qn_tensors_writer {
    struct qn_arena arena;
    struct qn_log log;
    struct qn_file file;
    int64_t count;
    struct qn_tensors_entry *entries; /* as the caller numbers them */
    int64_t *order;                   /* their numbers, by offset */
    struct progress *progress;
    uint32_t header_crc;
    int64_t bytes; /* of the whole file */
};

static qn_status bad_item(const struct qn_tensors_writer *writer, const char *name,
                          const char *reason)
{
    return qn_fail(&writer->log, QN_ERR_ARGUMENT, "%s: tensor %s: %s", writer->file.path,
                   name ? qn_show_name(name).text : "without a name", reason);
}

static const char *take_item(struct qn_tensors_entry *entry, const struct qn_tensors_item *item)
{
    const struct qn_tensors_type *type = qn_tensors_type_of(item->dtype);
    if (!item->name || !qn_utf8_valid(item->name) || strcmp(item->name, QN_TENSORS_METADATA) == 0)
        return "name is not usable";
    if (!type)
        return "dtype is none";
    if (item->shape.rank < 0 || item->shape.rank > QN_MAX_DIMS)
        return "shape has no usable rank";
    entry->name = item->name;
    entry->type = type->name;
    entry->dtype = item->dtype;
    entry->shape = item->shape;
    entry->bytes = qn_mul(qn_shape_count(&item->shape), type->size);
    return entry->bytes < 0 ? "shape is not concrete or too large" : NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The text that stands twice in a list that it sorts; NULL: none. */
static const char *doubled(const char **texts, int64_t count)
{
    if (count)
        qsort(texts, (size_t)count, sizeof *texts, by_text);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            return texts[i];
    return NULL;
}

static qn_status take_items(struct qn_tensors_writer *writer,
                            const struct qn_tensors_params *params, const char **texts)
{
    for (int64_t i = 0; i < params->count; i++) {
        const char *why = take_item(&writer->entries[i], &params->items[i]);
        if (why)
            return bad_item(writer, params->items[i].name, why);
        texts[i] = params->items[i].name;
    }
    const char *twice = doubled(texts, params->count);
    return twice ? bad_item(writer, twice, "name twice") : QN_OK;
}

static qn_status check_metadata(const struct qn_tensors_writer *writer,
                                const struct qn_tensors_params *params, const char **texts)
{
    for (int64_t i = 0; i < params->metadata_count; i++) {
        const struct qn_tensors_pair *pair = &params->metadata[i];
        if (!pair->key || !pair->value || !qn_utf8_valid(pair->key) || !qn_utf8_valid(pair->value))
            return bad_item(writer, QN_TENSORS_METADATA, "a key or value is missing or not UTF-8");
        texts[i] = pair->key;
    }
    return doubled(texts, params->metadata_count)
               ? bad_item(writer, QN_TENSORS_METADATA, "a key twice")
               : QN_OK;
}

/* Places the data, larger elements first; items of one size keep their order. */
static qn_status place_items(struct qn_tensors_writer *writer)
{
    int64_t end = 0, placed = 0;
    for (int64_t size = 4; size >= 1; size /= 2) {
        for (int64_t i = 0; i < writer->count; i++) {
            struct qn_tensors_entry *entry = &writer->entries[i];
            if (qn_dtype_size(entry->dtype) != size)
                continue;
            entry->offset = end;
            end = qn_sum_of(end, entry->bytes);
            writer->order[placed++] = i;
            if (end < 0)
                return bad_item(writer, entry->name, "ends beyond what can be counted");
        }
    }
    writer->bytes = end;
    return QN_OK;
}

static void put_member(struct qn_text *text, const struct qn_tensors_entry *entry)
{
    qn_text_json(text, entry->name);
    qn_text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", entry->type);
    for (int i = 0; i < entry->shape.rank; i++)
        qn_text_add(text, "%s%lld", i ? "," : "", (long long)entry->shape.dim[i]);
    qn_text_add(text, "],\"data_offsets\":[%lld,%lld]}", (long long)entry->offset,
                (long long)(entry->offset + entry->bytes));
}

static void put_metadata(struct qn_text *text, const struct qn_tensors_params *params)
{
    qn_text_add(text, "\"" QN_TENSORS_METADATA "\":{");
    for (int64_t i = 0; i < params->metadata_count; i++) {
        qn_text_add(text, "%s", i ? "," : "");
        qn_text_json(text, params->metadata[i].key);
        qn_text_add(text, ":");
        qn_text_json(text, params->metadata[i].value);
    }
    qn_text_add(text, "}%s", params->count ? "," : "");
}

/* The JSON, filled up with spaces so that the data is aligned. */
static void put_header(struct qn_text *text, const struct qn_tensors_writer *writer,
                       const struct qn_tensors_params *params)
{
    qn_text_add(text, "{");
    if (params->metadata_count)
        put_metadata(text, params);
    for (int64_t i = 0; i < writer->count; i++) {
        qn_text_add(text, "%s", i ? "," : "");
        put_member(text, &writer->entries[writer->order[i]]);
    }
    qn_text_add(text, "}");
    while (!text->failed && text->length % HEADER_ALIGN)
        qn_text_add(text, " ");
}

static qn_status write_header(struct qn_tensors_writer *writer, const char *json, size_t length)
{
    unsigned char prefix[QN_TENSORS_PREFIX];
    for (int i = 0; i < QN_TENSORS_PREFIX; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
    QN_TRY(qn_file_put(&writer->file, 0, prefix, sizeof prefix));
    QN_TRY(qn_file_put(&writer->file, sizeof prefix, json, length));
    uLong crc = crc32(crc32(0, NULL, 0), prefix, sizeof prefix);
    writer->header_crc = (uint32_t)crc32(crc, (const Bytef *)json, (uInt)length);
    int64_t start = (int64_t)(sizeof prefix + length);
    for (int64_t i = 0; i < writer->count; i++)
        writer->entries[i].offset += start;
    writer->bytes = qn_sum_of(writer->bytes, start);
    return QN_OK;
}

static qn_status start_file(struct qn_tensors_writer *writer,
                            const struct qn_tensors_params *params)
{
    struct qn_text text = {0};
    put_header(&text, writer, params);
    size_t length = text.length;
    char *json = qn_text_take(&text);
    qn_status status = QN_ERR_ARGUMENT;
    if (!json)
        status = qn_fail_memory(&writer->log, writer->file.path);
    else if (length > QN_TENSORS_HEADER_MAX)
        qn_fail(&writer->log, status, "%s: header: larger than %d bytes", writer->file.path,
                QN_TENSORS_HEADER_MAX);
    else
        status = write_header(writer, json, length);
    free(json);
    return status;
}

static qn_status keep_names(struct qn_tensors_writer *writer)
{
    for (int64_t i = 0; i < writer->count; i++) {
        writer->entries[i].name = qn_arena_strdup(&writer->arena, writer->entries[i].name);
        if (!writer->entries[i].name)
            return qn_fail_memory(&writer->log, writer->file.path);
        writer->progress[i].crc = (uint32_t)crc32(0, NULL, 0);
    }
    return QN_OK;
}

static qn_status start(struct qn_tensors_writer *writer, const char *path,
                       const struct qn_tensors_params *params)
{
    size_t count = (size_t)params->count, pairs = (size_t)params->metadata_count;
    writer->entries = qn_arena_new(&writer->arena, struct qn_tensors_entry, count);
    writer->order = qn_arena_new(&writer->arena, int64_t, count);
    writer->progress = qn_arena_new(&writer->arena, struct progress, count);
    const char **texts = qn_arena_new(&writer->arena, const char *, count > pairs ? count : pairs);
    if (!writer->entries || !writer->order || !writer->progress || !texts)
        return qn_fail_memory(&writer->log, path);
    QN_TRY(qn_file_create(&writer->file, path, &writer->log));
    QN_TRY(take_items(writer, params, texts));
    QN_TRY(check_metadata(writer, params, texts));
    QN_TRY(place_items(writer));
    QN_TRY(start_file(writer, params));
    return keep_names(writer);
}

qn_status qn_tensors_create(qn_tensors_writer **writer, const char *path,
                            const qn_tensors_params *params)
{
    const struct qn_log *log = params ? &params->log : NULL;
    QN_REQUIRE(log, writer && path && params);
    QN_REQUIRE(log, params->count >= 0 && (params->items || !params->count));
    QN_REQUIRE(log, params->metadata_count >= 0 && (params->metadata || !params->metadata_count));
    *writer = NULL;
    struct qn_tensors_writer *made = calloc(1, sizeof *made);
    if (!made)
        return qn_fail_memory(log, path);
    made->log = params->log;
    made->count = params->count;
    qn_status status = start(made, path, params);
    if (status == QN_OK)
        *writer = made;
    else
        qn_tensors_discard(&made);
    return status;
}

static uint32_t sum_on(uint32_t crc, const unsigned char *bytes, int64_t size)
{
    uLong sum = crc;
    for (int64_t at = 0; at < size; at += PART_BYTES)
        sum = crc32(sum, bytes + at, size - at < PART_BYTES ? (uInt)(size - at) : PART_BYTES);
    return (uint32_t)sum;
}

qn_status qn_tensors_write(qn_tensors_writer *writer, int64_t index, const void *bytes,
                           int64_t size)
{
    QN_REQUIRE(NULL, writer);
    QN_REQUIRE(&writer->log, index >= 0 && index < writer->count);
    QN_REQUIRE(&writer->log, size >= 0 && (bytes || size == 0));
    const struct qn_tensors_entry *entry = &writer->entries[index];
    struct progress *progress = &writer->progress[index];
    if (size > entry->bytes - progress->written)
        return bad_item(writer, entry->name, "more bytes than its shape has");
    QN_TRY(qn_file_put(&writer->file, entry->offset + progress->written, bytes, (size_t)size));
    progress->written += size;
    progress->crc = sum_on(progress->crc, bytes, size);
    return QN_OK;
}

static qn_status check_complete(const struct qn_tensors_writer *writer)
{
    for (int64_t i = 0; i < writer->count; i++)
        if (writer->progress[i].written != writer->entries[i].bytes)
            return bad_item(writer, writer->entries[i].name, "fewer bytes than its shape has");
    return QN_OK;
}

static uint32_t whole_crc(const struct qn_tensors_writer *writer)
{
    uLong crc = writer->header_crc;
    for (int64_t i = 0; i < writer->count; i++) {
        int64_t item = writer->order[i];
        crc = crc32_combine(crc, writer->progress[item].crc, (z_off_t)writer->entries[item].bytes);
    }
    return (uint32_t)crc;
}

qn_status qn_tensors_commit(qn_tensors_writer **writer, uint32_t *crc, int64_t *bytes)
{
    QN_REQUIRE(NULL, writer && *writer);
    qn_status status = check_complete(*writer);
    if (status == QN_OK)
        status = qn_file_commit(&(*writer)->file);
    if (status == QN_OK && crc)
        *crc = whole_crc(*writer);
    if (status == QN_OK && bytes)
        *bytes = (*writer)->bytes;
    qn_tensors_discard(writer);
    return status;
}

void qn_tensors_discard(qn_tensors_writer **writer)
{
    if (!writer || !*writer)
        return;
    qn_file_discard(&(*writer)->file);
    qn_arena_free(&(*writer)->arena);
    free(*writer);
    *writer = NULL;
}

static qn_status copy_item(struct qn_tensors_writer *writer, int64_t index,
                           qn_tensors_source_fn source, void *user, void *part)
{
    int64_t bytes = writer->entries[index].bytes;
    for (int64_t at = 0; at < bytes; at += PART_BYTES) {
        int64_t size = bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
        QN_TRY(source(user, index, at, part, size));
        QN_TRY(qn_tensors_write(writer, index, part, size));
    }
    return QN_OK;
}

static qn_status copy_items(struct qn_tensors_writer *writer, qn_tensors_source_fn source,
                            void *user)
{
    void *part = qn_arena_alloc(&writer->arena, 1, PART_BYTES);
    if (!part)
        return qn_fail_memory(&writer->log, writer->file.path);
    for (int64_t i = 0; i < writer->count; i++)
        QN_TRY(copy_item(writer, writer->order[i], source, user, part));
    return QN_OK;
}

qn_status qn_tensors_save(const char *path, const qn_tensors_params *params,
                          qn_tensors_source_fn source, void *user, uint32_t *crc, int64_t *bytes)
{
    struct qn_tensors_writer *writer = NULL;
    QN_REQUIRE(params ? &params->log : NULL, params && source);
    if (params->layout && params->count > 0 && params->items)
        return qn_layout_save(path, params, source, user, crc, bytes);
    QN_TRY(qn_tensors_create(&writer, path, params));
    qn_status status = copy_items(writer, source, user);
    if (status == QN_OK)
        return qn_tensors_commit(&writer, crc, bytes);
    qn_tensors_discard(&writer);
    return status;
}
