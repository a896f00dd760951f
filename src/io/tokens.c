/* SPDX-License-Identifier: MIT */
#include "io/tokens.h"
#include "base/log.h"
#include "io/file.h"
#include "io/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { HEADER_BYTES = 256 * 4 };

/* What llm.c writes (dev/data/data_common.py), and of which vocabulary: GPT-2's, Llama 3's. */
static const struct format {
    uint32_t magic, version;
    int bytes;
    int64_t tokens;
} formats[] = {
    {20240520, 1, 2, 50257},
    {20240801, 7, 4, 128256},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static uint32_t number_at(const uint8_t *bytes, int width)
{
    uint32_t number = 0;
    for (int i = 0; i < width; i++)
        number |= (uint32_t)bytes[i] << (8 * i);
    return number;
}

/* --- opening --- */

static qn_status no_header(const struct qn_token_file *file, const struct qn_log *log)
{
    return qn_fail(log, QN_ERR_FORMAT,
                   "%s: header: is not llm.c's, which begins with %" PRIu32 " or %" PRIu32
                   "; for tokens without one set data.type to u16 or u32",
                   file->path, formats[0].magic, formats[1].magic);
}

static qn_status read_header(struct qn_token_file *file, const struct qn_log *log)
{
    uint8_t header[HEADER_BYTES];
    const struct format *format = formats;
    if (file->size < HEADER_BYTES)
        return no_header(file, log);
    QN_TRY(qn_read_at(file->fd, file->path, 0, header, sizeof header, log));
    while (format < formats + FORMATS && format->magic != number_at(header, 4))
        format++;
    if (format == formats + FORMATS)
        return no_header(file, log);
    const uint32_t version = number_at(header + 4, 4), count = number_at(header + 8, 4);
    const int64_t bytes = (int64_t)count * format->bytes, there = file->size - HEADER_BYTES;
    if (version != format->version)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: header: version: %" PRIu32 ", but %" PRIu32 " alone is known",
                       file->path, version, format->version);
    if (bytes != there)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: header: count: %" PRIu32 " tokens are %" PRId64 " bytes, but %" PRId64
                       " follow",
                       file->path, count, bytes, there);
    file->bytes = format->bytes;
    file->tokens = format->tokens;
    file->offset = HEADER_BYTES;
    return QN_OK;
}

static qn_status measure(struct qn_token_file *file, const struct qn_log *log)
{
    if (file->size == 0)
        return qn_fail(log, QN_ERR_FORMAT, "%s: is empty", file->path);
    if (!file->bytes)
        QN_TRY(read_header(file, log));
    const int64_t bytes = file->size - file->offset;
    if (bytes == 0)
        return qn_fail(log, QN_ERR_FORMAT, "%s: header: count: holds no token", file->path);
    if (bytes % file->bytes)
        return qn_fail(log, QN_ERR_FORMAT,
                       "%s: %" PRId64 " bytes are no whole number of tokens of %d bytes",
                       file->path, bytes, file->bytes);
    file->count = bytes / file->bytes;
    return QN_OK;
}

qn_status qn_token_file_open(struct qn_token_file *file, const char *path, const char *name,
                             int bytes, const struct qn_log *log)
{
    *file = (struct qn_token_file){
        .fd = -1, .bytes = bytes, .path = qn_path_join("", name ? name : path)};
    qn_status status =
        file->path ? qn_file_open(path, &file->fd, &file->size, log) : qn_fail_memory(log, path);
    if (status == QN_OK)
        status = measure(file, log);
    if (status != QN_OK)
        qn_token_file_close(file);
    return status;
}

void qn_token_file_close(struct qn_token_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct qn_token_file){0};
}

/* --- reading --- */

/* The bytes are read into the end of where the tokens go: token i, written from the front on, never
 * reaches bytes of a later one. */
qn_status qn_token_file_read(const struct qn_token_file *file, int64_t first, int64_t count,
                             int32_t *tokens, const struct qn_log *log)
{
    const int width = file->bytes;
    const int64_t offset = file->offset + first * width;
    uint8_t *bytes = (uint8_t *)tokens + count * ((int64_t)sizeof *tokens - width);
    QN_TRY(qn_read_at(file->fd, file->path, offset, bytes, (size_t)(count * width), log));
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)number_at(bytes + i * width, width);
    return QN_OK;
}
