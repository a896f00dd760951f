/* SPDX-License-Identifier: MIT */
#include "io/idx.h"
#include "base/log.h"
#include "base/shape.h"
#include "io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Deflate shrinks at most this many times. */
enum { MAX_RATIO = 1032, MAX_RANK = 4, PART_BYTES = 1 << 20 };

static const struct {
    unsigned char code;
    qn_dtype dtype;
    const char *name;
} types[] = {
    {0x08, QN_U8, "u8"},          {0x0c, QN_I32, "i32"},        {0x09, QN_DTYPE_NONE, "i8"},
    {0x0b, QN_DTYPE_NONE, "i16"}, {0x0d, QN_DTYPE_NONE, "f32"}, {0x0e, QN_DTYPE_NONE, "f64"},
};
enum { TYPES = sizeof types / sizeof *types };

struct source {
    gzFile file;
    const char *path;
    const struct qn_log *log;
    int64_t most; /* bytes that it can hold */
};

static qn_status bad(const struct source *source, const char *field, const char *reason)
{
    return qn_fail(source->log, QN_ERR_FORMAT, "%s: %s: %s", source->path, field, reason);
}

/* Why fewer bytes came than were asked for. */
static qn_status ended(const struct source *source, const char *field)
{
    int code = Z_OK;
    gzerror(source->file, &code);
    if (code == Z_ERRNO)
        return qn_fail_errno(source->log, source->path, "read");
    if (code == Z_MEM_ERROR)
        return qn_fail_memory(source->log, source->path);
    if (code == Z_BUF_ERROR)
        return bad(source, field, "the compressed file ends early");
    if (code != Z_OK)
        return bad(source, field, "the compressed file is corrupt");
    return bad(source, field, "the file ends early");
}

static qn_status read_bytes(const struct source *source, const char *field, unsigned char *bytes,
                            int64_t size)
{
    for (int64_t at = 0; at < size;) {
        unsigned part = size - at < PART_BYTES ? (unsigned)(size - at) : PART_BYTES;
        int done = gzread(source->file, bytes + at, part);
        if (done <= 0)
            return ended(source, field);
        at += done;
    }
    return QN_OK;
}

/* Reading on past the last byte also makes zlib compare its checksum. */
static qn_status expect_end(const struct source *source)
{
    unsigned char byte;
    int done = gzread(source->file, &byte, 1);
    if (done > 0)
        return bad(source, "data", "bytes behind the last value");
    int code = Z_OK;
    gzerror(source->file, &code);
    return code == Z_OK ? QN_OK : ended(source, "data");
}

static qn_status read_magic(const struct source *source, struct qn_idx *idx)
{
    unsigned char magic[4];
    QN_TRY(read_bytes(source, "magic", magic, sizeof magic));
    if (magic[0] || magic[1])
        return bad(source, "magic", "this is no IDX file");
    int type = 0;
    while (type < TYPES && types[type].code != magic[2])
        type++;
    if (type == TYPES)
        return bad(source, "magic", "no such type of values");
    if (types[type].dtype == QN_DTYPE_NONE)
        return qn_fail(source->log, QN_ERR_FORMAT,
                       "%s: magic: values are %s; u8 and i32 can be read", source->path,
                       types[type].name);
    if (magic[3] < 1 || magic[3] > MAX_RANK)
        return bad(source, "magic", "not 1 to 4 dimensions");
    idx->dtype = types[type].dtype;
    idx->shape.rank = magic[3];
    return QN_OK;
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static qn_status read_sizes(const struct source *source, struct qn_idx *idx)
{
    for (int i = 0; i < idx->shape.rank; i++) {
        unsigned char size[4];
        QN_TRY(read_bytes(source, "sizes", size, sizeof size));
        idx->shape.dim[i] = big_endian(size);
    }
    idx->bytes = qn_mul(qn_shape_count(&idx->shape), qn_dtype_size(idx->dtype));
    if (idx->bytes < 0)
        return bad(source, "sizes", "their product is too large");
    if (idx->bytes > source->most)
        return bad(source, "sizes", "more values than the file holds");
    return QN_OK;
}

static void to_machine_order(struct qn_idx *idx)
{
    if (idx->dtype != QN_I32)
        return;
    int32_t *values = idx->data;
    for (int64_t i = 0; i < idx->bytes / 4; i++)
        values[i] = (int32_t)big_endian((const unsigned char *)&values[i]);
}

static qn_status read_all(const struct source *source, struct qn_idx *idx)
{
    QN_TRY(read_magic(source, idx));
    QN_TRY(read_sizes(source, idx));
    idx->data = malloc(idx->bytes ? (size_t)idx->bytes : 1);
    if (!idx->data)
        return qn_fail_memory(source->log, source->path);
    QN_TRY(read_bytes(source, "data", idx->data, idx->bytes));
    QN_TRY(expect_end(source));
    to_machine_order(idx);
    return QN_OK;
}

/* Takes `fd`. */
static qn_status open_source(struct source *source, int fd)
{
    struct stat facts;
    bool regular = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
    source->file = regular ? gzdopen(fd, "rb") : NULL;
    if (!source->file) {
        close(fd);
        return regular ? qn_fail_memory(source->log, source->path)
                       : qn_fail(source->log, QN_ERR_IO, "%s: not a regular file", source->path);
    }
    source->most = qn_mul(facts.st_size, gzdirect(source->file) ? 1 : MAX_RATIO);
    if (source->most < 0)
        source->most = INT64_MAX;
    return QN_OK;
}

qn_status qn_idx_read(struct qn_idx *idx, const char *path, const struct qn_log *log)
{
    *idx = (struct qn_idx){0};
    struct source source = {.path = path, .log = log};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return qn_fail_errno(log, path, "read");
    QN_TRY(open_source(&source, fd));
    qn_status status = read_all(&source, idx);
    gzclose(source.file);
    if (status != QN_OK)
        qn_idx_free(idx);
    return status;
}

void qn_idx_free(struct qn_idx *idx)
{
    free(idx->data);
    *idx = (struct qn_idx){0};
}
