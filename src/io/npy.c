/* SPDX-License-Identifier: MIT */
#include "io/npy.h"
#include "base/log.h"
#include "base/number.h"
#include "base/shape.h"
#include "io/file.h"
#include "io/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Before the text of the header are a mark, a version of two bytes, and the text's length. */
enum { MARK = 6, VERSION = 2, MOST_HEADER = 1 << 16, PART_NUMBERS = 1 << 10 };
static const char mark[MARK] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* Entries of the header. */
enum entry { DESCR, FORTRAN, SHAPE, ENTRIES };
static const char *const entry_names[ENTRIES] = {"descr", "fortran_order", "shape"};

/* The text of the header, as far as it is read. */
struct header {
    struct qn_npy *npy;
    const char *at; /* ends with a NUL */
    const struct qn_log *log;
    char descr[24];
    bool fortran, there[ENTRIES];
};

static qn_status bad(const struct header *h, const char *field, const char *reason)
{
    return qn_fail(h->log, QN_ERR_FORMAT, "%s: %s: %s", h->npy->path, field, reason);
}

/* --- words --- */

static char peek(struct header *h)
{
    h->at += strspn(h->at, " \t\r\n");
    return *h->at;
}

static bool take(struct header *h, char wanted)
{
    const bool there = peek(h) == wanted;
    h->at += there;
    return there;
}

static bool take_word(struct header *h, const char *word)
{
    peek(h);
    const bool there = strncmp(h->at, word, strlen(word)) == 0;
    h->at += there ? strlen(word) : 0;
    return there;
}

/* A text in quotes, without escapes; false: it is none, or longer than there is room for. */
static bool take_text(struct header *h, char *text, size_t room)
{
    const char quote = peek(h);
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(++h->at, quote);
    const size_t length = end ? (size_t)(end - h->at) : room;
    if (length >= room)
        return false;
    memcpy(text, h->at, length);
    text[length] = 0;
    h->at = end + 1;
    return true;
}

/* Digits, which Python 2 ends with an L; false: there are none, or too many. */
static bool take_size(struct header *h, int64_t *size)
{
    const char *begin = (peek(h), h->at);
    *size = 0;
    for (; *h->at >= '0' && *h->at <= '9' && *size >= 0; h->at++)
        *size = qn_sum_of(qn_mul(*size, 10), *h->at - '0');
    const bool good = h->at > begin && *size >= 0;
    h->at += *h->at == 'L';
    return good;
}

/* --- entries --- */

static qn_status read_descr(struct header *h)
{
    if (peek(h) == '[')
        return bad(h, "descr", "records of several fields; an array of one type can be read");
    return take_text(h, h->descr, sizeof h->descr) ? QN_OK
                                                   : bad(h, "descr", "is no name of a type");
}

static qn_status read_fortran(struct header *h)
{
    h->fortran = take_word(h, "True");
    return h->fortran || take_word(h, "False")
               ? QN_OK
               : bad(h, "fortran_order", "is neither True nor False");
}

static qn_status read_shape(struct header *h)
{
    struct qn_shape *shape = &h->npy->shape;
    bool comma = true;
    if (!take(h, '('))
        return bad(h, "shape", "is no tuple");
    for (; peek(h) != ')'; comma = take(h, ',')) {
        int64_t size;
        if (!comma || !take_size(h, &size))
            return bad(h, "shape", "is no tuple of sizes");
        if (shape->rank == QN_MAX_DIMS)
            return bad(h, "shape", "has too many dimensions");
        shape->dim[shape->rank++] = size;
    }
    h->at++;
    return shape->rank == 1 && !comma ? bad(h, "shape", "is no tuple") : QN_OK;
}

static qn_status read_entry(struct header *h)
{
    char name[24];
    int entry = 0;
    if (!take_text(h, name, sizeof name) || !take(h, ':'))
        return bad(h, "header", "is no dictionary");
    while (entry < ENTRIES && strcmp(name, entry_names[entry]) != 0)
        entry++;
    if (entry == ENTRIES)
        return qn_fail(h->log, QN_ERR_FORMAT, "%s: header: %s: no such entry is known",
                       h->npy->path, name);
    if (h->there[entry])
        return bad(h, name, "is there twice");
    h->there[entry] = true;
    return entry == DESCR ? read_descr(h) : entry == FORTRAN ? read_fortran(h) : read_shape(h);
}

static qn_status read_entries(struct header *h)
{
    bool comma = true;
    if (!take(h, '{'))
        return bad(h, "header", "is no dictionary");
    for (; !take(h, '}'); comma = take(h, ',')) {
        if (!comma)
            return bad(h, "header", "is no dictionary");
        QN_TRY(read_entry(h));
    }
    if (peek(h))
        return bad(h, "header", "has more than a dictionary");
    for (int i = 0; i < ENTRIES; i++)
        if (!h->there[i])
            return bad(h, entry_names[i], "is missing");
    return QN_OK;
}

/* --- what they say --- */

static bool is_kind(char kind, const char *size)
{
    static const struct {
        char kind;
        const char *sizes;
    } kinds[] = {
        {QN_NPY_FLOAT, "248"}, {QN_NPY_INT, "1248"}, {QN_NPY_UINT, "1248"}, {QN_NPY_BOOL, "1"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return *size && !size[1] && strchr(kinds[i].sizes, *size);
    return false;
}

static qn_status refuse_type(const struct header *h, const char *reason)
{
    return qn_fail(h->log, QN_ERR_FORMAT, "%s: descr: '%s' %s", h->npy->path, h->descr, reason);
}

/* "<f4": the order of bytes, which single ones do not have, the kind and the size. */
static qn_status find_type(const struct header *h)
{
    const char order = *h->descr, kind = order ? h->descr[1] : 0;
    const char *size = kind ? h->descr + 2 : "";
    if (kind == 'O')
        return refuse_type(h, "are Python's objects, which are not read");
    if (!strchr("<>|", order) || !is_kind(kind, size))
        return refuse_type(h, "is no type that can be read: f2, f4, f8, i1 to i8, u1 to u8, b1");
    if (order == '>' && *size > '1')
        return refuse_type(h, "is big-endian; x.astype(x.dtype.newbyteorder('<')) is not");
    h->npy->kind = (enum qn_npy_kind)kind;
    h->npy->size = *size - '0';
    return QN_OK;
}

/* Whether columns first and rows first are the same. */
static bool is_line(const struct qn_shape *shape)
{
    int sides = 0;
    for (int i = 0; i < shape->rank; i++)
        sides += shape->dim[i] > 1;
    return sides <= 1;
}

static qn_status check_shape(const struct header *h)
{
    struct qn_npy *npy = h->npy;
    const struct qn_shape *shape = &npy->shape;
    if (shape->rank == 0)
        return bad(h, "shape", "is one number, not an array of samples");
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] == 0)
            return bad(h, "shape", "there is no number in it");
    npy->count = qn_shape_count(shape);
    if (qn_mul(npy->count, npy->size) < 0)
        return bad(h, "shape", "its numbers cannot be counted");
    return h->fortran && !is_line(shape)
               ? bad(h, "fortran_order",
                     "columns come first; numpy.ascontiguousarray(x) has rows "
                     "first")
               : QN_OK;
}

static qn_status check_length(const struct header *h, int64_t bytes)
{
    char text[128];
    const struct qn_npy *npy = h->npy;
    const int64_t wanted = npy->count * npy->size, is = bytes - npy->at;
    return is == wanted
               ? QN_OK
               : qn_fail(h->log, QN_ERR_FORMAT,
                         "%s: data: %" PRId64 " bytes behind the header, but shape %s of '%s' "
                         "takes %" PRId64,
                         npy->path, is, qn_shape_text(&npy->shape, text, sizeof text), h->descr,
                         wanted);
}

/* --- the file --- */

static int64_t little_endian(const unsigned char *bytes, int size)
{
    uint64_t bits = 0;
    for (int i = 0; i < size; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    return (int64_t)bits;
}

/* What is before the text, whose length comes out. */
static qn_status read_begin(const struct header *h, int64_t bytes, int64_t *length)
{
    struct qn_npy *npy = h->npy;
    unsigned char begin[MARK + VERSION + 4];
    const int64_t room = bytes < (int64_t)sizeof begin ? bytes : (int64_t)sizeof begin;
    memset(begin, 0, sizeof begin);
    QN_TRY(qn_read_at(npy->fd, npy->path, 0, begin, (size_t)room, h->log));
    if (room < MARK || memcmp(begin, mark, MARK) != 0)
        return bad(h, "magic", "this is no npy file");
    const int major = begin[MARK], minor = begin[MARK + 1], size = major == 1 ? 2 : 4;
    npy->at = MARK + VERSION + size;
    if (npy->at > bytes)
        return bad(h, "header", "the file ends early");
    if (major < 1 || major > 3 || minor != 0)
        return qn_fail(h->log, QN_ERR_FORMAT, "%s: version: %d.%d; 1.0, 2.0 and 3.0 can be read",
                       npy->path, major, minor);
    *length = little_endian(begin + MARK + VERSION, size);
    if (*length > MOST_HEADER)
        return bad(h, "header", "is longer than 64 KiB");
    return *length > bytes - npy->at ? bad(h, "header", "the file ends early") : QN_OK;
}

static qn_status read_text(struct header *h, char *text, int64_t length)
{
    const struct qn_npy *npy = h->npy;
    QN_TRY(qn_read_at(npy->fd, npy->path, npy->at, text, (size_t)length, h->log));
    text[length] = 0;
    h->at = text;
    if (strlen(text) != (size_t)length)
        return bad(h, "header", "has a character 0");
    return read_entries(h);
}

static qn_status read_header(struct qn_npy *npy, int64_t bytes, const struct qn_log *log)
{
    struct header h = {.npy = npy, .log = log};
    int64_t length = 0;
    QN_TRY(read_begin(&h, bytes, &length));
    char *text = malloc((size_t)length + 1);
    if (!text)
        return qn_fail_memory(log, npy->path);
    const qn_status status = read_text(&h, text, length);
    free(text);
    QN_TRY(status);
    npy->at += length;
    QN_TRY(find_type(&h));
    QN_TRY(check_shape(&h));
    return check_length(&h, bytes);
}

qn_status qn_npy_open(struct qn_npy *npy, const char *path, const struct qn_log *log)
{
    int64_t bytes;
    *npy = (struct qn_npy){.path = path};
    const qn_status opened = qn_file_open(path, &npy->fd, &bytes, log);
    if (opened != QN_OK) {
        *npy = (struct qn_npy){0};
        return opened;
    }
    const qn_status status = read_header(npy, bytes, log);
    if (status != QN_OK)
        qn_npy_close(npy);
    return status;
}

void qn_npy_close(struct qn_npy *npy)
{
    if (npy->path)
        close(npy->fd);
    *npy = (struct qn_npy){0};
}

/* --- numbers --- */

static double float_of(int64_t bits, int size)
{
    const uint16_t half = (uint16_t)bits;
    const uint32_t single = (uint32_t)bits;
    double value;
    if (size == 8)
        memcpy(&value, &bits, sizeof value);
    else if (size == 4)
        qn_number_decode(QN_F32, &single, 1, &value);
    else
        qn_number_decode(QN_F16, &half, 1, &value);
    return value;
}

static double int_of(int64_t bits, int size)
{
    const int free_bits = 64 - 8 * size;
    return (double)((int64_t)((uint64_t)bits << free_bits) >> free_bits);
}

static double number_of(const struct qn_npy *npy, const unsigned char *bytes)
{
    const int64_t bits = little_endian(bytes, npy->size);
    switch (npy->kind) {
    case QN_NPY_FLOAT:
        return float_of(bits, npy->size);
    case QN_NPY_INT:
        return int_of(bits, npy->size);
    case QN_NPY_UINT:
        return (double)(uint64_t)bits;
    default:
        return bits != 0;
    }
}

qn_status qn_npy_read_bytes(const struct qn_npy *npy, int64_t first, int64_t count, void *bytes,
                            const struct qn_log *log)
{
    return qn_read_at(npy->fd, npy->path, npy->at + first * npy->size, bytes,
                      (size_t)(count * npy->size), log);
}

qn_status qn_npy_read(const struct qn_npy *npy, int64_t first, int64_t count, double *values,
                      const struct qn_log *log)
{
    unsigned char part[8 * PART_NUMBERS];
    for (int64_t done = 0; done < count; done += PART_NUMBERS) {
        const int64_t some = count - done < PART_NUMBERS ? count - done : PART_NUMBERS;
        QN_TRY(qn_npy_read_bytes(npy, first + done, some, part, log));
        for (int64_t i = 0; i < some; i++)
            values[done + i] = number_of(npy, part + i * npy->size);
    }
    return QN_OK;
}
